"""Check: score tests and residual tests together, with one verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from doublewell.adequacy.directions import DIRECTIONS, Array, Fit
from doublewell.adequacy.projection import Projector, score
from doublewell.adequacy.residual import chance, probe, white_tests
from doublewell.adequacy.values import Adequacy, ScoreTest
from doublewell.adequacy.words import SENTENCES, plain_words, verdict
from doublewell.errors import InputError
from doublewell.evidence.likelihood import Trajectory
from doublewell.record import Record

__all__ = ["check_adequacies", "check_adequacy", "holm", "projector_of", "score_tests"]


def check_adequacy(record: Record, found: Trajectory) -> Adequacy:
    """Ask the residual of a trajectory fit for what the model lacks; see ``check_adequacies``."""
    return check_adequacies([record], [found])[0]


def check_adequacies(records: Sequence[Record], found: Sequence[Trajectory]) -> list[Adequacy]:
    """Ask the residuals of trajectory fits for what the model lacks; the records are of one batch.

    The verdict is "adequate" when no test is significant after Holm's correction at 3 % for all together, "not
    adequate" when one is below 0.1 % (tails aside, which least squares bears), and "look" in between.
    """
    fits = [Fit(record, one) for record, one in zip(records, found, strict=True)]
    for fit in fits:
        if fit.found.residual.shape != fit.record.shape:
            raise InputError(
                f"the fit has a residual of shape {fit.found.residual.shape} and the record is {fit.record.shape}: "
                "expected the record that was fitted"
            )
    projector = projector_of(fits)
    # what a fit that stopped early leaves along J_u and J_g would look like a fault: it is taken out first
    residuals = projector.project(np.stack([one.residual for one in found]))[0]
    tests = [score_tests(fits, projector, residuals, name, make) for name, make in DIRECTIONS.items()]
    v = np.broadcast_to(probe(records[0].shape), residuals.shape)
    taken = v - projector.project(v)[0]
    white = [white_tests(fit, r, part) for fit, r, part in zip(fits, residuals, taken, strict=True)]
    answers = [holm([*(column[k] for column in tests), *white[k]]) for k in range(len(fits))]
    return [Adequacy(answer, *verdict(answer)) for answer in answers]


def projector_of(fits: Sequence[Fit]) -> Projector:
    """Return the projector at the fits of a batch."""
    first = fits[0]
    initial = np.stack([fit.found.initial for fit in fits])
    theta = np.stack([fit.found.coefficients for fit in fits])
    return Projector.at(first.model, initial, theta, first.constants(first.grid.boundary))


def score_tests(
    fits: Sequence[Fit], projector: Projector, residuals: Array, name: str, make: Callable[[Fit], list[Array]]
) -> list[ScoreTest]:
    """Test whether each residual points along directions, the derivatives of the prediction by missing parameters."""
    made = [make(fit) for fit in fits]
    projected = [projector.project(np.stack(fields)) for fields in zip(*made, strict=True)]
    return [
        _score_test(fit, name, residuals[k], [(fields[k], shifts[k]) for fields, shifts in projected])
        for k, fit in enumerate(fits)
    ]


def _score_test(fit: Fit, name: str, residual: Array, projected: list[tuple[Array, Array]]) -> ScoreTest:
    seen = score([field for field, _ in projected], residual, fit.found.noise)
    errors = np.sqrt(np.diag(seen.covariance))
    moved = sum(value * shift for value, (_, shift) in zip(seen.values, projected, strict=True))
    size, count = fit.family.size, len(projected)
    law_shift = float(np.linalg.norm(fit.found.evidence.blocks[0].triangle[:size, :size] @ moved))
    statistic = float(np.sign(seen.values[0]) * np.sqrt(seen.chi2)) if count == 1 else seen.chi2
    test = ScoreTest(
        name, statistic, count, chance(seen.chi2, count), 1.0, _floats(seen.values), _floats(errors), law_shift, ""
    )
    return replace(test, words=SENTENCES.get(name, plain_words)(fit, test))


def holm(tests: Sequence[ScoreTest]) -> tuple[ScoreTest, ...]:
    """Adjust the probabilities for the number of tests (Holm 1979)."""
    order = sorted(range(len(tests)), key=lambda k: tests[k].p)
    adjusted, highest = [1.0] * len(tests), 0.0
    for rank, k in enumerate(order):
        highest = max(highest, min(1.0, (len(tests) - rank) * tests[k].p))
        adjusted[k] = highest
    return tuple(replace(test, adjusted=value) for test, value in zip(tests, adjusted, strict=True))


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)

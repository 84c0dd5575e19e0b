"""Check: score tests and residual tests together, with one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from doublewell.adequacy.directions import DIRECTIONS, Array, Fit
from doublewell.adequacy.residual import chance, white_tests
from doublewell.adequacy.words import SENTENCES, plain_words, verdict
from doublewell.errors import InputError
from doublewell.evidence.likelihood import Trajectory
from doublewell.evidence.likelihood.score import Adequacy, ScoreTest, score
from doublewell.record import Record

__all__ = ["check_adequacy", "holm", "score_test"]


def check_adequacy(record: Record, found: Trajectory) -> Adequacy:
    """Ask the residual of a trajectory fit for what the model lacks; about 30 forward trajectories a question.

    The verdict is "adequate" when no test is significant after Holm's correction at 5 % for all together, "not
    adequate" when one is below 0.1 % (tails aside, which least squares bears), and "look" in between.
    """
    if found.residual.shape != record.shape:
        raise InputError(
            f"the fit has a residual of shape {found.residual.shape} and the record is {record.shape}: expected the "
            "record that was fitted"
        )
    fit = Fit(record, found)
    scores = [score_test(fit, name, make(fit)) for name, make in DIRECTIONS.items()]
    tests = holm([*scores, *white_tests(fit)])
    return Adequacy(tests, *verdict(tests))


def score_test(fit: Fit, name: str, directions: Sequence[Array]) -> ScoreTest:
    """Test whether the residual points along directions, the derivatives of the prediction by missing parameters."""
    projected = [fit.projector.project(direction) for direction in directions]
    residual = fit.projector.whiten(fit.found.residual)
    seen = score([field for field, _ in projected], residual, fit.found.noise)
    errors = np.sqrt(np.diag(seen.covariance))
    moved = sum(value * shift for value, (_, shift) in zip(seen.values, projected, strict=True))
    size = fit.family.size
    law_shift = float(np.linalg.norm(fit.found.evidence.blocks[0].triangle[:size, :size] @ moved))
    one = len(directions) == 1
    statistic = float(np.sign(seen.values[0]) * np.sqrt(seen.chi2)) if one else seen.chi2
    test = ScoreTest(
        name, statistic, len(directions), chance(seen.chi2, len(directions)), 1.0, _floats(seen.values),
        _floats(errors), law_shift, "",
    )  # fmt: skip
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

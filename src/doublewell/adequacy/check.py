"""Check: score tests, residual tests and the search for bad cells together, with one verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from doublewell.adequacy.alternatives import DIRECTIONS, Fit
from doublewell.adequacy.projection import Projector, score
from doublewell.adequacy.residual import (
    Cells,
    Mask,
    ask_cells,
    cells_test,
    chance,
    neighbour_tests,
    peel,
    probe,
    relative_noise,
    steadiness,
    value_tests,
)
from doublewell.adequacy.values import NUMERICAL, Adequacy, ScoreTest, Verdict, significant, verdict_of
from doublewell.dynamics import border_mask
from doublewell.evidence import system
from doublewell.hints import Array
from doublewell.likelihood import Trajectory
from doublewell.likelihood.batch import points

_UNTOUCHED = 0.98  # fraction of a frame's noise that the fit leaves
_COLOURED = ("white in z", "white in y", "white in x", "tails")  # what a measured spectrum has answered already
_TAKEN = 4  # cells from the border of a window whose noise the fit takes in part


def check_adequacies(found: Sequence[Trajectory]) -> list[Adequacy]:
    """Test the residuals of trajectory fits for what the model lacks.

    The verdict is "adequate" when no test is significant after Holm's correction at 3 % for all together, "not
    adequate" when one is below 0.1 % (tails aside, which least squares bears), and "check" in between. Where a few
    cells stand out, the other tests are made without them. A residual too small to be noise is adequate.
    """
    if any(fit.batch is not found[0].batch for fit in found):
        return [check_adequacies([fit])[0] for fit in found]
    fits = [Fit(fit) for fit in found]
    return [_conclude(fit, looked) for fit, looked in zip(fits, _look(fits, projector_of(fits)), strict=True)]


@dataclass(frozen=True, eq=False)
class _Look:
    """What a fit leaves and what it answered, the cells aside.

    ``residual`` is without what the fit can imitate; ``fields`` are the directions without it, ``frames`` those that
    the fit leaves nearly untouched, ``v`` is a random field and ``taken`` P v.
    """

    residual: Array
    tests: list[ScoreTest]
    fields: list[Array]
    frames: Mask
    v: Array
    taken: Array


def _look(fits: Sequence[Fit], projector: Projector) -> list[_Look]:
    # what a fit that stopped early leaves along J_u and J_g would look like a fault: it is taken out first
    residuals = projector.project(np.stack([fit.found.residual for fit in fits]))[0]
    asked = [_directions(fits, projector, residuals, name, make) for name, make in DIRECTIONS.items()]
    asked = [one for one in asked if one[1]]
    counts = np.asarray(projector.constants.root) > 0.0
    v = np.broadcast_to(np.where(counts, probe(fits[0].record.shape), 0.0), residuals.shape)
    taken = v - projector.project_white(v)[0]
    looks = []
    residuals = np.stack([_imputed(fit, residual) for fit, residual in zip(fits, residuals, strict=True)])
    for k, fit in enumerate(fits):
        left = 1.0 - np.mean((v[k] * taken[k]).reshape(len(v[k]), -1), axis=1)
        tests = [tests[k] for tests, _ in asked]
        tests += neighbour_tests(fit, residuals[k], v[k], taken[k], _kept(fit))
        tests += value_tests(fit, np.where(_kept(fit), residuals[k], 0.0), left, left > _UNTOUCHED)
        if fit.found.view.whitening.colour is not None:  # the floor makes fine structure smaller than it is
            tests = [test for test in tests if test.name not in _COLOURED]
        fields = [field[k] for _, projected in asked for field in projected]
        looks.append(_Look(residuals[k], tests, fields, left > _UNTOUCHED, v[k], taken[k]))
    return looks


def _imputed(fit: Fit, residual: Array) -> Array:
    """Put noise where nothing was seen: what the tests expect of a good fit, so that they ask what was seen."""
    kept = _kept(fit)
    if kept.all():
        return residual
    noise = fit.found.noise * np.random.default_rng(1).standard_normal(residual.shape)
    return np.where(kept, residual, noise)


def _kept(fit: Fit) -> Mask:
    """Return which values are the noise they had: seen, and not next to the border of a window, which takes it."""
    seen = fit.record.observed()
    if fit.window:
        seen = seen & ~border_mask(fit.record.mesh, _TAKEN)
    return seen


def _conclude(fit: Fit, look: _Look) -> Adequacy:
    cells = ask_cells(look.residual, look.frames, np.zeros(fit.record.mesh, dtype=bool))
    relative = relative_noise(fit)
    if relative < NUMERICAL:
        return Adequacy(holm([*look.tests, cells_test(cells, None, None)]), Verdict.ADEQUATE, relative)
    out, shift = peel(cells, lambda mask: _refit(fit, look.frames, mask)[0]), None
    if out is not None and out.any():
        _, shift, quieter = _refit(fit, look.frames, out)
        (look,) = _look([quieter], projector_of([quieter], out))
        fit = quieter
    tests = holm([*look.tests, cells_test(cells, out, shift)])
    counted = significant(tests)
    named = bool(counted) and counted[0].shift is not None  # a cause has a name: is it enough?
    leftover = tuple(_leftover(fit, look)) if named else ()
    return Adequacy(tests, verdict_of(tests), relative, steadiness(fit) if counted else None, leftover)


def _refit(fit: Fit, frames: Mask, out: Mask) -> tuple[Cells, float, Fit]:
    """Fit again, to first order, without some cells: what the others say, how far the law moves, the noise then."""
    projector = projector_of([fit], out)
    residual, shift = (part[0] for part in projector.project(fit.found.residual[None]))
    size = fit.family.size
    moved = float(np.linalg.norm(system(fit.found.evidence)[0] @ shift[-size:]))
    free = residual.size - np.count_nonzero(out) * (len(residual) - 1) - residual[0].size - size
    quieter = Fit(replace(fit.found, noise=float(np.linalg.norm(residual) / np.sqrt(free))))
    return ask_cells(residual, frames, out), moved, quieter


def _leftover(fit: Fit, look: _Look) -> list[ScoreTest]:
    """Test neighbours again after all directions together are taken out of the residual."""
    flat = np.stack([field.ravel() for field in look.fields], axis=1)
    flat = flat[:, np.linalg.norm(flat, axis=0) > 0.0]
    basis = np.linalg.qr(flat / np.linalg.norm(flat, axis=0))[0]
    r = look.residual.ravel()
    rest = (r - basis @ (basis.T @ r)).reshape(look.residual.shape)
    return neighbour_tests(fit, rest, look.v, look.taken, _kept(fit))


def projector_of(fits: Sequence[Fit], out: Mask | None = None) -> Projector:
    """Return the projector at the fits of a batch; cells left out weigh nothing."""
    model, constants = fits[0].model()
    if out is not None:
        constants = constants._replace(root=np.where(out, 0.0, constants.root))
    return Projector.at(model, *points([fit.found for fit in fits]), constants)


def score_tests(
    fits: Sequence[Fit], projector: Projector, residuals: Array, name: str, make: Callable[[Fit], list[Array]]
) -> list[ScoreTest]:
    """Test whether each residual points along directions, the derivatives of the prediction by missing parameters."""
    return _directions(fits, projector, residuals, name, make)[0]


def _directions(
    fits: Sequence[Fit], projector: Projector, residuals: Array, name: str, make: Callable[[Fit], list[Array]]
) -> tuple[list[ScoreTest], list[Array]]:
    """Return the test of each record, and the projected directions."""
    made = [make(fit) for fit in fits]
    if not made[0]:
        return [], []
    projected = [projector.project(np.stack(fields)) for fields in zip(*made, strict=True)]
    tests = [
        _score_test(fit, name, residuals[k], [(fields[k], shifts[k]) for fields, shifts in projected])
        for k, fit in enumerate(fits)
    ]
    return tests, [fields for fields, _ in projected]


def _score_test(fit: Fit, name: str, residual: Array, projected: list[tuple[Array, Array]]) -> ScoreTest:
    seen = score([field for field, _ in projected], residual, fit.found.noise)
    errors = np.sqrt(np.diag(seen.covariance))
    moved = sum(value * shift for value, (_, shift) in zip(seen.values, projected, strict=True))
    size, count = fit.family.size, len(projected)
    law_shift = float(np.linalg.norm(system(fit.found.evidence)[0] @ moved[-size:]))
    statistic = float(np.sign(seen.values[0]) * np.sqrt(seen.chi2)) if count == 1 else seen.chi2
    return ScoreTest(
        name, statistic, count, chance(seen.chi2, count), 1.0, _floats(seen.values), _floats(errors), law_shift
    )


def holm(tests: Sequence[ScoreTest]) -> tuple[ScoreTest, ...]:
    """Adjust the probabilities of tests for their number."""
    adjusted = holm_adjusted([test.p for test in tests])
    return tuple(replace(test, adjusted=value) for test, value in zip(tests, adjusted, strict=True))


def worst_of_parts(answers: Sequence[tuple[Adequacy, str]]) -> Adequacy | None:
    """Return the tests of all parts together: of each the worst part's, its probability times their number."""
    if not answers:
        return None
    worst: dict[str, ScoreTest] = {}
    for answer, name in answers:
        for test in answer.tests:
            if test.name not in worst or test.p < worst[test.name].p:
                worst[test.name] = replace(test, part=name if len(answers) > 1 else None)
    tests = holm([replace(test, p=min(1.0, len(answers) * test.p)) for test in worst.values()])
    return Adequacy(tests, verdict_of(tests))


def holm_adjusted(chances: Sequence[float]) -> list[float]:
    """Return probabilities adjusted for their number (Holm 1979).

    >>> holm_adjusted([0.01, 0.5])
    [0.02, 0.5]
    """
    order = sorted(range(len(chances)), key=lambda k: chances[k])
    adjusted, highest = [1.0] * len(chances), 0.0
    for rank, k in enumerate(order):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[k]))
        adjusted[k] = highest
    return adjusted


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)

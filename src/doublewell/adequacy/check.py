"""Check: whether a record is the fitted model plus noise, and which parameter the model lacks if it is not.

An enlarged model has one more parameter a, zero in the model that was fitted, and d is the derivative of its
prediction. What the fitted parameters can imitate of d is taken out,

    d_perp = P (d - J_u x),   P = 1 - Q Q', Q an orthonormal basis of J_g;   (J_u' P J_u) x = J_u' P d,

and a is estimated from the residual r alone: a = <d_perp, r> / |d_perp|^2 with the standard error s / |d_perp|. The
fitted values and the residual are independent, so d may be formed at the estimate. No second fit is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doublewell.adequacy.statistics import (
    NUMERICAL,
    Adequacy,
    Cells,
    ScoreTest,
    Verdict,
    cells_of,
    cells_test,
    holm,
    neighbour_tests,
    peel,
    significant,
    value_tests,
    verdict_of,
)
from doublewell.dynamics import Grid, numpy_transforms
from doublewell.hints import Array, Bools
from doublewell.law import Family
from doublewell.likelihood import Projector, Trajectory, points
from doublewell.observation.view import mode_grid, noise_in_time, noisy

_SMALL = 1e-5  # relative difference of q, and of the force
_UNTOUCHED = 0.98  # fraction of a frame's noise that the fit leaves
_COLOURED = ("white in z", "white in y", "white in x", "tails")  # what a measured spectrum has answered already
_TAKEN = 4  # cells from the border of a window whose noise the fit takes in part


@dataclass(frozen=True)
class _Tilted:
    """A family with one more coefficient: a constant force."""

    family: Family

    def force(self, coefficients: Any, u: Any) -> Any:
        return self.family.force(coefficients[:-1], u) + coefficients[-1]


def directions(fits: Sequence[Trajectory], u: Array) -> Iterator[tuple[str, list[Array]]]:
    """Yield what the model may lack: a name, and derivatives of the predictions by parameters that it does not have.

    Arrays are d[record, t, (z, y,) x], of fits of one batch that predict `u`. What the fit estimates, or what has no
    effect, is left out.
    """
    first = fits[0]
    record, batch = first.record, first.batch
    grid, window, axes = mode_grid(record), record.boundary == "open", range(2 - u.ndim, 0)
    time = (record.times - record.times[0]).reshape(-1, *[1] * len(axes))
    if not batch.view.q_free:  # the relative error of q
        change = batch.predict(fits, factor=1.0 + _SMALL) - batch.predict(fits, factor=1.0 - _SMALL)
        yield "q", [change / (2.0 * _SMALL)]
        del change  # fields of all frames: not kept longer than needed
    # a velocity c along each axis: u(x - c t, t) solves the equation with - c . grad u; at a no-flux wall across the
    # velocity it is the pattern that drifts in the frame, not a flow through the wall
    yield "advection", [-time * slope(u, axis, grid, window=window) for axis in axes]
    if not window:  # the other boundary condition, from the same initial field
        yield "boundary", [batch.predict(fits, boundary="neumann" if grid.boundary == "periodic" else "periodic") - u]
    if batch.dynamics.gauge != "constant":  # a constant that is added to the force
        theta = points(fits)[1]
        size = _SMALL * np.max(np.abs(theta[:, len(batch.view.free) :]), axis=1, keepdims=True)
        tilted = _Tilted(first.family)
        change = batch.predict(fits, tilted, theta=np.hstack([theta, size]))
        change -= batch.predict(fits, tilted, theta=np.hstack([theta, -size]))
        yield "tilt", [change / (2.0 * size.reshape(-1, *[1] * (u.ndim - 1)))]
        del change
    # observations (1 + a) u, (1 + a t / T) u, u + a
    named = {"gain": u, "gain drift": time / time[-1] * u, "offset": np.ones_like(u)}
    yield from ((name, [field]) for name, field in named.items() if name not in batch.view.free)
    # u + a Laplacian u: a Gaussian blur of the variance 2 a; where the interface is flat and at rest, |grad u|^2 is a
    # function of u, and blur is the same as another law
    if batch.view.optics.blur != "estimated" and window:
        twice = [slope(slope(u, axis, grid, window=True), axis, grid, window=True) for axis in axes]
        yield "blur", [np.sum(twice, axis=0)]
    elif batch.view.optics.blur != "estimated":
        forward, backward = numpy_transforms(grid.cells, grid.boundary)
        yield "blur", [backward(grid.laplacian * forward(u))]


def slope(u: Array, axis: int, grid: Grid, *, window: bool = False) -> Array:
    """Differentiate along a space axis, counted from the end: by modes, in a window by differences."""
    from scipy import fft

    if window:
        return np.asarray(np.gradient(u, grid.dx[axis], axis=axis, edge_order=2))
    n, length, along = grid.cells[axis], grid.cells[axis] * grid.dx[axis], (-1, *[1] * (-1 - axis))
    if grid.boundary == "periodic":
        waves = 2j * np.pi * np.arange(n // 2 + 1) / length
        if n % 2 == 0:
            waves[-1] = 0.0  # the highest mode has no slope at the points
        return np.asarray(fft.irfft(waves.reshape(along) * fft.rfft(u, axis=axis), n=n, axis=axis))
    cosines = fft.dct(u, axis=axis, norm="ortho") * (-np.pi * np.arange(n) / length).reshape(along)
    sines = np.roll(cosines, -1, axis=axis)  # the constant, now last, is zero
    return np.asarray(fft.idst(sines, axis=axis, norm="ortho"))


def score(fields: Array, residual: Array, noise: float) -> tuple[float, Array, Array]:
    """Estimate the parameters of projected directions together: chi-square, values, covariance.

    Directions that hold nothing have infinite variance.
    """
    flat = fields.reshape(len(fields), -1)
    information = flat @ flat.T / noise**2
    slope = flat @ residual.ravel() / noise**2
    scale = np.sqrt(np.diag(information))
    if not (np.all(scale > 0.0) and np.linalg.cond(information / np.outer(scale, scale)) < 1e12):
        return 0.0, np.zeros(len(flat)), np.diag(np.full(len(flat), np.inf))
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    values = covariance @ slope
    return float(slope @ values), values, covariance


def score_test(fit: Trajectory, name: str, fields: Array, shifts: Array, residual: Array) -> ScoreTest:
    """Test whether a residual points along projected directions, the derivatives by missing parameters."""
    from scipy.special import chdtrc

    chi2, values, covariance = score(fields, residual, fit.noise)
    errors, count = np.sqrt(np.diag(covariance)), len(values)
    moved = fit.size((values @ shifts)[len(fit.batch.view.free) :])
    statistic = float(np.sign(values[0]) * np.sqrt(chi2)) if count == 1 else chi2
    p = float(chdtrc(count, chi2))
    return ScoreTest(name, statistic, count, p, 1.0, tuple(values.tolist()), tuple(errors.tolist()), moved)


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a fit leaves and what it answered, the cells aside.

    ``residual`` is without what the fit can imitate, with noise where nothing was ``kept``; ``fields`` are the
    directions without it, ``frames`` those that the fit leaves nearly untouched, ``v`` is a random field and ``taken``
    P v. ``relative_noise`` is the noise over the root mean square of the field.
    """

    residual: Array
    kept: Bools
    relative_noise: float
    tests: list[ScoreTest]
    fields: list[Array]
    frames: Bools
    v: Array
    taken: Array


def _answers(fits: Sequence[Trajectory], projector: Projector) -> list[_Answer]:
    """Test the residuals of a batch along all directions, and their values and neighbours."""
    # what a fit that stopped early leaves along J_u and J_g would look like a fault: it is taken out first
    residuals, _ = projector.project(np.stack([fit.residual for fit in fits]))
    projected, u = {}, fits[0].batch.predict(fits)
    sizes = [float(np.sqrt(np.mean(field**2))) for field in u]
    for name, fields in directions(fits, u):
        pairs = [projector.project(field) for field in fields]
        projected[name] = [np.stack(part, axis=1) for part in zip(*pairs, strict=True)]
        del pairs, fields
    del u  # a field of all frames
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=residuals.shape[1:])  # always the same
    v = np.where(np.asarray(projector.constants.root) > 0.0, signs, 0.0)
    taken = v - projector.project(np.broadcast_to(v, residuals.shape), white=True)[0]
    answers = []
    for k, fit in enumerate(fits):
        tests = [score_test(fit, name, f[k], shifts[k], residuals[k]) for name, (f, shifts) in projected.items()]
        kept, residual = noisy(fit.record, _TAKEN), residuals[k]
        if not kept.all():  # noise elsewhere is what the tests expect of a good fit
            residual = np.where(kept, residual, fit.noise * np.random.default_rng(1).standard_normal(residual.shape))
        left = 1.0 - np.mean((v * taken[k]).reshape(len(v), -1), axis=1)
        tests += neighbour_tests(residual / fit.noise, v, taken[k], kept)
        tests += value_tests(np.where(kept, residual, 0.0) / fit.noise, left, left > _UNTOUCHED)
        if fit.batch.view.whitening.colour is not None:  # the floor makes fine structure smaller than it is
            tests = [test for test in tests if test.name not in _COLOURED]
        relative, perpendicular = fit.noise / sizes[k], [field for f, _ in projected.values() for field in f[k]]
        answers.append(_Answer(residual, kept, relative, tests, perpendicular, left > _UNTOUCHED, v, taken[k]))
    return answers


def check_adequacies(fits: Sequence[Trajectory]) -> list[Adequacy]:
    """Test the residuals of trajectory fits for what the model lacks.

    The verdict is "adequate" when no test is significant after Holm's correction at 3 % for all together, "not
    adequate" when one is below 0.1 % (tails aside, which least squares bears), and "check" in between. Where a few
    cells stand out, the other tests are made without them. A residual too small to be noise is adequate.
    """
    if any(fit.batch is not fits[0].batch for fit in fits):
        return [check_adequacies([fit])[0] for fit in fits]
    return [_conclude(*pair) for pair in zip(fits, _answers(fits, Projector(fits)), strict=True)]


def _conclude(fit: Trajectory, answer: _Answer) -> Adequacy:
    """Search for bad cells, test again without them, and put all tests of a fit together."""
    cells = cells_of(answer.residual, answer.frames, np.zeros(answer.residual.shape[1:], dtype=bool))
    relative = answer.relative_noise
    if relative < NUMERICAL:
        return Adequacy(holm([*answer.tests, cells_test(cells, None, None)]), Verdict.ADEQUATE, relative)
    out, shift = peel(cells, lambda mask: _refit(fit, answer.frames, mask)[0]), None
    if out is not None and out.any():
        _, shift, fit = _refit(fit, answer.frames, out)
        (answer,) = _answers([fit], Projector([fit], out))
    tests = holm([*answer.tests, cells_test(cells, out, shift)])
    counted = significant(tests)
    if not counted:
        return Adequacy(tests, Verdict.ADEQUATE, relative)
    own = noise_in_time(fit.record.slab())
    leftover: tuple[ScoreTest, ...] = ()
    if counted[0].shift is not None:  # a cause has a name: what do all directions together leave to neighbours?
        flat = np.stack([field.ravel() for field in answer.fields], axis=1)
        flat = flat[:, np.linalg.norm(flat, axis=0) > 0.0]
        basis = np.linalg.qr(flat / np.linalg.norm(flat, axis=0))[0]
        r = answer.residual.ravel() / fit.noise
        rest = (r - basis @ (basis.T @ r)).reshape(answer.residual.shape)
        leftover = tuple(neighbour_tests(rest, answer.v, answer.taken, answer.kept))
    return Adequacy(tests, verdict_of(tests), relative, None if own is None else own / fit.noise, leftover)


def _refit(fit: Trajectory, frames: Bools, out: Bools) -> tuple[Cells, float, Trajectory]:
    """Fit again, to first order, without some cells: what the others say, how far the law moves, the new noise."""
    (residual,), (shift,) = Projector([fit], out).project(fit.residual[None])
    shift = shift[len(fit.batch.view.free) :]
    free = residual.size - np.count_nonzero(out) * (len(residual) - 1) - residual[0].size - shift.size
    quieter = replace(fit, noise=float(np.linalg.norm(residual) / np.sqrt(free)))
    return cells_of(residual, frames, out), fit.size(shift), quieter


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

"""Check: whether a record is the fitted model plus noise, and which parameter is missing in the model if it is not.

An enlarged model has one more parameter a, zero in the model that was fitted, and d is the derivative of its
prediction. What the fitted parameters can imitate of d is taken out,

    d_perp = P (d - J_u x),   P = 1 - Q Q', Q an orthonormal basis of J_g;   (J_u' P J_u) x = J_u' P d,

and a is estimated from the residual r alone: a = <d_perp, r> / |d_perp|^2 with the standard error s / |d_perp|. The
fitted values and the residual are independent, so d may be formed at the estimate. No second fit is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from doublewell.adequacy import statistics
from doublewell.adequacy.alternatives import directions
from doublewell.adequacy.statistics import NUMERICAL, REACH, Adequacy, Cells, ScoreTest, Verdict
from doublewell.evidence import system
from doublewell.hints import Array, Bools, Floats
from doublewell.likelihood import Projector, Trajectory
from doublewell.likelihood.programs import AT_ONCE, compiled
from doublewell.observation.view import noise_in_time, noisy

_PROBES = 4  # random fields that give the lengths of directions and what noise would show
_PLAIN = 4.0  # squared score over its variance: Holm's correction asks for more than twice as much
_ALWAYS = ("q", "advection", "boundary", "tilt", "gain", "gain drift", "offset", "blur")  # that the report quotes
_LASTS = 20.0  # chi-square of a force over that of consecutive frames; measured: 12 for noise in the dynamics
_POINTS, _DEGREE = 101, 3  # phase values and degree at which the law is compared
_UNTOUCHED = 0.98  # fraction of a frame's noise that the fit leaves
_COLOURED = ("white in z", "white in y", "white in x", "tails")  # what a measured spectrum has answered already
_TAKEN = 2  # cells next to the border of a window whose noise the fit takes in part


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


def score_test(
    fit: Trajectory, name: str, fields: Array, shifts: Array, residual: Array, scale: Scale
) -> ScoreTest:  # fmt: skip
    """Test whether a residual points along projected directions, the derivatives by missing parameters."""
    from scipy.special import chdtrc

    chi2, values, covariance = score(fields, residual, fit.noise)
    errors, count = np.sqrt(np.diag(covariance)), len(values)
    shift = (values @ shifts)[len(fit.batch.view.free) :]
    statistic = float(np.sign(values[0]) * np.sqrt(chi2)) if count == 1 else chi2
    return ScoreTest(
        name, statistic, count, float(chdtrc(count, chi2)), 1.0, tuple(values.tolist()), tuple(errors.tolist()),
        fit.size(shift), drop=scale.drop(chi2), effect=scale.effect(shift), deviation=scale.deviation(chi2),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scale:
    """What a test is weighed against: the number of values, the noise over the motion of the field, and the law.

    Changes of the law are read at a low degree, ``lift`` to that of the fit, ``triangle`` in units of the noise:
    an average over degrees hardly follows what the highest alone could do.
    """

    count: int
    noise: float
    force: Array
    features: Array
    lift: Array
    triangle: Array

    def drop(self, chi2: float) -> float:
        """Return the drop of chi-square, for a noise that is estimated with it."""
        return float(-self.count * np.log1p(-min(chi2 / self.count, 0.9999)))

    def deviation(self, chi2: float) -> float:
        """Return the root mean square of what was explained over that of the motion of the field."""
        return float(self.noise * np.sqrt(min(chi2 / self.count, 1.0)))

    def effect(self, shift: Array) -> float:
        """Return the change of the force for a change of the coefficients, relative, root mean square."""
        low = np.linalg.lstsq(self.triangle @ self.lift, self.triangle @ shift, rcond=None)[0]
        return float(np.linalg.norm(low @ self.features) / np.linalg.norm(self.force))

    @property
    def band(self) -> float:
        """Half the width of the 95 % band of the force, relative, root mean square."""
        spread = np.linalg.pinv(self.triangle @ self.lift).T @ self.features
        return float(REACH * np.linalg.norm(spread) / np.linalg.norm(self.force))


def scale_of(fit: Trajectory, u: Array) -> Scale:
    """Return what the tests of a fit that predicts u are weighed against."""
    moved, low = float(np.sqrt(np.mean((u - u[0]) ** 2))), fit.family.at(min(fit.family.degree, _DEGREE))
    phase = np.linspace(-1.0, 1.0, _POINTS)
    count = int(np.count_nonzero(fit.residual)) - len(fit.theta)
    return Scale(
        count, fit.noise / max(moved, 1e-12), fit.family.force(fit.coefficients, phase), low.features(phase),
        low.elevation(fit.family), system(fit.evidence)[0],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a fit leaves and what it answered, the cells aside.

    ``residual`` is without what the fit can imitate, with noise where nothing was ``kept``; ``frames`` are those that
    the fit leaves nearly untouched. ``relative_noise`` is the noise over the root mean square of the field.
    """

    residual: Array
    kept: Bools
    relative_noise: float
    tests: list[ScoreTest]
    frames: Bools
    scale: Scale


def _answers(fits: Sequence[Trajectory], projector: Projector) -> list[_Answer]:
    """Test the residuals of a batch along all directions, and their values and neighbours."""
    # what a fit that stopped early leaves along J_u and J_g would look like a fault: it is taken out first
    whole = projector.whitened(np.stack([fit.residual for fit in fits]))
    rng, shape = np.random.default_rng(0), whole.shape[1:]  # always the same
    seen = np.asarray(projector.constants.root) > 0.0
    probes = [np.where(seen, rng.choice([-1.0, 1.0], size=shape), 0.0) for _ in range(_PROBES)]
    projected = projector.project_all([whole, *[np.broadcast_to(v, whole.shape) for v in probes]])[0]
    residuals, left = projected[0], list(projected[1:])
    u = fits[0].batch.predicted(fits)
    scales = [scale_of(fit, field) for fit, field in zip(fits, u, strict=True)]
    sizes = [float(np.sqrt(np.mean(field**2))) for field in u]
    tests, best = _scores(fits, projector, u, residuals, probes, left, scales)
    del u  # a field of all frames
    forced = _forced(projector, best, left)
    answers = []
    for k, fit in enumerate(fits):
        kept, residual = noisy(fit.record, fit.batch.border + _TAKEN), residuals[k]
        if not kept.all():  # noise elsewhere is what the tests expect of a good fit
            residual = np.where(kept, residual, fit.noise * np.random.default_rng(1).standard_normal(residual.shape))
        v, taken = probes[0], probes[0] - left[0][k]
        free = 1.0 - np.mean((v * taken).reshape(len(v), -1), axis=1)
        off = fit.batch.border + _TAKEN if fit.record.boundary == "open" else 0
        inside = (v * taken)[(slice(None), *(slice(off, n - off) for n in v.shape[1:]))]
        left_inside = 1.0 - np.mean(inside.reshape(len(v), -1), axis=1)
        near = statistics.neighbour_tests(residual / fit.noise, v, taken, kept)
        near = [replace(t, drop=scales[k].drop(t.statistic**2)) for t in near]
        unnamed = statistics.forced_test(*forced[k])
        explained = min(unnamed.drop, _LASTS * near[0].drop)  # it lasts over frames, noise of the camera need not
        unnamed = replace(unnamed, drop=scales[k].drop(explained), deviation=scales[k].deviation(explained))
        own = [*tests[k].values(), unnamed, *near]
        own += statistics.value_tests(np.where(kept, residual, 0.0) / fit.noise, left_inside, free > _UNTOUCHED)
        if fit.batch.view.whitening.colour is not None:  # the floor makes fine structure smaller than it is
            own = [test for test in own if test.name not in _COLOURED]
        answers.append(_Answer(residual, kept, fit.noise / sizes[k], own, free > _UNTOUCHED, scales[k]))
    return answers


def _scores(
    fits: Sequence[Trajectory], projector: Projector, u: Array, residuals: Array, probes: Sequence[Array],
    left: Sequence[Array], scales: Sequence[Scale],
) -> tuple[list[dict[str, ScoreTest]], Array]:  # fmt: skip
    """Test residuals along all directions; return what the best cause leaves of them, too."""
    tests: list[dict[str, ScoreTest]] = [{} for _ in fits]
    best: list[tuple[float, Array]] = [(0.0, residual) for residual in residuals]  # what the best cause leaves
    noises = np.array([fit.noise for fit in fits])
    waiting: dict[str, list[Floats]] = {}
    rate: dict[int, tuple[Array, Array]] = {}  # of q, which goes with other terms again
    # in single precision: what is solved is decided here, and only of the rest is this the answer
    single = [np.broadcast_to(v.astype(np.float32), residuals.shape) for v in probes]
    pairs = [(v, projector.along_theta(v), rest.astype(np.float32)) for v, rest in zip(single, left, strict=True)]
    lefts = residuals.astype(np.float32)

    def solve() -> None:
        """Project the directions that wait, and test them."""
        each = {id(field): field for fields in waiting.values() for field in fields if id(field) not in rate}
        projected = rate | dict(zip(each, zip(*projector.project_all([*each.values()]), strict=True), strict=True))
        for name, fields in waiting.items():
            rests, shifts = (np.stack(part, 1) for part in zip(*[projected[id(f)] for f in fields], strict=True))
            if name == "q":
                rate.update({id(field): projected[id(field)] for field in fields})
            for k, fit in enumerate(fits):
                tests[k][name] = test = score_test(fit, name, rests[k], shifts[k], residuals[k], scales[k])
                if test.rank > best[k][0]:
                    best[k] = test.rank, residuals[k] - np.tensordot(test.estimate, rests[k], axes=1)
        waiting.clear()

    for name, each in directions(fits, u, projector.constants.root):
        fields: list[Floats] = [field.astype(np.float32, copy=False) for field in each]
        # <d, P v> of a random v has the variance |P d|^2: what is plainly nothing needs no solve
        dots = np.stack([_dots(field, lefts) / noises for field in fields])
        squares = np.stack([_square(field, projector.along_theta(field), pairs) for field in fields])
        waits = name in _ALWAYS or not np.all(dots**2 < _PLAIN * squares)
        for k, fit in enumerate(fits):  # in their order
            tests[k][name] = _unsolved(name, dots[:, k] * fit.noise, squares[:, k], fit.noise)
        if waits:
            waiting[name] = fields
        if sum(map(len, waiting.values())) >= AT_ONCE:
            solve()
    if waiting:
        solve()
    return tests, np.stack([rest for _, rest in best])


def _dots(fields: Floats, others: Floats) -> Array:
    return np.array([float(np.vdot(a, b)) for a, b in zip(fields, others, strict=True)])


def _square(fields: Floats, along: Floats, pairs: Sequence[tuple[Floats, Floats, Floats]]) -> Array:
    """Return |P d|^2 from random v: <d', P v>^2 over <d', v>^2 times |d'|^2, d' being d without what theta can imitate.

    `along` are the components of d that theta can; `pairs` are v, its components and P v. The ratio scatters less than
    its numerator does, as P takes little more out of d'.
    """
    tops = [_dots(fields, rest) ** 2 for _, _, rest in pairs]  # P v has no components along theta
    belows = [(_dots(fields, v) - _dots(along, own)) ** 2 for v, own, _ in pairs]
    ratio = np.sum(tops, axis=0) / np.maximum(np.sum(belows, axis=0), 1e-300)
    return np.asarray((_dots(fields, fields) - _dots(along, along)) * np.minimum(ratio, 1.0))


def _unsolved(name: str, dots: Array, squares: Array, noise: float) -> ScoreTest:
    """Return the test of directions that are plainly nothing, by the lengths that the probes give."""
    from scipy.special import fdtrc

    safe = np.maximum(squares, 1e-300)
    ratio = float(np.max(dots**2 / safe)) / noise**2
    p = min(1.0, len(dots) * float(fdtrc(1, _PROBES, ratio)))
    values, errors = tuple((dots / safe).tolist()), tuple((noise / np.sqrt(safe)).tolist())
    statistic = ratio if len(dots) > 1 else float(np.sign(dots[0]) * np.sqrt(ratio))
    return ScoreTest(name, statistic, len(dots), p, 1.0, values, errors, 0.0, effect=0.0)


def _forced(projector: Projector, rests: Array, left: Sequence[Array]) -> list[tuple[tuple[Array, float], ...]]:
    """Return for each fit what an unknown force in each frame interval would explain, of what is left and of noise."""
    model, axes = projector.model, projector.constants.axes  # of a window: a force on its inner nodes
    cells = [len(axis.differences) for axis in axes] or [n * model.refine for n in model.cells]
    constants = projector.constants._replace(pushes=np.zeros((model.frames - 1, *cells)))

    sizes = np.sqrt(np.mean(rests**2, axis=tuple(range(1, rests.ndim)), keepdims=True))
    usual = np.sqrt(np.mean([np.mean(v**2) for v in left]))
    fields = np.stack([rests * usual / sizes, *left], axis=1)
    pushes, explained = map(np.asarray, compiled().force_needed(model, *projector.point, fields, constants))
    return [tuple(zip(own, values.tolist(), strict=True)) for own, values in zip(pushes, explained, strict=True)]


def check_adequacies(fits: Sequence[Trajectory]) -> list[Adequacy]:
    """Test the residuals of trajectory fits for model misspecification.

    A test counts when it is significant after Holm's correction at 3 % for all together. The verdict weighs what those
    that count do to the law and how much of the motion they explain (``verdict_of``). Where a few cells stand out, the
    other tests are made without them. A residual too small to be noise is adequate.
    """
    if any(fit.batch is not fits[0].batch for fit in fits):
        return [check_adequacies([fit])[0] for fit in fits]
    return [_conclude(*pair) for pair in zip(fits, _answers(fits, Projector(fits)), strict=True)]


def _conclude(fit: Trajectory, answer: _Answer) -> Adequacy:
    """Search for bad cells, test again without them, and put all tests of a fit together."""
    cells = statistics.cells_of(answer.residual, answer.frames, np.zeros(answer.residual.shape[1:], dtype=bool))
    relative, band = answer.relative_noise, answer.scale.band
    if relative < NUMERICAL:
        tests = statistics.holm([*answer.tests, statistics.cells_test(cells, None, None)])
        return Adequacy(tests, Verdict.ADEQUATE, relative, band=band)
    out, shift, effect = statistics.peel(cells, lambda mask: _refit(fit, answer.frames, mask)[0]), None, None
    if out is not None and out.any():
        _, moved, fit = _refit(fit, answer.frames, out)
        shift, effect = fit.size(moved), answer.scale.effect(moved)
        (answer,) = _answers([fit], Projector([fit], out))
    tests = statistics.holm([*answer.tests, replace(statistics.cells_test(cells, out, shift), effect=effect)])
    own = noise_in_time(fit.record.slab())
    return Adequacy(tests, statistics.verdict_of(tests, band), relative, None if own is None else own / fit.noise, band)


def _refit(fit: Trajectory, frames: Bools, out: Bools) -> tuple[Cells, Array, Trajectory]:
    """Fit again, to first order, without some cells: what the others say, how far the law moves, the new noise."""
    (residual,), (shift,) = Projector([fit], out).project(fit.residual[None])
    shift = shift[len(fit.batch.view.free) :]
    free = residual.size - np.count_nonzero(out) * (len(residual) - 1) - residual[0].size - shift.size
    quieter = replace(fit, noise=float(np.linalg.norm(residual) / np.sqrt(free)))
    return statistics.cells_of(residual, frames, out), shift, quieter


def worst_of_parts(answers: Sequence[tuple[Adequacy, str]]) -> Adequacy | None:
    """Return the tests of all parts together: of each the worst part's, its probability times their number."""
    if not answers:
        return None
    worst: dict[str, ScoreTest] = {}
    for answer, name in answers:
        for test in answer.tests:
            if test.name not in worst or test.p < worst[test.name].p:
                worst[test.name] = replace(test, part=name if len(answers) > 1 else None)
    tests = statistics.holm([replace(test, p=min(1.0, len(answers) * test.p)) for test in worst.values()])
    band = float(np.mean([answer.band for answer, _ in answers]))
    return Adequacy(tests, statistics.verdict_of(tests, band), band=band)

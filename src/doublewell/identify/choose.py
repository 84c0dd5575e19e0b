"""Choose: which equation a movie obeys, by the likelihood of each.

Every equation is fitted with a law of a low degree, and so is a field that stands still, which may obey all of them.
A few steps exclude most; the others are fitted until they converge, and all of them where none leaves mere noise.
Chi-square is in units of the noise that the best leaves. It differs at random too: a mode that one equation keeps and
another damps takes up noise of all frames in one and of the first alone in the other. A conserved mean decides nothing
by itself: a pattern that stands still has one too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, log2, prod, sqrt
from typing import Any

import numpy as np

from doublewell.dynamics import DYNAMICS, Dynamics, symbols
from doublewell.errors import InputError
from doublewell.hints import Array, Report
from doublewell.identify.parts import Part, begin
from doublewell.identify.phases import visited
from doublewell.law import Law
from doublewell.likelihood import Batch, Trajectory, first_substeps
from doublewell.observation.view import mode_grid, rough_noise
from doublewell.options import DoubleWell
from doublewell.problem import Problem, ask
from doublewell.record import Record
from doublewell.result import Rival

_DEGREE = 2
_STEPS, _SUBSTEPS = 8, 32  # at the most in the first round: of Gauss-Newton, and from frame to frame
_NOISE = 1.1  # times the noise of fourth differences: what a fit leaves that explains the record
_NEAR = 1.5  # times the squares of the best: what may still be the best after more steps
_STILL = "a field that stands still"


@dataclass(frozen=True, eq=False)
class _Tried:
    """What was tried: the squares that it leaves, what it gives or why it cannot, and how fast modes of a record fall.

    ``problem`` is None of a field that stands still; ``ended`` is whether more steps would change nothing.
    """

    problem: Problem | None
    squares: float
    text: str
    decay: Callable[[Record], Array | float] = lambda _: 0.0
    ended: bool = True

    @property
    def name(self) -> str:
        return _STILL if self.problem is None else self.problem.dynamics.name


def choose_dynamics(
    records: Sequence[Record], options: dict[str, Any], report: Report | None
) -> tuple[Dynamics, tuple[Rival, ...]]:
    """Return the equation that explains records best, and all that was tried with how much worse it is, the best first.

    `options` are those of ``ask`` without the dynamics. Wells of an equation without a gauge may be unequal here, so
    that a tilt is not taken for another equation.
    """
    law, tried = DoubleWell.of(options.get("law")), list[_Tried]()
    for dynamics in DYNAMICS.values():
        if report is not None:
            report(f"trying {dynamics.name}", 0, 0)
        wells = law.wells or ("found" if dynamics.gauge == "constant" else "unequal")
        own = options | {"law": replace(law, degree=_DEGREE, wells=wells), "check": False}
        tried.append(_fitted(records, ask(records, dynamics=dynamics, **own), _STEPS))
    least = min(one.squares for one in tried)
    noise = sum(rough_noise(record.slab(), record.mask) ** 2 * prod(record.shape) for record in records)
    near = _NEAR * least if least <= _NOISE**2 * noise else inf
    for k, one in enumerate(tried):
        if one.problem is not None and not one.ended and one.squares <= near:
            tried[k] = min(one, _fitted(records, one.problem), key=lambda each: each.squares)
    best = min(tried, key=lambda one: one.squares)
    if best.problem is None or best.squares == inf:
        raise InputError(f"no equation explains the record: {'; '.join(one.text for one in tried)}")
    others = [one for one in [*tried, _Tried(None, sum(map(_still, records)), "nothing moves")] if one is not best]
    rivals = [_rival(records, one, best) for one in others]
    rivals.sort(key=lambda rival: rival.chi2)
    return best.problem.dynamics, (Rival(best.name, 0.0, best.text), *rivals)


def _fitted(records: Sequence[Record], problem: Problem, most: int | None = None) -> _Tried:
    """Fit an equation, to each record a law of its own, in `most` steps at most; infinite squares where none fits."""
    problem = replace(problem, values=visited(records)) if problem.family.found else problem
    try:
        with np.errstate(over="ignore"):  # fields of an equation that does not suit may diverge
            parts = [begin(record, problem, None) for record in records]
            fits = [_fit(part, problem, most) for part in parts]
    except InputError as error:
        return _Tried(problem, inf, str(error))
    fit, law, q = fits[0]
    slope = max(float(np.mean(law.well_curvatures)), 0.0)

    def decay(record: Record) -> Array:
        linear, coupling = symbols(problem.dynamics, mode_grid(record).waves)
        return np.asarray(q * (linear - coupling * slope))

    halves = [0.5 * (part.phases[1] - part.phases[0]) for part in parts]  # units of the values that are fitted
    squares = [(half * fit.noise) ** 2 * prod(fit.record.shape) for half, (fit, _, _) in zip(halves, fits, strict=True)]
    unfinished = "" if fit.status.converged else f" ({fit.status.text})"
    if not np.all(np.isfinite(squares)):
        return _Tried(problem, inf, f"the field ran away from that of the record{unfinished}")
    ended = most is None or all(own.status.converged and own.substeps < _SUBSTEPS for own, _, _ in fits)
    return _Tried(problem, sum(squares), f"{law.equation()}, q = {q:.5g}{unfinished}", decay, ended)


def _fit(part: Part, problem: Problem, most: int | None) -> tuple[Trajectory, Law, float]:
    """Return the fit of one record, its law and q. The numbers of steps are powers of two: few programs serve all."""
    family, start, joint = problem.fitted, part.start.coefficients, part.joint
    substeps = 2 ** ceil(1.0 + log2(first_substeps(part.record, family.steepness(start), problem.dynamics)))
    substeps = substeps if most is None else min(substeps, _SUBSTEPS)
    batch = Batch([part.record], problem.dynamics, part.view)
    (fit,) = batch.fit(start[None], joint=joint[None], fitted=family, substeps=substeps, most=most)
    names = part.view.free
    q = float(part.record.q or 0.0) * dict(zip(names, fit.theta.tolist(), strict=False)).get("q", 1.0)
    return fit, Law(family, fit.theta[-family.size :]).placed(part.phases), q


def _still(record: Record) -> float:
    """Return the squares of the values around their means over time, as large as those that a fit with noise leaves."""
    values, known = record.slab(), record.observed()
    count = np.maximum(np.count_nonzero(known, axis=0), 1)
    away = np.where(known, values - np.sum(values, axis=0) / count, 0.0)  # what is missing is zero in values
    return prod(record.shape) * float(np.sum(away**2) / max(np.sum(count - 1), 1))


def _rival(records: Sequence[Record], one: _Tried, best: _Tried) -> Rival:
    if one.squares == inf:
        return Rival(one.name, inf, one.text)
    rise = sum(prod(record.shape) for record in records) * (one.squares / best.squares - 1.0)
    return Rival(one.name, rise, one.text, sqrt(sum(_variance(record, one, best) for record in records)))


def _variance(record: Record, one: _Tried, other: _Tried) -> float:
    """Return the variance of the difference of chi-squares where a record is noise around a field that both explain.

    A mode takes up the noise along its course in time, and courses at an angle take up different noise: 4 sin^2 of it.
    """
    first, second = one.decay(record), other.decay(record)
    sums = np.zeros((3, 1))
    for time in record.times - record.times[0]:
        a, b = np.exp(first * time), np.exp(second * time)
        sums = sums + np.stack([np.ravel(x) for x in np.broadcast_arrays(a * a, b * b, a * b)])
    return 4.0 * prod(record.mesh) * float(np.mean(1.0 - sums[2] ** 2 / (sums[0] * sums[1])))

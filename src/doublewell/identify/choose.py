"""Choose: which equation a movie obeys, by the likelihood of each.

Every equation is given the law of its weak moments, and the fields that follow it and lie nearest to the movie. What
they leave gives the order in which the equations are fitted, with a law of a low degree. Once one leaves no more than
noise, those whose fields leave much more are excluded by that. Chi-square is in units of the noise that the best
leaves. A conserved mean decides nothing by itself: a pattern that stands still has one too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

import numpy as np

from doublewell.dynamics import DYNAMICS
from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.identify.parts import Part, begin
from doublewell.identify.phases import visited
from doublewell.law import Law
from doublewell.likelihood import Batch, first_substeps
from doublewell.observation import survey
from doublewell.options import DoubleWell
from doublewell.problem import Problem, ask
from doublewell.record import Record
from doublewell.result import Result, Rival

_DEGREE = 2
_FAR = 2.0  # squares left by the fields of a weak law, over those of a fit, from which an equation is excluded
_EXPLAINED = 1.1  # variance that a fit may leave, over that of the noise


@dataclass(frozen=True)
class _Tried:
    """An equation, the squares that it leaves, and what it would give, or why it cannot be tried."""

    problem: Problem
    squares: float
    text: str


def choose_dynamics(
    records: Sequence[Record], options: dict[str, Any], solve: Callable[[Problem], Result], report: Report | None
) -> tuple[Any, tuple[Rival, ...]]:
    """Return the equation that explains records best, and all of them with how much worse they are, the best first.

    `options` are those of ``ask`` without the dynamics; `solve` answers a problem. Wells of an equation without a
    gauge may be unequal here, so that a tilt is not taken for another equation.
    """
    law, tried = DoubleWell.of(options.get("law")), list[_Tried]()
    for dynamics in DYNAMICS.values():
        if report is not None:
            report(f"trying {dynamics.name}", 0, 0)
        wells = law.wells or ("found" if dynamics.gauge == "constant" else "unequal")
        own = options | {"law": replace(law, degree=_DEGREE, wells=wells), "check": False}
        tried.append(_tried(ask(records, dynamics=dynamics, **own), lambda problem: _followed(records, problem)))
    values, best = sum(prod(record.shape) for record in records), inf
    noise = sum(prod(record.shape) * survey(record).noise ** 2 for record in records)
    tried.sort(key=lambda one: one.squares)
    for k, one in enumerate(tried):
        if best > _EXPLAINED * noise or one.squares <= _FAR * best:
            tried[k] = _tried(one.problem, lambda own: _fitted(records, solve(own)))
            best = min(best, tried[k].squares)
    if best == inf:
        raise InputError(f"no equation explains the record: {'; '.join(one.text for one in tried)}")
    tried.sort(key=lambda one: one.squares)
    best = tried[0].squares
    rises = [inf if one.squares == inf else values * (one.squares / best - 1.0) for one in tried]
    rivals = (Rival(one.problem.dynamics.name, rise, one.text) for one, rise in zip(tried, rises, strict=True))
    return tried[0].problem.dynamics, tuple(rivals)


def _tried(problem: Problem, leave: Callable[[Problem], tuple[float, str]]) -> _Tried:
    """Try an equation; one that cannot be tried leaves everything."""
    try:
        return _Tried(problem, *leave(problem))
    except InputError as error:
        return _Tried(problem, inf, str(error))


def _followed(records: Sequence[Record], problem: Problem) -> tuple[float, str]:
    """Return the squares that fields leave which follow the law of the weak moments, and that law."""
    problem = replace(problem, values=visited(records)) if problem.family.found else problem
    parts = [begin(record, problem, None) for record in records]
    squares = sum(_left(part, problem) for part in parts)
    law = Law(problem.fitted, parts[0].start.coefficients).placed(parts[0].phases)
    return squares, f"{law.equation()}, q = {parts[0].start.q:.5g}"


def _left(part: Part, problem: Problem) -> float:
    """Return the squares that the fields nearest to one record leave, in the units of its values."""
    family, law, half = problem.fitted, part.start.coefficients, 0.5 * (part.phases[1] - part.phases[0])
    batch = Batch([part.record], problem.dynamics, part.view)
    substeps = first_substeps(part.record, family.steepness(law), problem.dynamics)
    (fit,) = batch.follow(np.concatenate([part.joint, law]), family=family, substeps=substeps)
    return float(np.sum((half * fit.residual) ** 2))


def _fitted(records: Sequence[Record], result: Result) -> tuple[float, str]:
    """Return the squares that a fit leaves, and its law."""
    fit = result.diagnostics.likelihood
    assert fit is not None
    squares = sum(one.noise**2 * prod(record.shape) for one, record in zip([fit, *fit.others], records, strict=True))
    unfinished = "" if fit.status.converged else f" ({fit.status.text})"
    return squares, f"{result.law.equation()}, q = {result.q:.5g}{unfinished}"

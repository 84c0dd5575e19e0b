"""Choose: which equation a movie obeys, by the likelihood of each.

Every equation is fitted with a law of a low degree, and the sum of squares that it leaves is compared with that of the
best: chi-square in units of the noise of the best. A conserved mean decides nothing by itself: a pattern that stands
still has one too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

from doublewell.dynamics import DYNAMICS, Dynamics
from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.options import DoubleWell
from doublewell.problem import Problem, ask
from doublewell.record import Record
from doublewell.result import Result, Rival

_DEGREE = 2


@dataclass(frozen=True)
class _Tried:
    dynamics: Dynamics
    squares: float
    text: str


def choose_dynamics(
    records: Sequence[Record], options: dict[str, Any], solve: Callable[[Problem], Result], report: Report | None
) -> tuple[Dynamics, tuple[Rival, ...]]:
    """Return the equation that explains records best, and all of them with how much worse they are, the best first.

    `options` are those of ``ask`` without the dynamics; `solve` answers a problem. Wells of an equation without a
    gauge may be unequal here, so that a tilt is not taken for another equation.
    """
    tried = []
    for dynamics in DYNAMICS.values():
        if report is not None:
            report(f"trying {dynamics.name}", 0, 0)
        law = DoubleWell.of(options.get("law"))
        wells = law.wells or ("found" if dynamics.gauge == "constant" else "unequal")
        tried.append(_try(records, dynamics, options | {"law": replace(law, degree=_DEGREE, wells=wells)}, solve))
    tried.sort(key=lambda one: one.squares)
    best, values = tried[0], sum(prod(record.shape) for record in records)
    if best.squares == inf:
        raise InputError(f"no equation explains the record: {'; '.join(one.text for one in tried)}")
    rivals = tuple(
        Rival(one.dynamics.name, values * (one.squares / best.squares - 1.0) if one.squares < inf else inf, one.text)
        for one in tried
    )
    return best.dynamics, rivals


def _try(
    records: Sequence[Record], dynamics: Dynamics, options: dict[str, Any], solve: Callable[[Problem], Result]
) -> _Tried:
    """Fit one equation; one that cannot be fitted leaves everything."""
    try:
        result = solve(ask(records, dynamics=dynamics, **options | {"method": "trajectory", "check": False}))
    except InputError as error:
        return _Tried(dynamics, inf, f"{dynamics.name}: {error}")
    fit = result.diagnostics.likelihood
    assert fit is not None
    fits = [fit, *fit.others]
    squares = sum(one.noise**2 * prod(record.shape) for one, record in zip(fits, records, strict=True))
    unfinished = "" if fit.status.converged else f" ({fit.status.text})"
    return _Tried(dynamics, squares, f"{result.law.equation()}, q = {result.q:.5g}{unfinished}")

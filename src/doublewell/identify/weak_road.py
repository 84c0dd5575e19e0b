"""The weak road: moments, least squares, one degree (the paper's STAC)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.errors import InputError
from doublewell.estimate import Constraint, Estimate, estimate
from doublewell.evidence import (
    Derivative,
    Fold,
    Support,
    check_supports,
    default_supports,
    paper_supports,
    split_folds,
    weak_evidence,
)
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.result import Diagnostics
from doublewell.survey import Survey

__all__ = ["Supports", "WeakFit", "weak_diagnostics", "weak_fit"]

Supports = Sequence[Support | tuple[int, float]] | Literal["paper"] | None


@dataclass(frozen=True)
class WeakFit:
    """The estimate of the weak road and the supports it used, with the rule that chose them."""

    estimate: Estimate
    supports: tuple[Support, ...]
    rule: str


def weak_fit(
    record: Record,
    seen: Survey,
    q: float,
    *,
    degree: int,
    constraint: Constraint,
    ridge: float | Literal["validated"] | None,
    supports: Supports,
    derivative: Derivative,
    progress: Callable[[int, int], None] | None = None,
) -> WeakFit:
    """Read the weak moments of a record and solve for the coefficients of one degree."""
    chosen, rule = _supports(record, seen, supports)
    folds = _folds(record, chosen, ridge)
    evidence = weak_evidence(record, Bernstein(degree), chosen, derivative=derivative, folds=folds, progress=progress)
    return WeakFit(estimate(evidence, q, constraint=constraint, ridge=ridge), chosen, rule)


def weak_diagnostics(fit: Estimate, seen: Survey, warnings: Sequence[str]) -> Diagnostics:
    """Return the numbers behind a weak estimate."""
    return Diagnostics(
        rows=fit.rows,
        condition=fit.condition,
        scaled_condition=fit.scaled_condition,
        active=tuple(int(j) for j in np.flatnonzero(fit.solution.active)),
        bound=fit.bound if np.isfinite(fit.bound) else None,
        kkt=fit.solution.kkt,
        residual=fit.relative_residual,
        unconstrained=fit.unbounded,
        ridge=fit.ridge,
        supports=fit.supports,
        support_spread=fit.support_spread,
        survey=seen,
        warnings=tuple(warnings),
    )


def _supports(record: Record, seen: Survey, supports: Supports) -> tuple[tuple[Support, ...], str]:
    if supports is None:
        return default_supports(record, seen.interface_width), "half and one interface width, chosen from the record"
    rule = "as given"
    if isinstance(supports, str):
        if supports != "paper":
            raise InputError(f"supports is {supports!r}: expected pairs (frames, length), 'paper' or None")
        supports, rule = paper_supports(record), "the paper's, 1/16 and 1/8 of the shortest side"
    return check_supports(supports, record.frames, record.mesh, record.dx), rule


def _folds(record: Record, supports: tuple[Support, ...], ridge: float | str | None) -> tuple[Fold, ...]:
    if ridge != "validated":
        return ()
    return split_folds(record.frames, max(support.frames for support in supports))

"""The weak road: moments, least squares, one degree (the paper's STAC)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.checks import not_negative, shown
from doublewell.errors import InputError
from doublewell.estimate import Constraint, Estimate, estimate
from doublewell.evidence import (
    Derivative,
    Evidence,
    Fold,
    Support,
    check_supports,
    default_supports,
    paper_supports,
    restrict,
    split_folds,
    weak_evidence,
)
from doublewell.evidence.default import default_rule
from doublewell.hints import Progress
from doublewell.identify.families import WellsKind, family_of, read_family
from doublewell.record import Record
from doublewell.result import Diagnostics
from doublewell.survey import Survey

__all__ = ["Supports", "WeakFit", "check_options", "weak_diagnostics", "weak_fit"]

_ROWS = 20  # moments per coefficient; neighbours share most of their support, so fewer say next to nothing
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
    wells: WellsKind = "symmetric",
    ridge: float | Literal["validated"] | None,
    supports: Supports,
    derivative: Derivative,
    progress: Progress | None = None,
) -> WeakFit:
    """Read the weak moments of a record and solve for the coefficients of one degree."""
    check_options(record, constraint=constraint, ridge=ridge, supports=supports)
    chosen, rule = _supports(record, seen, supports)
    folds = _folds(record, chosen, ridge)
    read, family = read_family(wells, degree), family_of(wells, degree)
    evidence = weak_evidence(record, read, chosen, derivative=derivative, folds=folds, progress=progress)
    if family != read:
        evidence = restrict(evidence, family)
    _check_rows(evidence)
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


def check_options(
    record: Record, *, constraint: object, ridge: object, supports: Supports, derivative: object = "discrete"
) -> None:
    """Refuse wrong options of the weak reading; no value of the record is read."""
    if not isinstance(constraint, str) or constraint not in ("bernstein", "none"):
        raise InputError(f"constraint is {shown(constraint)}: expected 'bernstein' (positive coefficients) or 'none'")
    if not isinstance(derivative, str) or derivative not in ("discrete", "analytic"):
        raise InputError(f"derivative is {shown(derivative)}: expected 'discrete' or 'analytic'")
    if ridge is not None and not (isinstance(ridge, str) and ridge == "validated"):
        not_negative(ridge, "ridge", "None, 'validated', or alpha")
    if isinstance(supports, Sequence):  # a generator can be read only once, and a rule needs the survey
        _folds(record, _given_supports(record, supports)[0], ridge)


def _supports(record: Record, seen: Survey, supports: Supports) -> tuple[tuple[Support, ...], str]:
    if supports is None:
        return default_supports(record, seen.interface_width), default_rule(record, seen.interface_width)
    return _given_supports(record, supports)


def _given_supports(
    record: Record, supports: Sequence[Support | tuple[int, float]] | str
) -> tuple[tuple[Support, ...], str]:
    rule = "as given"
    if isinstance(supports, str):
        if supports != "paper":
            raise InputError(f"supports is {supports!r}: expected pairs (frames, length), 'paper' or None")
        supports, rule = paper_supports(record), "the paper's, 1/16 and 1/8 of the shortest side"
    return check_supports(supports, record.frames, record.mesh, record.dx), rule


def _folds(record: Record, supports: tuple[Support, ...], ridge: object) -> tuple[Fold, ...]:
    if not isinstance(ridge, str):
        return ()
    return split_folds(record.frames, max(support.frames for support in supports))


def _check_rows(evidence: Evidence) -> None:
    """Refuse a handful of moments; none at all has its own message when solving."""
    needs = _ROWS * evidence.family.size
    if 0 < evidence.rows < needs:
        raise InputError(
            f"only {evidence.rows} moments are left for {evidence.family.size} coefficients: expected at least "
            f"{needs}; record more frames or a larger field that contains an interface, or pass shorter supports"
        )

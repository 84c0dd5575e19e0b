"""The weak road: moments, least squares, one degree (the paper's STAC)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from doublewell.checks import not_negative, positive, shown
from doublewell.errors import InputError
from doublewell.evidence import Evidence, restrict
from doublewell.hints import Report
from doublewell.identify.families import WellsKind, family_of, read_family
from doublewell.identify.moments import Moments, corrected_moments, find_q, plain_moments, streamed_moments
from doublewell.inference import Constraint, Diffusion, Estimate, check_constraint, estimate
from doublewell.law import Bernstein, LinearFamily
from doublewell.observation import Survey
from doublewell.record import Record
from doublewell.result import Diagnostics
from doublewell.weak import (
    CPU,
    Derivative,
    Fold,
    Processor,
    Stream,
    Support,
    check_supports,
    default_rule,
    default_supports,
    paper_supports,
    split_folds,
)

__all__ = ["Supports", "WeakFit", "WeakMethod", "check_options", "check_plain", "weak_diagnostics", "weak_fit"]

_ROWS = 20  # moments per coefficient; neighbours share most of their support, so fewer say next to nothing
WeakMethod = Literal["weak", "weak-corrected"]
Supports = Sequence[Support | tuple[int, float]] | Literal["paper"] | None


@dataclass(frozen=True)
class WeakFit:
    """The estimate of the weak road and the supports it used, with the rule that chose them.

    ``q`` is the diffusion coefficient that was given or, with ``diffusion``, estimated from the same moments.
    """

    estimate: Estimate
    supports: tuple[Support, ...]
    rule: str
    q: float
    moments: Moments
    diffusion: Diffusion | None = None

    @property
    def corrected(self) -> bool:
        """Whether the bias of the noise was taken off."""
        return self.moments.evidence is not self.moments.seen


def weak_fit(
    record: Record,
    seen: Survey,
    q: float | None,
    *,
    degree: int,
    constraint: Constraint,
    wells: WellsKind = "symmetric",
    ridge: float | Literal["validated"] | None,
    supports: Supports,
    derivative: Derivative,
    method: WeakMethod = "weak",
    stream: Stream | None = None,
    processor: Processor = CPU,
    report: Report | None = None,
    words: str = "compiling and reading",
) -> WeakFit:
    """Read the weak moments of a record and solve for the coefficients of one degree, and for q where it is None.

    `stream` reads them region by region. `report` is called with `words`, or with the stream's own.
    """
    progress = None if report is None else partial(report, words)
    check_options(record, constraint=constraint, ridge=ridge, supports=supports)
    chosen, rule = _supports(record, seen, supports, derivative)
    folds = _folds(record, chosen, ridge)
    if stream is not None:
        read = read_family(wells, degree)
        moments = streamed_moments(
            stream, record, read, chosen, seen, derivative=derivative, folds=folds, processor=processor, report=report
        )
        moments = _restricted(moments, family_of(wells, degree))
    elif method == "weak":
        read = read_family(wells, degree)
        moments = plain_moments(
            record, read, chosen, seen.noise, derivative=derivative, folds=folds, processor=processor, progress=progress
        )
        moments = _restricted(moments, family_of(wells, degree))
    else:
        check_plain(record, wells)
        moments = corrected_moments(
            record, Bernstein(degree), chosen, seen.noise, derivative=derivative, progress=progress
        )
    _check_complete(record, moments.evidence, chosen)
    _check_rows(moments.evidence)
    found = find_q(moments, constraint) if q is None else None
    used = found.q if found is not None else positive(q, "q", "the diffusion coefficient")
    fit = estimate(moments.evidence, used, constraint=constraint, ridge=ridge)
    return WeakFit(fit, chosen, rule, used, moments, found)


def _restricted(moments: Moments, family: LinearFamily) -> Moments:
    """Return plain moments for a family inside the one they were read with."""
    if moments.evidence.family == family:
        return moments
    evidence = restrict(moments.evidence, family)
    return replace(moments, evidence=evidence, seen=evidence)


def check_plain(record: Record, wells: WellsKind) -> None:
    """Refuse what the corrected moments do not know of."""
    if wells != "symmetric":
        raise InputError(
            f"method='weak-corrected' knows symmetric wells only, and wells is {wells!r}: use method='weak' or "
            "'trajectory'"
        )
    if record.mask is not None or not record.uniform:
        raise InputError(
            "method='weak-corrected' needs complete frames at even times: expected no mask and one frame interval; use "
            "method='weak' or 'trajectory'"
        )


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
        contacts=fit.solution.contacts,
    )


def check_options(
    record: Record, *, constraint: object, ridge: object, supports: Supports, derivative: object = "discrete"
) -> None:
    """Refuse wrong options of the weak reading; no value of the record is read."""
    check_constraint(constraint)
    if not isinstance(derivative, str) or derivative not in ("discrete", "analytic"):
        raise InputError(f"derivative is {shown(derivative)}: expected 'discrete' or 'analytic'")
    if ridge is not None and not (isinstance(ridge, str) and ridge == "validated"):
        not_negative(ridge, "ridge", "None, 'validated', or alpha")
    if isinstance(supports, Sequence):  # a generator can be read only once, and a rule needs the survey
        _folds(record, _given_supports(record, supports)[0], ridge)


def _supports(
    record: Record, seen: Survey, supports: Supports, derivative: Derivative
) -> tuple[tuple[Support, ...], str]:
    if supports is None:
        asked, long = (record, seen.interface_width), derivative == "analytic"
        return default_supports(*asked, long=long), default_rule(*asked, long=long)
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


def _check_complete(record: Record, evidence: Evidence, supports: tuple[Support, ...]) -> None:
    """Refuse a record with so many holes that hardly a support is complete."""
    needs, cells = _ROWS * evidence.family.size, 2 * max(record.dx)
    if record.mask is None or evidence.rows >= needs:
        return
    least = Support(2, cells)
    way = "" if supports == (least,) else f"pass smaller supports, the smallest is supports=[(2, {cells:.4g})], or "
    raise InputError(
        f"only {evidence.rows} centres have a complete support, without a missing pixel or frame, and lie outside the "
        f"pure phases: expected at least {needs} for {evidence.family.size} coefficients; {way}record with fewer holes"
    )


def _check_rows(evidence: Evidence) -> None:
    """Refuse a handful of moments; none at all has its own message when solving."""
    needs = _ROWS * evidence.family.size
    if 0 < evidence.rows < needs:
        raise InputError(
            f"only {evidence.rows} moments are left for {evidence.family.size} coefficients: expected at least "
            f"{needs}; record more frames or a larger field that contains an interface, or pass shorter supports"
        )

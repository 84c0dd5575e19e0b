"""The weak-form fit: moments, as they are seen or with the noise removed, and least squares of one degree (STAC)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from doublewell.dynamics import WeakForm
from doublewell.errors import InputError, positive
from doublewell.evidence import Block, Evidence, restrict
from doublewell.hints import Progress, Report
from doublewell.inference import Diffusion, Estimate, check_motion, estimate, estimate_q
from doublewell.law import Constraint, Family
from doublewell.observation import Survey
from doublewell.options import Weak
from doublewell.problem import Problem, given_supports
from doublewell.record import Record
from doublewell.result import Diagnostics
from doublewell.weak import (
    CPU,
    FLOOR,
    Derivative,
    Fold,
    Processor,
    RateNoise,
    Stream,
    Streamed,
    Support,
    default_rule,
    default_supports,
    noise_shares,
    noisy_moments,
    rate_noise,
    split_folds,
    support_key,
    weak_evidence,
    without_noise,
)

_ROWS = 20  # moments per coefficient; neighbours share most of their support, so fewer say next to nothing


@dataclass(frozen=True, eq=False)
class Moments:
    """Evidence to solve, the same as it was seen, and the noise of the rate by support.

    ``held`` is in how many directions of the coefficients, of all supports, nearly all that is seen is noise.
    ``streamed`` is what a pass over a streamed record gave besides.
    """

    evidence: Evidence
    seen: Evidence
    noise: Mapping[str, RateNoise]
    held: int = 0
    streamed: Streamed | None = None


def plain_moments(
    record: Record, family: Family, supports: Sequence[Support], noise: float, *,
    form: WeakForm, derivative: Derivative, folds: Sequence[Fold], processor: Processor, progress: Progress | None,
) -> Moments:  # fmt: skip
    """Read the weak moments as they are."""
    evidence = weak_evidence(
        record, family, supports, form=form, derivative=derivative, folds=folds, processor=processor, progress=progress
    )
    return Moments(evidence, evidence, _rates(record, supports, noise, derivative))


def streamed_moments(
    stream: Stream, record: Record, family: Family, supports: Sequence[Support], seen: Survey, *,
    form: WeakForm, derivative: Derivative, folds: Sequence[Fold], processor: Processor, report: Report | None,
) -> Moments:  # fmt: skip
    """Read the weak moments as they are, region by region."""
    found = stream.evidence(
        record, family, supports, seen, form=form, derivative=derivative, folds=folds, processor=processor,
        report=report,
    )  # fmt: skip
    rates = _rates(record, supports, seen.noise, derivative) if record.uniform else {}
    return Moments(found.evidence, found.evidence, rates, streamed=found)


def corrected_moments(
    record: Record, family: Any, supports: Sequence[Support], noise: float, *,
    form: WeakForm, derivative: Derivative, progress: Progress | None,
) -> Moments:  # fmt: skip
    """Read the weak moments with the bias of white noise taken off."""
    found = [
        noisy_moments(record, family, support, noise, form=form, derivative=derivative, progress=progress)
        for support in supports
    ]
    return Moments(
        Evidence(family, tuple(without_noise(one) for one in found)),
        Evidence(family, tuple(Block(one.key, one.triangle, one.rows) for one in found)),
        _rates(record, supports, noise, derivative),
        held=int(sum(np.sum(1.0 - noise_shares(one) < FLOOR) for one in found)),
    )


def find_q(moments: Moments, constraint: Constraint) -> Diffusion:
    """Estimate q from the moments as they are seen; a record that does not determine it raises.

    Only the noise of the rate is taken off here: taking off that of the features too makes q worse by its scatter.
    """
    share = check_motion(moments.seen, moments.noise)
    return Diffusion(estimate_q(moments.seen, moments.noise, constraint=constraint), share)


def _rates(
    record: Record, supports: Sequence[Support], noise: float, derivative: Derivative
) -> Mapping[str, RateNoise]:
    return {support_key(support): rate_noise(record, support, noise, derivative) for support in supports}


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


def fit_weak(
    record: Record,
    seen: Survey,
    problem: Problem,
    *,
    stream: Stream | None = None,
    processor: Processor = CPU,
    report: Report | None = None,
    words: str = "compiling and reading",
) -> WeakFit:
    """Read the weak moments of a record and solve for the coefficients of one degree, and for q where it is None.

    `stream` reads them region by region. `report` is called with `words`, or with the stream's own.
    """
    progress = None if report is None else partial(report, words)
    method, constraint = problem.method.start, problem.law.constraint
    chosen, rule = _supports(record, seen, method)
    folds = split_folds(record.frames, max(s.frames for s in chosen)) if method.ridge == "validated" else ()
    form, derivative = problem.dynamics.weak_form, method.derivative
    options: dict[str, Any] = {"form": form, "derivative": derivative, "processor": processor, "folds": folds}
    if stream is not None:
        moments = streamed_moments(stream, record, problem.moments, chosen, seen, report=report, **options)
    elif not method.corrected:
        moments = plain_moments(record, problem.moments, chosen, seen.noise, progress=progress, **options)
    else:
        moments = corrected_moments(
            record, problem.fitted, chosen, seen.noise, form=form, derivative=derivative, progress=progress
        )
    moments = _restricted(moments, problem.fitted)
    _check_complete(record, moments.evidence, chosen)
    _check_rows(moments.evidence)
    found = find_q(moments, constraint) if record.q is None else None
    used = found.q if found is not None else positive(record.q, "q", "the diffusion coefficient")
    fit = estimate(moments.evidence, used, constraint=constraint, ridge=method.ridge)
    return WeakFit(fit, chosen, rule, used, moments, found)


def _restricted(moments: Moments, family: Family) -> Moments:
    """Return plain moments for a family inside the one they were read with."""
    if moments.evidence.family == family:
        return moments
    evidence = restrict(moments.evidence, family)
    return replace(moments, evidence=evidence, seen=evidence)


def weak_diagnostics(weak: WeakFit, seen: Survey) -> Diagnostics:
    """Return the numbers behind a weak estimate."""
    fit = weak.estimate
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
        contacts=fit.solution.contacts,
        motion=None if weak.diffusion is None else weak.diffusion.fraction,
        held=weak.moments.held,
    )


def _supports(record: Record, seen: Survey, method: Weak) -> tuple[tuple[Support, ...], str]:
    given = given_supports(method, record)
    if given is not None:
        return given, "the paper's, 1/16 and 1/8 of the shortest side" if method.supports == "paper" else "as given"
    asked, long = (record, seen.interface_width), method.derivative == "analytic"
    return default_supports(*asked, long=long), default_rule(*asked, long=long)


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

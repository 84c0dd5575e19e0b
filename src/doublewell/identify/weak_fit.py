"""The weak-form fit: moments, as they are or with the bias of noise removed, and least squares of one degree (STAC)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from doublewell.adequacy import MomentTests, check_moments
from doublewell.errors import NoStartError, option
from doublewell.evidence import Evidence, lower, restrict
from doublewell.hints import Report
from doublewell.identify.start import Start
from doublewell.inference import Estimate, check_motion, estimate, estimate_q
from doublewell.law import Constraint, Family
from doublewell.observation import Survey
from doublewell.problem import Problem, given_supports
from doublewell.record import Record
from doublewell.result import Diagnostics
from doublewell.runtime import CPU, Processor
from doublewell.weak.assembly import weak_evidence
from doublewell.weak.noise import rate_noise
from doublewell.weak.stream import Stream
from doublewell.weak.varied import settle, varied_evidence
from doublewell.weak.weights import Derivative, Support, default_supports, split_folds

_ROWS = 20  # moments per coefficient; neighbours share most of their support, so fewer determine next to nothing


@dataclass(frozen=True, eq=False, kw_only=True)
class WeakFit(Start):
    """The estimate of the weak-form fit and the supports it used, with the rule that chose them.

    ``q`` was given or, with ``motion``, the fraction of the rate's square that is not noise, estimated from the same
    moments. ``uncorrected`` is the ``evidence`` with the bias of noise; ``held`` is in how many directions of the
    coefficients, of all supports, nearly everything is noise.
    """

    estimate: Estimate
    evidence: Evidence
    uncorrected: Evidence
    held: int = 0
    motion: float | None = None


def fit_weak(
    record: Record, survey: Survey, problem: Problem, *, stream: Stream | None = None, processor: Processor = CPU,
    report: Report | None = None, words: str = "compiling and reading",
) -> WeakFit:  # fmt: skip
    """Read the weak moments of a record and solve for the coefficients of one degree, and for q where it is None.

    `stream` reads them region by region. `report` is called with `words`, or with the stream's own.
    """
    method, constraint = problem.method.start, problem.law.constraint
    supports, rule = _supports(record, survey, problem)
    folds = split_folds(record.frames, max([s.frames for s in supports])) if method.ridge == "validated" else ()
    options: dict[str, Any] = {"form": problem.dynamics.weak_form, "derivative": method.derivative}
    progress, held, streamed = None if report is None else partial(report, words), 0, None
    if stream is not None:
        options |= {"folds": folds, "processor": processor, "report": report}
        streamed = stream.evidence(record, problem.moments, supports, survey, **options)
        evidence = uncorrected = restrict(streamed.evidence, problem.fitted)
    elif problem.dynamics.parts.varied and problem.dynamics.order == 2 and problem.dynamics.gauge == "nothing":
        moments = varied_evidence(record, problem.moments, supports, problem.dynamics, method.derivative)
        plain, q, joint = settle(restrict(moments, problem.fitted), problem.dynamics, record.q, len(record.mesh))
        fit = estimate(plain, q, constraint=constraint, ridge=method.ridge)
        return WeakFit(
            fit.solution.coefficients, q, rule, supports, None, joint,
            estimate=fit, evidence=plain, uncorrected=plain,
        )  # fmt: skip
    elif not method.corrected:
        options |= {"folds": folds, "processor": processor, "progress": progress}
        evidence = uncorrected = restrict(weak_evidence(record, problem.moments, supports, **options), problem.fitted)
    else:
        from doublewell.weak.noise import FLOOR, noise_fractions, noisy_moments, without_noise

        family, options["progress"] = problem.fitted, progress
        read: Any = [noisy_moments(record, problem.moments, support, survey.noise, **options) for support in supports]
        uncorrected = restrict(Evidence(problem.moments, tuple(read)), family)
        read = uncorrected.blocks
        evidence = Evidence(family, tuple([without_noise(each, family) for each in read]))
        held = int(sum([np.sum(1.0 - noise_fractions(each) < FLOOR) for each in read]))
    _check_rows(record, evidence, supports)
    motion = None
    if record.q is None:
        q, motion = find_q(record, uncorrected, supports, survey.noise, method.derivative, constraint)
    else:
        q = record.q
    fit = estimate(evidence, q, constraint=constraint, ridge=method.ridge)
    return WeakFit(
        fit.solution.coefficients, q, rule, supports, streamed,
        estimate=fit, evidence=evidence, uncorrected=uncorrected, held=held, motion=motion,
    )  # fmt: skip


def steady(weak: WeakFit, family: Family) -> WeakFit | None:
    """Return the weak-form fit of the highest degree whose phases are stable; None where no degree has such a law.

    From another law fields run away: a force that falls at the end of the values has no phase there.
    """
    for degree in range(family.degree, -1, -1):
        fit = estimate(lower(weak.evidence, degree), weak.q, constraint=weak.estimate.constraint)
        if fit.family.stable(fit.coefficients):
            return replace(weak, coefficients=fit.family.elevation(family) @ fit.coefficients)
    return None


def find_q(
    record: Record, evidence: Evidence, supports: Sequence[Support], noise: float, derivative: Derivative,
    constraint: Constraint,
) -> tuple[float, float]:  # fmt: skip
    """Estimate q and the fraction of the rate's square that is motion; a record that does not determine q raises.

    Only the noise of the rate is taken off here: taking off that of the features too makes q worse by its scatter.
    """
    rates = {support.key: rate_noise(record, support, noise, derivative) for support in supports}
    motion = check_motion(evidence, rates)
    return estimate_q(evidence, rates, constraint=constraint), motion


def moment_tests(record: Record, weak: WeakFit, survey: Survey) -> MomentTests | None:
    """Test whether the moments are those of the model plus white noise, at the supports of the fit."""
    law, shortest = weak.estimate.law, min(weak.supports, key=lambda support: support.length)
    return check_moments(record, law, shortest, survey.noise, weak.q, q_free=record.q is None)


def weak_diagnostics(weak: WeakFit, survey: Survey, tests: MomentTests | None = None) -> Diagnostics:
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
        survey=survey,
        contacts=fit.solution.contacts,
        motion=weak.motion,
        held=weak.held,
        q_error=None if tests is None else tests.q_error,
        moments=None if tests is None else tests.adequacy,
    )


def _supports(record: Record, survey: Survey, problem: Problem) -> tuple[tuple[Support, ...], str]:
    method, order = problem.method.start, problem.dynamics.order
    given = given_supports(method, record)
    if given is None:
        return default_supports(record, survey.interface_width, long=method.derivative == "analytic", order=order)
    return given, "the paper's, 1/16 and 1/8 of the shortest side" if method.supports == "paper" else "as given"


def _check_rows(record: Record, evidence: Evidence, supports: tuple[Support, ...]) -> None:
    """Refuse a record that leaves a handful of moments, or has so many holes that hardly a support is complete."""
    size, rows, cells = evidence.family.size, evidence.rows, 2 * max(record.dx)
    needs = _ROWS * size
    if rows >= needs:
        return
    if record.mask is not None:
        smallest = option("supports", [(2, float(f"{cells:.4g}"))])
        least = f"pass smaller supports, the smallest is {smallest}, or "
        way = "" if supports == (Support(2, cells),) else least
        raise NoStartError(
            f"only {rows} centres have a complete support, without a missing pixel or frame, and lie outside the "
            f"pure phases: expected at least {needs} for {size} coefficients; {way}record with fewer holes"
        )
    if rows:  # none at all has its own message when solving
        raise NoStartError(
            f"only {rows} moments are left for {size} coefficients: expected at least {needs}; record more frames or a "
            "larger field that contains an interface, or pass shorter supports"
        )

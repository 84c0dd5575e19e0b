"""Findings: what speaks for and against a result, computed from the numbers that it holds.

Every finding has a code for programs, a severity and one sentence for readers. Nothing here is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import erfc, hypot, sqrt

import numpy as np

from doublewell.adequacy import TOLERANCE, Verdict
from doublewell.calibrate import NoScale
from doublewell.errors import option
from doublewell.facts import DEVIATES, LEVEL, Facts, facts
from doublewell.inference import curve_band, quantile_interval
from doublewell.model_findings import (
    OF_TWO_PHASES,
    Setting,
    coexistence_findings,
    diffusion_findings,
    force_findings,
    mobility_findings,
    model_findings,
    rival_findings,
    sentence_of,
)
from doublewell.observation import COVERED
from doublewell.record_findings import (
    Finding,
    Severity,
    Topic,
    grey_findings,
    note_findings,
    one_sided_findings,
    pace_findings,
    pure_phases,
    survey_findings,
    weak_mesh_findings,
)
from doublewell.result import FitQuality, Likelihood, Result
from doublewell.statements import held
from doublewell.units import after, convert, has_pint, percent

NARROW = 0.05  # half-width of the band of G, relative to G, that is good
_WIDE = 0.5  # beyond it the shape of the law is not determined
_UNSURE = 0.05  # probability of extra wells that is worth a check
_APART = 0.01  # probability below which two tensions disagree
_COSTLY = 1.1  # times the band with known gain and offset, above which they count as not determined
_REFUTED = 16.0  # rise of chi-square, 4 standard deviations: the data, not noise, want further wells
_LOOSE = 0.04  # width of the interval of the gain: 1 % of it moves the force by about 5 %
_COARSE = 1.5  # q G' dt of weak moments: benchmarks/zoo.py flags clean records beyond it
_STEP = 0.1  # standard errors by which half the time step may move the estimate
_UNSETTLED = 3.0  # standard errors from the point of linearisation
_LARGE_RESIDUAL = 0.5
_LITTLE_MOTION = 0.5
_BEYOND = 5.0  # standard deviations of the noise that hardly a pixel in a thousand exceeds
_POINTS = 201
_NAMED = 5  # tiles that are named
_OUTSIDE = {"admissible": "not be a double well with a single barrier", "bernstein": "lie outside the positive family"}


def findings(result: Result, *, checksum: str | None = None, table: Facts | None = None) -> list[Finding]:
    """Return all findings of a result, good ones too; `checksum` is that of the movie at hand, where there is one.

    >>> [item.code for item in findings(result) if item.severity != "ok"]  # doctest: +SKIP
    ['interface-few-cells', 'tension-exact']
    """
    table = facts(result) if table is None else table
    fit, stored, items = result.diagnostics.likelihood, result.problem.records[0].checksum, []
    if None not in (stored, checksum) and stored != checksum:
        words = "the movie at hand is not the one that the law came from: their checksums differ"
        items.append(Topic("data").fail("other-movie", words))
    items += [
        *force_findings(result),
        *rival_findings(result.rivals, result.adequacy),
        *_stopped(result, fit),
        *(_weak(result, table) if fit is None else _trajectory(result, fit, table)),
        *diffusion_findings(table["q"]),
        *mobility_findings(result),
        *_structure(result, fit),
        *_movie(result),
        *_contrast(result, table),
        *_determination(result, table),
        *(() if result.grey is None else grey_findings(result.grey)),
        *note_findings(result.notes),
        *_scale(result, table),
        *_tensions(result, table),
        *_agreement(result, fit),
    ]
    return [item for item in items if not (result.law.one_phase and item.code in OF_TWO_PHASES)]


def worst(items: list[Finding]) -> Severity:
    """Return the worst severity."""
    return max((item.severity for item in items), key=list(Severity).index, default=Severity.OK)


def _stopped(result: Result, fit: Likelihood | None) -> Iterator[Finding]:
    """Yield what a fit is without whose time was over."""
    if (step := result.resolved.stopped) is None:
        return
    make, advice = Topic("convergence"), f"give more time ({option('time_limit')})"
    if fit is None:
        words = "the time was over before the first trajectory fit: this is the weak-form fit, without error bands"
        yield make.fail("time-limit", words, advice, step=step)
        return
    untested = fit.adequacy is None and result.problem.check
    missing = ["the resolution is not measured"] * bool(np.isnan(fit.mesh_size)) + [
        "the model is not tested"
    ] * untested
    words = f"the time was over before step {step} of the work: {' and '.join(missing) or 'the law was not refined'}"
    yield make.check("time-limit", words, advice, step=step)


# --- a trajectory fit -----------------------------------------------------------------------------------------------


def _trajectory(result: Result, fit: Likelihood, table: Facts) -> Iterator[Finding]:
    yield from _quality(result, fit)
    yield from _precision(fit, table)
    for number, other in enumerate(fit.others, 2):
        poor = (item for item in _quality(result, other) if item.severity != Severity.OK)
        yield from (replace(item, where=f"record {number}") for item in poor if item.code != "model-untested")


def _quality(result: Result, fit: FitQuality) -> Iterator[Finding]:
    """Yield convergence, model, resolution and constraint of the fit of one record."""
    make = Topic("convergence")
    if fit.status.converged:
        yield make.ok("converged", fit.status.text)
    else:
        yield make.fail("not-converged", f"the fit did not converge ({fit.status.text})", "do not use its errors")
    if fit.distance > _UNSETTLED:
        words = (
            f"the law lies {fit.distance:.0f} standard errors from the fit that its errors come from, and a fit nearby "
            "is worse: the movie does not follow the model, or holds too little information"
        )
        yield make.fail("linearisation-far", words, "do not use the errors", distance=fit.distance)
    yield from model_findings(fit.adequacy, fit.noise, setting_of(result, fit))
    make, sizes = Topic("resolution"), {"time": fit.time_size, "mesh": fit.mesh_size}
    moved = f"half the time step would move the law by {fit.time_size:.2g} standard errors, a finer mesh by "
    if np.isnan(fit.mesh_size):
        yield make.check("resolution-unmeasured", "how far a finer step or mesh would move the law is not known")
    elif fit.mesh_size > 1.0:
        words = (
            f"a finer mesh would move the estimate by {fit.mesh_size:.1f} standard errors: the record is coarser than "
            "its dynamics; the bands include this"
        )
        finer = fit.refine + (2 if fit.boundary == "neumann" else 1)
        yield make.check("mesh-coarse", words, f"use {option('refine', finer)}", **sizes)
    elif fit.time_size > _STEP:
        yield make.check("time-step-coarse", f"{moved}{fit.mesh_size:.2g}", **sizes)
    else:
        yield make.ok("resolved", f"{moved}{fit.mesh_size:.2g}", **sizes)
    if fit.constraint_rise > 9.0 and result.posterior is not None:
        outside, pure = _OUTSIDE[result.posterior.constraint], pure_phases(result.law.phases)
        words = (
            f"the constraint raises chi2 by {fit.constraint_rise:.0f}: the true law may {outside}, or the phase values "
            f"are not at {pure}"
        )
        advice = "see what the tests of the model name; a fit without the constraint shows where the data pull the law"
        yield Topic("constraint").check("constraint-raises-chi2", words, advice, rise=fit.constraint_rise)


def _precision(fit: Likelihood, table: Facts) -> Iterator[Finding]:
    make, size = Topic("precision"), table["force_band"].value
    if fit.adequacy is not None and fit.adequacy.verdict == Verdict.NOT_ADEQUATE:
        words = "the record is not this model plus white noise, so the bands do not hold"
        yield make.fail("bands-invalid", words, band=size)
        return
    severity = Severity.OK if size <= NARROW else Severity.CHECK if size <= _WIDE else Severity.FAIL
    code = "band-narrow" if size <= NARROW else "band-wide"
    words = f"the 95 % band of {table.curve} is +-{percent(size)} of {table.curve}, on average"
    yield make.finding(severity, code, words, band=size)


def _determination(result: Result, table: Facts) -> Iterator[Finding]:
    """Yield where the record does not determine the law, and which numbers rest on what was not measured."""
    law, posterior, coverage = result.law, result.posterior, result.diagnostics.survey.coverage
    if posterior is None:
        return
    make, even = Topic("determination"), law.family.even  # an odd force is known by its half
    u = np.linspace(0.0 if even else law.phases[0], law.phases[1], _POINTS)
    if coverage >= COVERED and not law.family.found:
        low, high = quantile_interval(posterior.free_draws @ posterior.family.features(u), LEVEL)
        if np.all(high - low <= np.max(np.abs(law.force(u)))):
            return  # the draws with the constraint take longer, and here they give nothing new
    if coverage < COVERED:
        words = (
            "the width, C_H, epsilon and F take in all phase values, so they rest on the law where it was not "
            "measured; their intervals hold only if it is as smooth there as elsewhere"
        )
        yield make.check("numbers-extrapolated", words, coverage=coverage)
    low, high = curve_band(posterior, "force", u, LEVEL)
    wide = u[high - low > np.max(np.abs(law.force(u)))].tolist()
    if wide:
        words = (
            f"the law is not determined for {'|u|' if even else 'u'} from {wide[0]:.2g} to {wide[-1]:.2g}: its 95 % "
            "band there is wider than the largest force"
        )
        advice = "record until the field takes these values, or with less noise"
        yield make.check("law-undetermined", words, advice, low=wide[0], high=wide[-1])
    missing: dict[str, list[str]] = {}
    for key in ("width", "tension_integral", "epsilon", "barrier"):
        fact = table.get(key)
        if fact is None or not law.has_interface:
            continue
        if fact.interval is None:
            missing.setdefault(fact.why, []).append("C_H" if key == "tension_integral" else key)
        elif not (first := fact.interval[0]) <= fact.value <= (last := fact.interval[1]):
            words = (
                f"the estimate of {key}, {fact.value:.4g}, lies outside its own 95 % interval, {first:.4g} to "
                f"{last:.4g}: the law is so uncertain that the average over laws and the number of the average law "
                "differ"
            )
            yield make.check("estimate-outside-interval", words, "use neither", value=fact.value, low=first, high=last)
    for reason, names in missing.items():
        yield make.check("interval-missing", f"no interval of {', '.join(names)}: {reason}")


# --- a weak-form fit ------------------------------------------------------------------------------------------------


def _weak(result: Result, table: Facts) -> Iterator[Finding]:
    numbers, make, stopped = result.diagnostics, Topic("moments"), result.resolved.stopped is not None
    instead = f"give more time ({option('time_limit')})" if stopped else f"use {option('method', 'trajectory')}"
    words = "the weak-form fit has no noise model, so it gives no error bands"
    yield Topic("precision").check("no-error-bands", words, instead)
    left, adequate = percent(numbers.residual), numbers.moments is None or numbers.moments.verdict == Verdict.ADEQUATE
    if numbers.moments is None and not stopped:
        words = (
            "the moments were not tested for model misspecification: that was switched off, the equation is another "
            "than Allen-Cahn, or too few moments are more than noise"
        )
        yield Topic("model").check("model-untested", words, instead)
    else:
        yield from model_findings(numbers.moments, numbers.survey.noise, setting_of(result))
    if numbers.residual > _LARGE_RESIDUAL:
        words = f"the law leaves {100 * numbers.residual:.0f} % of the moments unexplained: the field does not follow "
        words, advice = f"{words}{table.motion}, or noise dominates", "check the scale of the field, q, dx and dt"
        yield make.check("moments-unexplained", words, advice, residual=numbers.residual)
    elif numbers.support_spread <= 0.1 and adequate:
        spread = f"; a single support changes G by up to {percent(numbers.support_spread)}" if numbers.supports else ""
        words = f"the law leaves {left} of {numbers.rows} moments, most of it noise{spread}"
        yield make.ok("moments-explained", words, residual=numbers.residual)
    times = result.q * max(result.law.well_curvatures) * result.problem.records[0].dt
    if min([frames for frames, _ in result.resolved.supports]) == 1:
        words = (
            "test functions of one frame interval: the rate of change is a difference of neighbouring frames, with the "
            f"noise of two of them and an error that grows with the square of the interval (q G' dt = {times:.2g})"
        )
        yield make.check("short-test-functions", words, instead, interval=times)
    if times > _COARSE:
        words = (
            f"the field relaxes {times:.2g} times from one frame to the next; beyond {_COARSE:g} the rate of change of "
            "weak moments is off by a percent and more"
        )
        yield make.check("weak-time-coarse", words, f"record more often, or {instead}", interval=times)
    for part in numbers.supports:
        if part.coefficients is None:
            frames, length = part.support.strip("()").split(" frames, ")
            name = f"({frames} frames, {float(length):.4g})"
            words = f"the support {name} is not sufficient alone ({part.rows} moments): {part.status}"
            yield make.check("few-moments", words, rows=part.rows)
    yield from weak_mesh_findings(numbers.survey)
    yield from _weak_noise(result)
    if numbers.support_spread > 0.1:
        words = f"the supports disagree: one alone changes the force by {100 * numbers.support_spread:.0f} %"
        advice = "lower the degree or choose supports"
        yield make.check("supports-disagree", words, advice, spread=numbers.support_spread)
    if numbers.scaled_condition > 1e4:
        words = f"the design is ill-conditioned ({numbers.scaled_condition:.1e})"
        advice = f"lower the degree or use {option('ridge')}"
        yield make.check("ill-conditioned", words, advice, condition=numbers.scaled_condition)
    if numbers.active:
        words = f"{held(numbers.active, ())} at the lower bound: the data ask for a law outside the positive family"
        yield make.check("coefficients-at-bound", f"{words}, or are too noisy for this degree")
    if numbers.contacts:
        words = f"the bracket touches zero at |u| = {held((), numbers.contacts)}: the data ask for a law that is not a "
        words += "double well with a single barrier, or are too noisy for this degree"
        yield make.check("bracket-touches-zero", words)


def _weak_noise(result: Result) -> Iterator[Finding]:
    """Yield what noise does to a weak-form fit: to the motion, through the correction, or as a bias."""
    numbers, make, (low, high) = result.diagnostics, Topic("moments"), result.law.phases
    survey, half = numbers.survey, 0.5 * (high - low)
    if numbers.motion is not None and numbers.motion < _LITTLE_MOTION:
        words = (
            f"only {100 * numbers.motion:.0f} % of the squared rate of change is motion, the rest noise: q rests on "
            "the measured noise, and an error of one percent in its square moves q by about "
            f"{1.0 / numbers.motion - 1.0:.1f} percent"
        )
        advice = "record longer, or a shape that moves faster"
        yield make.check("q-little-motion", words, advice, motion=numbers.motion)
    if not result.problem.method.corrected:
        u = np.linspace(low, high, 401)
        force = result.law.force(u)
        bend = np.linalg.norm(np.diff(force, 2)) / (u[1] - u[0]) ** 2  # noise^2/2 G'' leads (paper, Section 3.4)
        bias = float(0.5 * survey.noise**2 * bend / (np.linalg.norm(force) or np.inf))
        if bias > 0.01:
            words = f"noise {survey.noise:.2g} biases the force by about {100 * bias:.0f} % (noise^2/2 times its "
            words += "curvature), which averaging does not remove"
            advice = f"{option('method', 'weak-corrected')} removes it where the noise is white"
            yield make.check("noise-bias", words, advice, bias=bias)
        return
    low, high = result.law.family.phases  # of a conserved field the range, which holds all values
    beyond = max(low - survey.low, survey.high - high)
    if beyond > _BEYOND * survey.noise + 0.01 * half:
        words = (
            f"values reach {beyond:.2g} beyond the pure phases, more than white noise of {survey.noise:.2g} explains: "
            "the corrected features are polynomials on the whole line and grow fast there"
        )
        yield make.check("correction-beyond-phases", words, f"compare with {option('method', 'weak')}", beyond=beyond)
    if numbers.held:
        total = len(result.resolved.supports) * result.law.family.size
        words = f"in {numbers.held} of {total} directions of the coefficients nearly all is noise: there the law is "
        yield make.check("correction-limited", f"{words}that of degree 2", held=numbers.held)


@dataclass(frozen=True)
class ModelTest:
    """One test of the model as a table lists it: statistic ("z" or "chi2"), adjusted probability, size in sigma."""

    name: str
    symbol: str
    statistic: float
    adjusted: float
    sigma: float
    significant: bool
    sentence: str


def model_tests(result: Result) -> tuple[ModelTest, ...]:
    """Return the tests of the model; none where it was not tested."""
    if result.adequacy is None:
        return ()
    setting = setting_of(result, result.diagnostics.likelihood)
    return tuple(
        ModelTest(t.name, "z" if t.degrees == 1 else "chi2", t.statistic, t.adjusted, t.sigma, t.significant,
                  sentence_of(t, setting))
        for t in result.adequacy.tests
    )  # fmt: skip


# --- any result -----------------------------------------------------------------------------------------------------


def setting_of(result: Result, fit: FitQuality | None = None) -> Setting:
    """Return what the sentences about the tests of a fit need to know."""
    u = np.linspace(*result.law.phases, 401)
    largest = float(np.max(np.abs(result.force(u))))
    dx, boundary = (fit.dx, fit.boundary) if fit else (result.problem.records[0].dx, result.resolved.boundary)
    stopped = result.resolved.stopped is not None and result.problem.check
    return Setting(dx, boundary, result.law.phases, largest, stopped)


def _structure(result: Result, fit: Likelihood | None) -> Iterator[Finding]:
    make = Topic("structure")
    if result.law.family.found:
        yield from coexistence_findings(result.law, result.diagnostics.survey)
    if not result.structure.ok:
        words = f"not a double well with a single barrier: {result.structure}"
        advice = "record more, or with less noise, to see whether it is one"
        yield make.check("not-a-double-well", words, advice)
        return
    if fit is None:
        return (yield make.ok("double-well", str(result.structure)))
    probability = "less than 0.1 %" if fit.extra_structure < 1e-3 else percent(fit.extra_structure)
    words = f"{result.structure}; probability of further wells, from the data alone: {probability}"
    if fit.extra_structure < _UNSURE:
        yield make.ok("double-well", words, probability=fit.extra_structure)
    else:
        forced = fit.extra_structure > 1.0 - _UNSURE
        sure = "the constraint, not the data, makes this a double well with a single barrier: "
        words = sure + words if forced else words
        advice = f"values that end short of the phases look like this: use {option('contrast', 'estimated')}"
        severity = Severity.FAIL if forced and fit.constraint_rise > _REFUTED else Severity.CHECK
        numbers = {"probability": fit.extra_structure, "rise": fit.constraint_rise}
        exact = result.contrast is None and not result.law.family.found
        yield make.finding(severity, "extra-structure", words, advice if exact else "", **numbers)
    path = () if result.posterior is None else result.posterior.path
    if len(path) > 1 and path[-1].weight > 1.0 - _UNSURE:
        words = (
            f"the highest degree, {path[-1].degree}, has {percent(path[-1].weight)} of the weight: the law may be "
            "richer than any that was tried, or bends to something that the model lacks"
        )
        yield make.check("degree-at-limit", words, weight=path[-1].weight)


def _movie(result: Result) -> Iterator[Finding]:
    """Yield what is wrong with the movie itself, or that all is well."""
    record, survey = result.problem.records[0], result.diagnostics.survey
    dt = record.dt if record.times is None else None
    phases = result.law.phases if result.contrast is None else result.contrast.plateaus
    items = [*survey_findings(survey, phases), *pace_findings(survey, record.q, dt, result.problem.dynamics)]
    if not result.law.family.symmetric:
        items += one_sided_findings(survey, phases)
    if not items:
        width = "" if survey.cells is None else f", interfaces {survey.cells:.1f} pixels wide"
        words = f"noise {survey.noise:.2g} per pixel{width}, {100 * survey.coverage:.0f} % of the phase range visited"
        items = [Topic("movie").ok("movie-good", words, noise=survey.noise, coverage=survey.coverage)]
    yield from items


def _contrast(result: Result, table: Facts) -> Iterator[Finding]:
    """Yield what estimating gain and offset of the values costs, and what taking them for exact would have done."""
    contrast, make = result.contrast, Topic("contrast")
    if contrast is None:
        return
    numbers = {name: getattr(contrast, name) for name in ("gain", "offset", "change", "cost")}
    low, high = result.interval("gain")
    if contrast.cost > _COSTLY or high - low > _LOOSE:
        added = float(np.sqrt(1.0 - contrast.cost**-2)) * table["force_band"].value
        words = (
            f"the contrast is not determined as well as the law (gain {low:.4g} to {high:.4g}): with gain and offset "
            f"of the values estimated the band of G is {contrast.cost:.3g} times as wide as with known ones, which "
            f"adds {percent(added)} of G"
        )
        advice = "record until both pure phases are in view; where the values are known to be exact, use "
        write = make.check if added > TOLERANCE or high - low > _LOOSE else make.ok
        yield write("contrast-undetermined", words, f"{advice}{option('contrast', 'exact')}", **numbers)
        return
    size = f"about {percent(contrast.change)}" if contrast.change < _WIDE else f"more than {percent(_WIDE)}"
    taken = f"taken for exact, the values would move G by {size}"
    words = f"gain {contrast.gain:.4g} and offset {contrast.offset:.2g} of the values were estimated; {taken}"
    yield make.ok("contrast-estimated", words, **numbers)


def _scale(result: Result, table: Facts) -> Iterator[Finding]:
    """Yield whether the scale is fixed, where a surface tension was given."""
    make, fraction = Topic("scale"), table.get("tension_fraction")
    if result.scale is None:
        if (refused := result._refused) is not None:
            write = make.check if refused.kind == NoScale.UNEQUAL_DEPTHS else make.fail  # G and H are as good as ever
            yield write(f"calibration-{refused.kind}", result.refusal or "")
    elif result.posterior is not None and result.scale.tension.sd is None and result.scale.thermal is None:
        of = result.problem.scale_from or "the surface tension"
        words = f"the intervals take {of} as exact"
        yield make.check("tension-exact", words, "pass its standard deviation to include it")
    elif fraction is not None:
        words = f"{percent(fraction.value)} of the variance of epsilon comes from the surface tension"
        yield make.ok("scale-fixed", words, fraction=fraction.value)
    else:
        of = result.problem.scale_from or "the surface tension that was given"
        yield make.ok("scale-fixed", f"epsilon and F are fixed by {of}")


def _tensions(result: Result, table: Facts) -> Iterator[Finding]:
    """Yield whether a tension that was given agrees with that of thermal noise."""
    make, given = Topic("scale"), None if result.scale is None else result.scale.tension
    if given is None or result.problem.scale_from or result.problem.temperature is None:
        return
    fact, refused = table.get("thermal_tension"), result._unmeasured
    if fact is None or fact.interval is None:
        words = "the surface tension that was given cannot be compared with that of thermal noise"
        yield make.check("tensions-not-compared", f"{words}: {refused.reason if refused else 'it has no interval'}")
        return
    if fact.unit != given.unit and not has_pint():
        return
    unit = 1.0 if fact.unit is None or given.unit is None else convert(1.0, given.unit, fact.unit, "the tension")
    value, sd, (low, high) = unit * given.value, unit * (given.sd or 0.0), fact.interval
    z = (fact.value - value) / hypot(sd, (high - low) / DEVIATES)
    p, lower = erfc(abs(z) / sqrt(2.0)), "a measured tension is that of long waves, which fluctuations lower"
    agree, advice = "agree", ""
    if p < _APART:
        agree, advice = "disagree", f"check temperature, q, blur and units{f'; {lower}' if z > 0.0 else ''}"
    error = f" +- {sd:.2g}" if sd else ""
    words = (
        f"the surface tension that was given, {value:.4g}{error}{after(fact.unit)}, and that of thermal noise, "
        f"{fact.value:.4g} ({low:.4g} to {high:.4g}), {agree} (z = {z:+.1f}, p = {p:.2g})"
    )
    severity = Severity.CHECK if p < _APART else Severity.OK
    yield make.finding(severity, f"tensions-{agree}", words, advice, z=z, p=p)


def _agreement(result: Result, fit: Likelihood | None) -> Iterator[Finding]:
    """Yield which records or tiles have another law than the others, and which tiles could not be read."""
    tiles, make = None if fit is None else fit.tiles, Topic("agreement")
    if tiles is not None and tiles.lost:
        words = f"{len(tiles.lost)} of {len(tiles.lost) + tiles.read} tiles could not be followed and are left out"
        yield make.check("tiles-lost", f"{words}: {'; '.join(tiles.lost[:_NAMED])}", "look at the record there")
    if tiles is not None and tiles.unfinished:
        named = "; ".join(tiles.unfinished[:_NAMED])
        words = f"the fields of {len(tiles.unfinished)} tiles were not followed to the end: {named}"
        yield make.check("tiles-unfinished", words)
    code, advice = "record-disagrees", "check its units, q and phase values, or leave it out"
    if tiles is not None:
        code = "tile-disagrees"
        advice = "check what is there (dust, a flow, another material), or leave that part out"
    for item in result.agreements:
        if not item.agrees:
            words = (
                f"{item.record} disagrees with the others (chi2 {item.chi2:.0f} of {item.degrees} degrees, "
                f"p = {item.adjusted:.1g} for all together)"
            )
            yield make.check(code, words, advice, chi2=item.chi2, p=item.adjusted)

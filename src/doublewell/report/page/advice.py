"""Advice: what would make the result better, from its own numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from doublewell.legacy import band_size, first_words, percent
from doublewell.observation import FEW_CELLS
from doublewell.record_findings import survey_findings
from doublewell.report.page.law_charts import band_of, unseen_ranges
from doublewell.report.page.markup import plain, prose
from doublewell.report.page.scale import scale_parts
from doublewell.report.page.verdicts import MOSTLY
from doublewell.report.unit_words import after
from doublewell.result import Result

__all__ = ["advice", "plan_command"]

_REACH = 1.96  # standard deviations of a 95 % band
_MOST = 0.5  # share of epsilon's variance from which the tension is what to better first


def advice(result: Result) -> list[str]:
    """Return what to do, what hinders most first."""
    return [*_model(result), *_levels(result), *_bands(result), *_scale(result), *_record(result), *_law(result)]


def plan_command(result: Result) -> str | None:
    """Return the command that predicts what a change of this movie would bring; None where it has no bands."""
    fit, asked = result.diagnostics.likelihood, result.settings
    if fit is None or len(asked.shape) != 3 or asked.boundary not in ("periodic", "neumann"):
        return None
    mesh = "x".join(str(n) for n in asked.shape[1:])
    step = ",".join(f"{h:.6g}" for h in dict.fromkeys(asked.dx))
    return (
        f"doublewell plan --law result.json --mesh {mesh} --dx {step} --dt {asked.dt:.6g} --frames {asked.shape[0]} "
        f"--noise {fit.noise:.2g} --q {asked.q:.6g} --boundary {asked.boundary}"
    )


def _model(result: Result) -> Iterator[str]:
    answer = result.adequacy
    if answer is not None and answer.verdict != "adequate":
        yield f"First fix what the tests found, and fit again. {prose(first_words(result))}."


def _levels(result: Result) -> Iterator[str]:
    """Say what to do where the grey levels are what is known least."""
    found, source = result.levels, result.settings.source
    if found is None and source is not None and ("levels", "auto") in source.reading:
        yield (
            "Let the bands hold the errors of the grey levels (--levels-sd auto), or measure the levels where the "
            "sample is one pure phase and pass them (--levels low,high)."
        )
    elif found is not None and result.posterior is not None and _REACH * found.force > MOSTLY * band_size(result):
        yield (
            "Better grey levels: most of the band of G comes from them. Record a field with some pixels of each phase "
            "far from every interface, or measure the levels apart and pass them (--levels, --levels-sd)."
        )


def _bands(result: Result) -> Iterator[str]:
    if result.diagnostics.likelihood is not None:
        return
    yield "Use the trajectory reading (leave out --method weak): it gives error bands and tests the model."


def _scale(result: Result) -> Iterator[str]:
    if result.scale is None:
        if result.refusal is None:
            yield "Measure a surface tension by other means and pass it: it fixes ε and the potential F."
        return
    parts = scale_parts(result)
    if parts is None:
        return
    size = result.scale.epsilon
    if parts.tension_sd is None:
        yield "Pass the standard deviation of the surface tension, so that the interval of ε holds it too."
    elif parts.share > _MOST:
        yield (
            f"A better surface tension: {percent(parts.share)} of the variance of ε comes from it. With an exact one ε "
            f"would be known to ±{percent(1.96 * parts.movie_sd / size)} instead of "
            f"±{percent(1.96 * float(np.hypot(parts.movie_sd, parts.tension_sd)) / size)} (95 %)."
        )


def _record(result: Result) -> Iterator[str]:
    seen = result.diagnostics.survey
    ranges = [f"{plain(low, 2)} to {plain(high, 2)}" for low, high in unseen_ranges(result)]
    if ranges:
        yield (
            f"A movie that shows the phase values {' and '.join(ranges)} too: there the law rests on its form alone. "
            "Moving interfaces show all of them."
        )
    if seen.cells is not None and seen.cells < FEW_CELLS:
        yield (
            f"Finer pixels: an interface spans {seen.cells:.1f} of them, and {FEW_CELLS:g} or more are better "
            f"(dx at most {plain(max(result.settings.dx) * seen.cells / FEW_CELLS, 2)}"
            f"{after(result.settings.length_unit)})."
        )

    for item in survey_findings(seen, result.law.phases):
        if item.code not in ("interface-few-cells", "phase-range-not-covered"):  # said above, with what to do
            yield f"{prose(str(item))}."


def _law(result: Result) -> Iterator[str]:
    """Say how the bands shrink: their width is proportional to the noise, and to one over the root of the frames."""
    fit, answer = result.diagnostics.likelihood, result.adequacy
    if fit is None or (answer is not None and answer.verdict == "not adequate"):
        return
    size = band_size(result)
    levels = 0.0 if result.levels is None else min(_REACH * result.levels.force, size)  # noise is no part of this
    movie = np.sqrt(size**2 - levels**2)
    half, twice = (float(np.hypot(part * movie, levels)) for part in (0.5, np.sqrt(0.5)))
    yield (
        f"Less noise: it is {fit.noise:.2g} per pixel, and half of it would narrow the band of G from ±{percent(size)} "
        f"to about ±{percent(half)}. Twice the frames in the same time give about ±{percent(twice)}."
    )
    if (place := _widest(result)) is not None:
        sign = "±" if result.law.family.even else ""
        yield (
            f"The force is least sure near u = {sign}{place:.2f}: frames with more values there (more interface, or "
            "one that moves more) help most."
        )


def _widest(result: Result) -> float | None:
    """Return the phase value (of an odd force from 0 to 1) where the band of the force is widest."""
    even = result.law.family.even
    u = np.linspace(0.0 if even else result.law.phases[0], result.law.phases[1], 101)
    found = band_of(result, "force", u)
    return None if isinstance(found, str) else float(u[int(np.argmax(found[1] - found[0]))])

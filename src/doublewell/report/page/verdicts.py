"""Verdicts: each question that a careful reader would ask, with good, look or do not use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from doublewell.observation import survey_notes
from doublewell.report.page.markup import prose
from doublewell.report.page.scale import scale_parts
from doublewell.result import Likelihood, Result
from doublewell.result.text import band_size, percent

__all__ = ["MOSTLY", "SYMBOLS", "Finding", "Verdict", "findings", "overall", "tension_part"]

Verdict = Literal["good", "look", "do not use"]
SYMBOLS: dict[Verdict, str] = {"good": "✔", "look": "◆", "do not use": "✖"}  # told apart without colour
_NARROW = 0.05  # half-width of the band of G, relative to G, that is good
_WIDE = 0.5  # beyond it the shape of the law is not determined
MOSTLY = 0.7  # of the band of G: half of its variance
_UNSURE = 0.05  # probability of extra wells that is worth a look
_STEP = 0.1  # standard errors by which half the time step may move the estimate


@dataclass(frozen=True)
class Finding:
    """One question, its verdict, and what was found."""

    question: str
    verdict: Verdict
    words: str


def findings(result: Result, *, found_checksum: str | None = None) -> list[Finding]:
    """Return all questions with their verdicts; warnings that answer none of them are added as they are."""
    fit = result.diagnostics.likelihood
    asked = [
        *_data(result, found_checksum),
        *(_weak(result) if fit is None else _likelihood(result, fit)),
        _double_well(result, fit),
        *_movie(result),
        *_grey(result),
        *_scale(result),
    ]
    told = " ".join(item.words for item in asked)
    rest = [warning for warning in result.diagnostics.warnings if not _told(warning, told, result)]
    return [*asked, *(Finding("What else should be looked at?", "look", warning) for warning in rest)]


def overall(found: list[Finding]) -> Verdict:
    """Return the worst verdict."""
    kinds = [item.verdict for item in found]
    return "do not use" if "do not use" in kinds else "look" if "look" in kinds else "good"


def _told(warning: str, told: str, result: Result) -> bool:
    """Tell whether a warning is among the answers already."""
    answer = result.adequacy
    about_model = answer is not None and warning in [f"model {answer.verdict}: {line}" for line in answer.words]
    return warning in told or about_model


def _data(result: Result, checksum: str | None) -> Iterator[Finding]:
    stored = result.settings.checksum
    if None not in (stored, checksum) and stored != checksum:
        words = "the movie on this page is not the one that the law came from: their checksums differ"
        yield Finding("Is this the movie of the result?", "do not use", words)


def _likelihood(result: Result, fit: Likelihood) -> Iterator[Finding]:
    status = fit.status if fit.converged else f"the fit did not converge ({fit.status}): do not use its errors"
    yield Finding("Did the fit converge?", "good" if fit.converged else "do not use", status)
    yield _model(result)
    yield _certainty(result)
    yield _resolution(result, fit)
    yield from _warned(result, "Does the constraint fit the data?", "the constraint raises chi2")


def _model(result: Result) -> Finding:
    question, answer = "Does the movie follow this model?", result.adequacy
    if answer is None:
        return Finding(question, "look", "not asked: the check was switched off; run it without --no-check")
    kinds: dict[str, Verdict] = {"adequate": "good", "look": "look"}
    first = ["the bands do not hold, because the movie is not this model plus white noise"]
    said = [*(first if answer.verdict == "not adequate" else []), *answer.words]
    return Finding(question, kinds.get(answer.verdict, "do not use"), ". ".join(prose(line) for line in said))


def _certainty(result: Result) -> Finding:
    question, size = "How sure is the law?", band_size(result)
    if result.adequacy is not None and result.adequacy.verdict == "not adequate":
        return Finding(
            question, "do not use", f"not known: a band of ±{percent(size)} of G would need a model that holds"
        )
    verdict: Verdict = "good" if size <= _NARROW else "look" if size <= _WIDE else "do not use"
    return Finding(question, verdict, f"the 95 % band of G is ±{percent(size)} of G, on average")


def _resolution(result: Result, fit: Likelihood) -> Finding:
    question = "Are steps and pixels fine enough?"
    sizes = f"{fit.time_size:.2g} standard errors, a finer mesh by {fit.mesh_size:.2g}"
    moved = f"half the time step would move the law by {sizes}"
    coarse = next((text for text in result.diagnostics.warnings if text.startswith("a finer mesh would move")), None)
    if coarse is not None:
        return Finding(question, "look", coarse)
    return Finding(question, "good" if fit.time_size <= _STEP else "look", moved)


def _weak(result: Result) -> Iterator[Finding]:
    words = (
        "not known: the weak reading has no noise model, so it gives no bands and cannot test the model; leave out "
        "--method weak"
    )
    yield Finding("How sure is the law?", "look", words)
    numbers = result.diagnostics
    question = "Do the weak moments agree with the law?"
    poor = [text for text in numbers.warnings if text.startswith(("the law leaves", "the supports disagree"))]
    spread = f"; one support alone changes G by up to {percent(numbers.support_spread)}" if numbers.supports else ""
    good = f"the law leaves {percent(numbers.residual)} of {numbers.rows} moments, most of it noise{spread}"
    yield Finding(question, "look" if poor else "good", "; ".join(poor) or good)


def _double_well(result: Result, fit: Likelihood | None) -> Finding:
    question = "Is it a double well?"
    if not result.structure.ok:
        warning = next((text for text in result.diagnostics.warnings if text.startswith("not a plain")), None)
        return Finding(question, "look", warning or f"not a plain double well: {result.structure}")
    if fit is None:
        return Finding(question, "good", f"yes: {result.structure}")
    chance = "less than 0.1 %" if fit.extra_structure < 1e-3 else percent(fit.extra_structure)
    words = f"yes: {result.structure}; chance of further wells, from the data alone: {chance}"
    return Finding(question, "good" if fit.extra_structure < _UNSURE else "look", words)


def _movie(result: Result) -> Iterator[Finding]:
    """Say what the movie itself lacks: one line each, or one that all is well."""
    seen, question = result.diagnostics.survey, "Is the movie good enough?"
    notes = survey_notes(seen)
    if not notes:
        width = "" if seen.cells is None else f", interfaces {seen.cells:.1f} pixels wide"
        words = f"noise {seen.noise:.2g} per pixel{width}, {100 * seen.coverage:.0f} % of the phase range visited"
        yield Finding(question, "good", words)
    for note in notes:
        yield Finding(question, "look", note)


def _grey(result: Result) -> Iterator[Finding]:
    """Say what the errors of the grey levels do, where there are levels."""
    question, found, source = "Are the grey levels known well enough?", result.levels, result.settings.source
    if found is not None:
        part = f"their errors move G by {percent(found.force)} (one standard deviation)"
        if result.posterior is None:
            yield Finding(question, "look" if found.force > _NARROW else "good", part)
        elif 1.96 * found.force > MOSTLY * band_size(result):
            yield Finding(question, "look", f"{part}, which is most of the band of G: better levels help most")
        else:
            yield Finding(question, "good", f"{part}, and the bands include it")
    elif source is not None and ("levels", "auto") in source.reading:
        words = "the levels were found in the movie, and no band holds their error: --levels-sd auto adds it"
        yield Finding(question, "look", words)


def _scale(result: Result) -> Iterator[Finding]:
    """Say whether the scale is fixed, where a surface tension was given."""
    question = "Are ε and F fixed?"
    if result.refusal is not None:
        yield Finding(question, "do not use", result.refusal)
    elif result.scale is not None and result.posterior is not None and result.scale.tension.sd is None:
        words = "yes, but the surface tension is taken as exact: pass its standard deviation (--tension-sd)"
        yield Finding(question, "look", words)
    elif (part := tension_part(result)) is not None:
        yield Finding(question, "good", f"yes; {percent(part)} of the variance of ε comes from the surface tension")
    elif result.scale is not None:
        yield Finding(question, "good", "yes, by the surface tension that was given")


def tension_part(result: Result) -> float | None:
    """Return the share of epsilon's variance that comes from the surface tension; None where it is not known."""
    parts = scale_parts(result)
    return None if parts is None or parts.tension_sd is None else parts.share


def _warned(result: Result, question: str, start: str) -> Iterator[Finding]:
    for text in result.diagnostics.warnings:
        if text.startswith(start):
            yield Finding(question, "look", text)

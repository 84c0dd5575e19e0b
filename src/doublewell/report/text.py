"""Text: results, records and conversions of grey values as printed reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import Literal

import numpy as np

from doublewell.errors import InputError
from doublewell.facts import THERMAL, Fact, Facts, facts, physical_facts
from doublewell.findings import findings, model_tests
from doublewell.hints import Progress
from doublewell.observation import MASK, TOO_FEW_CELLS, TOO_LARGE, Survey, survey
from doublewell.physical import Physical
from doublewell.record import Found, GreyQuality, Record
from doublewell.record_findings import (
    UNIT,
    Finding,
    Phases,
    Severity,
    Topic,
    grey_findings,
    layout_findings,
    note_findings,
    pace_findings,
    pure_phases,
    survey_findings,
)
from doublewell.result import Result
from doublewell.units import WIDTH, after, count, percent, unit_text, wrapped
from doublewell.weak.weights import Support, default_supports

_TABLE = 106  # wider than sentences, so that most tests need one line
_PICTURE = 1024  # frames of a 1-D movie that are looked at
_SIMILAR = 0.8  # change from frame to frame over that from cell to cell of what may be one picture
_BAR = 40  # characters of the longest bar
NOTHING = "No problems found."
Sections = list[tuple[str, Iterable[str]]]


def report_text(result: Result) -> str:
    """Return the report: the law, its scale, its wells, the numbers behind it, and the warnings."""
    table = facts(result)
    items = findings(result, table=table)
    units = ("Physical units", _unit_lines(table))
    law: Sections = [("Effective force", _force_lines(table)), ("Scale", _scale_lines(table))]
    law.insert(0 if "physical_kappa" in table.numbers else 2, units)
    sections: Sections = [
        *law,
        ("Wells", _well_lines(table)),
        ("Grey values", [] if result.grey is None else grey_lines(result.grey)),
        ("Degrees", _degree_lines(table)),
        ("Assumed", (line for text in table.assumptions for line in wrapped(text, indent="  "))),
        ("Record", table.record),
        ("Fit", (line for text in table.fit for line in wrapped(text, indent="  "))),
        ("Model", _model_lines(result, table, items)),
        ("Warnings", _warning_lines(items)),
    ]
    return f"doublewell {table.version}: {table.headline}\n{joined(sections)}"


def summary(result: Result) -> str:
    """Return a result in one line."""
    table = facts(result)
    epsilon = table.get("epsilon")
    scale = "no scale" if epsilon is None else f"epsilon = {epsilon.value:.6g}"
    if (barrier := table.get("physical_barrier")) is not None:
        scale = f"{barrier.symbol} = {barrier.value:.6g}{after(barrier.unit)}, {scale}"
    wells = "double well" if table.structure.ok else "not a double well with a single barrier"
    wells = "one phase" if table.law.one_phase else wells
    warned = sum(item.severity != Severity.OK for item in findings(result, table=table))
    return f"Result({table.headline}, {scale}, {wells}, {count(warned, 'warning')})"


def joined(sections: Sections) -> str:
    """Return sections under their titles; those without lines are left out."""
    written = [(title, list(lines)) for title, lines in sections]
    return "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in written if lines)


def with_interval(fact: Fact, *, digits: int = 6) -> str:
    """Return a number with its unit and its interval, or with what is known of its error."""
    text = f"{fact.value:.{digits}g}{after(fact.unit)}"
    if fact.interval is not None:
        return f"{text} (95 %: {fact.interval[0]:.{digits}g} to {fact.interval[1]:.{digits}g})"
    if fact.why:
        return f"{text} (no interval: the data allow laws without one)"
    return f"{text} +- {fact.sd:.2g} (from the surface tension alone)" if fact.sd is not None else text


def _force_lines(table: Facts) -> Iterator[str]:
    yield from wrapped(table.equation, indent="  ")
    if table.heaviest is not None:
        yield "g = " + ", ".join(f"{g.value:.6g}" for g in table.coefficients)
    else:
        for g in table.coefficients:
            sd = "" if g.sd is None else f" +- {g.sd:.2g}"
            note = "  at its lower bound" if g.at_bound else ""
            same = np.isclose(g.value, g.free, rtol=1e-9, atol=0.0)
            free = "" if same else f"  (without constraint and ridge {g.free:.5g})"
            yield f"{g.symbol} = {g.value:.6g}{sd}{note}{free}"
    if (band := table.get("force_band")) is not None:
        over = "the values of the record" if table.law.one_phase else "the phase range"
        yield f"95 % band of {table.curve}: +- {percent(band.value)} of {table.curve} (root mean squares over {over})"
    if table.correlations is not None:
        rows = table.correlations
        if len(rows) > 1:
            yield "correlation  " + "".join(f"{f'g_{j}':>7}" for j in range(len(rows) - 1))
        for i, row in enumerate(rows[1:], start=1):
            yield f"{f'g_{i}':>11}  " + "".join(f"{x:7.3f}" for x in row[:i])


def _scale_lines(table: Facts) -> Iterator[str]:
    """Write epsilon and the potential, or why there is none."""
    noise = [f"{fact.name}: {with_interval(fact)}" for key in THERMAL if (fact := table.get(key)) is not None]
    if table.no_scale:
        yield from [*wrapped(table.no_scale), *noise]
        return
    tension, barrier = table["tension"], table["barrier"]
    yield f"epsilon = {with_interval(table['epsilon'])}"
    given = ("" if tension.sd is None else f" +- {tension.sd:.2g}") + after(tension.unit)
    integral = table["tension_integral"].value
    if source := table.problem.scale_from:
        way = "kappa = kT / theta" if source == "thermal noise" else "through the entropy of ideal mixing"
        yield f"from {source}, {way}"
        yield f"{tension.name}: {with_interval(tension)}; C_H = {integral:.6g}"
    else:
        yield f"from surface tension {tension.value:.6g}{given} of {tension.note} and C_H = {integral:.6g}"
    yield f"F(u) = epsilon^2 H(u): barrier {barrier.symbol} = {with_interval(barrier)}"
    if "physical_kappa" in table.numbers:
        yield from pair_lines(table.numbers, tension.note)
    yield from noise


def _unit_lines(table: Facts) -> Iterator[str]:
    yield from (line for text in table.units for line in wrapped(text))
    if "physical_kappa" in table.numbers:
        yield from physical_lines(table.numbers)


def physical_lines(numbers: dict[str, Fact]) -> Iterator[str]:
    """Write the numbers in physical units, one line each."""
    shown = partial(_in_units, numbers)
    barrier = numbers["physical_barrier"].symbol
    yield f"kappa = {shown('kappa')}"
    yield f"f(u) = kappa H(u): barrier {barrier} = {shown('barrier')}"
    yield f"{numbers['physical_mobility'].symbol} = q/kappa = {shown('mobility')}, with q = {shown('diffusion')}"
    if "physical_width" in numbers:
        yield f"{numbers['physical_width'].name}: {shown('width')}"


def pair_lines(numbers: dict[str, Fact], normalisation: str) -> Iterator[str]:
    """Write the paper's pair in physical units."""
    shown = partial(_in_units, numbers)
    pair = "epsilon = kappa, F = kappa f" if normalisation == "E" else "epsilon = sqrt(kappa), F = f"
    yield f"the paper's pair, normalisation {normalisation}: {pair}"
    yield f"  epsilon = {shown('epsilon')}, {numbers['physical_paper_barrier'].symbol} = {shown('paper_barrier')}"


def _in_units(numbers: dict[str, Fact], key: str) -> str:
    return with_interval(numbers[f"physical_{key}"], digits=5)


def physical_text(found: Physical) -> str:
    """Return the numbers of a law in physical units as lines."""
    kind = "E" if found.normalisation == "E" else "epsilon E"
    numbers = {fact.key: fact for fact in physical_facts(found)}
    return "\n".join([*physical_lines(numbers), *pair_lines(numbers, kind)])


def _well_lines(table: Facts) -> Iterator[str]:
    """Write what the law looks like; of wells that differ, the height of both."""
    yield from wrapped(f"structure: {table.structure}", indent="  ")
    if (diffusion := table.get("diffusion")) is not None:
        yield f"{diffusion.name}: {with_interval(diffusion)}"
        return
    low, high, top = (table[key].value for key in ("low", "high", "maximum"))
    at_low, at_high, at_top = (table[f"curvature_{key}"].value for key in ("low", "high", "barrier"))
    if table.law.family.found:
        yield from _coexisting_lines(table)
    if table.law.family.symmetric:
        curvatures = f"H''({top:.4g}) = {at_top:.6g}, H''({low:g}) = H''({high:g}) = {at_low:.6g}"
        yield f"{table['height'].symbol} = {table['height'].value:.6g}, {curvatures}"
    else:
        heights = ", ".join(
            f"{table[f'height_{key}'].value:.6g} above u = {u:g}" for key, u in (("low", low), ("high", high))
        )
        yield f"maximum at u = {with_interval(table['maximum'], digits=5)}: {heights}"
        yield f"H'' = {at_top:.6g} there, {at_low:.6g} at u = {low:g} and {at_high:.6g} at u = {high:g}"
    tilt = table.get("tilt")
    if tilt is not None and tilt.value != 0.0:
        yield from wrapped(tilt_sentence(table, tilt), indent="  ")
    if (width := table.get("width")) is not None:
        yield f"{width.name}: {with_interval(width)}"
    if (extra := table.get("extra_structure")) is not None:
        yield f"{extra.name}: {'less than 0.1 %' if extra.value < 1e-3 else percent(extra.value)}"


def _coexisting_lines(table: Facts) -> Iterator[str]:
    """Write the coexisting phases of a conserved field and its spinodal interval."""
    for name, keys in (("coexisting phases", ("low", "high")), ("spinodal", ("spinodal_low", "spinodal_high"))):
        known = [table[key] for key in keys if key in table.numbers]
        if len(known) == 2 and (name == "spinodal" or table.law.coexists):
            ends = (with_interval(fact, digits=5) + (f", {fact.note}" if fact.note else "") for fact in known)
            yield from wrapped(f"{name}: u = {' and '.join(ends)}", indent="  ")
    if (chi := table.get("chi")) is not None:
        yield f"{chi.name}: {with_interval(chi, digits=5)}"


def tilt_sentence(table: Facts, tilt: Fact) -> str:
    """Return which of two wells is deeper, by how much, and what follows."""
    low, high = table["low"].value, table["high"].value
    deep, other = (low, high) if tilt.value > 0.0 else (high, low)
    fraction = 100 * abs(tilt.value) / max(table["height_low"].value, table["height_high"].value)
    ends = ""
    if tilt.interval is not None:
        ends = f" (95 %: {tilt.interval[0]:.5g} < H({high:g}) < {tilt.interval[1]:.5g})"
    return (
        f"the phase u = {deep:g} is deeper by {abs(tilt.value):.5g}, {fraction:.2g} % of the higher barrier{ends}: it "
        f"grows into u = {other:g}, no planar interface is at rest, and no planar tension exists"
    )


def _degree_lines(table: Facts) -> Iterator[str]:
    """Write what each degree costs, and its weight in the average; nothing where there is no average."""
    if table.heaviest is None:
        return
    yield f"degree    chi2  weight  {table.held_heading}"
    for fit in table.degrees:
        chi2 = f"{fit.chi2:.1f}" if fit.chi2 < 99999.95 else f"{fit.chi2:.1e}"
        weight = f"{100 * fit.weight:.1f} %" if fit.weight >= 5e-4 else "-"
        yield f"{fit.degree:6d}{chi2:>8}{weight:>8}  {fit.held or 'none'}"


def _model_lines(result: Result, table: Facts, items: list[Finding]) -> Iterator[str]:
    """Write whether the record is the model plus white noise; nothing for the weak-form fit, which has no residual.

    Significant tests are listed; the probabilities are those after the correction for the number of tests.
    """
    reported = [item for item in items if item.topic == "model" and not item.where]
    if not reported:
        return
    for item in reported:
        yield from wrapped(f"{table.verdict}: {item}" if item is reported[0] else str(item), indent="  ")
    tests = [test for test in model_tests(result) if test.significant]
    if tests:
        yield f"{'test':<12}{'z or chi2':>11}{'p adjusted':>12}"
    for test in tests:
        size = f"{test.statistic:.2f}" if abs(test.statistic) < 9999.5 else f"{test.statistic:.1e}"
        probability = "< 1e-99" if test.adjusted < 1e-99 else f"{test.adjusted:.2g}"
        head = f"{test.name:<12}{f'{test.symbol} {size}':>11}{probability:>12}  "
        first, *rest = wrapped(test.sentence, _TABLE - len(head))
        yield head + first
        yield from (" " * len(head) + line for line in rest)


def _warning_lines(items: list[Finding]) -> Iterator[str]:
    """Write the warnings; what the section on the model tells in full is only referred to here."""
    reported = [item for item in items if item.severity != Severity.OK and (item.topic != "model" or item.where)]
    model = [item for item in items if item.topic == "model" and not item.where and item.severity != Severity.OK]
    lines = [str(item) + (": see Model" if item.code == "bands-invalid" else "") for item in reported]
    if model and model[0].severity == Severity.CHECK:
        untested = model[0].code == "model-untested"
        words = "the model was not tested" if untested else "a test of the model is significant"
        lines.insert(0, f"{words}: see Model")
    yield from bullets(lines) if lines else [NOTHING]


def bullets(lines: Iterable[str]) -> Iterator[str]:
    """Yield texts as the wrapped items of a list."""
    for line in lines:
        first, *rest = wrapped(line, WIDTH - 2)
        yield f"- {first}"
        yield from (f"  {more}" for more in rest)


def grey_text(grey: GreyQuality) -> str:
    """Return a conversion from grey values in words: the levels, what was found, and what weakens it."""
    return "\n".join([*grey_lines(grey), *bullets(map(str, grey_findings(grey)))])


def grey_lines(grey: GreyQuality) -> list[str]:
    """Return the levels and what was found."""
    assert grey.levels is not None
    sd = ("", "") if grey.levels_sd is None else tuple(f" +- {x:.2g}" for x in grey.levels_sd)
    lines = [f"levels {grey.levels[0]:.6g}{sd[0]} (u = -1) and {grey.levels[1]:.6g}{sd[1]} (u = +1)"]
    lines.append(f"noise {grey.noise:.2g} in u")
    return lines + [f"{item.name + ':':<14} {_found_words(item)}" for item in grey.found]


def _found_words(item: Found) -> str:
    """Return what was found of one fault of a camera."""
    pair, moves = " to ".join(f"{x:.4g}" for x in item.numbers), f"moves u by {item.effect:.2g} (rms)"
    if item.name == "bad pixels":
        return f"{item.effect:.0f} of {item.numbers[0]:.0f} dead, hot or flickering; masked" if item.kept else "none"
    if item.name == "drift":
        way = f"({', '.join(f'{x:.2f}' for x in item.numbers)}) pixels from the first frame to the last"
        return f"{way}: of the stage or of the pattern, the fit decides" if item.kept else "not significant"
    if item.name == "shot noise":
        low, high = np.sqrt(item.numbers)
        return f"{low:.2g} in the low and {high:.2g} in the high phase" if item.kept else "none, the noise is uniform"
    if not item.kept:
        return "not significant"
    over = {"fading": " over the record", "dark": ""}.get(item.name, " over the picture")
    return f"{pair}{over}, {moves}; taken off"


# --- a record before any fit ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a record offers: its survey, the default supports or why there are none, and the warnings.

    ``print(inspection)`` gives it in words.
    """

    record: Record
    survey: Survey
    supports: tuple[Support, ...]
    refusal: str | None
    findings: tuple[Finding, ...]
    phases: Phases = UNIT  # the survey has them at -1 and +1

    def sections(self, *, printed: bool = True) -> Sections:
        """Return what was measured, by topic; not `printed` without the histogram and in lines of any length."""
        survey, width, supports = self.survey, "none detected", "none of the default ones fits"
        middle, half = _middle_half(self.phases)
        noise = f"{half * survey.noise:.2g} per pixel, {percent(0.5 * survey.noise)} of the step between the phases"
        if survey.interface_width is not None:
            size = f"{survey.interface_width:.4g}{after(self.record.length_unit)}"
            ends = " to ".join(f"{middle + half * end:g}" for end in (-0.9, 0.9))
            width = f"{size} wide from u = {ends}, that is {survey.cells:.1f} pixels"
        if self.supports:
            supports = f"half-widths in time and space that fit: {', '.join(map(str, self.supports))}"
        change = f"the picture changes by {half * survey.change:.2g} (root mean square) from first to last"
        read = [("File", [note.sentence for note in self.record.notes])] if self.record.notes else []
        return [
            *read,
            ("Mesh and time", _mesh(self.record, survey)),
            ("Noise", [f"{noise} ({survey.noise_method})"]),
            ("Phase values", _phases(survey, printed, self.phases)),
            ("Interface", [width, change]),
            ("Test functions", [supports]),
        ]

    def __str__(self) -> str:
        sections = [*self.sections(), ("Warnings", bullets(map(str, self.findings)) if self.findings else [NOTHING])]
        mesh = " x ".join(str(n) for n in self.record.mesh)
        line = "read as a 1-D movie: " if len(self.record.mesh) == 1 else ""
        return f"{line}{self.record.frames} frames of {mesh} pixels\n{joined(sections)}"


def inspect_record(
    record: Record, *, phases: Phases | Literal["estimated"] = UNIT, progress: Progress | None = None
) -> Inspection:
    """Survey a record and tell what a fit would meet; nothing is fitted. `progress` gets (frames read, frames).

    `phases` are those of ``Observation``: where the pure phases lie, "estimated" for where the values pile up.

    >>> x = np.linspace(-1, 1, 64)
    >>> u = np.tanh((x + 0.3 * np.linspace(0, 1, 30)[:, None]) / 0.1)
    >>> inspect_record(Record(u, dx=x[1] - x[0], dt=0.1, q=1.0)).findings
    ()
    """
    from doublewell.identify.parts import from_minus_one
    from doublewell.identify.phases import plateaus

    pair = plateaus(record) if isinstance(phases, str) else (float(phases[0]), float(phases[1]))
    looked, movie = survey(from_minus_one(record, pair), progress=progress), Topic("movie")
    middle, half = _middle_half(pair)
    items: list[Finding] = []
    supports: tuple[Support, ...] = ()
    refusal = None
    try:
        supports, _ = default_supports(record, looked.interface_width)
    except InputError as error:
        refusal = str(error)
        items.append(movie.check("supports-too-large", refusal))
    items += [*note_findings(record.notes), *layout_findings(record)]
    items += [
        *survey_findings(looked.scaled(half, middle), pair),
        *pace_findings(looked, record.q, record.dt if record.uniform else None),
    ]
    if len(record.mesh) == 1 and record.mask is None:  # frames of one picture differ as neighbouring cells do
        u = record.slab(0, min(record.frames, _PICTURE))
        along_t, along_x = (float(np.sqrt(np.mean(np.diff(u, axis=axis) ** 2))) for axis in (0, 1))
        if along_t > _SIMILAR * along_x:
            words = (
                f"read as a 1-D movie with {record.frames} frames of {record.mesh[0]} cells, but one frame differs "
                "from the next as much as one cell from its neighbour"
            )
            advice = "if this is one picture (y, x), no law can be identified from it; record a movie (t, y, x)"
            items.append(movie.check("one-picture", words, advice))
    return Inspection(record, looked, supports, refusal, tuple(items), pair)


def _middle_half(phases: Phases) -> tuple[float, float]:
    return 0.5 * (phases[0] + phases[1]), 0.5 * (phases[1] - phases[0])


def _mesh(record: Record, looked: Survey) -> Iterator[str]:
    view = " x ".join(f"{length:.4g}" for length in record.extent)
    pixel = " x ".join(f"{h:.6g}" for h in (record.dx if len(set(record.dx)) > 1 else record.dx[:1]))
    length, time = after(record.length_unit), after(record.time_unit)
    known = record.length_unit is not None and record.time_unit is not None
    both = f" {unit_text(((record.length_unit or '', 2), (record.time_unit or '', -1)))}" if known else ""
    yield f"pixel size {pixel}{length}, field of view {view}{length or ' (no unit is known)'}"
    start, end = (f"{t:.6g}" for t in (record.times[0], record.times[-1]))
    pace = f"one frame every {record.dt:.6g}{time}" if record.uniform else "frames at uneven times"
    yield f"{pace}, from t = {start} to {end}{time}"
    if looked.missing > 0.0:
        yield f"{100 * looked.missing:.3g} % of the values are missing; the numbers below are of the others"
    q = "not given, a fit estimates it (the movie must show motion)" if record.q is None else f"{record.q:.6g}{both}"
    yield f"diffusion coefficient q: {q}"
    yield f"boundary: {record.boundary or 'not declared, the movie is fitted as a window (needed to evolve the law)'}"


def _phases(looked: Survey, printed: bool, phases: Phases) -> Iterator[str]:
    middle, half = _middle_half(phases)
    low, high = (middle + half * end for end in (looked.low, looked.high))
    yield f"values from {low:.3g} to {high:.3g}; the pure phases should lie at {pure_phases(phases)}"
    if phases != UNIT:
        yield f"below, {phases[0]:g} stands at -1 and {phases[1]:g} at +1"
    yield from wrap(_order_parameter(looked), WIDTH - 2) if printed else [_order_parameter(looked)]
    yield f"{100 * looked.coverage:.0f} % of the phase range is visited"
    pairs = [a + b for a, b in zip(looked.histogram[::2], looked.histogram[1::2], strict=True)]
    top = max(*pairs, 1e-12)
    for k, fraction in enumerate(pairs if printed else ()):
        low = -1.0 + 2.0 * k / len(pairs)
        bar = "#" * max(round(_BAR * fraction / top), int(fraction >= 1e-3))
        yield f"  {low:4.1f} to {low + 2.0 / len(pairs):4.1f} {100 * fraction:5.1f} % {bar}".rstrip()
    outside = max(1.0 - sum(pairs), 0.0)
    yield f"  beyond -1 and +1: {100 * outside:.1f} % (noise carries about half of each pure phase there)"


def _order_parameter(looked: Survey) -> str:
    """Return whether the values look like a resolved order parameter at all."""
    if looked.two_valued:
        return f"not an order parameter: the picture holds {looked.distinct} different values, like a mask; {MASK}"
    if max(-looked.low, looked.high) > TOO_LARGE:
        return "not an order parameter yet: these look like intensities; convert them with phase_from_intensity"
    if looked.cells is None:
        return f"not an order parameter: no interface is detected, one phase or steps sharper than a pixel; {MASK}"
    if looked.cells < TOO_FEW_CELLS:
        return (
            f"hardly an order parameter: the step from phase to phase takes {looked.cells:.1f} pixels, as it does in a "
            f"mask that was smoothed; {MASK}"
        )
    fraction = f"{100 * looked.interface_fraction:.1f} % of the pixels lie between -0.9 and 0.9"
    return f"these look like a resolved order parameter: {fraction}, inside interfaces"

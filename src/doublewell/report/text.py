"""Text: results and conversions of grey values as printed reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from doublewell.facts import Fact, Facts, facts, physical_facts
from doublewell.findings import findings, model_tests
from doublewell.record import Phase
from doublewell.record_findings import Finding, Severity, grey_findings
from doublewell.result import Physical, Result
from doublewell.wording import WIDTH, after, count, percent, wrapped

_TABLE = 106  # wider than sentences, so that most tests need one line
NOTHING = "No problems found."
Sections = list[tuple[str, Iterable[str]]]


def report_text(result: Result) -> str:
    """Return the report: the law, its scale, its wells, the numbers behind it, and the warnings."""
    table = facts(result)
    items = findings(result, table=table)
    sections: Sections = [
        ("Effective force", _force_lines(table)),
        ("Scale", _scale_lines(table)),
        ("Physical units", _unit_lines(table)),
        ("Wells", _well_lines(table)),
        ("Grey levels", table.levels),
        ("Degrees", _degree_lines(table)),
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
    wells = "double well" if table.structure.ok else "not a double well with a single barrier"
    warned = sum(item.severity != Severity.OK for item in findings(result, table=table))
    return f"Result({table.headline}, {scale}, {wells}, {count(warned, 'warning')})"


def joined(sections: Sections) -> str:
    """Return sections under their titles; those without lines are left out."""
    written = [(title, list(lines)) for title, lines in sections]
    return "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in written if lines)


def with_interval(fact: Fact, *, digits: int = 6, unit: bool = True) -> str:
    """Return a number with its unit and its interval, or with what is known of its error."""
    text = f"{fact.value:.{digits}g}{after(fact.unit) if unit else ''}"
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
            differs = not np.isclose(g.value, g.free, rtol=1e-9, atol=0.0)
            yield f"{g.symbol} = {g.value:.6g}{sd}{note}" + (
                f"  (without constraint and ridge {g.free:.5g})" if differs else ""
            )
    if (band := table.get("force_band")) is not None:
        yield f"95 % band of G: +- {percent(band.value)} of G (root mean squares over the phase range)"
    if table.correlations is not None:
        rows = table.correlations
        if len(rows) > 1:
            yield "correlation  " + "".join(f"{f'g_{j}':>7}" for j in range(len(rows) - 1))
        for i, row in enumerate(rows[1:], start=1):
            yield f"{f'g_{i}':>11}  " + "".join(f"{x:7.3f}" for x in row[:i])


def _scale_lines(table: Facts) -> Iterator[str]:
    """Write epsilon and the potential, or why there is none."""
    if table.no_scale:
        yield from wrapped(table.no_scale)
        return
    tension, barrier = table["tension"], table["barrier"]
    yield f"epsilon = {with_interval(table['epsilon'])}"
    given = ("" if tension.sd is None else f" +- {tension.sd:.2g}") + after(tension.unit)
    integral = table["tension_integral"].value
    yield f"from surface tension {tension.value:.6g}{given} of {tension.note} and C_H = {integral:.6g}"
    yield f"F(u) = epsilon^2 H(u): barrier {barrier.symbol} = {with_interval(barrier)}"


def _unit_lines(table: Facts) -> Iterator[str]:
    yield from (line for text in table.units for line in wrapped(text))
    if "physical_kappa" in table.numbers:
        yield from physical_lines(table.numbers, table["tension"].note)


def physical_lines(numbers: dict[str, Fact], normalisation: str) -> Iterator[str]:
    """Write the numbers in physical units, one line each."""

    def shown(key: str) -> str:
        return with_interval(numbers[f"physical_{key}"], digits=5)

    barrier = numbers["physical_barrier"].symbol
    yield f"kappa = {shown('kappa')}"
    yield f"L = q/kappa = {shown('mobility')}, with q = {shown('diffusion')}"
    yield f"f(u) = kappa H(u): barrier {barrier} = {shown('barrier')}"
    if "physical_width" in numbers:
        yield f"{numbers['physical_width'].name}: {shown('width')}"
    pair = "epsilon = kappa, F = kappa f" if normalisation == "E" else "epsilon = sqrt(kappa), F = f"
    yield f"the paper's pair, normalisation {normalisation}: {pair}"
    yield f"  epsilon = {shown('epsilon')}, {numbers['physical_paper_barrier'].symbol} = {shown('paper_barrier')}"


def physical_text(found: Physical) -> str:
    """Return the numbers of a law in physical units as lines."""
    kind = "E" if found.normalisation == "E" else "epsilon E"
    return "\n".join(physical_lines({fact.key: fact for fact in physical_facts(found)}, kind))


def _well_lines(table: Facts) -> Iterator[str]:
    """Write what the law looks like; of wells that differ, the height of both."""
    yield from wrapped(f"structure: {table.structure}", indent="  ")
    low, high, top = (table[key].value for key in ("low", "high", "maximum"))
    at_low, at_high, at_top = (table[f"curvature_{key}"].value for key in ("low", "high", "barrier"))
    if table.symmetric:
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
        ends = "" if width.interval is None else " (95 %: {:.6g} to {:.6g})".format(*width.interval)
        missing = " (no interval: the data allow laws without one)" if width.why else ""
        yield f"{width.name}: {width.value:.5g}{after(width.unit)} long{ends or missing}"
    if (extra := table.get("extra_structure")) is not None:
        yield f"{extra.name}: {'less than 0.1 %' if extra.value < 1e-3 else percent(extra.value)}"


def tilt_sentence(table: Facts, tilt: Fact) -> str:
    """Return which of two wells is deeper, by how much, and what follows."""
    low, high = table["low"].value, table["high"].value
    deep, other = (low, high) if tilt.value > 0.0 else (high, low)
    share = 100 * abs(tilt.value) / max(table["height_low"].value, table["height_high"].value)
    ends = ""
    if tilt.interval is not None:
        ends = f" (95 %: {tilt.interval[0]:.5g} < H({high:g}) < {tilt.interval[1]:.5g})"
    return (
        f"the phase u = {deep:g} is deeper by {abs(tilt.value):.5g}, {share:.2g} % of the higher barrier{ends}: it "
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

    The probabilities are those after the correction for the number of tests.
    """
    told = [item for item in items if item.topic == "model" and not item.where]
    if not told:
        return
    for text in (f"{table.verdict}: {told[0]}", *map(str, told[1:])):
        yield from wrapped(text, indent="  ")
    tests = model_tests(result)
    if tests:
        yield f"{'test':<12}{'z or chi2':>11}{'p adjusted':>12}"
    for test in tests:
        size = f"{test.statistic:.2f}" if abs(test.statistic) < 9999.5 else f"{test.statistic:.1e}"
        chance = "< 1e-99" if test.adjusted < 1e-99 else f"{test.adjusted:.2g}"
        head = f"{test.name:<12}{f'{test.symbol} {size}':>11}{chance:>12}  "
        first, *rest = wrapped(test.sentence, _TABLE - len(head))
        yield head + first
        yield from (" " * len(head) + line for line in rest)


def _warning_lines(items: list[Finding]) -> Iterator[str]:
    """Write the warnings; what the section on the model tells in full is only referred to here."""
    told = [item for item in items if item.severity != Severity.OK and (item.topic != "model" or item.where)]
    model = [item for item in items if item.topic == "model" and not item.where and item.severity != Severity.OK]
    lines = [str(item) + (": see Model" if item.code == "bands-invalid" else "") for item in told]
    if model and model[0].severity == Severity.CHECK:
        words = (
            "the model was not tested" if model[0].code == "model-untested" else "a test of the model is significant"
        )
        lines.insert(0, f"{words}: see Model")
    yield from bullets(lines) if lines else [NOTHING]


def bullets(lines: Iterable[str]) -> Iterator[str]:
    """Yield texts as the wrapped items of a list."""
    for line in lines:
        first, *rest = wrapped(line, WIDTH - 2)
        yield f"- {first}"
        yield from (f"  {more}" for more in rest)


def phase_text(phase: Phase) -> str:
    """Return a conversion from grey values in words."""
    low, high = phase.levels
    sd = ("", "") if phase.levels_sd is None else tuple(f" +- {x:.2g}" for x in phase.levels_sd)
    lines = [f"levels {low:.6g}{sd[0]} (u = -1) and {high:.6g}{sd[1]} (u = +1)"]
    if phase.gain_sd is not None:
        lines.append(
            f"so phase values are known up to a factor 1 +- {phase.gain_sd:.2g} and a constant +- {phase.offset_sd:.2g}"
        )
    lines.append(f"noise {phase.noise:.2g} in u")
    if phase.light is not None:
        lines.append(f"light from {phase.light.min():.4g} to {phase.light.max():.4g} over the picture")
    if phase.fading is not None:
        lines.append(f"fading from {phase.fading[0]:.4g} to {phase.fading[-1]:.4g} over the record")
    if phase.drift is not None:
        way = ", ".join(f"{x:.2f}" for x in phase.drift[-1])
        lines.append(f"drift of ({way}) pixels from the first frame to the last")
    return "\n".join([*lines, *bullets(map(str, grey_findings(phase.quality)))])

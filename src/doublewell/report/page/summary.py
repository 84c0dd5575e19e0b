"""Summary: what was asked, what was found and how sure it is, in three sentences; and the numbers to quote."""

from __future__ import annotations

from math import hypot

from doublewell.calibrate import SurfaceTension
from doublewell.facts import facts
from doublewell.law import Law
from doublewell.legacy import band_size, first_words, intervals, percent
from doublewell.report.page.markup import Html, join, math, measured, number, plain, prose, table, tag, tens
from doublewell.report.page.scale import scale_parts
from doublewell.report.page.verdicts import SYMBOLS, Finding, Verdict, overall
from doublewell.report.text import _unit_lines
from doublewell.report.unit_words import after, per_area, potential_unit, q_unit, scale_unit, unit_signs
from doublewell.result import Measured, Result, physical
from doublewell.units import has_pint

__all__ = ["badge", "equation_block", "sentences", "title_of", "verdict_box", "wells_table"]

_WORDS: dict[Verdict, str] = {
    "good": "No problems found.",
    "check": "Usable, but first read what is marked “check”.",
    "do not use": "Something is wrong that changes the numbers.",
}


def title_of(result: Result) -> str:
    """Return the name of the file, or what the movie is."""
    source, shape = result.settings.source, result.settings.shape
    if source is not None:
        return source.path.replace("\\", "/").rstrip("/").rpartition("/")[2] or source.path
    return f"{shape[0]} frames of {' × '.join(str(n) for n in shape[1:])} pixels"


def sentences(result: Result) -> Html:
    """Return the three sentences."""
    return tag(
        "div",
        *(tag("p", tag("b", head), " ", body) for head, body in (
            ("Asked:", _asked(result)), ("Found:", _found(result)), ("How sure:", _sure(result)),
        )),
        class_="sentences",
    )  # fmt: skip


def _asked(result: Result) -> str:
    asked = result.settings
    mesh = " × ".join(str(n) for n in asked.shape[1:])
    also = "" if asked.tension is None else f", and with the surface tension {_tension(asked.tension)} its scale ε"
    q = (
        "an unknown diffusion coefficient q"
        if asked.q_estimated
        else f"the diffusion coefficient q = {plain(asked.q)}{after(q_unit(asked))}"
    )
    return (
        f"Which free energy drives this movie of {asked.shape[0]} frames of {mesh} pixels, if it follows the "
        f"Allen-Cahn equation with {q}{also}?"
    )


def _tension(tension: SurfaceTension) -> str:
    return f"{plain(tension.value)}{after(tension.unit)}"


def _found(result: Result) -> str:
    if not result.structure.ok:
        kind = f"The energy is not a double well with a single barrier: {result.structure}"
    else:
        kind = f"The energy is a double well with its two wells at the pure phases {_wells(result)}"
    top = plain(result.law.maximum)
    if result.scale is None:
        height = f"{plain(result.law.barrier)}{after(per_area(result.settings))}"
        return f"{kind}; H({top}) = {height} is the height at u = {top}, and F and ε are not determined."
    found = intervals(result) if _holds(result) else {}
    of_barrier, of_epsilon = after(potential_unit(result)), after(scale_unit(result))
    height = f"{measured(float(result.potential(result.law.maximum)))}{of_barrier}{_between(found, 'barrier')}"
    scale = f"{measured(result.scale.epsilon)}{of_epsilon}{_between(found, 'epsilon')}"
    return f"{kind}, a barrier of F({top}) = {height} at u = {top}, and ε = {scale}.{_physically(result)}"


def _wells(result: Result) -> str:
    low, high = (f"{u:+g}".replace("-", "−") for u in result.law.phases)
    if result.law.tilt == 0.0:
        return f"u = {low} and u = {high}, equally deep"
    deeper = low if result.law.tilt > 0.0 else high
    share = 100 * abs(result.law.tilt) / max(result.law.barriers)
    return f"u = {low} and u = {high}; the one at u = {deeper} is deeper by {plain(share, 2)} % of the higher barrier"


def _physically(result: Result) -> str:
    """Return the barrier and the gradient coefficient in physical units, where these are known."""
    if potential_unit(result) is None or result.settings.time_unit is None or not has_pint():
        return ""
    found, top = physical(result), plain(result.law.maximum)
    return (
        f" In physical units the barrier is f({top}) = {_with_ends(found.barrier, result)}, and the gradient "
        f"coefficient κ = {_with_ends(found.kappa, result)}."
    )


def _with_ends(item: Measured, result: Result) -> str:
    known = item.low is not None and item.high is not None and _holds(result)
    ends = tens(f" (95 %: {item.low:.4g} to {item.high:.4g})") if known else ""
    return f"{tens(f'{item.value:.4g}')}{after(item.unit)}{ends}"


def _sure(result: Result) -> str:
    if result.posterior is None:
        return (
            "No error bands are known, because the weak reading has no model of the noise; read the numbers as an "
            "estimate without a stated error."
        )
    size = f"The force is known to ±{percent(band_size(result))} (95 % band, on average over the phases)"
    answer = result.adequacy
    if answer is None:
        return f"{size}, if the model holds, which was not tested."
    if answer.verdict == "adequate":
        return f"{size}, and none of {len(answer.tests)} tests finds that the movie differs from this model plus noise."
    if answer.verdict == "check":
        return (
            f"{size}, but one of {len(answer.tests)} tests of the model is significant. {prose(first_words(result))}."
        )
    return f"Unreliable: its 95 % bands do not hold. {prose(first_words(result))}."


def _holds(result: Result) -> bool:
    """Tell whether the model was not refused by its tests, so that its bands may be quoted."""
    return result.adequacy is None or result.adequacy.verdict != "not adequate"


def _between(found: dict[str, tuple[float, float]], name: str) -> str:
    return f" (95 %: {measured(found[name][0])} to {measured(found[name][1])})" if name in found else ""


def badge(verdict: Verdict) -> Html:
    """Return a verdict as a sign and a word."""
    kind = verdict.replace(" ", "-")
    return tag("span", tag("span", SYMBOLS[verdict], aria_hidden="true"), f" {verdict}", class_=f"badge {kind}")


def verdict_box(found: list[Finding]) -> Html:
    """Return the worst verdict with what it rests on."""
    worst = overall(found)
    why = [item for item in found if item.verdict == worst != "good"]
    listed = (
        tag("ul", *(tag("li", tag("b", item.question), " ", prose(item.words)) for item in why[:4])) if why else Html()
    )
    more = tag("p", tag("a", f"and {len(why) - 4} more", href="#checks")) if len(why) > 4 else Html()
    return tag("div", tag("p", badge(worst), " ", _WORDS[worst]), listed, more, class_=f"box {worst.replace(' ', '-')}")


def equation_block(result: Result) -> Html:
    """Return the equation of motion and the law, and the heaviest degree alone where degrees are averaged."""
    lines = [
        tag(
            "p",
            "∂u/∂t = q (∇²u − G(u)),  q = ",
            number(result.settings.q),
            after(q_unit(result.settings)),
            class_="equation",
        ),
        tag("p", math(result.law.equation()), class_="equation"),
    ]
    if result.scale is not None:
        lines.append(
            tag(
                "p",
                "F(u) = ε² ∫",
                tag("sub", "−1"),
                tag("sup", "u"),
                " G(v) dv,  ε = ",
                measured(result.scale.epsilon, 5),
                after(scale_unit(result)),
                class_="equation",
            )
        )
    if result.posterior is not None and len(result.posterior.path) > 1:
        heaviest = facts(result).heaviest
        assert heaviest is not None
        lines += [
            tag("p", f"This is the average over degrees. Degree {heaviest[0]} has the largest weight "
                f"({percent(heaviest[1])}); alone it reads"),
            tag("p", math(heaviest[2]), class_="equation"),
        ]  # fmt: skip
    return join(lines)


def _width_name(law: Law) -> str:
    middle, half = 0.5 * sum(law.phases), 0.5 * (law.phases[1] - law.phases[0])
    return f"interface width, u = {plain(middle - 0.9 * half)} to {plain(middle + 0.9 * half)}"


def _curvatures(law: Law, area: str) -> list[tuple[str, str, str]]:
    if law.family.even:
        return [
            ("curvature at the wells, H″(±1)", join([number(law.well_curvature, 5), area]), ""),
            ("curvature at the barrier, H″(0)", join([number(law.centre_curvature, 5), area]), ""),
        ]
    rows = [
        (f"curvature H″ at u = {plain(u)}", join([number(value, 5), area]), "")
        for u, value in zip(law.phases, law.well_curvatures, strict=True)
    ]
    return [*rows, ("curvature H″ at the barrier", join([number(law.centre_curvature, 5), area]), "")]


def wells_table(result: Result) -> Html:
    """Return the numbers to quote, with their intervals."""
    law, found = result.law, intervals(result)
    area, length = after(per_area(result.settings)), after(result.settings.length_unit)
    rows: list[tuple[str, str, str]] = []
    low, high = (f"{u:+g}".replace("-", "−") for u in law.phases)
    wells = f"{low}\u00a0and\u00a0{high}" if law.well_curvature > 0.0 else "none: not both pure phases are stable"
    rows.append(("wells (stable phases)", wells, "by the form of the law: assumed, not measured"))
    for point in result.structure.stationary:
        rows.append((f"{point.kind} of the energy", f"u = {plain(point.u)}", ""))
    if result.scale is not None:
        barrier = f"{measured(float(result.potential(law.maximum)), 5)}{after(potential_unit(result))}"
        name = "barrier F(0)" if law.maximum == 0.0 else "barrier of F"
        rows.append((name, barrier, _interval(found, "barrier")))
        rows += _scale_rows(result, found)
    height = "H(0) = F(0)/ε²" if law.maximum == 0.0 else "lower barrier of H"
    rows += [(height, join([number(law.barrier, 5), area]), ""), *_curvatures(law, area)]
    if law.has_interface:
        width = f"{measured(law.interface_width(), 5)}{length}"
        rows.append((_width_name(law), width, _interval(found, "width")))
    note = Html() if result.scale is not None else tag("p", prose(facts(result).no_scale), class_="note")
    if not _holds(result):
        note = join(
            [note, tag("p", "The intervals do not hold: the movie is not this model plus noise.", class_="note")]
        )
    if result.posterior is None:
        note = join([note, tag("p", "No intervals: the weak reading has no noise model.", class_="note")])
    return join([table(("", "value", "95 % interval, or where it comes from"), rows), note, _in_units(result)])


def _in_units(result: Result) -> Html:
    """Return the numbers in physical units; nothing where the record has none."""
    lines = [line.strip() for line in _unit_lines(facts(result))]  # they begin with symbols, which stay small
    if not lines:
        return Html()
    return join([tag("h3", "In physical units"), tag("ul", *(tag("li", _signs(line)) for line in lines))])


def _signs(text: str) -> str:
    for name, sign in (("epsilon", "ε"), ("kappa", "κ"), ("sqrt", "√"), ("+-", "±"), ("-0.9", "−0.9")):
        text = text.replace(name, sign)
    return unit_signs(tens(text))


def _scale_rows(result: Result, found: dict[str, tuple[float, float]]) -> list[tuple[str, str, str]]:
    scale, parts = result.scale, scale_parts(result)
    assert scale is not None
    rows: list[tuple[str, str, str]] = [
        ("ε", f"{measured(scale.epsilon, 5)}{after(scale_unit(result))}", _interval(found, "epsilon"))
    ]
    if parts is not None:
        total = hypot(parts.movie_sd, parts.tension_sd or 0.0)
        rows.append(
            ("standard deviation of ε", number(total, 2), _parts_words(parts.movie_sd, parts.tension_sd, parts.share))
        )
    elif scale.epsilon_sd is not None:
        rows.append(("standard deviation of ε", number(scale.epsilon_sd, 2), Html("from the surface tension alone")))
    sd = "taken as exact" if scale.tension.sd is None else join(["± ", number(scale.tension.sd, 2)])
    kind = "of E" if scale.tension.normalisation == "E" else "of εE"
    rows.append((f"surface tension, as given ({kind})", _tension(scale.tension), Html(sd)))
    return rows


def _parts_words(movie: float, tension: float | None, share: float) -> Html:
    if tension is None:
        return join([number(movie, 2), " from the movie; the surface tension was taken as exact"])
    return join(
        [number(tension, 2), " from the surface tension (", percent(share), " of the variance), ", number(movie, 2),
         " from the movie"]
    )  # fmt: skip


def _interval(found: dict[str, tuple[float, float]], name: str) -> Html:
    return (
        join([measured(found[name][0], 5), " to ", measured(found[name][1], 5)]) if name in found else Html("not known")
    )

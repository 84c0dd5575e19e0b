"""Overview: the movies of a folder side by side: a table for a spreadsheet, and a page that compares their laws."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any
from urllib.parse import quote

import numpy as np

from doublewell.curves import Curve, curves
from doublewell.errors import InputError
from doublewell.facts import Fact, facts
from doublewell.findings import findings, worst
from doublewell.hints import Array
from doublewell.identify.agreement import compare_laws
from doublewell.record_findings import Finding, Severity
from doublewell.report.figures import sign_free
from doublewell.report.page import Section, badge, document
from doublewell.report.pictures import chart
from doublewell.report.style import COLOURS, Html, html_table, join, measured, plain, prose, signs, tag
from doublewell.result import Agreement, Result
from doublewell.units import after, raised

FAILED = "failed"  # a movie without a result
_SHOWN = (  # facts of the table, in its order; those that no movie has are left out
    "physical_barrier", "physical_kappa", "physical_mobility", "barrier", "height", "epsilon", "q", "diffusion",
    "width", "theta", "noise", "coverage",
)  # fmt: skip
_INSTEAD = {"physical_barrier": ("barrier", "height", "epsilon"), "barrier": ("height",)}  # the same in other units
_TREND = ("physical_barrier", "barrier", "physical_kappa", "epsilon", "width")  # the first that has intervals is drawn
_CURVES = 8  # laws that can be told apart by colour; more are drawn alike unless a condition orders them
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8C6D00", "#56B4E9", "#7A5195", "#7F7F7F")
_THIN = 4  # every fourth point of a curve
_UNSAFE = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes such a text for a formula
_YES = {True: "yes", False: "no"}
_MEANT = {
    Severity.OK: "no problems found.",
    Severity.CHECK: "usable, but first read what is marked “check”.",
    Severity.FAIL: "unreliable.",
}


@dataclass(frozen=True, eq=False)
class Entry:
    """What the overview shows of a movie: its name, and its result with its numbers, findings and curves, or an error.

    ``page`` is where its own page is, relative to the overview.
    """

    name: str
    page: str = ""
    error: str = ""
    conditions: Mapping[str, str | float] = field(default_factory=dict)
    result: Result | None = None
    numbers: Mapping[str, Fact] = field(default_factory=dict)
    items: Sequence[Finding] = ()
    law: Sequence[Curve] = ()

    @classmethod
    def of(cls, name: str, page: str, result: Result) -> Entry:
        """Return the entry of a result; all that takes time is computed here."""
        law = tuple(curves(result).named.values())
        return cls(name, page, "", {}, result, facts(result).numbers, findings(result), law)

    @property
    def verdict(self) -> str:
        """The worst severity of the findings, or that there is no result."""
        return FAILED if self.result is None else str(worst(list(self.items)))


def agreement_groups(entries: Sequence[Entry]) -> list[tuple[dict[str, Any], tuple[Agreement, ...] | str]]:
    """Test movies under the same conditions as those of one law: of each group its conditions, the tests or why not.

    Where no two movies share their conditions, all of them are tested together: that tells whether conditions matter.
    """
    groups: dict[tuple[tuple[str, Any], ...], list[Entry]] = {}
    for entry in entries:
        if entry.result is not None:
            groups.setdefault(tuple(entry.conditions.items()), []).append(entry)
    shared = {conditions: group for conditions, group in groups.items() if len(group) > 1}
    if not shared and len(groups) > 1:
        shared = {(): [entry for group in groups.values() for entry in group]}
    made: list[tuple[dict[str, Any], tuple[Agreement, ...] | str]] = []
    for conditions, group in shared.items():
        results, names = [each.result for each in group if each.result], [each.name for each in group]
        try:
            made.append((dict(conditions), compare_laws(results, names)))
        except InputError as error:
            made.append((dict(conditions), str(error)))
    return made


def summary_rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return a row for each movie: name, conditions, verdict, codes of findings, agreement, and all facts."""
    tested = {
        item.record: item for _, tests in agreement_groups(entries) if not isinstance(tests, str) for item in tests
    }
    facts_of = {key: [fact for entry in entries if (fact := entry.numbers.get(key))] for key in _keys(entries)}
    rows = []
    for entry in entries:
        bad = [item.code for item in entry.items if item.severity != Severity.OK]
        test = tested.get(entry.name)
        row: dict[str, Any] = {"verdict": entry.verdict, "findings": " ".join(dict.fromkeys(bad)), "error": entry.error}
        row |= {"agrees": None if test is None else test.agrees, "agreement_p": None if test is None else test.adjusted}
        for key, known in facts_of.items():
            fact = entry.numbers.get(key)
            row[key] = None if fact is None or not np.isfinite(fact.value) else float(fact.value)
            if any(each.interval for each in known):
                low, high = (None, None) if fact is None or fact.interval is None else fact.interval
                row |= {f"{key}_low": low, f"{key}_high": high}
            if any(each.unit for each in known):
                row[f"{key}_unit"] = None if fact is None else fact.unit
        named = {f"{name} (condition)" if name in row else name: value for name, value in entry.conditions.items()}
        rows.append({"movie": entry.name} | named | row)
    return rows


def _keys(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(key for entry in entries for key in entry.numbers))


def summary_csv(entries: Sequence[Entry]) -> str:
    """Return the rows as CSV."""
    return csv_text(summary_rows(entries))


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV: numbers with all their digits; a text that a spreadsheet would run gets an apostrophe.

    >>> print(csv_text([{"name": "=1+1", "value": -0.5}]), end="")
    name,value
    '=1+1,-0.5
    """
    stream, heads = StringIO(), list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(_cell, heads))
    writer.writerows([_cell(row.get(head)) for head in heads] for row in rows)
    return stream.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_UNSAFE) else value
    return "" if value is None else repr(value)


# --- the page ---------------------------------------------------------------------------------------------------------


def overview_html(entries: Sequence[Entry]) -> str:
    """Return the page: verdicts, curves over one another, numbers by movie and condition, and whether laws agree."""
    done = [entry for entry in entries if entry.result is not None]
    parts: list[Section] = [
        ("laws", "The laws", _charts(done)),
        ("movies", "Movies", _table(entries)),
        ("failed", "Movies without a result", _failures(entries)),
        ("agreement", "Do the laws agree?", _agreement(entries)),
        ("findings", "What to look at", _warnings(done)),
    ]
    title = f"{len(entries)} movie{'s' * (len(entries) != 1)}"
    top = [tag("h1", f"Free energies from {title}"), _box(entries)]
    return document(title, top, [part for part in parts if part[2]])


def _box(entries: Sequence[Entry]) -> Html:
    """Return how many movies have which verdict."""
    verdicts = [entry.verdict for entry in entries]
    known = [kind for kind in Severity if kind in verdicts]
    lines = [tag("p", badge(kind), f": {verdicts.count(kind)} of {len(verdicts)}, {_MEANT[kind]}") for kind in known]
    if FAILED in verdicts:
        lines.append(tag("p", f"No result: {verdicts.count(FAILED)} of {len(verdicts)}, and why."))
    kinds = [Severity.FAIL if verdict == FAILED else Severity(verdict) for verdict in verdicts]
    return tag("div", *lines, class_=f"box {max(kinds, key=list(Severity).index, default=Severity.OK)}")


def _charts(done: Sequence[Entry]) -> Html:
    """Return the potentials (H where one of them has no scale) and the forces, and how numbers follow a condition."""
    if not done:
        return Html()
    symbols = [[curve.symbol for curve in entry.law] for entry in done]
    drawn = [next(symbol for symbol in ("f", "F", "H") if all(symbol in each for each in symbols)), "G"]
    ordered = next(iter(_numeric(done)), None)
    charts = []
    for symbol in drawn:
        pairs = [(entry, curve) for entry in done for curve in entry.law if curve.symbol == symbol]
        if len({curve.unit for _, curve in pairs}) == 1:
            charts.append(_overlay(pairs, ordered))
    charts += [made for name in _numeric(done) if (made := _trend(done, name))]
    return tag("div", *charts, class_="grid pairs") if charts else tag("p", "The laws have other units, and why.")


def _numeric(done: Sequence[Entry]) -> Iterator[str]:
    """Yield the conditions that are numbers and differ."""
    for name in dict.fromkeys(key for entry in done for key in entry.conditions):
        values = [entry.conditions.get(name) for entry in done]
        if len(set(values)) > 1 and all(isinstance(value, int | float) for value in values):
            yield name


def _overlay(pairs: Sequence[tuple[Entry, Curve]], ordered: str | None) -> Html:
    """Draw one curve of all movies; colours follow a numeric condition, else the movies where they are few."""
    first, peaks = pairs[0][1], [curve.largest for _, curve in pairs]
    same = all(np.array_equal(curve.u, first.u) for _, curve in pairs)
    mean = np.mean([curve.values for _, curve in pairs], axis=0)

    def draw(figure: Any) -> None:
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import ListedColormap, Normalize, to_hex

        parted, mapped = same and len(pairs) > 1, None
        axes = figure.subplots(1 + parted, 1, squeeze=False, sharex=True, height_ratios=[2.2, 1][: 1 + parted])[:, 0]
        if ordered is not None:
            places = [float(entry.conditions[ordered]) for entry, _ in pairs]
            inner = colormaps["plasma"](np.linspace(0.25, 0.8, 64))  # its ends are lost on a dark or a white page
            mapped = ScalarMappable(Normalize(min(places), max(places)), ListedColormap(inner))
        axes[0].axhline(0.0, color=COLOURS["rule"], lw=0.8)
        for k, (entry, curve) in enumerate(pairs):
            colour = _COLOURS[k % _CURVES] if len(pairs) <= _CURVES else _COLOURS[0]
            if mapped is not None and ordered is not None:
                colour = to_hex(mapped.to_rgba(np.array(entry.conditions[ordered], dtype=float)))
            dashed = "--" if entry.verdict == Severity.FAIL else "-"
            for axis, zero, unit in zip(axes, (0.0, mean), (1.0, 100.0 / max(peaks)), strict=False):
                values, low, high = (
                    None if x is None else unit * (x - zero)[::_THIN] for x in (curve.values, curve.low, curve.high)
                )
                if low is not None and high is not None:
                    axis.fill_between(curve.u[::_THIN], low, high, color=colour, alpha=0.15, lw=0)
                named = {"label": _short(entry.name)} if axis is axes[0] else {}
                axis.plot(curve.u[::_THIN], values, color=colour, lw=1.4, ls=dashed, **named)
        axes[0].set_ylabel(sign_free(f"{first.symbol}(u)  ({raised(first.unit)})"))
        axes[-1].set(xlabel="phase value u", xticks=np.linspace(first.u[0], first.u[-1], 5))
        if parted:
            axes[1].set_ylabel("from the mean\n(% of max)")
        if mapped is not None:
            figure.colorbar(mapped, ax=list(axes), label=_short(str(ordered)).strip())
        elif len(pairs) <= _CURVES:
            figure.legend(loc="outside lower center", ncols=2, frameon=False)

    spread = f"largest value from {plain(min(peaks))} to {plain(max(peaks))}{raised(after(first.unit))}"
    text = f"{first.name} of {len(pairs)} movies over the phase value u: {spread}."
    caption = [f"{first.symbol}(u) of {len(pairs)} movies with 95 % bands: {spread}."]
    caption += [" Below: the difference from their mean."] * same
    caption += [" Dashed: unreliable."] * any(entry.verdict == Severity.FAIL for entry, _ in pairs)
    return chart(f"laws-{first.symbol}", f"{first.name} of all movies", text, caption, draw, height=4.6)


def _short(name: str) -> str:
    """Return a name that fits into a legend; Matplotlib takes a $ for mathematics and leaves out a leading _."""
    text = name if len(name) <= 24 else f"{name[:14]}…{name[-9:]}"
    return " " + text.replace("$", r"\$")


def _trend(done: Sequence[Entry], name: str) -> Html:
    """Draw a number with its interval over a condition; nothing where no number has intervals and one unit."""
    for key in _TREND:
        listed = [(float(entry.conditions[name]), entry.numbers[key]) for entry in done if key in entry.numbers]
        if len({fact.unit for _, fact in listed}) == 1 and any(fact.interval for _, fact in listed):
            break
    else:
        return Html()
    fact = listed[0][1]
    unit = f"  ({raised(fact.unit)})" if fact.unit else ""

    def draw(figure: Any) -> None:
        axis, x = figure.subplots(), np.array([place for place, _ in listed])
        y = np.array([each.value for _, each in listed])
        ends: Array = np.array([each.interval or (each.value, each.value) for _, each in listed]).T
        if len(places := sorted(set(x.tolist()))) <= _CURVES:
            axis.set_xticks(places)
        axis.errorbar(x, y, np.abs(ends - y), fmt="o", color=_COLOURS[0], ms=4, capsize=3)
        axis.set(xlabel=_short(name).strip(), ylabel=sign_free(f"{signs(fact.symbol)}{unit}"))

    listing = ", ".join(f"{plain(each.value)} at {plain(place)}" for place, each in listed)
    words = signs(fact.name)
    caption, text = [f"{prose(fact.name)} with 95 % intervals over {name}."], f"{words} over {name}: {listing}."
    return chart(f"trend-{key}", f"{fact.name} over {name}", text, caption, draw, height=3.9)


def _table(entries: Sequence[Entry]) -> Html:
    """Return a row for each movie: link, conditions, verdict, numbers with intervals; or why there is no result."""
    conditions = list(dict.fromkeys(key for entry in entries for key in entry.conditions))
    keys = [key for key in _SHOWN if any(key in entry.numbers for entry in entries)]
    keys = [key for key in keys if not any(key in _INSTEAD.get(other, ()) for other in keys)]
    known = {key: fact for entry in reversed(entries) for key, fact in entry.numbers.items()}
    rows = []
    for entry in entries:
        link = tag("a", entry.name, href=quote(entry.page)) if entry.page else Html(join([entry.name]))
        own = [_condition(entry.conditions.get(name)) for name in conditions]
        own.append("no result" if entry.result is None else badge(Severity(entry.verdict)))
        own += [_number(entry.numbers.get(key)) for key in keys]
        rows.append((link, *own))
    heads = [signs(known[key].symbol or known[key].name) if key != "coverage" else "range visited" for key in keys]
    pairs = [(head, signs(known[key].name)) for head, key in zip(heads, keys, strict=True) if known[key].symbol]
    names = [f"{head}: {name}" for head, name in pairs if name != head]
    notes = [tag("p", "95 % intervals in brackets. ", "; ".join(names), ".", class_="note")] if names else []
    return join([html_table(("movie", *conditions, "verdict", *heads), rows), *notes])


def _failures(entries: Sequence[Entry]) -> Html:
    rows = [(entry.name, entry.error) for entry in entries if entry.result is None]
    return html_table(("movie", "reason"), rows, kind="checks") if rows else Html()


def _condition(value: str | float | None) -> str:
    return "" if value is None else value if isinstance(value, str) else plain(value)


def _number(fact: Fact | None) -> str:
    if fact is None or not np.isfinite(fact.value):
        return ""
    parts = [f"{measured(fact.value)}{raised(after(fact.unit))}"]
    if fact.interval is not None:
        parts.append(f"({' to '.join(map(measured, fact.interval))})")
    return " ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)  # a line each where there is little room


def _agreement(entries: Sequence[Entry]) -> Html:
    """Return the tests of each group of movies under the same conditions, and what they come to."""
    made, some = [], any(entry.conditions for entry in entries)
    for conditions, tests in agreement_groups(entries):
        where = ", ".join(f"{name} = {_condition(value)}" for name, value in conditions.items())
        if some:
            made.append(tag("h3", where or "All conditions together"))
        if isinstance(tests, str):
            made.append(tag("p", f"Not tested: {tests}"))
            continue
        odd = [test.record for test in tests if not test.agrees]
        words = f"All {len(tests)} laws agree within their errors."
        if odd:
            named = ", ".join(odd[:_CURVES]) + (f" and {len(odd) - _CURVES} more" if len(odd) > _CURVES else "")
            words = f"{len(odd)} of {len(tests)} laws differ from the others by more than their errors: {named}."
        rows = [
            (test.record, f"{plain(test.chi2, 3)} / {test.degrees}", plain(test.adjusted, 2), _YES[test.agrees])
            for test in tests
        ]
        listed = html_table(("movie", "chi-square / degrees of freedom", "probability", "agrees"), rows)
        made += [tag("p", words), tag("details", tag("summary", "the tests"), listed)]
    if made:
        about = (
            "Each law is compared with those of the others in its table, at the highest degree that all were fitted "
        )
        about += "with. Below a probability of 0.1 %, corrected for the number of movies, it disagrees."
        made.append(tag("p", about, class_="note"))
    return join(made)


def _warnings(done: Sequence[Entry]) -> Html:
    """Return the findings that are not good, with the movies that have them, the worst first."""
    shared: dict[tuple[Severity, str], list[tuple[Entry, Finding]]] = {}
    for entry in done:
        for item in entry.items:
            if item.severity != Severity.OK:
                shared.setdefault((item.severity, item.code), []).append((entry, item))
    order = sorted(shared, key=lambda pair: -list(Severity).index(pair[0]))
    rows = []
    for severity, code in order:
        pairs = shared[severity, code]
        names = list(dict.fromkeys(entry.name for entry, _ in pairs))
        listed = ", ".join(names[:_CURVES]) + (f" and {len(names) - _CURVES} more" if len(names) > _CURVES else "")
        example = prose(str(pairs[0][1]))
        rows.append((code, badge(severity), f"{len(names)} of {len(done)}: {listed}", example))
    head = ("finding", "verdict", "movies", "of the first of them")
    return html_table(head, rows, kind="checks") if rows else Html()

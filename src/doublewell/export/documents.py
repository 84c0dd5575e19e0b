r"""Documents: the law as JSON for any other program, and as a LaTeX page to read, rounded to what its error allows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import floor, log10

import numpy as np

from doublewell.export.content import SEEN, Content, Notation, moved
from doublewell.facts import THERMAL, Facts
from doublewell.hints import Array
from doublewell.units import percent

_FORMAT, _VERSION = "doublewell law", 2
_POINTS = 81
_GRID = 401  # values at which the loss by rounding is taken
_PAGE = r"""\documentclass{article}
\usepackage{amsmath}
\begin{document}
%% ---- copy from here ----
%(comment)s
\begin{equation}
  %(motion)s, \qquad q = %(q)s,
\end{equation}
\begin{equation}
  G(u) = %(law)s.
\end{equation}
%(sentences)s
\begin{center}
\begin{tabular}{%(columns)s}
%(heads)s \\ \hline
%(rows)s
\end{tabular}
\end{center}
%(caption)s
%% ---- to here ----
\end{document}
"""
_SIGNS = {
    "u_t": r"\partial_t u", "Laplacian": r"\nabla^2", "div": r"\nabla\cdot", "grad": r"\nabla", " . ": r"\cdot ",
    "mean": r"\operatorname{mean}",
}  # fmt: skip
_FOUND = ("low", "high", "spinodal_low", "spinodal_high")  # phase values that are measured
_EVEN = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])
_FINE = 1e-3  # largest change of the force by rounding, of its largest value
_OF_BAND = 0.1  # and of the half-width of its band
_MATH = Notation("^", "\\,", "/", "{:.6g}".format, "\\ln")
_ROUND_OFF = 1e-12  # of the largest value of a curve: zero at the phases
_PLACES = 6  # more places than these are written with a power of ten


def json_text(content: Content) -> str:
    """Return strict JSON; floats have all their digits. A saved result (`save`) holds more, this holds what is used."""
    table, law = content.facts, content.law
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "dynamics": content.dynamics.name,
        "parts": {name: part for name, part in asdict(content.dynamics.parts).items() if part not in (None, False)},
        "notes": list(content.notes),
        "equation": table.equation,
        "phases": list(law.phases),
        **({"reach": list(content.form.reach)} if law.family.found else {}),  # of the powers
        "powers": {"variable": content.form.variable, "values": list(content.form.force)},
        **({"ideal_mixing": law.family.entropy(law.coefficients)._asdict()} if law.family.mixing else {}),
        "family": {"name": law.family.name, "degree": law.family.degree, "g": law.coefficients.tolist()},
        "q": content.q,
        "kappa": content.kappa,
        "mobility": content.mobility,
        "scaled_by_a_tension": content.scaled,
        "facts": table.document(),
        "findings": [asdict(replace(item, advice="")) for item in content.findings],
        "record": {
            "shape": list(table.data.shape), "dx": list(table.data.dx), "dt": table.data.dt,
            "boundary": table.data.boundary, "length_unit": table.data.length_unit, "time_unit": table.data.time_unit,
        },
        "double_well": table.structure.ok,
        "table": _table(content),
    }  # fmt: skip
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _table(content: Content) -> dict[str, list[float]]:
    """Return force, primitive and what else is known over the phase range; with bands where there are some."""
    step = (content.curves.law[0].u.size - 1) // (_POINTS - 1)
    columns = {"u": content.curves.law[0].u[::step]}
    for name, curve in content.curves.named.items():
        columns[name] = curve.values[::step]
        if curve.low is not None and curve.high is not None:
            columns[f"{name}_low"], columns[f"{name}_high"] = curve.low[::step], curve.high[::step]
    return {name: values.tolist() for name, values in columns.items()}


def latex_text(content: Content) -> str:
    """Return a page that compiles by itself, with marks around the part to copy."""
    band, law = content.facts.banded, content.law
    text, digits, lost = (_logarithms if law.family.mixing else _bracket)(content)
    head = ["$u$", "$G(u)$", *(["95\\,\\% band of $G$"] if band else []), "$H(u)$"]
    reported = [
        *_sentences(content),
        f"The coefficients have {digits} digits; rounding them changes $G$ by at most {percent(lost)} of its "
        "largest value. The other export formats have all digits.",
        *_numbers(content.facts),
    ]
    return _PAGE % {
        "comment": content.comment("%"),
        "motion": _equation(content.dynamics.equation),
        "q": _number(content.q, 6),
        "law": text,
        "sentences": "\n".join(reported).replace(" %", r"\,\%"),
        "columns": "r" * len(head),
        "heads": " & ".join(head),
        "rows": "\n".join(_rows(content)),
        "caption": "$G$ is odd and $H$ is even in $u$." if law.family.even else "",
    }


def _sentences(content: Content) -> Iterator[str]:
    """Yield the units, the meaning and the errors in words that LaTeX sets."""
    data, (low, high) = content.facts.data, content.law.phases
    length = _words(data.length_unit or "the unit of the pixel size of the record")
    time = _words(data.time_unit or "that of its frame interval")
    places = r"$u=\pm1$" if content.unit else f"$u={low:g}$ and $u={high:g}$"
    beyond = "beyond them $G$ continues linearly"
    if content.law.family.found:
        beyond = "$G$ holds for ${:g}\\le u\\le{:g}$ and continues linearly beyond".format(*content.form.reach)
    yield (
        f"Lengths are in {length}, times in {time}; $G$ and "
        f"$H(u)=\\int_{{{low:g}}}^{{u}}G$ are in $1/\\mathrm{{length}}^2$. The {content.wells} lie at {places}; "
        f"{beyond}."
    )
    yield from _parts(content)
    kappa = f"$\\kappa={_number(content.kappa, 4)}$" if content.scaled else "$\\kappa=1$ by choice (no surface tension)"
    yield (
        f"The energy is $\\int\\tfrac{{\\kappa}}{{2}}{_equation(content.gradient)}+\\kappa H(u)$ with the mobility "
        f"$q/\\kappa$, {kappa}."
    )
    if (band := content.facts.get("force_band")) is not None:
        yield f"The 95 % band of $G$ is $\\pm{percent(band.value)}$ of $G$ (root mean squares over the phase range)."


def _equation(text: str) -> str:
    r"""Return an equation in words as LaTeX writes it.

    >>> _equation("u_t = q (div(A grad u) - G(u))")
    '\\partial_t u = q (\\nabla\\cdot(A \\nabla u) - G(u))'
    """
    for word, sign in _SIGNS.items():
        text = text.replace(word, sign)
    return text


def _parts(content: Content) -> Iterator[str]:
    """Yield what is added to the equation; the other formats have all values of h."""
    parts = content.dynamics.parts
    for name, tensor in parts.tensors.items():
        rows = r" \\ ".join(" & ".join(_number(entry, 6) for entry in row) for row in tensor)
        yield f"${name}=\\begin{{pmatrix}}{rows}\\end{{pmatrix}}$ along the axes (z, y,) x."
    if parts.rate is not None:
        terms = {k: a for k, a in enumerate(parts.rate.powers) if abs(a) > SEEN}
        series = _polynomial([*terms.values()], [*terms], 6, "s")
        yield f"$q(u)=q\\,m(u)$, $\\ln m={series}$, $s={moved('u', *parts.rate.centre, _MATH)}$."
    if content.driving is not None:
        yield f"$h(t)$ is a known force, given for $0\\le t\\le{_number(content.driving[0][-1], 6)}$."


def _words(text: str) -> str:
    r"""Return a text that LaTeX sets as it is; a name of a unit may hold any sign."""
    return re.sub(r"[^\w\s.,/()-]", " ", text.replace("µ", "u").replace("μ", "u"))


def _bracket(content: Content) -> tuple[str, int, float]:
    """Return the force with as few digits as its error allows, their number, and what they lose."""
    written, terms = content.law.family.terms(content.law.coefficients)
    name = "u" if content.unit else "s"
    parts = [*([] if content.unit else [f"{content.law.half:.6g}"]), written.replace(" - ", "-")]
    largest = max(abs(c) for c, _ in terms)
    values, powers = zip(*([(c, k) for c, k in terms if abs(c) > 1e-12 * largest] or terms[:1]), strict=True)
    s = (np.linspace(*content.form.reach, _GRID) - content.law.middle) / content.law.half
    front = (1 - s**2) * (s if written.startswith("s ") else 1.0)
    rounded, digits, lost = _shortened(content, values, [front * s**k for k in powers])
    factor = " ".join(parts).replace("s", name).replace(" ", r"\,")
    place = "" if content.unit else rf", \qquad s = {moved('u', content.law.middle, content.law.half, _MATH)}"
    return rf"-{factor}\left[{_polynomial(rounded, powers, digits, name)}\right]{place}", digits, lost


def _logarithms(content: Content) -> tuple[str, int, float]:
    """Return the same of a law with the entropy of ideal mixing."""
    (first, second), powers, (low, high), reach = content.law.family.entropy(content.law.coefficients)
    v = (2.0 * np.linspace(*reach, _GRID) - low - high) / (high - low)
    basis = [np.log(0.5 * (1.0 + v)), -np.log(0.5 * (1.0 - v)), *(v**k for k in range(len(powers)))]
    rounded, digits, lost = _shortened(content, (first, second, *powers), basis)
    logs = (rf"{_number(c, digits)}\,\ln\tfrac{{1{sign}v}}{{2}}" for c, sign in zip(rounded, "+-", strict=False))
    rest = _polynomial(rounded[2:], range(len(powers)), digits, "v")
    place = content.form.names("u", _MATH)["v"]
    return f"{' - '.join(logs)} {'' if rest.startswith('-') else '+ '}{rest}, \\qquad v = {place}", digits, lost


def _shortened(content: Content, terms: Sequence[float], basis: Sequence[Array]) -> tuple[list[float], int, float]:
    """Return the factors of the basis of a force with few digits, and by how much of its largest value that changes it.

    That is at most a thousandth, and a tenth of half its band.
    """
    band = content.facts.get("force_band")
    allowed = _FINE if band is None else max(min(_FINE, _OF_BAND * 0.5 * band.value), 1e-12)
    for digits in range(3, 18):
        rounded = [float(f"{c:.{digits}g}") for c in terms]
        lost = float(np.max(np.abs(np.subtract(rounded, terms) @ basis)) / np.max(np.abs(terms @ np.array(basis))))
        if lost <= allowed:
            break
    return rounded, digits, lost


def _polynomial(factors: Sequence[float], powers: Sequence[int], digits: int, name: str) -> str:
    text = ""
    for c, k in zip(factors, powers, strict=True):
        sign = "-" if c < 0 else "+" if text else ""
        power = "" if k == 0 else f"\\,{name}" if k == 1 else f"\\,{name}^{{{k}}}"
        text += f" {sign} {_number(abs(c), digits)}{power}"
    return text.strip() or "0"


def _number(value: float, digits: int) -> str:
    r"""Return a number for mathematics.

    >>> _number(1234567.0, 3), _number(0.0125, 2)
    ('1.23\\times 10^{6}', '0.013')
    """
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    return mantissa if not power else f"{mantissa}\\times 10^{{{int(power)}}}"


def _numbers(table: Facts) -> Iterator[str]:
    """Yield the numbers to quote, with their intervals rounded to two digits of the interval's length."""
    names = {"epsilon": r"$\varepsilon$", "tension_integral": "$C_H$", "maximum": "place of the barrier, $u$"}
    names |= {"theta": r"$\theta = kT/\kappa$", "tension": r"surface tension of the pixel scale, $\kappa C_H$"}
    names |= {"thermal_tension": r"surface tension of the pixel scale, $kT C_H/\theta$"}
    names |= {"physical_kappa": r"gradient coefficient $\kappa$"}
    first = ("physical_kappa", "physical_barrier", "physical_mobility")  # where physical units are known
    keys = (*first, "width", "tension_integral", "epsilon", "barrier", "maximum", "tilt", *THERMAL)
    more = ("tension",) if table.problem.scale_from == "thermal noise" else ()
    for key in (*(_FOUND if table.law.family.found else ()), *keys, *more):
        fact = table.get(key)
        if fact is None or not np.isfinite(fact.value) or (key == "maximum" and table.law.family.symmetric):
            continue
        name = names.get(key, _math_name(fact.name))
        unit = ""
        if key in first and fact.unit:
            powers = re.sub(r"\^(-?\d+)", r"^{\1}", fact.unit).replace(" s", r"\,s")
            unit = rf"\ \mathrm{{{powers}}}"
        if fact.interval is None:
            yield f"{name[:1].upper()}{name[1:]} = ${_number(fact.value, 5)}{unit}$."
        else:
            value, low, high = (_rounded(x, fact.interval) for x in (fact.value, *fact.interval))
            yield f"95 % interval, {name} = ${value}$: ${low}$ to ${high}{unit}$."


def _math_name(name: str) -> str:
    """Return a name with its formulas between dollars.

    >>> _math_name("barrier F(0.4)"), _math_name("interface from u = -0.9 to 0.9")
    ('barrier $F(0.4)$', 'interface from $u = -0.9$ to $0.9$')
    """
    name = re.sub(r"u = (\S+) to (\S+)", r"$u = \1$ to $\2$", name)
    name = name.replace("f = kappa H", r"$f = \kappa H$")
    name = re.sub(r"(\w) = q/kappa", r"$\1 = q/\\kappa$", name)
    return re.sub(r"([fFH]\([^)]*\)(?: - H\([^)]*\))?)", r"$\1$", name)


def _rounded(value: float, ends: tuple[float, float]) -> str:
    length = abs(ends[1] - ends[0]) or abs(value) * 1e-6 or 1.0
    places = 1 - floor(log10(length))
    if 0 <= places <= _PLACES and abs(value) < 10.0**_PLACES:
        return f"{value:.{places}f}"
    digits = max(2, floor(log10(abs(value))) + places + 1) if value else 2
    return _number(value, min(digits, 17))


def _rows(content: Content) -> Iterator[str]:
    force, primitive = content.curves.law[:2]
    u = _EVEN if content.law.family.even else np.linspace(*content.law.phases, 9)
    values, heights = (np.asarray(curve.evaluate(u)) for curve in (force, primitive))
    values = np.where(np.abs(values) < _ROUND_OFF * force.largest, 0.0, values)
    heights = np.where(np.abs(heights) < _ROUND_OFF * primitive.largest, 0.0, heights)
    for k, place in enumerate(u):
        middle = []
        if force.low is not None and force.high is not None:
            low, high = (float(np.interp(place, force.u, edge)) + 0.0 for edge in (force.low, force.high))
            middle = [f"${_number(low, 4)}$ to ${_number(high, 4)}$"]
        cells = [f"{place:.4g}", f"${_number(values[k], 5)}$", *middle, f"${_number(heights[k], 5)}$"]
        yield " & ".join(cells) + r" \\"

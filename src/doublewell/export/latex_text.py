"""LaTeX: a page to read: the law rounded to what its error allows, and a table with the bands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import floor, log10

import numpy as np

from doublewell.export.content import Content
from doublewell.law import even_family
from doublewell.legacy import band_size, intervals, percent

__all__ = ["latex_text"]

_PAGE = r"""\documentclass{article}
\usepackage{amsmath}
\begin{document}
%% ---- copy from here ----
%(comment)s
\begin{equation}
  \partial_t u = q\left(\nabla^2 u - G(u)\right), \qquad q = %(q)s,
\end{equation}
\begin{equation}
  G(u) = -u\,(1-u^2)\left[%(bracket)s\right].
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
_TABLE = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])
_FINE = 1e-3  # largest change of the force by rounding, of its largest value
_PLACES = 6  # more places than these are written with a power of ten
_OF_BAND = 0.1  # and of the half-width of its band


def latex_text(content: Content) -> str:
    """Return a page that compiles by itself, with marks around the part to copy."""
    band = content.result.posterior is not None
    bracket, digits, lost = _bracket(content)
    head = ["$u$", "$G(u)$", *(["95\\,\\% band of $G$"] if band else []), "$H(u)$"]
    said = [
        *_sentences(content),
        f"The coefficients have {digits} digits; rounding them changes $G$ by at most {_percent(lost)} of its "
        "largest value. The other export formats have all digits.",
        *_intervals(content),
    ]
    return _PAGE % {
        "comment": content.comment("%"),
        "q": _number(content.q, 6),
        "bracket": bracket,
        "sentences": "\n".join(said),
        "columns": "r" * len(head),
        "heads": " & ".join(head),
        "rows": "\n".join(_rows(content)),
        "caption": "$G$ is odd and $H$ is even in $u$.",
    }


def _sentences(content: Content) -> Iterator[str]:
    """Say the units, the meaning and the errors in words that LaTeX sets."""
    asked = content.result.settings
    length = _words(asked.length_unit or "the unit of the pixel size of the record")
    time = _words(asked.time_unit or "that of its frame interval")
    yield (
        f"Lengths are in {length}, times in {time}; $G$ and "
        "$H(u)=\\int_{-1}^{u}G$ are in $1/\\mathrm{length}^2$. The pure phases lie at $u=\\pm1$; beyond them $G$ "
        "goes on linearly."
    )
    kappa = f"$\\kappa={_number(content.kappa, 4)}$" if content.scaled else "$\\kappa=1$ by choice (no surface tension)"
    yield (
        "The energy is $\\int\\tfrac{\\kappa}{2}|\\nabla u|^2+\\kappa H(u)$ with the mobility $q/\\kappa$, "
        f"{kappa}."
    )
    if content.result.posterior is not None:
        size = _percent(band_size(content.result))
        yield f"The 95\\,\\% band of $G$ is $\\pm{size}$ of $G$ (root mean squares over the phase range)."


def _words(text: str) -> str:
    r"""Return a text that LaTeX sets as it is; a name of a unit may hold any sign."""
    return re.sub(r"[^\w\s.,/()-]", " ", text.replace("µ", "u").replace("μ", "u"))


def _percent(share: float) -> str:
    return percent(share).replace(" %", "\\,\\%")


def _bracket(content: Content) -> tuple[str, int, float]:
    """Return the bracket in powers of u^2 with as few digits as its error allows, their number, and what they lose."""
    law = content.law
    exact = [float(c) for c in even_family(law.family, "a text for another program").exact_bracket(law.coefficients)]
    allowed = _FINE
    if content.result.posterior is not None:
        allowed = max(min(_FINE, _OF_BAND * 0.5 * band_size(content.result)), 1e-12)
    for digits in range(3, 18):
        rounded = [float(f"{c:.{digits}g}") for c in exact]
        lost = _lost(exact, rounded)
        if lost <= allowed:
            break
    return _polynomial(rounded, digits), digits, lost


def _lost(exact: list[float], rounded: list[float]) -> float:
    u = np.linspace(0.0, 1.0, 201)
    forces = [u * (1 - u**2) * np.polynomial.polynomial.polyval(u**2, c) for c in (exact, rounded)]
    return float(np.max(np.abs(forces[0] - forces[1])) / np.max(np.abs(forces[0])))


def _polynomial(powers: list[float], digits: int) -> str:
    text = ""
    for k, c in enumerate(powers):
        if c == 0.0 and len(powers) > 1:
            continue
        sign = "-" if c < 0 else "+" if text else ""
        text += f" {sign} {_number(abs(c), digits)}" + ("" if k == 0 else f"\\,u^{{{2 * k}}}")
    return text.strip() or "0"


def _number(value: float, digits: int) -> str:
    r"""Return a number for mathematics.

    >>> _number(1234567.0, 3), _number(0.0125, 2)
    ('1.23\\times 10^{6}', '0.013')
    """
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    return mantissa if not power else f"{mantissa}\\times 10^{{{int(power)}}}"


def _intervals(content: Content) -> Iterator[str]:
    """The scalars with their intervals, rounded to two digits of the interval's length."""
    result, found = content.result, intervals(content.result)
    values: dict[str, tuple[str, float | None]] = {
        "width": ("interface width from $u=-0.9$ to $0.9$", None),
        "tension_integral": ("$C_H$", None),
    }
    if result.scale is not None:
        values |= {
            "epsilon": (r"$\varepsilon$", result.scale.epsilon),
            "barrier": ("barrier $F(0)$", float(result.potential(0.0))),
        }
    for name, (words, value) in values.items():
        if name in found:
            ends = found[name]
            middle = "" if value is None else f" = {_rounded(value, ends)}"
            yield f"95\\,\\% interval, {words}{middle}: ${_rounded(ends[0], ends)}$ to ${_rounded(ends[1], ends)}$."


def _rounded(value: float, ends: tuple[float, float]) -> str:
    length = abs(ends[1] - ends[0]) or abs(value) * 1e-6 or 1.0
    places = 1 - floor(log10(length))
    if 0 <= places <= _PLACES and abs(value) < 10.0**_PLACES:
        return f"{value:.{places}f}"
    digits = max(2, floor(log10(abs(value))) + places + 1) if value else 2
    return _number(value, min(digits, 17))


def _rows(content: Content) -> Iterator[str]:
    result = content.result
    forces, heights = result.force(_TABLE) + 0.0, result.primitive(_TABLE)
    bands = None if result.posterior is None else result.band("force", _TABLE)
    for k, u in enumerate(_TABLE):
        middle = [] if bands is None else [f"${_number(bands[0][k] + 0.0, 4)}$ to ${_number(bands[1][k] + 0.0, 4)}$"]
        cells = [f"{u:.1f}", f"${_number(forces[k], 5)}$", *middle, f"${_number(heights[k], 5)}$"]
        yield " & ".join(cells) + r" \\"

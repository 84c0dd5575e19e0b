"""Markup: HTML and SVG from values; every text is escaped unless it was made here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from math import floor, isfinite, log10

from doublewell.wording import raised

_VOID = {"br", "img", "input", "link", "meta"}
_POWER = re.compile(r"\^(\d+)")
_EXPONENT = re.compile(r"(?<=\d)e([-+]\d+)")
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
_PERCENT = re.compile(r"(?<=\d) %")
_GREEK = {"epsilon": "ε", "kappa": "κ", "sigma": "σ"}
_LETTERS = re.compile(rf"\b({'|'.join(_GREEK)})\b(?! of| at)")  # a sigma of a test is a unit
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


class Html(str):
    """Text that is markup already and is written as it is."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | bool) -> Html:
    """Return an element; a final underscore of an attribute's name is dropped, the others become hyphens.

    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not False)
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """Return parts one after the other, plain text escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(_kept(part)) for part in parts))


def _kept(text: str) -> str:
    """Return a text in which no line ends between a number and its percent sign or power of ten."""
    return _PERCENT.sub("\N{NO-BREAK SPACE}%", text).replace(" × 10", "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10")


def list_of(items: Iterable[str], *, ordered: bool = False) -> Html:
    """Return a list of paragraphs."""
    return tag("ol" if ordered else "ul", *(tag("li", item) for item in items))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> Html:
    """Return a table whose first column names the rows; it scrolls by itself where it is too wide."""
    top = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))) if any(head) else Html()
    body = [tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest)) for first, *rest in rows]
    return tag("div", tag("table", top, tag("tbody", *body), class_=kind), class_="scroll")


def number(value: float, digits: int = 4) -> Html:
    """Return a number as people write it.

    >>> number(-1.25e-7), number(0.03)
    ('−1.25&nbsp;×&nbsp;10<sup>−7</sup>', '0.03')
    """
    return math(f"{value:.{digits}g}" if _far(value) else plain(value, digits))


def math(text: str) -> Html:
    """Return a formula that is written in plain characters with its powers raised and proper minus signs.

    >>> math("G(u) = -u (1 - u^2) [3e-05]")
    'G(u) = −u (1 − u<sup>2</sup>) [3&nbsp;×&nbsp;10<sup>−5</sup>]'
    """
    safe = escape(text).replace("u_t", "u<sub>t</sub>").replace("Laplacian u", "∇<sup>2</sup>u")
    safe = _EXPONENT.sub(lambda found: f"&nbsp;×&nbsp;10<sup>{int(found[1])}</sup>", safe)
    return Html(_POWER.sub(r"<sup>\1</sup>", safe).replace("-", "−"))


def measured(value: float, digits: int = 4) -> str:
    """Return a number that was measured: all digits are written, also zeros.

    >>> measured(0.03), measured(0.26001), measured(1234.5)
    ('0.03000', '0.2600', '1234')
    """
    return plain(value, digits) if _far(value) else _written(value, f"#.{digits}g")


def plain(value: float, digits: int = 4) -> str:
    """Return a number in characters alone, for places that take no markup.

    >>> plain(-1.25e-7), plain(12), plain(99.99, 2)
    ('−1.25 × 10⁻⁷', '12', '100')
    """
    if not isfinite(value):
        return str(value)
    if _far(value):
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}".replace("-", "−")
    return _written(value, f".{digits}g")


def prose(text: str) -> str:
    """Return a message of the library as a page writes it: first letter large, proper signs.

    >>> prose("the pure phases lie at -1 and +1: epsilon^2 is 4 +- 0.1 um^2")
    'The pure phases lie at −1 and +1: ε² is 4 ± 0.1 um²'
    """
    text = signs(text)
    return text[:1].upper() + text[1:] if text[:1].isascii() else text  # a Greek letter is a symbol


def signs(text: str) -> str:
    """Return a text with Greek letters, raised powers and proper signs."""
    greek = _LETTERS.sub(lambda found: _GREEK[found[1]], text).replace("+-", "±").replace("sqrt(", "√(")
    plain = raised(tens(greek)).replace("''", "″").replace("u_t", "uₜ").replace("Laplacian u", "∇²u")
    return _MINUS.sub("−", plain)


def tens(text: str) -> str:
    """Return a text with its powers of ten as people write them.

    >>> tens("kappa = 3.7e-08 J/m (95 %: 3.1e-08 to 4e+05)")
    'kappa = 3.7 × 10⁻⁸ J/m (95 %: 3.1 × 10⁻⁸ to 4 × 10⁵)'
    """
    return _EXPONENT.sub(lambda found: f" × 10{str(int(found[1])).translate(_SUPERSCRIPTS)}", text)


def _written(value: float, style: str) -> str:
    """Return a number without an exponent; more digits than asked for are better than one."""
    text = f"{value:{style}}"
    return (f"{value:.0f}" if "e" in text else text.rstrip(".")).replace("-", "−")


def _far(value: float) -> bool:
    return bool(value) and isfinite(value) and not -4 <= floor(log10(abs(value))) < 6


def _attribute(name: str, value: str | float | bool) -> str:
    key = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {key}"
    text = value if isinstance(value, str) else f"{value:.6g}"
    return f' {key}="{escape(text)}"'

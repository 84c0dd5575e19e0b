"""Markup: texts stay texts, whatever is in them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from doublewell.dynamics import DYNAMICS
from doublewell.report.style import Html, html_table, join, math, measured, plain, prose, tag


@given(st.text())
def test_no_text_becomes_markup(text):
    inside = tag("p", text, title=text).removeprefix("<p title=").removesuffix("</p>")
    assert "<" not in inside
    assert inside.count(">") == 1  # the one that ends the tag
    assert inside.count('"') == 2
    for made in (join([text]), math(text), html_table((text,), [(text, text)])):
        assert not re.search(r"<(?!/?(sup|sub|div|table|thead|tbody|tr|th|td)\b)", made)


def test_markup_is_kept_and_attributes_are_written():
    assert tag("p", Html("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
    assert tag("input", type="range", min=0) == '<input type="range" min="0">'
    assert tag("line", x1=0.123456789, aria_label="a & b") == '<line x1="0.123457" aria-label="a &amp; b"></line>'


def test_numbers():
    assert plain(0.0) == "0"
    assert plain(-2.5e9, 2) == "−2.5 × 10⁹"
    assert plain(float("inf")) == "inf"
    assert plain(1.5e-9) == "1.5 × 10⁻⁹"
    assert measured(0.1) == "0.1000"
    assert measured(12345.6) == "12346"
    assert plain(20848.7) == "20849"
    assert measured(1e-9, 2) == "1 × 10⁻⁹"
    assert prose("a finer mesh: 2 +- 1 at u = -0.5, well-made") == "A finer mesh: 2 ± 1 at u = −0.5, well-made"
    assert prose("") == ""


def test_every_equation_is_written_in_signs():
    made = {name: math(dynamics.equation) for name, dynamics in DYNAMICS.items()}
    assert made["allen-cahn"] == "u<sub>t</sub> = q (∇<sup>2</sup>u − G(u))"
    assert made["cahn-hilliard"] == "u<sub>t</sub> = q ∇<sup>2</sup>(G(u) − ∇<sup>2</sup>u)"
    assert made["mass-conserving"] == "u<sub>t</sub> = q (∇<sup>2</sup>u − G(u) + ⟨G(u)⟩)"

    for dynamics in DYNAMICS.values():
        assert not re.search("Laplacian|mean", math(dynamics.equation) + prose(dynamics.equation))

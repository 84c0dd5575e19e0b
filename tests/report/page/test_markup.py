"""Markup: texts stay texts, whatever is in them."""

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from doublewell.report.page.chart import Plot, band, bars, curve, nice_ticks, span
from doublewell.report.page.markup import Html, join, math, measured, number, plain, prose, table, tag


@given(st.text())
def test_no_text_becomes_markup(text):
    inside = tag("p", text, title=text).removeprefix("<p title=").removesuffix("</p>")
    assert "<" not in inside
    assert inside.count(">") == 1  # the one that ends the tag
    assert inside.count('"') == 2
    for made in (join([text]), math(text), table((text,), [(text, text)])):
        assert not re.search(r"<(?!/?(sup|div|table|thead|tbody|tr|th|td)\b)", made)


def test_markup_is_kept_and_attributes_are_written():
    assert tag("p", Html("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
    assert tag("input", type="range", min=0, disabled=True, hidden=False) == '<input type="range" min="0" disabled>'
    assert tag("line", x1=0.123456789, aria_label="a & b") == '<line x1="0.123457" aria-label="a &amp; b"></line>'


def test_numbers():
    assert plain(0.0) == "0"
    assert plain(-2.5e9, 2) == "−2.5 × 10⁹"
    assert plain(float("inf")) == "inf"
    assert number(1.5e-9) == "1.5&nbsp;×&nbsp;10<sup>−9</sup>"
    assert measured(0.1) == "0.1000"
    assert measured(12345.6) == "12346"
    assert number(20848.7) == "20849"
    assert measured(1e-9, 2) == "1 × 10⁻⁹"
    assert prose("a finer mesh: 2 +- 1 at u = -0.5, well-made") == "A finer mesh: 2 ± 1 at u = −0.5, well-made"
    assert prose("") == ""


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 7))
def test_ticks_are_round_inside_and_neither_few_nor_many(low, size, few):
    assume(size > 1e-5 * abs(low))  # twelve digits are enough for any axis of a figure
    high = low + size
    ticks = nice_ticks(low, high, few)
    assert all(low - 1e-6 * size <= tick <= high + 1e-6 * size for tick in ticks)
    assert 1 <= len(ticks) <= 2 * few + 1
    assert ticks == sorted(set(ticks))


def test_a_flat_range_has_one_tick():
    assert nice_ticks(2.0, 2.0) == [2.0]


PLOT = Plot((10.0, 0.0, 110.0, 50.0), (0.0, 1.0), (0.0, 1.0))


def test_places_and_values_beyond_the_frame():
    assert PLOT.points(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == "10.00,50.00 110.00,0.00"
    assert PLOT.points(np.array([0.5]), np.array([7.0])) == "60.00,0.00"


def test_a_curve_is_broken_where_values_are_missing_and_an_unknown_band_is_not_drawn():
    x, y = np.linspace(0.0, 1.0, 5), np.array([0.1, 0.2, np.nan, 0.4, 0.5])
    assert curve(PLOT, x, y).count("<polyline") == 2
    assert band(PLOT, x, y, y) == ""
    assert band(PLOT, x, np.zeros(5), np.ones(5)).count("<polygon") == 1


def test_bars_and_hatching():
    assert bars(PLOT, np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5])).count("<rect") == 1  # nothing for zero
    lines = re.findall(r'x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', span(PLOT, 0.2, 0.6))
    assert len(lines) > 5
    for x1, y1, x2, y2 in np.array(lines, dtype=float):
        assert 30.0 <= x1 < x2 <= 70.0
        assert x2 - x1 == pytest.approx(y1 - y2, abs=1e-3)
        assert 0.0 <= y2 < y1 <= 50.0

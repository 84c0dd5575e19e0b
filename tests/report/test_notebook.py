"""What a notebook shows of a record and of a result, and single plots."""

import re
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from doublewell.curves import curves
from doublewell.errors import InputError
from doublewell.facts import facts
from doublewell.findings import findings
from doublewell.physical import physical
from doublewell.record import Record
from doublewell.report.style import plain, prose

NASTY = "<img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """The elements of a block; each must be closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.names, self.sources = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.sources += [value[:22] for name, value in attributes if name in ("src", "href", "style", "onerror")]
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", ["banded", "result", "bare"])
def test_a_result_shows_what_the_page_shows(name, request, words_of):
    result = request.getfixturevalue(name)
    html = result._repr_html_()
    found, words, table = Elements(html), words_of(html).replace("\xa0", " "), facts(result)
    assert "script" not in found.names
    assert set(found.sources) <= {f"#{source[1:]}" for source in found.sources}  # places in its own figures
    for key in ("height", "epsilon", "barrier"):
        assert key not in table.numbers or plain(table[key].value, 5) in words
    for item in findings(result):
        assert prose(str(item)).replace("\xa0", " ") in words
    for curve in curves(result).quoted:
        assert f"{curve.symbol}(u). Line: recovered." in words


def test_several_results_in_one_notebook_do_not_share_names(result, bare):
    first, second = (set(re.findall(r'\bid="([^"]+)"', shown._repr_html_())) for shown in (result, bare))
    assert first
    assert not first & second
    assert result._repr_html_() == result._repr_html_()


def test_a_record_shows_frames_and_its_survey(small, words_of):
    html = small._repr_html_()
    found, words = Elements(html), words_of(html)
    assert found.sources.count("data:image/png;base64,") == 6  # five frames, and their colours
    assert len(re.findall(r"frame \d+, t = ", words)) == 5
    for part in ("Record(15 frames of 32 x 32", "frame 14, t = 0.007", "dx = 0.03125", "0.03 per pixel", "No problems"):
        assert part in words


@pytest.mark.parametrize("shape", [(9, 24), (9, 12, 12, 12)])
def test_records_of_all_dimensions_are_shown(shape, words_of):
    x = np.linspace(-1, 1, shape[-1]) + 0.05 * np.arange(9).reshape(-1, *[1] * (len(shape) - 1))
    record = Record(np.tanh(x / 0.3) * np.ones(shape), dx=0.1, dt=0.1)
    words = words_of(record._repr_html_())
    assert "cells (1-D)" in words if len(shape) == 2 else "the middle slice is shown" in words
    axis = record.plot(-1)
    assert axis.get_title() == "frame 8, t = 0.8"


def test_values_that_cannot_be_used_are_reported_and_not_raised(small, words_of):
    u = small.slab().copy()
    u[0, 2, 1] = np.nan
    broken = Record(u, dx=1.0, dt=1.0, length_unit=NASTY)
    html = broken._repr_html_()
    words = words_of(html)
    assert "These values cannot be used: 1 value in frames 0 to 0 is not finite" in words
    assert NASTY in words
    assert "img" not in Elements(html).names


def test_a_large_record_is_not_surveyed(small, monkeypatch, words_of):
    monkeypatch.setattr("doublewell.report.notebook._SURVEYED", 1000)
    words = words_of(small._repr_html_())
    assert "The values were not surveyed" in words
    assert "frame 14" in words
    assert "per pixel" not in words


def test_the_curves_are_those_of_the_result(banded):
    for name, symbol in (("force", "G"), ("primitive", "H"), ("potential", "F")):
        axis = banded.plot(name)
        (line,) = [line for line in axis.lines if line.get_label() == "recovered"]
        u, values = line.get_data()
        assert values == pytest.approx(getattr(banded, name)(u))
        assert axis.get_ylabel().startswith(f"{symbol}(u)")
        low, high = banded.band(name, u)
        (band,) = axis.collections
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == pytest.approx((low.min(), high.max()))
    assert banded.plot().get_title() == "potential F"


def test_the_default_is_the_last_curve_that_is_known(bare, in_units):
    assert bare.plot().get_title() == "primitive H of the force"
    axis, u = in_units.plot(), np.linspace(-1.0, 1.0, 401)
    assert axis.get_title() == "bulk energy f"
    assert axis.get_ylabel() == "f(u)  (J/m³)"
    (line,) = [line for line in axis.lines if line.get_label() == "recovered"]
    assert line.get_ydata() == pytest.approx(physical(in_units).bulk_energy(u))
    low, high = physical(in_units).band(u)
    edges = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == pytest.approx((low.min(), high.max()))


@pytest.mark.parametrize("name", ["values", "degrees", "residual", "frames", "tests"])
def test_what_the_fit_leaves_is_drawn(banded, name):
    axis = banded.plot(name)
    assert axis.has_data()
    assert axis.get_xlabel()
    axis.figure.canvas.draw()


def test_plots_go_into_given_axes_and_leave_settings_alone(banded, small):
    settings = dict(mpl.rcParams)
    figure, (left, right) = plt.subplots(1, 2)
    assert banded.plot("force", ax=left) is left
    assert small.plot(3, ax=right) is right
    assert plt.get_fignums() == [figure.number]
    assert np.array_equal(right.collections[0].get_array(), small.slab(3, 4)[0])
    assert dict(mpl.rcParams) == settings


def test_missing_values_are_left_blank(small):
    mask = np.ones(small.mesh, dtype=bool)
    mask[4, 5] = False
    drawn = small.replace(mask=mask).plot().collections[0].get_array()
    assert np.ma.getmaskarray(drawn)[4, 5]
    assert np.ma.count_masked(drawn) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("energy", "curve is 'energy': expected one of force, primitive, potential, bulk_energy, values"),
        ("potential", "surface_tension="),
        ("bulk_energy", "surface_tension="),
        ("residual", "the weak-form fit has no residual to draw: use method='trajectory'"),
        ("degrees", "the law has one degree, and no weights: expected an average; leave out law="),
    ],
)
def test_what_is_not_known_is_refused(bare, name, message):
    with pytest.raises(InputError, match=re.escape(message)):
        bare.plot(name)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("frame", [15, -16, 1.5, "last"])
def test_a_frame_that_is_not_there_is_refused(small, frame):
    with pytest.raises(InputError, match="frame is .*: expected a frame, an integer from -15 to 14"):
        small.plot(frame)

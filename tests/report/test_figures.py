import sys
import zlib
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from grouping import changed
from matplotlib.text import Text

from doublewell.calibrate import SurfaceTension, calibrate
from doublewell.errors import InputError
from doublewell.law import Law
from doublewell.record import Record
from doublewell.report import draw_figures, error_figure, fields_figure, law_figure
from doublewell.report.figures import rms_map
from doublewell.report.style import COLOURS, render
from doublewell.validate import validate


def lines(figure, label):
    return [line for axis in figure.axes for line in axis.get_lines() if line.get_label() == label]


def has_colour(image, name):
    colour = 255 * np.array(mpl.colors.to_rgb(COLOURS[name]))
    return np.sum(np.all(np.abs(image - colour) < 4, axis=-1)) > 50


def test_law_figure_shows_force_primitive_and_potential_against_the_truth(result, truth, check_figure):
    figure = law_figure(result, truth=truth)
    assert [axis.get_title() for axis in figure.axes[:3]] == [
        "effective force G",
        "primitive H of the force",
        "potential F",
    ]
    u = lines(figure, "recovered")[0].get_xdata()
    for found, true, f, g in zip(
        lines(figure, "recovered"),
        lines(figure, "truth"),
        (result.force, result.primitive, result.potential),
        (truth.force.force, truth.force.primitive, truth.law.primitive),
        strict=True,
    ):
        np.testing.assert_array_equal(found.get_ydata(), f(u))
        np.testing.assert_array_equal(true.get_ydata(), g(u))
    image = check_figure(figure)
    assert has_colour(image, "truth")


def test_law_figure_without_scale_and_truth_has_no_potential(bare, check_figure):
    figure = law_figure(bare)
    assert [axis.get_title() for axis in figure.axes[:2]] == ["effective force G", "primitive H of the force"]
    assert not lines(figure, "truth")
    assert any("not determined" in text.get_text() for text in figure.findobj(Text))
    image = check_figure(figure)
    assert not has_colour(image, "truth")


def test_in_physical_units_the_bulk_energy_comes_first_and_the_paper_s_potential_last(in_units, truth, check_figure):
    law = law_figure(in_units)
    check_figure(law)
    assert [axis.get_ylabel() for axis in law.axes[:3]] == [
        "f(u)  (J/m³)", "G(u)  (1/um²)", "F(u)  ((J/m²)²)",
    ]  # fmt: skip
    numbers = next(text for text in (item.get_text() for item in law.findobj(match=Text)) if "kappa = " in text)
    assert numbers.index("kappa") < numbers.index("f(0)") < numbers.index("epsilon")
    assert law_figure(in_units, truth=truth).axes[0].get_ylabel().startswith("G(u)")


@pytest.mark.parametrize(("normalisation", "unit"), [("E", "tension²"), ("eE", "tension/length")])
def test_units_of_the_potential_follow_the_normalisation(result, normalisation, unit):
    scale = calibrate(result.law, SurfaceTension(0.9, normalisation=normalisation))
    figure = law_figure(replace(result, scale=scale))
    assert unit in figure.axes[2].get_ylabel()
    assert "1/length²" in figure.axes[0].get_ylabel()


def test_histogram_holds_the_survey_and_empty_bins_are_grey(result, check_figure):
    shares = np.zeros(20)
    shares[[0, 1, 2, 12, 19]] = [0.5, 0.2, 0.0005, 0.1, 0.1]  # bins 0, 1 and 12 and their mirror images are visited
    survey = replace(result.diagnostics.survey, histogram=tuple(shares))
    figure = law_figure(replace(result, diagnostics=replace(result.diagnostics, survey=survey)))
    heights = [bar.get_height() for bar in figure.axes[3].patches]
    np.testing.assert_allclose(heights, 100 * shares)
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in figure.axes[0].patches]
    np.testing.assert_allclose(spans, [(-0.8, -0.3), (-0.2, 0.2), (0.3, 0.8)], atol=1e-12)
    check_figure(figure)


def test_every_stationary_point_is_marked(result, check_figure):
    law = Law.bernstein([-1.0, 3.0, 0.5])
    figure = law_figure(replace(result, law=law, scale=None))
    assert not law.structure.ok
    (minima,), (maxima,) = (
        [line for line in figure.axes[1].get_lines() if line.get_label() == f"{kind} of H"]
        for kind in ("minimum", "maximum")
    )
    inside = [point.u for point in law.structure.stationary if point.kind == "minimum"]
    assert sorted(minima.get_xdata()) == sorted([-1.0, *inside, 1.0])
    np.testing.assert_allclose(minima.get_ydata(), law.primitive(np.array(minima.get_xdata())))
    assert sorted(maxima.get_xdata()) == [p.u for p in law.structure.stationary if p.kind == "maximum"]
    check_figure(figure)


def test_fields_figure_shows_observed_predicted_and_difference(record, validation, check_figure):
    figure = fields_figure(record, validation=validation)
    images = [axis.images[0].get_array() for axis in figure.axes if axis.images]
    assert len(images) == 9
    for column, k in enumerate((7, 14, 20)):
        seen, told = record.slab(4 + k, 5 + k)[0], validation.predicted.slab(k, k + 1)[0]
        np.testing.assert_array_equal(images[column], seen)
        np.testing.assert_array_equal(images[3 + column], told)
        np.testing.assert_array_equal(images[6 + column], told - seen)
    assert [axis.get_title() for axis in figure.axes[:3]] == ["t = 0.0022", "t = 0.0036", "t = 0.0048"]
    check_figure(figure)


def test_fields_figure_of_a_plain_record_and_of_two_frames(record, check_figure):
    figure = fields_figure(record)
    assert len([axis for axis in figure.axes if axis.images]) == 3
    check_figure(figure)
    assert len([axis for axis in fields_figure(record.clip(0, 2)).axes if axis.images]) == 2


def test_one_axis_is_drawn_as_position_and_time_also_at_uneven_times(make_movie, result, check_figure):
    line = make_movie((64,))
    figure = fields_figure(line, validation=validate(result, line))
    assert [axis.get_xlabel() for axis in figure.axes[:3]] == ["x (length)"] * 3
    assert figure.axes[0].get_ylabel() == "time"
    np.testing.assert_array_equal(figure.axes[0].collections[0].get_array(), line.slab(1, line.frames))
    check_figure(figure)
    uneven = Record(line.slab(), dx=line.dx, times=np.arange(line.frames) ** 2.0)
    assert fields_figure(uneven).axes[0].get_ylim()[1] > 24**2


def test_a_long_record_of_one_axis_is_thinned():
    long = Record(np.tanh(np.linspace(-3, 3, 16)) * np.ones((5000, 1)), dx=0.1, dt=0.1)
    assert fields_figure(long).axes[0].collections[0].get_array().shape == (400, 16)


def test_three_axes_are_drawn_as_the_middle_slice(make_movie, check_figure):
    ball = make_movie((16, 20, 24), frames=4)
    figure = fields_figure(ball)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), ball.slab(0, 1)[0, 8])
    assert "middle slice, z = 0.5" in {text.get_text() for text in figure.findobj(Text)}
    check_figure(figure)


@pytest.mark.parametrize("shape", [(3, 8, 80), (3, 80, 8)])
def test_a_very_long_field_is_not_drawn_to_scale_and_says_so(shape, check_figure):
    figure = fields_figure(Record(np.random.default_rng(1).normal(size=shape), dx=0.1, dt=0.1))
    assert "not drawn to scale" in {text.get_text() for text in figure.findobj(Text)}
    check_figure(figure)


def test_error_figure_shows_error_and_noise_after_the_start(validation, check_figure):
    figure = error_figure(validation)
    (line,) = lines(figure, "predicted - observed")
    np.testing.assert_array_equal(line.get_xdata(), validation.times[1:])
    np.testing.assert_allclose(line.get_ydata(), 100 * validation.error[1:])
    (floor,) = lines(figure, "noise alone")
    np.testing.assert_allclose(floor.get_ydata(), 100 * np.broadcast_to(validation.noise_floor, 21)[1:])
    check_figure(figure)


def test_the_legend_of_the_error_lies_on_no_line(validation):
    figure = error_figure(validation)
    figure.canvas.draw()
    axis = figure.axes[0]
    box = axis.get_legend().get_window_extent()
    for line in axis.get_lines():
        assert np.max(axis.transData.transform(line.get_xydata())[:, 1]) < box.y0


def test_the_residual_map_is_the_root_mean_square_over_time(validation, record, check_figure):
    gap = validation.predicted.slab(1, 21) - record.slab(5, 25)
    np.testing.assert_allclose(rms_map(validation, record), np.sqrt(np.mean(gap**2, axis=0)), rtol=1e-12)
    figure = error_figure(validation, record=record)
    np.testing.assert_array_equal(figure.axes[1].collections[0].get_array(), rms_map(validation, record))
    check_figure(figure)


def test_the_residual_map_of_one_and_three_axes(make_movie, result, check_figure):
    for mesh in ((64,), (8, 20, 24)):
        movie = make_movie(mesh, frames=3)
        figure = error_figure(validate(result, movie), record=movie)
        assert bool(figure.axes[1].collections) is (len(mesh) == 3)
        check_figure(figure)


def test_the_shortest_validation_is_still_a_point(result, record):
    figure = error_figure(validate(result, record.clip(0, 2)))
    assert lines(figure, "predicted - observed")[0].get_marker() == "o"
    assert (
        len(
            [
                axis
                for axis in fields_figure(record.clip(0, 2), validation=validate(result, record.clip(0, 2))).axes
                if axis.images
            ]
        )
        == 3
    )


def test_bands_and_weights_of_a_trajectory_result(banded, check_figure):
    figure = law_figure(banded)
    u = lines(figure, "recovered")[0].get_xdata()
    for k, quantity in enumerate(("force", "primitive", "potential")):
        low, high = banded.band(quantity, u)
        (shape,) = figure.axes[k].collections
        heights = shape.get_paths()[0].vertices[:, 1]
        assert heights.min() == pytest.approx(low.min())
        assert heights.max() == pytest.approx(high.max())
        assert figure.axes[3 + k].get_ylabel() == "difference\n(% of max)"
    bars = [bar.get_height() for bar in figure.axes[7].patches]
    np.testing.assert_allclose(bars, [100 * fit.weight for fit in banded.posterior.path])
    words = " ".join(text.get_text() for text in figure.findobj(Text))
    assert "95 % band" in words
    assert f"95 % interval {banded.interval('epsilon')[0]:.5g} to" in words
    check_figure(figure)


def test_the_strip_holds_the_band_and_the_truth_in_percent(banded, banded_truth, check_figure):
    figure = law_figure(banded, truth=banded_truth)
    strip, u = figure.axes[3], np.linspace(-1, 1, 401)
    top = np.max(np.abs(banded.force(u)))
    gap = 100 * (banded_truth.force.force(u) - banded.force(u)) / top
    np.testing.assert_allclose(strip.get_lines()[0].get_ydata(), gap)
    assert strip.collections[0].get_paths()[0].vertices[:, 1].max() == pytest.approx(
        100 * np.max(banded.band("force", u)[1] - banded.force(u)) / top
    )
    check_figure(figure)


def test_bands_without_scale_and_with_one_degree(banded, single, check_figure):
    figure = law_figure(replace(banded, scale=None))
    assert [axis.get_title() for axis in figure.axes[:2]] == ["effective force G", "primitive H of the force"]
    check_figure(figure)
    figure = law_figure(single)
    assert not [axis for axis in figure.axes if axis.get_ylabel() == "weight (%)"]
    check_figure(figure)


def test_a_law_whose_potential_has_no_band_is_still_drawn(banded, monkeypatch, check_figure):
    def refuse(self, quantity, u, **_):
        if quantity == "potential":
            raise InputError("no interface")
        return self.force(u) - 1.0, self.force(u) + 1.0

    monkeypatch.setattr(type(banded), "band", refuse)
    check_figure(law_figure(banded))


def test_drawn_files_are_png_pdf_and_svg(result, truth, record, validation):
    drawn = draw_figures(result, truth=truth, record=record, validation=validation)
    assert list(drawn) == [f"{name}.{kind}" for name in ("law", "fields", "error") for kind in ("png", "pdf", "svg")]
    for name, data in drawn.items():
        start = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<?xml"}[name.rpartition(".")[2]]
        assert data.startswith(start)
        assert len(data) > 3000
    assert draw_figures(result, formats=("png",)).keys() == {"law.png"}


def test_a_trajectory_result_has_a_figure_of_its_residual(banded):
    assert list(draw_figures(banded, formats=("png",))) == ["law.png", "residual.png"]


def test_the_same_figure_gives_the_same_bytes(bare):
    for kind in ("png", "pdf", "svg"):
        assert zlib.crc32(render(law_figure(bare), kind)) == zlib.crc32(render(law_figure(bare), kind))


def test_figures_leave_no_global_state(bare):
    before = "matplotlib.pyplot" in sys.modules
    mpl.rcParams["font.size"] = 31.0
    try:
        figure = law_figure(bare)
        render(figure, "png")
        assert mpl.rcParams["font.size"] == 31.0
        assert figure.axes[0].xaxis.label.get_fontsize() == 10.0
        assert ("matplotlib.pyplot" in sys.modules) is before
    finally:
        mpl.rcdefaults()


def test_unknown_format_is_refused(bare):
    with pytest.raises(InputError, match="figure format is 'gif': expected one of png, pdf, svg"):
        draw_figures(bare, formats=("gif",))


@pytest.mark.parametrize(("length", "time"), [("um", "s"), ("$\\bad{", "$")])
def test_units_stand_at_the_axes_and_are_never_read_as_formulas(length, time, result, record, validation):
    known = Record(
        record.slab(), dx=record.dx, times=record.times, q=1.0, boundary="periodic", length_unit=length, time_unit=time
    )
    asked = changed(result, length_unit=length, time_unit=time)
    law = law_figure(asked)
    area = "1/um²" if length == "um" else "1/(\\$\\bad{)²"
    assert law.axes[0].get_ylabel() == f"G(u)  ({area})"
    fields = fields_figure(known, validation=validation)
    shown = length.replace("$", r"\$")
    assert fields.axes[-4].get_xlabel() == f"x ({shown})"
    assert fields.axes[0].get_title().endswith(time.replace("$", r"\$"))
    error = error_figure(validation, record=known)
    assert error.axes[0].get_xlabel() == f"time ({time.replace('$', chr(92) + '$')})"
    for figure in (law, fields, error):
        assert render(figure, "svg")  # a formula that cannot be read would raise here

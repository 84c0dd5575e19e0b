from dataclasses import replace

import numpy as np
import pytest
from grouping import changed
from matplotlib.text import Text

from doublewell.adequacy import ScoreTest, Verdict
from doublewell.curves import thresholds
from doublewell.errors import InputError
from doublewell.findings import model_tests
from doublewell.report import residual_figure


def with_fit(result, *, shape=None, **numbers):
    likelihood = replace(result.diagnostics.likelihood, **numbers)
    if shape is not None:
        result = changed(result, shape=shape, dx=(0.1, 0.2, 0.3)[-len(shape) + 1 :])
    return replace(result, diagnostics=replace(result.diagnostics, likelihood=likelihood))


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(Text))


def scored(name, statistic, p, adjusted, degrees=1):
    return ScoreTest(name, statistic, degrees, p, adjusted, (0.0,), (1.0,), None)


def test_the_map_is_drawn_in_place_with_symmetric_limits(banded, check_figure):
    figure = residual_figure(banded)
    (mesh,) = figure.axes[0].collections
    fit = banded.diagnostics.likelihood
    np.testing.assert_array_equal(mesh.get_array(), fit.residual_map)
    top = max(4.0, np.abs(fit.residual_map).max())
    assert mesh.get_clim() == (-top, top)
    corners = mesh.get_coordinates()
    np.testing.assert_allclose(corners[0, 0], [0.0, 0.0])
    np.testing.assert_allclose(corners[-1, -1], [1.0, 1.0])
    assert figure.axes[0].get_ylabel() == "y (length)"
    check_figure(figure)


def test_quiet_maps_do_not_shout(banded):
    quiet = with_fit(banded, residual_map=np.full((32, 32), 0.5))
    assert residual_figure(quiet).axes[0].collections[0].get_clim() == (-4.0, 4.0)


def test_one_axis_is_a_line_and_blocks_keep_their_places(banded, check_figure):
    values = np.linspace(-6.0, 5.0, 48)
    figure = residual_figure(with_fit(banded, shape=(15, 64), residual_map=values))
    (stairs,) = figure.axes[0].patches
    np.testing.assert_array_equal(stairs.get_data().values, values)
    edges = stairs.get_data().edges
    assert edges[-1] == pytest.approx(64 * 0.3)
    np.testing.assert_allclose(np.round(edges / 0.3), edges / 0.3, atol=1e-9)  # at borders of cells
    assert figure.axes[0].get_ylim()[1] == -figure.axes[0].get_ylim()[0] > 6.0
    check_figure(figure)


def test_three_axes_show_the_worst_slice_and_say_which(banded, check_figure):
    values = np.random.default_rng(1).standard_normal((8, 10, 12))
    values[5, 2, 3] = -9.0
    figure = residual_figure(with_fit(banded, shape=(15, 8, 10, 12), residual_map=values))
    np.testing.assert_array_equal(figure.axes[0].collections[0].get_array(), values[5])
    assert "slice z = 0.55, the largest" in texts(figure)
    check_figure(figure)


def test_frames_are_relative_to_the_noise_and_the_fitted_start_is_marked(banded, check_figure):
    noise = banded.diagnostics.likelihood.noise
    frames = noise * np.array([0.3, *np.linspace(0.97, 1.04, 14)])
    figure = residual_figure(with_fit(banded, residual_frames=frames))
    axis = figure.axes[1]
    (line,) = [one for one in axis.get_lines() if one.get_label() == "residual of a frame"]
    np.testing.assert_allclose(line.get_xdata(), 5e-4 * np.arange(15))
    np.testing.assert_allclose(line.get_ydata()[1:], frames[1:] / noise)
    assert np.isnan(line.get_ydata()[0])
    assert "frame 0: 0.3 (the start is fitted)" in texts(figure)
    assert axis.get_ylim()[0] < 0.97
    frames[3] = 0.0
    assert "2 frames far below" in texts(residual_figure(with_fit(banded, residual_frames=frames)))
    calm = residual_figure(with_fit(banded, residual_frames=np.full(15, noise)))
    assert "the start is fitted" not in texts(calm)
    check_figure(figure)


def test_sigma_is_the_deviate_of_the_chance():
    tests = [scored("a", -2.5, 0.012419330651552318, 1), scored("b", 1e5, 0.0, 0.0), scored("c", 1e6, 0.0, 0, 2)]
    np.testing.assert_allclose([test.sigma for test in tests], [2.5, 1e5, 1e3])
    assert scored("d", 5.991464547107979, 0.05, 1, degrees=2).sigma == pytest.approx(1.959964)


def test_thresholds_are_those_of_holm():
    np.testing.assert_allclose(thresholds(2), [2.4323790585, 2.1700903776])  # 3 % over 4 and over 2
    steps = thresholds(11)
    assert steps[0] == pytest.approx(2.997, abs=1e-3)
    assert np.all(np.diff(steps) < 0)


def test_what_was_not_asked_is_not_drawn(banded, check_figure):
    figure = residual_figure(with_fit(banded, adequacy=None))
    assert "the model\nwas not tested" in texts(figure)
    check_figure(figure)


def test_the_weak_reading_has_no_residual(result):
    with pytest.raises(InputError, match="weak-form fit has no residual to draw: use method='trajectory'"):
        residual_figure(result)


def test_tests_are_bars_in_sigma_the_largest_on_top(banded, check_figure):
    figure = residual_figure(banded)
    axis, tests = figure.axes[2], sorted(model_tests(banded), key=lambda test: -test.sigma)
    np.testing.assert_allclose([bar.get_width() for bar in axis.patches[: len(tests)]], [t.sigma for t in tests])
    assert [label.get_text() for label in axis.get_yticklabels()] == [test.name for test in tests]
    assert axis.get_title() == "model: adequate"
    assert "none of 23 tests is significant" in texts(figure)
    check_figure(figure)


def test_significant_tests_have_another_colour_and_a_star(banded):
    q, *others = banded.adequacy.tests
    answer = replace(banded.adequacy, tests=(replace(q, statistic=36.0, p=0.0, adjusted=0.0, drop=1296.0), *others),
                     verdict=Verdict.NOT_ADEQUATE)  # fmt: skip
    figure = residual_figure(with_fit(banded, adequacy=answer))
    first, second, *_ = figure.axes[2].patches
    assert first.get_facecolor() != second.get_facecolor()
    assert "36.0 *" in texts(figure)
    assert figure.axes[2].get_title() == "model: not adequate"

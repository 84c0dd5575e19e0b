from dataclasses import replace

import numpy as np
import pytest

import doublewell.identify  # noqa: F401
from doublewell.observation import survey
from doublewell.record import Record
from doublewell.report import inspect_record


def test_masks_intensities_and_order_parameters_are_told_apart(make_movie):
    movie = make_movie((48, 48))
    u = movie.slab()
    assert "these look like a resolved order parameter" in str(inspect_record(movie))
    mask = str(inspect_record(movie.replace(np.sign(u))))
    words = "contours and thresholded masks are not enough"
    assert "holds 2 different values, like a mask" in mask
    assert words in " ".join(mask.split())
    grey = str(inspect_record(movie.replace(1000.0 + 400.0 * u)))
    assert "these look like intensities; convert them with phase_from_intensity" in " ".join(grey.split())
    noisy_mask = np.sign(u) + 0.02 * np.random.default_rng(1).standard_normal(u.shape)
    assert words in " ".join(str(inspect_record(movie.replace(noisy_mask))).split())


def line(*, frames=30, cells=80, width=0.1, noise=0.0, speed=0.5, scale=1.0, q=1.0, times=None):
    x = np.linspace(-1, 1, cells)
    t = np.linspace(0, 1, frames)[:, None]
    u = scale * np.tanh((x + speed * t) / width)
    u = u + noise * np.random.default_rng(2).normal(size=u.shape)
    clock = {"dt": 0.1} if times is None else {"times": times}
    return Record(u, dx=x[1] - x[0], q=q, **clock)


def quick(factor):
    """The record of ``line`` with its frame interval off by a factor."""
    record = line()
    return Record(record.slab(), dx=record.dx, dt=0.05 * factor, q=1.0)


def picture():
    """One picture of a drop."""
    return np.tanh((12 - np.hypot(*np.mgrid[-20:20, -20:20])) / 4)


def test_a_movie_on_a_line_is_said_to_be_one():
    found = inspect_record(line())
    assert str(found).startswith("read as a 1-D movie: 30 frames of 80 pixels\n")
    assert repr(line()).startswith("Record(30 frames of 80 cells (1-D), dx = ")


def test_a_good_record_is_described_in_words(make_movie):
    record = make_movie((48, 48))
    found = inspect_record(record)
    text = str(found)
    assert text.startswith("25 frames of 48 x 48 pixels\n")
    for words in (
        "pixel size 0.0208333, field of view 1 x 1",
        "one frame every 0.0002, from t = 0 to 0.0048",
        "diffusion coefficient q: 1\n  boundary: periodic",
        f"{found.survey.noise:.2g} per pixel, {50 * found.survey.noise:.2g} % of the step between the phases",
        f"{found.survey.cells:.1f} pixels",
        "-0.2 to  0.0",
        "half-widths in time and space that fit: (5 frames, ",
    ):
        assert words in text
    assert found.survey == survey(record)
    assert found.survey.noise == pytest.approx(0.02, rel=0.1)
    assert len(found.supports) == 2
    assert max(len(row) for row in text.splitlines()) <= 110
    assert text.isascii()


def test_the_histogram_bars_follow_the_shares():
    found = inspect_record(line())
    rows = [row.split() for row in str(found).splitlines() if " to " in row and "%" in row and "phase" not in row]
    shares = [a + b for a, b in zip(found.survey.histogram[::2], found.survey.histogram[1::2], strict=True)]
    assert [float(row[3]) for row in rows] == pytest.approx([100 * share for share in shares], abs=0.051)
    assert max(len(row[-1]) for row in rows) == 40
    assert rows[0][-1].count("#") > rows[4][-1].count("#") > 0


def test_no_problems_are_reported_where_there_are_none():
    assert inspect_record(line()).findings == ()
    assert "No problems found." in str(inspect_record(line()))


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (line(frames=2), "supports-too-large"),
        (line(width=0.02, speed=0.0), "interface-unresolved"),
        (line(width=0.05), "interface-few-cells"),
        (line(scale=7.0), "not-phase-values"),
        (line(scale=1.4), "values-beyond-phases"),
        (line(scale=0.7), "phase-not-reached"),
        (line(noise=0.15), "noise-strong"),
        (line(speed=0.001, noise=0.02), "little-change"),
        (line(width=0.0001), "phase-range-not-covered"),
        (quick(1e-3), "change-too-fast"),
        (quick(1e3), "frames-far-apart"),
        (Record(picture(), dx=0.1, dt=1.0), "one-picture"),
        (Record(np.full((20, 40), 0.99) + 1e-3 * np.eye(20, 40), dx=0.1, dt=1.0, q=1.0), "no-interface"),
    ],
)
def test_each_trouble_is_named(record, code):
    found = inspect_record(record)
    (item,) = [item for item in found.findings if item.code == code]
    assert item.sentence.split(" ")[0] in str(found)


def test_uneven_times_undeclared_boundary_and_uneven_pixels_are_said():
    u = np.tanh(np.linspace(-2, 2, 40))[None, None] * np.ones((20, 30, 1))
    u = u + 0.01 * np.arange(20)[:, None, None] / 20
    text = str(inspect_record(Record(u, dx=(0.1, 0.2), times=np.arange(20) ** 1.5)))
    assert "pixel size 0.1 x 0.2, field of view 3 x 8" in text
    assert "frames at uneven times, from t = 0 to" in text
    assert "q: not given, a fit estimates it" in text
    assert "boundary: not declared, the movie is fitted as a window" in text


def test_missing_values_are_said():
    record = line()
    mask = np.ones(record.mesh, bool)
    mask[:20] = False
    found = inspect_record(record.replace(record.values, mask=mask))
    share = f"{100 * 20 / record.mesh[0]:.3g} % of the values are missing"
    assert f"{share}; the numbers below are of the others" in str(found)
    assert [item.code for item in found.findings] == ["values-missing"]


def test_no_default_support_is_said():
    found = inspect_record(line(frames=2))
    assert found.supports == ()
    assert found.refusal == found.findings[0].sentence
    assert "none of the default ones fits" in str(found)


def test_no_interface_is_said_in_words():
    found = inspect_record(line())
    assert "none detected" in str(replace(found, survey=replace(found.survey, interface_width=None, cells=None)))


def test_units_are_named_where_they_are_known(make_movie):
    record = make_movie((48, 48))
    known = Record(record.slab(), dx=0.05, dt=2.0, q=1.0, length_unit="um", time_unit="s")
    words = str(inspect_record(known))
    assert "pixel size 0.05 um, field of view 2.4 x 2.4 um" in words
    assert "one frame every 2 s, from t = 0 to 48 s" in words
    assert "diffusion coefficient q: 1 um^2/s" in words
    assert " um wide from u = -0.9 to 0.9" in words
    assert "field of view 1 x 1 (no unit is known)" in str(inspect_record(record))

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.observation import Survey, check_survey, survey
from doublewell.record import Record
from doublewell.record_findings import pace_findings, survey_findings, weak_mesh_findings
from doublewell.simulate import add_noise, initial_field, simulate

MODULE = sys.modules["doublewell.observation.look"]


@pytest.mark.parametrize("sd", [0.003, 0.03, 0.1])
def test_noise_level_within_two_percent(movie, sd) -> None:
    """The median of about 5e4 absolute values has a standard error of 0.6 %; four of them are 2.4 %."""
    assert survey(add_noise(movie, sd, seed=11)).noise == pytest.approx(sd, rel=0.024)


def test_clean_record_has_no_noise(movie) -> None:
    assert survey(movie).noise < 1e-6


@pytest.mark.parametrize("sd", [0.0, 0.03])
def test_interface_width_is_near_the_laws(movie, sd) -> None:
    record = add_noise(movie, sd, seed=5) if sd else movie
    seen = survey(record)
    planar = named_law("sixth").effective(0.05).interface_width()
    assert seen.interface_width == pytest.approx(planar, rel=0.35)
    assert seen.cells == pytest.approx(seen.interface_width * 64)


def test_width_of_a_tanh_profile_is_exact() -> None:
    x = np.arange(400) * 0.01
    u = np.tanh((x - 2.0) / 0.15)
    seen = survey(Record(np.stack([u] * 6), dx=0.01, dt=1.0))
    assert seen.interface_width == pytest.approx(2 * np.arctanh(0.9) * 0.15, rel=1e-3)


def test_histogram_and_coverage() -> None:
    u = np.tile(np.linspace(-1, 1, 2001), (5, 1))
    seen = survey(Record(u, dx=1.0, dt=1.0))
    assert sum(seen.histogram) == pytest.approx(1.0)
    assert seen.coverage == 1.0
    assert seen.interface_fraction == pytest.approx(0.9, abs=0.01)
    assert (seen.low, seen.high) == pytest.approx((-0.998, 0.998), abs=1e-3)
    pure = survey(Record(np.where(u > 0, 0.99, -0.99), dx=1.0, dt=1.0))
    assert pure.coverage == pytest.approx(0.1)
    assert pure.interface_width is None
    assert pure.cells is None


def test_few_frames_use_differences_in_space() -> None:
    u = 0.5 + 0.05 * np.random.default_rng(0).standard_normal((3, 64, 64))
    seen = survey(Record(u, dx=1.0, dt=1.0))
    assert seen.noise_method == "fourth differences in space"
    assert seen.noise == pytest.approx(0.05, rel=0.06)


def test_change_is_of_the_field(movie) -> None:
    still = movie.replace(np.repeat(movie.slab(0, 1), 31, axis=0))
    assert survey(still).change == 0.0
    assert survey(movie).change > 0.01


def test_constant_field_is_refused() -> None:
    with pytest.raises(InputError, match="the field is constant .u = 1 everywhere.: expected two phases"):
        survey(Record(np.ones((6, 8, 8)), dx=1.0, dt=1.0))


def test_too_small_to_measure_noise() -> None:
    with pytest.raises(InputError, match="2 frames of 4 cells are too few to measure noise: expected at least 9 cells"):
        survey(Record(np.arange(8.0).reshape(2, 4), dx=1.0, dt=1.0))


def test_constant_zero_has_no_sign() -> None:
    with pytest.raises(InputError, match="u = 0 everywhere"):
        survey(Record(np.full((6, 8, 8), -0.0), dx=1.0, dt=1.0))


def test_only_records_are_surveyed() -> None:
    with pytest.raises(InputError, match="expected a Record, got ndarray: wrap the field as Record"):
        survey(np.zeros((6, 8, 8)))


@pytest.mark.parametrize("frame", [0, 6, 30, 57, 60])
def test_every_frame_is_checked(frame) -> None:
    """Frames 6 and 57 lie between two looks of 12 times 5 frames."""
    u = np.tile(np.tanh(np.linspace(-3, 3, 40)), (61, 1))
    u[frame, 7] = np.nan
    with pytest.raises(InputError, match=rf"the first in frame {frame} at cell \(7,\)"):
        survey(Record(u, dx=0.1, dt=1.0))


class Stored:
    """An array that is read by slices and remembers the largest and the number of frames read."""

    def __init__(self, values) -> None:
        self.values, self.most, self.total = values, 0, 0
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, frames):
        out = self.values[frames]
        self.most, self.total = max(self.most, len(out)), self.total + len(out)
        return out


def test_stored_records_are_read_once_in_small_parts(monkeypatch) -> None:
    monkeypatch.setattr(MODULE, "_READ_BYTES", 8 * 2 * 50)
    u = np.tanh(np.linspace(-3, 3, 50) + np.linspace(0, 1, 200)[:, None])
    stored, seen = Stored(u), []
    assert survey(Record(stored, dx=0.1, dt=1.0), progress=lambda *at: seen.append(at)) == survey(
        Record(u, dx=0.1, dt=1.0)
    )
    assert stored.most == 2
    assert stored.total == 200
    assert seen[-1] == (200, 200)
    assert len(seen) == 12


def test_large_frames_are_sampled(movie, monkeypatch) -> None:
    """A sample of a twelfth of the pixels gives the same numbers within its own error (4 % for the noise)."""
    record = add_noise(movie, 0.05, seed=1)
    whole = survey(record)
    monkeypatch.setattr(MODULE, "_SAMPLE", 400)
    part = survey(record)
    assert part.noise == pytest.approx(whole.noise, rel=0.08)
    assert part.noise != whole.noise
    assert part.interface_width == pytest.approx(whole.interface_width, rel=0.05)
    assert part.histogram == whole.histogram


def test_one_phase_and_noise_show_no_interface() -> None:
    noise = np.random.default_rng(0).standard_normal((30, 40, 40))
    drift = np.broadcast_to(0.9 + 0.001 * np.arange(30.0)[:, None, None], noise.shape)
    for u in (1.0 + 0.01 * noise, 1.0 + 0.1 * noise, 0.3 * noise, 0.9 + 1e-9 * noise, drift):
        seen = survey(Record(u, dx=0.025, dt=1.0))
        assert seen.cells is None
        assert "no-interface" in codes(seen)
    drop = 0.3 * noise + np.where(np.hypot(*np.mgrid[-20:20, -20:20]) < 5, 1.0, -1.0)
    assert survey(Record(drop, dx=0.025, dt=1.0)).cells is not None


def test_coverage_is_of_the_odd_force() -> None:
    """Values in [-1, 0] determine an odd force everywhere; bulk hides no visited value."""
    half = np.tile(np.linspace(-1, 0, 2001), (6, 1))
    assert survey(Record(half, dx=1.0, dt=1.0)).coverage == 1.0
    thin = np.tile(np.concatenate([np.linspace(-0.95, 0.95, 190), np.full(10**6, 0.95)]), (6, 1))
    assert survey(Record(thin, dx=1.0, dt=1.0)).coverage == 1.0
    gap = np.tile(np.concatenate([np.linspace(-1, -0.5, 1000), np.linspace(0.5, 1, 1000)]), (6, 1))
    seen = survey(Record(gap, dx=1.0, dt=1.0))
    assert seen.coverage == 0.5
    assert seen.visited == (True,) * 5 + (False,) * 10 + (True,) * 5


def codes(seen: Survey) -> list[str]:
    return [item.code for item in survey_findings(seen)]


def test_a_good_record_has_no_findings(movie, noisy) -> None:
    assert codes(survey(movie)) == codes(survey(noisy)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda u: (u + 1) / 2,
            r"the phase -1 is not reached .the values end at .*; for a picture from 0 to 1, 2 u - 1 is right$",
        ),
        (
            lambda u: u + 0.3,
            r"values reach 1.2., beyond the pure phases at -1 and .1: check .*; \(u - 0.\d+\) / 0.99 takes",
        ),
        (lambda u: 0.5 * u, r"the phase .1 is not reached .the values end at -?0.49.*; u / 0.5 takes"),
        (
            lambda u: 127.5 * (u + 1),
            r"which are not phase values: .*; for a picture from 0 to 255, 2 u / 255 - 1 is right",
        ),
        (lambda u: 100 * u, r"values run from -1\d\d to 1?\d\d.*, which are not phase values: rescale"),
        (lambda u: np.repeat(u[:1], 31, axis=0), "the picture hardly changes from first to last: record longer"),
        (
            lambda u: (np.sign(u) * (1 - 0.4 * (np.abs(u) < 0.5)))[:, ::2, ::2],
            "pixels: too few for any fit; use a higher",
        ),
        (lambda u: u[:, ::2, ::2], r"spans \d.\d pixels; 9 or more are better"),
        (
            lambda u: 0.6 + 0.4 * u,
            r"only 80 % of the phase range is visited: for .u. from 0 to 0.2 the law is not measured",
        ),
        (
            lambda u: u + 0.15 * np.random.default_rng(0).standard_normal(u.shape),
            r"the noise is strong .0.15; the phases are 2 apart.: average pixels or frames",
        ),
    ],
)
def test_each_trouble_is_noted(movie, change, words) -> None:
    record = Record(change(movie.slab()), dx=1 / 64, dt=1e-4)
    notes = [str(item) for item in survey_findings(survey(record))]
    assert any(re.search(words, note) for note in notes), notes


def test_a_scale_that_noise_hides_gets_no_formula(movie) -> None:
    seen = replace(survey(movie), low=-0.2, high=0.2, noise=0.1)
    assert str(next(survey_findings(seen))).endswith("(the values end at 0.2): check the scale of the picture")


def spinodal(frames: int, noise: float = 0.0) -> Record:
    start = initial_field("spinodal", (32, 32), 1 / 32, epsilon=0.05, seed=1)
    film = simulate(named_law("sixth"), start, dx=1 / 32, dt=2e-4, frames=frames, epsilon=0.05)
    return add_noise(film, noise, seed=2) if noise else film


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("frames", [13, 31])
def test_a_spinodal_movie_that_ends_early_should_be_longer(frames, noise) -> None:
    found = next(survey_findings(survey(spinodal(frames, noise))))
    assert found.code == "phases-still-forming"
    assert "takes its values" not in str(found)


def test_a_spinodal_movie_from_0_to_1_needs_another_scale() -> None:
    film = spinodal(61)
    first = next(survey_findings(survey(film.replace((film.slab() + 1) / 2))))
    assert first.advice.endswith("for a picture from 0 to 1, 2 u - 1 is right")
    assert "phases-still-forming" not in codes(survey(film))


def test_two_phases_at_half_scale_are_no_short_movie(movie) -> None:
    first = next(survey_findings(survey(movie.replace(0.5 * movie.slab()))))
    assert "u / 0.5 takes its values to -1 and +1" in first.advice


def test_growth_is_that_of_the_contrast() -> None:
    x = np.linspace(0, 2 * np.pi, 100)
    u = np.exp(np.linspace(0, 1, 61))[:, None] * 0.1 * np.sin(x)
    seen = survey(Record(u, dx=0.1, dt=1.0))
    assert seen.growth == pytest.approx(np.exp((58 - 27) / 60), rel=1e-3)  # the sixth look is around frame 27


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_pace_is_q_for_diffusion(noise) -> None:
    """A decaying cosine has u_t = q Laplacian u; over the record the change is a little less than the first rate."""
    x = (np.arange(64) + 0.5) / 64
    t = np.linspace(0, 0.01, 31)
    rate = 3.0 * np.pi**2
    u = np.exp(-rate * t)[:, None, None] * np.cos(np.pi * x)[:, None] * np.ones(64)
    u = u + noise * np.random.default_rng(0).standard_normal(u.shape)
    assert survey(Record(u, dx=1 / 64, times=t)).pace == pytest.approx(3.0, rel=0.1)


def test_pace_is_not_given_where_noise_hides_it() -> None:
    still = np.tanh(np.linspace(-3, 3, 64)) + 0.05 * np.random.default_rng(0).standard_normal((31, 64))
    assert survey(Record(still, dx=0.1, dt=1.0)).pace is None


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize(("factor", "expected"), [(1.0, []), (1e-3, ["change-too-fast"]), (1e3, ["frames-far-apart"])])
def test_a_wrong_unit_of_time_is_named(movie, noise, factor, expected) -> None:
    film = add_noise(movie, noise, seed=3) if noise else movie
    record = Record(film.slab(), dx=film.dx, dt=factor * film.dt, q=1.0)
    assert [item.code for item in pace_findings(survey(record), 1.0, record.dt)] == expected
    assert list(pace_findings(survey(record), None, record.dt)) == []


def test_what_few_pixels_cost_the_weak_reading(movie) -> None:
    coarse = survey(Record(movie.slab()[:, ::2, ::2], dx=1 / 32, dt=1e-4))
    assert [item.code for item in weak_mesh_findings(coarse)] == ["weak-mesh-coarse"]
    assert codes(coarse) == ["interface-few-cells"]
    assert list(weak_mesh_findings(survey(movie))) == []


def test_findings_are_in_the_units_of_the_record(movie) -> None:
    """A movie between 0 and 1 is judged as the same one between -1 and +1, and its own values are quoted."""
    seen = survey(movie)
    low = replace(seen, low=-0.5)
    moved = replace(low, noise=0.5 * low.noise, low=0.25, high=0.5 + 0.5 * low.high, change=0.5 * low.change)
    (item,) = survey_findings(moved, (0.0, 1.0))
    assert (item.code, item.sentence) == ("phase-not-reached", "the phase 0 is not reached (the values end at 0.25)")
    assert [found.code for found in survey_findings(low)] == ["phase-not-reached"]


def test_unseen_ranges_are_joined() -> None:
    gap = np.tile(np.concatenate([np.linspace(-1, -0.5, 1000), np.linspace(0.5, 1, 1000)]), (6, 1))
    assert survey(Record(gap, dx=1.0, dt=1.0)).unseen == ((0.0, 0.5),)
    seen = replace(survey(Record(gap, dx=1.0, dt=1.0)), histogram=(0.0, 0.5) * 10)
    assert seen.unseen == ()  # the mirror images fill the gaps
    ring = replace(seen, histogram=(0.0,) * 13 + (0.5, 0.5) + (0.0,) * 5)
    assert ring.unseen == ((0.0, 0.3), (0.5, 1.0))


def test_values_that_are_no_phases_are_refused(movie) -> None:
    with pytest.raises(InputError, match="phase values run from .*: expected the pure phases at -1 and .1"):
        check_survey(survey(movie.replace(100 * movie.slab())))


@pytest.mark.parametrize("cells", [10.0, 16.0])
def test_thermal_noise_does_not_narrow_an_interface(cells) -> None:
    """Noise that is correlated over some pixels and frames, as strong as that of block spins."""
    from scipy.ndimage import gaussian_filter

    rng, x = np.random.default_rng(3), np.arange(64) - 31.5
    flat = np.tanh(2.0 * np.arctanh(0.9) / cells * (16.0 - np.abs(x)))[:, None] * np.ones(64)
    noise = gaussian_filter(rng.standard_normal((31, 64, 64)), (0.5, 0.6, 0.6), mode="wrap")
    seen = survey(Record(flat + 0.35 / np.std(noise) * noise, dx=1.0, dt=1.0, boundary="periodic"))
    assert seen.cells == pytest.approx(cells, rel=0.25)
    assert survey(Record(np.stack([flat] * 31), dx=1.0, dt=1.0)).cells == pytest.approx(cells, rel=0.02)


@pytest.mark.parametrize("shape", ["strip", "drop"])
def test_a_sharp_interface_in_noise_stays_sharp(shape) -> None:
    x = np.arange(64) - 31.5
    inside = np.hypot(x[:, None], x) < 20.0 if shape == "drop" else np.abs(x)[:, None] + 0.0 * x < 16.0
    u = np.where(inside, 1.0, -1.0)
    noisy = u + 0.3 * np.random.default_rng(4).standard_normal((31, 64, 64))
    seen = survey(Record(noisy, dx=1.0, dt=1.0, boundary="periodic"))
    assert seen.cells is not None
    assert seen.cells < 2.5

from __future__ import annotations

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise
from doublewell.survey import survey


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
    assert seen.interface_share == pytest.approx(0.9, abs=0.01)
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
    with pytest.raises(InputError, match="2 frames of 4 cells are too few to measure noise: record at least 5 frames"):
        survey(Record(np.arange(8.0).reshape(2, 4), dx=1.0, dt=1.0))

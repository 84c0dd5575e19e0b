from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.identify import identify as identify_any
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import validate

identify = partial(identify_any, method="weak")


def test_clean_law_follows_the_movie(movie) -> None:
    check = validate(identify(movie), movie)
    assert check.error[0] == 0.0
    assert check.error.shape == check.times.shape == (31,)
    assert check.error.max() < 1e-4
    assert check.noise_floor < 1e-6
    assert check.predicted.frames == 31
    assert "evolved 30 frames from frame 0" in str(check)


def test_a_wrong_law_is_seen(movie) -> None:
    other = simulate(named_law("bernstein3"), movie.slab(0, 1)[0], dx=1 / 64, dt=1e-4, frames=31, epsilon=0.04)
    assert validate(identify(other), movie).error[-1] > 100 * validate(identify(movie), movie).error[-1]


def test_held_out_frames(movie) -> None:
    noisy = add_noise(movie, 0.01, seed=4)
    check = validate(identify(noisy.clip(0, 25)), movie, start=25)
    assert check.start == 25
    assert check.times[0] == movie.times[25]
    assert check.error[-1] < 1e-3


def test_noise_floor_is_what_noise_makes(movie) -> None:
    noisy = add_noise(movie, 0.05, seed=3)
    check = validate(identify(noisy), noisy)
    assert check.noise_floor == pytest.approx(0.05 / np.sqrt(np.mean(noisy.slab(30, 31) ** 2)), rel=0.03)
    assert check.noise_floor * 0.9 < check.error[-1] < check.noise_floor * 1.6


def test_another_mesh_and_boundary(movie) -> None:
    """A law recovered on a periodic square is used on a Neumann interval."""
    start = initial_field("circle", (80,), 1 / 80, epsilon=0.05, boundary="neumann")
    line = simulate(named_law("sixth"), start, dx=1 / 80, dt=1e-4, frames=11, epsilon=0.05, boundary="neumann")
    assert validate(identify(movie), line).error.max() < 1e-3


def test_wrong_use(movie) -> None:
    result = identify(movie)
    with pytest.raises(InputError, match="declares no boundary, so it cannot be evolved: pass boundary= to Record"):
        validate(result, Record(movie.values, dx=1 / 64, dt=1e-4, q=1.0))
    with pytest.raises(InputError, match="no diffusion coefficient"):
        validate(result, Record(movie.values, dx=1 / 64, dt=1e-4, boundary="periodic"))
    with pytest.raises(InputError, match="start is 30: expected a frame from 0 to 29"):
        validate(result, movie, start=30)

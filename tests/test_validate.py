from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.identify import identify as identify_any
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import replay, validate

identify = partial(identify_any, method="weak")


def test_clean_law_follows_the_movie(movie) -> None:
    check = validate(identify(movie), movie)
    assert check.error[0] == 0.0
    assert check.error.shape == check.times.shape == (31,)
    assert check.error.max() < 1e-4
    assert check.noise_floor.shape == (31,)
    assert check.noise_floor.max() < 1e-6
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
    sizes = np.sqrt(np.mean(noisy.slab() ** 2, axis=(1, 2)))
    assert np.allclose(check.noise_floor, 0.05 / sizes, rtol=0.03)
    assert check.noise_floor[-1] * 0.9 < check.error[-1] < check.noise_floor[-1] * 1.6


def test_noise_is_that_of_the_validated_record(movie) -> None:
    noisy = add_noise(movie, 0.05, seed=3)
    clean_law, noisy_law = identify(movie), identify(noisy)
    assert validate(clean_law, noisy).noise_floor[-1] == pytest.approx(0.058, rel=0.05)
    assert validate(noisy_law, movie).noise_floor.max() < 1e-6


def test_a_zero_frame_has_a_finite_error(movie) -> None:
    values = np.array(movie.values)
    values[7] = 0.0
    check = validate(identify(movie), movie.replace(values))
    assert np.all(np.isfinite(check.error))
    assert np.all(np.isfinite(check.noise_floor))
    assert check.error[7] == check.error.max() > 0.9
    assert "% at most" not in str(check)
    assert re.search(r"error 0.\S+ % \(noise alone makes \S+ %\) at the last frame, .* at most \(frame 7\)", str(check))


def test_another_mesh_and_boundary(movie) -> None:
    """A law recovered on a periodic square is used on a Neumann interval."""
    start = initial_field("circle", (80,), 1 / 80, epsilon=0.05, boundary="neumann")
    line = simulate(named_law("sixth"), start, dx=1 / 80, dt=1e-4, frames=11, epsilon=0.05, boundary="neumann")
    assert validate(identify(movie), line).error.max() < 1e-3


def test_wrong_use(movie) -> None:
    result = identify(movie)
    with pytest.raises(
        InputError,
        match="declares no boundary, so it cannot be evolved: pass boundary='periodic' or 'neumann' with the record",
    ):
        validate(result, Record(movie.values, dx=1 / 64, dt=1e-4, q=1.0))
    with pytest.raises(InputError, match="no diffusion coefficient"):
        validate(result, Record(movie.values, dx=1 / 64, dt=1e-4, boundary="periodic"))
    for start, shown in ((30, "30"), (-1, "-1"), (1.5, "1.5"), (None, "None"), ("a", "'a'"), (True, "True")):
        with pytest.raises(InputError, match=f"start is {shown}: expected a frame from 0 to 29"):
            validate(result, movie, start=start)
    with pytest.raises(InputError, match="expected a Result and a Record, got Record and Result: call validate"):
        validate(movie, result)


def test_missing_values_are_not_compared(movie) -> None:
    mask = np.ones(movie.shape, bool)
    mask[5:, 20:30, 20:30] = False
    mask[9] = False
    holed = movie.replace(np.where(mask, movie.slab(), np.nan), mask=mask)
    law = identify(movie)
    check = validate(law, holed)
    assert check.error.max() < 1e-4
    assert check.error[9] == 0.0
    text = (
        "frame 5 has missing values, and the law is evolved from it: expected a complete frame; pass start= the number"
    )
    with pytest.raises(InputError, match=re.escape(text)):
        validate(law, holed, start=5)


@pytest.fixture(scope="module")
def fitted():
    """A noisy movie that the trajectory fit fits fast, and the result."""
    start = initial_field("nonconvex", (24, 24), 1 / 24, epsilon=0.12)
    clean = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=13, epsilon=0.12)
    noisy = add_noise(clean, 0.05, seed=5)
    return clean, noisy, identify_any(noisy, law=1, check=False)


def test_the_fit_evolved_again_leaves_the_noise_found(fitted) -> None:
    clean, noisy, result = fitted
    fit = result.diagnostics.likelihood
    again = replay(result, noisy)
    assert again.origin == "fitted initial field"
    assert "from the fitted initial field" in str(again)
    rest = noisy.slab() - again.predicted.slab()
    freedom = rest.size - rest[0].size - 2
    assert np.sqrt(np.sum(rest**2) / freedom) == pytest.approx(fit.noise, rel=1e-3)
    assert np.sqrt(np.mean(rest**2, axis=(1, 2))) == pytest.approx(fit.residual_frames, rel=1e-2)
    gap = np.mean((again.predicted.slab() - clean.slab()) ** 2, axis=(1, 2))
    begun = np.mean((validate(result, noisy).predicted.slab() - clean.slab()) ** 2, axis=(1, 2))
    assert np.all(gap[1:] < 0.5 * begun[1:])  # one noisy frame is a worse start than all of them


def test_a_replay_needs_the_fit_and_its_record(fitted, movie) -> None:
    result = fitted[2]
    with pytest.raises(InputError, match=re.escape("use validate, which begins with an observed frame")):
        replay(identify(movie), movie)
    with pytest.raises(InputError, match=re.escape("shape (24, 24) and the record the mesh (64, 64)")):
        replay(result, movie)

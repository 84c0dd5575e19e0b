"""Noise: its level, its correlation, and that a seed decides it."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.record import Record
from doublewell.simulate import add_noise

CLEAN = Record(np.zeros((40, 64, 64)), dx=1 / 64, dt=0.1, q=2.0, boundary="neumann")


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.5, 3.0])
def test_level_is_the_same_at_every_pixel(correlation):
    noise = add_noise(CLEAN, 0.03, seed=1, correlation=correlation).slab()
    assert noise.std() == pytest.approx(0.03, rel=0.03)
    assert abs(noise.mean()) < 0.03 * (1 + 4 * correlation) / np.sqrt(40) / 64 * 5
    for border in (noise[:, 0], noise[:, -1], noise[:, :, 0], noise[:, :, -1]):
        assert border.std() == pytest.approx(0.03, rel=0.1)


@pytest.mark.parametrize("correlation", [1.5, 3.0])
@pytest.mark.parametrize("axis", [1, 2])
def test_pixels_correlate_over_the_stated_length(correlation, axis):
    noise = np.moveaxis(add_noise(CLEAN, 1.0, seed=2, correlation=correlation).slab(), axis, -1)
    for r in (1, 2, 4):
        seen = np.mean(noise[..., r:] * noise[..., :-r]) / np.mean(noise**2)
        assert seen == pytest.approx(np.exp(-(r**2) / (4 * correlation**2)), abs=0.03)


def test_white_noise_and_frames_do_not_correlate():
    noise = add_noise(CLEAN, 1.0, seed=3).slab()
    assert abs(np.mean(noise[..., 1:] * noise[..., :-1])) < 0.01
    smooth = add_noise(CLEAN, 1.0, seed=3, correlation=2.0).slab()
    assert abs(np.mean(smooth[1:] * smooth[:-1])) < 0.03


@pytest.mark.parametrize("correlation", [0.0, 1.5])
def test_a_seed_decides_the_noise(correlation):
    noise = add_noise(CLEAN, 0.1, seed=4, correlation=correlation).slab()
    np.testing.assert_array_equal(noise, add_noise(CLEAN, 0.1, seed=4, correlation=correlation).slab())
    again = add_noise(CLEAN, 0.1, seed=np.random.default_rng(4), correlation=correlation)
    np.testing.assert_array_equal(noise, again.slab())
    short = add_noise(CLEAN.clip(0, 5), 0.1, seed=4, correlation=correlation)
    np.testing.assert_array_equal(noise[:5], short.slab())
    assert np.abs(noise - add_noise(CLEAN, 0.1, seed=5, correlation=correlation).slab()).max() > 0.1


def test_the_record_keeps_its_metadata_and_the_field():
    clean = Record(np.linspace(-1, 1, 40).reshape(4, 10), dx=0.1, times=[0, 1, 2, 5], q=2.0, boundary="periodic")
    noisy = add_noise(clean, 1e-9, seed=1, correlation=1.0)
    assert (noisy.dx, noisy.q, noisy.boundary) == (clean.dx, clean.q, clean.boundary)
    np.testing.assert_array_equal(noisy.times, clean.times)
    np.testing.assert_allclose(noisy.slab(), clean.slab(), atol=1e-8)
    np.testing.assert_array_equal(add_noise(clean, 0.0, seed=1).slab(), clean.slab())
    assert clean.slab()[0, 0] == -1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sd": -0.1}, "sd is -0.1: expected the standard deviation of the noise, a number of at least 0"),
        ({"sd": np.nan}, "sd is nan: expected the standard deviation"),
        ({"correlation": -1.0}, "correlation is -1: expected a length in cells, a number of at least 0"),
        ({"sd": "a"}, "sd is 'a': expected the standard deviation"),
        ({"seed": None}, "seed is None: expected an integer of at least 0 or a numpy Generator, to make the noise"),
        ({"seed": -1}, "seed is -1: expected an integer"),
        ({"seed": 1.5}, "seed is 1.5: expected an integer"),
        ({"seed": "a"}, "seed is 'a': expected an integer"),
        ({"seed": True}, "seed is True: expected an integer"),
    ],
)
def test_wrong_noise_says_what_was_expected(change, message):
    settings = {"sd": 0.1, "seed": 1} | change
    with pytest.raises(InputError, match=message):
        add_noise(CLEAN, settings.pop("sd"), **settings)


def test_only_a_record_takes_noise():
    with pytest.raises(InputError, match=r"record is a ndarray: expected a Record; make one with Record\(u, dx=, dt="):
        add_noise(CLEAN.slab(), 0.1, seed=1)


def test_a_generator_goes_on_where_it_is():
    rng = np.random.default_rng(3)
    first = add_noise(CLEAN, 0.1, seed=rng).slab()
    np.testing.assert_array_equal(first, add_noise(CLEAN, 0.1, seed=3).slab())
    assert np.abs(add_noise(CLEAN, 0.1, seed=rng).slab() - first).max() > 0.1

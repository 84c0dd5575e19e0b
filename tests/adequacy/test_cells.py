"""Cells: calibrated under noise, bad pixels found and told from spikes and from noise that differs by phase."""

from __future__ import annotations

import numpy as np
import pytest
from found import sentence
from scipy.stats import binom

from doublewell.adequacy.statistics import cells_of, cells_test, peel

FRAMES, CELLS = 20, (24, 24)
ALL = np.ones(FRAMES, dtype=bool)
NONE = np.zeros(CELLS, dtype=bool)


def noise(seed, shape=(FRAMES, *CELLS)):
    return np.random.default_rng(seed).standard_normal(shape)


def place(test):
    return tuple(int(i) for i in np.argwhere(test.far)[0])


@pytest.mark.parametrize("shape", [(20, 24, 24), (12, 64), (7, 8, 8, 8)])
def test_the_chance_of_the_rarest_cell_is_no_smaller_than_it_says(shape):
    free, out = np.ones(shape[0], dtype=bool), np.zeros(shape[1:], dtype=bool)
    chances = np.array([cells_of(noise(seed, shape), free, out).rarest for seed in range(200)])
    for level in (0.05, 0.01):
        assert np.sum(chances < level) <= binom.isf(1e-4, len(chances), level)
    assert not any(cells_of(noise(seed, shape), free, out).far.any() for seed in range(50))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r + 2.5, "(5, 7) is off by +2."),
        (lambda r: r - 30.0, "(5, 7) is off by -3"),
        (lambda r: 6.0 * r, "(5, 7) flickers by "),
    ],
)
def test_a_bad_pixel_is_found_and_described(change, words):
    r = noise(1)
    r[:, 5, 7] = change(r[:, 5, 7])
    cells = cells_of(r, ALL, NONE)
    assert np.argwhere(cells.far).tolist() == [[5, 7]]
    test = cells_test(cells, cells.far, 1.5)
    assert test.p < 1e-6
    assert sentence(test).startswith(f"1 cell stands out, a bad pixel: {words}")
    assert (test.name, test.shift, len(test.estimate)) == ("cells", 1.5, 1)


def test_a_spike_is_no_bad_pixel():
    r = noise(2)
    r[4, 5, 7] += 40.0
    cells = cells_of(r, ALL, NONE)
    assert not cells.far.any()
    assert cells.rarest > 1e-3
    assert sentence(cells_test(cells, NONE, None)).startswith("no single cell stands out, the most at (")


@pytest.mark.parametrize("seed", range(5))
def test_noise_that_differs_by_phase_makes_no_bad_pixel(seed):
    level = np.where(np.hypot(*np.mgrid[-12:12, -12:12]) < 5, 3.0, 1.0)
    assert not cells_of(level * noise(seed), ALL, NONE).far.any()


def test_frames_that_the_fit_takes_do_not_count():
    r = noise(3)
    r[:3, 5, 7] += 50.0
    assert cells_of(r, ALL, NONE).p[5, 7] < cells_of(r, np.arange(FRAMES) > 2, NONE).p[5, 7]


def test_cells_left_out_say_nothing():
    r = noise(4)
    r[:, 5, 7] += 9.0
    out = NONE.copy()
    out[5, 7] = True
    assert not cells_of(r, ALL, out).far.any()


def bent(out):
    """A fit that a bad cell bends at its neighbours, until it is left out."""
    r = noise(5)
    if not out[5, 7]:
        r[:, 5, 7] += 30.0
        r[:, 4:7, 7] += 6.0
    return cells_of(np.where(out, 0.0, r), ALL, out)


def test_neighbours_that_the_fit_bends_are_not_blamed():
    first = bent(NONE)
    assert np.count_nonzero(first.far) == 3
    assert np.argwhere(peel(first, bent)).tolist() == [[5, 7]]


def test_many_cells_are_no_bad_pixels():
    def broken(out):
        r = noise(6)
        r[:, ::5, ::5] += 8.0
        return cells_of(np.where(out, 0.0, r), ALL, out)

    first = broken(NONE)
    assert peel(first, broken) is None
    assert sentence(cells_test(first, None, None)).startswith("25 of 576 cells stand out, the most at (")


def test_several_bad_pixels_are_listed_and_then_counted():
    r = noise(7)
    for k in range(7):
        r[:, 2 * k, 3 * k] += 10.0 + k
    cells = cells_of(r, ALL, NONE)
    words = sentence(cells_test(cells, cells.far, 0.0))
    assert words.startswith("7 cells stand out, bad pixels: (12, 18) is off by +16, (")
    assert "(10, 15) is off by +15, " in words
    assert words.endswith(" and 2 more")


def test_rounds_that_do_not_end_find_nothing():
    assert peel(bent(NONE), lambda _: bent(NONE)) is None

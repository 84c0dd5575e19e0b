"""Residuals that are not noise: their evidence counts less, and bands say so."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.likelihood.batch import excess
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

MESH = {"dx": 1 / 32, "dt": 4e-4, "frames": 21, "epsilon": 0.08}


@pytest.mark.parametrize(("frames", "count"), [(2, 3), (11, 14), (61, 2), (61, 9)])
def test_scores_of_noise_are_no_excess(frames, count) -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        scores = rng.standard_normal((frames, count)) / np.sqrt(frames)
        assert excess(scores - scores.mean(axis=0)) == 1.0


def test_scores_that_persist_are_an_excess() -> None:
    """A slow wave of rms 2 in units of the noise: its frames are not independent, and count as a few."""
    rng, t = np.random.default_rng(8), np.linspace(0.0, 1.0, 61)
    slow = np.sqrt(2.0) * np.cos(2 * np.pi * t)[:, None] * np.array([2.0, 2.0, 2.0]) / np.sqrt(61)
    found = excess(rng.standard_normal((61, 3)) / np.sqrt(61) + slow)
    assert 10.0 < found < 60.0  # 1 + 4, times the frames that agree


@pytest.fixture(scope="module")
def movie() -> Record:
    start = initial_field("circle", (32, 32), 1 / 32, epsilon=0.08)
    return add_noise(simulate(named_law("sixth"), start, **MESH), 0.01, seed=11)


def test_a_wrong_model_has_wider_bands(movie) -> None:
    u = np.linspace(-1.0, 1.0, 101)
    good = identify(movie, check=False)
    wrong = identify(
        Record(movie.slab(), dx=1 / 32, dt=4e-4, q=1.1, boundary="periodic", origin="simulation"), check=False
    )
    numbers = [result.diagnostics.likelihood for result in (good, wrong)]
    assert numbers[0].excess == 1.0
    assert numbers[1].excess > 1.0
    sizes = [np.linalg.norm(np.subtract(*result.band("force", u))) for result in (good, wrong)]
    assert sizes[1] > 1.2 * sizes[0]

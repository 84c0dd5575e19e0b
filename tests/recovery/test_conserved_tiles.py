"""Cahn-Hilliard in tiles, each a window with a border of six cells."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.options import Trajectory
from doublewell.simulate import add_noise, simulate

BUDGET = Trajectory(memory=952_600_000)  # tiles of 24 x 48
EPSILON, LAW = 2.5, named_law("quartic")
U = np.linspace(-1.0, 1.0, 201)


def movie(dynamics: str, interval: float):
    x, y = np.meshgrid(*[np.arange(48) - 24.0] * 2, indexing="ij")
    start = np.tanh((12.0 + 3.5 * np.cos(4 * np.arctan2(y, x)) - np.hypot(x, y)) / (np.sqrt(2) * EPSILON))
    times = {"dx": 1.0, "dt": interval, "frames": 9}
    return add_noise(simulate(LAW, start, **times, epsilon=EPSILON, dynamics=dynamics, substeps=120), 0.01, seed=1)


def test_the_law_and_its_phases_are_found_in_tiles() -> None:
    result = identify(movie("cahn-hilliard", 10.0), dynamics="cahn-hilliard", law=0, method=BUDGET, check=False)
    assert result.resolved.tiled
    assert len(result.agreements) == 2
    true = LAW.effective(EPSILON).force(U)
    low, high = result.band("force", U, level=0.9999)
    assert np.all((low < true) & (true < high))
    assert np.linalg.norm(result.force(U) - true) < 0.03 * np.linalg.norm(true)
    for name, phase in (("low", -1.0), ("high", 1.0)):
        ends = result.interval(name, level=0.9999)
        assert ends[0] < phase < ends[1]


def test_a_mean_that_no_tile_sees_is_refused() -> None:
    record = movie("mass-conserving", 1.0)
    with pytest.raises(InputError, match="mass-conserving cannot be fitted in tiles, each a window"):
        identify(record, dynamics="mass-conserving", method=BUDGET)

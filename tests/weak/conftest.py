"""A small noisy movie, in memory and on disk, and plans of many slabs for it."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.io import open_record, save
from doublewell.law import named_law
from doublewell.simulate import initial_field, simulate
from doublewell.weak import stream as plan_module


@pytest.fixture(scope="session")
def long_movie():
    start = initial_field("circle", (40, 48), 1 / 40, epsilon=0.05)
    clean = simulate(named_law("quartic"), start, dx=1 / 40, dt=2e-4, frames=64, epsilon=0.05)
    return clean.replace(clean.slab() + 0.01 * np.random.default_rng(1).standard_normal(clean.shape))


@pytest.fixture(scope="session")
def movie_path(long_movie, tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "movie.zarr"
    save(long_movie, path)
    return path


@pytest.fixture
def stored(movie_path):
    return open_record(movie_path)


@pytest.fixture
def many_slabs(monkeypatch):
    """Let plans have slabs of one halo: six for the movie."""
    monkeypatch.setattr(plan_module, "_HALOS", 1)
    monkeypatch.setattr(plan_module, "_SLAB_BYTES", 1)

"""Shared records: small, made by CNAB2, never by a stepper that an estimator uses."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import settings

from doublewell.law import named_law
from doublewell.record import Record
from doublewell.runtime import leave_room
from doublewell.simulate import add_noise, initial_field, simulate

settings.register_profile("project", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("project")


@pytest.fixture(scope="module", autouse=True)
def room_for_programs():
    """Let no module begin with so many compiled programs that the next could crash the process."""
    yield
    if "jax" in sys.modules:
        leave_room()


@pytest.fixture(scope="session")
def movie() -> Record:
    """A clean movie of the sixth law: 31 frames of 64 x 64, epsilon 0.05."""
    start = initial_field("nonconvex", (64, 64), 1 / 64, epsilon=0.05)
    return simulate(named_law("sixth"), start, dx=1 / 64, dt=1e-4, frames=31, epsilon=0.05)


@pytest.fixture(scope="session")
def noisy(movie: Record) -> Record:
    return add_noise(movie, 0.02, seed=7)


@pytest.fixture(scope="session")
def small() -> Record:
    """The movie for trajectory fits, of a shape that tests share to compile little: 25 noisy frames of 32 x 32."""
    start = initial_field("circle", (32, 32), 1 / 32, epsilon=0.08)
    movie = simulate(named_law("quartic"), start, dx=1 / 32, dt=4e-4, frames=25, epsilon=0.08)
    return add_noise(movie, 0.02, seed=1)


def rough(shape: tuple[int, ...], seed: int = 0, size: float = 0.7, **metadata: float) -> Record:
    """A record without any dynamics, for tests of pure algebra."""
    u = size * np.random.default_rng(seed).standard_normal(shape)
    return Record(u, **({"dx": 0.02, "dt": 0.1, "q": 1.0} | metadata))


@pytest.fixture(scope="session")
def make_rough():
    return rough

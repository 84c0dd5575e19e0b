"""Records for adequacy, made by CNAB2: 21 frames of 32 x 32, epsilon 0.1, noise 0.03."""

from __future__ import annotations

import numpy as np
import pytest
from readings import read_trajectory

from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON, NOISE, DT = 0.1, 0.03, 5e-4
START = np.array([120.0, 140.0, 160.0])


def fitted(record):
    found = read_trajectory(record, START[:1] if len(record.mesh) == 1 else START)
    assert found.status.converged
    return found


def movie(*, boundary="periodic", moved=False):
    start = initial_field("nonconvex", (32, 32), 1 / 32, epsilon=EPSILON)
    start = np.roll(start, (12, 11), axis=(0, 1)) if moved else start
    return simulate(named_law("sixth"), start, dx=1 / 32, dt=DT, frames=21, epsilon=EPSILON, boundary=boundary)


def shifted(u, speed):
    """Shift each frame by speed t along x through its Fourier modes."""
    waves = 2j * np.pi * np.fft.rfftfreq(u.shape[-1], 1 / 32)
    modes = np.fft.rfft(u, axis=-1) * np.exp(-waves * speed * DT * np.arange(len(u))[:, None])[:, None, :]
    return np.fft.irfft(modes, n=u.shape[-1], axis=-1)


@pytest.fixture(scope="session")
def fit_of():
    return fitted


@pytest.fixture(scope="session")
def drop():
    return movie


@pytest.fixture(scope="session")
def shift():
    return shifted


@pytest.fixture(scope="session")
def clean():
    return movie()


@pytest.fixture(scope="session")
def noisy(clean):
    return add_noise(clean, NOISE, seed=3)


@pytest.fixture(scope="session")
def fit(noisy):
    return fitted(noisy)

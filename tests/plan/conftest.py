import numpy as np
import pytest

from doublewell.law import named_law
from doublewell.plan import Experiment, experiment_information
from doublewell.simulate import initial_field


def make(law="sixth", *, geometry="nonconvex", cells=24, frames=13, dt=5e-4, noise=0.03, **options):
    """A small experiment: epsilon 0.1, one length unit wide."""
    boundary = options.get("boundary", "periodic")
    start = initial_field(geometry, (cells, cells), 1 / cells, epsilon=0.1, boundary=boundary)
    return Experiment(named_law(law), start, dx=1 / cells, dt=dt, frames=frames, noise=noise, epsilon=0.1, **options)


@pytest.fixture(scope="session")
def experiment():
    return make


@pytest.fixture(scope="session")
def small():
    return make()


@pytest.fixture(scope="session")
def known(small):
    return experiment_information(small)


@pytest.fixture(scope="session")
def line():
    """One axis of 32 cells, nine frames: small enough for dense Jacobians."""
    x = np.arange(32) / 32
    start = 0.9 * np.tanh((0.25 - np.abs(x - 0.5)) / 0.14)
    return Experiment(named_law("sixth"), start, dx=1 / 32, dt=1e-3, frames=9, noise=0.03, epsilon=0.1)

import pytest

from doublewell.baselines import compare
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON = 0.1


@pytest.fixture(scope="session")
def truth():
    return named_law("sixth").effective(EPSILON)


@pytest.fixture(scope="session")
def clean():
    """A movie of 33 frames of 40 x 40, made by CNAB2."""
    start = initial_field("nonconvex", (40, 40), 1 / 40, epsilon=EPSILON)
    return simulate(named_law("sixth"), start, dx=1 / 40, dt=4e-4, frames=33, epsilon=EPSILON)


@pytest.fixture(scope="session")
def noisy(clean):
    return add_noise(clean, 0.01, seed=3)


@pytest.fixture(scope="session")
def small():
    """A record on which the trajectory fit is fast."""
    start = initial_field("nonconvex", (24, 24), 1 / 24, epsilon=EPSILON)
    movie = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=15, epsilon=EPSILON)
    return add_noise(movie, 0.02, seed=7)


@pytest.fixture(scope="session")
def result(small):
    """The trajectory fit of the small record, which takes the longest of all here: made once."""
    return identify(small, method="trajectory", check=False)


@pytest.fixture(scope="session")
def found(small, result):
    return compare(small, result=result, methods=["stac", "direct-fd4", "smoothed FD4", "wsindy-test-functions"])

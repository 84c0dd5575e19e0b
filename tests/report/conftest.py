import pytest

from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.report import Truth
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import validate

EPSILON = 0.06


def movie(mesh, *, frames=25, noise=0.02, law="sixth", geometry="circle"):
    dx = 1 / min(mesh)
    start = initial_field(geometry, mesh, dx, epsilon=EPSILON)
    clean = simulate(named_law(law), start, dx=dx, dt=2e-4, frames=frames, epsilon=EPSILON)
    return add_noise(clean, noise, seed=3)


@pytest.fixture(scope="session")
def make_movie():
    return movie


@pytest.fixture(scope="session")
def truth():
    return Truth(named_law("sixth"), EPSILON)


@pytest.fixture(scope="session")
def record():
    return movie((48, 48))


@pytest.fixture(scope="session")
def result(record, truth):
    return identify(record, truth.law.surface_tension(epsilon=1.0), method="weak")


@pytest.fixture(scope="session")
def bare(record):
    return identify(record, degree=1, method="weak")


@pytest.fixture(scope="session")
def validation(result, record):
    return validate(result, record, start=4)

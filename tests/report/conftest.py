from dataclasses import replace

import numpy as np
import pytest

from doublewell.estimate import Component, Posterior
from doublewell.identify import identify
from doublewell.law import Bernstein, Law, named_law
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


@pytest.fixture(scope="session")
def small():
    """A record on which the trajectory reading is fast: 15 frames of 32 x 32, periodic, epsilon = 0.1."""
    start = initial_field("nonconvex", (32, 32), 1 / 32, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 32, dt=5e-4, frames=15, epsilon=0.1)
    return add_noise(clean, 0.03, seed=5)


@pytest.fixture(scope="session")
def banded_truth():
    return Truth(named_law("sixth"), 0.1)


@pytest.fixture(scope="session")
def banded(small, banded_truth):
    """A result of the trajectory reading, averaged over the degrees."""
    return identify(small, banded_truth.law.surface_tension(epsilon=1.0))


@pytest.fixture(scope="session")
def single(banded):
    """The same with its second degree alone; made from the average, because another fit would compile again."""
    fit = banded.posterior.path[2]
    part = Component(2, None, 1.0, fit.free, fit.coefficients, fit.covariance)
    alone = Posterior(Bernstein(2), (replace(fit, weight=1.0),), (part,), np.zeros((2, 3)), True)
    law = Law.bernstein(fit.coefficients)
    numbers = replace(banded.diagnostics, unconstrained=fit.free, active=fit.active)
    return replace(banded, law=law, posterior=alone, diagnostics=numbers)

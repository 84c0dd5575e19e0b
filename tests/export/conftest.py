"""Results to export: made once by the weak-form fit, one of them with draws put in by hand."""

from dataclasses import replace

import numpy as np
import pytest
from grouping import changed

from doublewell.calibrate import SurfaceTension, calibrate
from doublewell.identify import identify
from doublewell.inference import Component, DegreeFit, Posterior
from doublewell.law import Bernstein, Law, named_law
from doublewell.simulate import initial_field, simulate

LAW = Law.bernstein([90.0, 60.0, 160.0, 120.0])  # none of the named ones


@pytest.fixture(scope="session")
def plain():
    """A weak result without a scale."""
    start = initial_field("circle", (48, 48), 1 / 48, epsilon=0.1)
    movie = simulate(named_law("sixth"), start, dx=1 / 48, dt=5e-4, frames=21, epsilon=0.1)
    return identify(movie, method="weak")


@pytest.fixture(scope="session")
def make(plain):
    """Make a result with another law on another mesh, as if it had been identified."""

    def build(law=LAW, tension=None, **settings):
        scale = None if tension is None else calibrate(law, tension)
        numbers = replace(plain.diagnostics, unconstrained=law.coefficients, active=())
        return replace(changed(plain, **settings), law=law, scale=scale, diagnostics=numbers)

    return build


@pytest.fixture(scope="session")
def banded(make):
    """A result with a scale and with bands: one degree, 1 % of error in each coefficient."""
    g = LAW.coefficients
    spread = np.diag((0.01 * g) ** 2)
    part = Component(3, None, None, 1.0, g, g, spread)
    fit = DegreeFit(3, 0.0, 1.0, g, g, spread, ())
    posterior = Posterior(Bernstein(3), (fit,), (part,), np.zeros((0, 4)), "bernstein")
    return replace(make(tension=SurfaceTension(0.3, 0.01)), posterior=posterior)

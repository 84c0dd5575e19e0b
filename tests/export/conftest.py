"""Results to export: made once by the weak-form fit, one with draws put in by hand, some with conserved dynamics."""

from dataclasses import replace

import numpy as np
import pytest
from grouping import changed

from doublewell.calibrate import SurfaceTension, calibrate
from doublewell.dynamics import dynamics_of
from doublewell.identify import identify
from doublewell.inference import Component, DegreeFit, Posterior
from doublewell.law import Bernstein, Ideal, Law, Mixture, named_law
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
def mixture():
    """A law of a conserved field: asymmetric, coexisting phases inside the values -1.15 to 0.95 of a record."""
    family = Mixture(2, (-2.2, 2.0))
    return Law(family, family.fitted(lambda u: 1.3 * (u + 0.9) * (u - 0.1) * (u - 0.7) * (1 + 0.3 * u + 0.2 * u**2)))


@pytest.fixture(scope="session")
def ideal():
    """A law of Flory and Huggins with one more term, pure components at 0 and 1; the record goes from 0.08 to 0.86."""
    family = Ideal(1, (-0.31, 1.25), ((0.0 - 0.47) / 0.78, (1.0 - 0.47) / 0.78))
    return Law(family, family.fitted(lambda u: 0.9 * np.log(u) - 1.3 * np.log(1 - u) - 5.2 * u + 0.4 * u**2))


@pytest.fixture(scope="session")
def conserved(make, mixture):
    """Make a result whose dynamics conserve the mean."""

    def build(name="cahn-hilliard", law=mixture, **settings):
        return make(law, dynamics=dynamics_of(name), wells="found", **settings)

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

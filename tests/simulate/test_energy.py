"""The discrete energy: its value on known fields, its decay, and the dissipation identity."""

import numpy as np
import pytest

from doublewell.dynamics import Grid, numpy_transforms
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import GEOMETRIES, initial_field, simulate

BOUNDARIES = ["periodic", "neumann"]


def energy(record, law, epsilon):
    """Return E = sum (epsilon/2 |grad u|^2 + F(u)/epsilon) dx^d for each frame, with the spectral gradient."""
    u, grid = record.slab(), Grid(record.mesh, record.dx, record.boundary)
    forward, backward = numpy_transforms(grid.cells, grid.boundary)
    density = -0.5 * epsilon * u * backward(grid.laplacian * forward(u)) + law.primitive(u) / epsilon
    return np.prod(grid.dx) * np.sum(density, axis=tuple(range(1, u.ndim)))


def pair(u, **settings):
    return Record(np.stack([u, u]), dt=1.0, **settings)


def test_a_planar_interface_holds_the_surface_tension():
    epsilon, n = 0.02, 512
    x = (np.arange(n) + 0.5) / n
    u = np.tile(np.tanh((x - 0.5) / (np.sqrt(2) * epsilon)), (4, 1))
    found = energy(pair(u, dx=(0.5, 1 / n), boundary="neumann"), named_law("quartic"), epsilon)
    np.testing.assert_allclose(found, 2.0 * 2 * np.sqrt(2) / 3, rtol=1e-10)  # area 2; the tension is not times epsilon


@pytest.mark.parametrize(("boundary", "kappa"), [("periodic", 2 * np.pi / 0.8), ("neumann", np.pi / 0.8)])
def test_a_wave_holds_its_gradient_energy(boundary, kappa):
    x = (np.arange(16) + (0.5 if boundary == "neumann" else 0.0)) * 0.05
    u = 1e-4 * np.cos(kappa * x)
    law, epsilon = named_law("sixth"), 0.3
    found = energy(pair(u, dx=0.05, boundary=boundary), law, epsilon)[0]
    mixed = law.primitive(u).sum() * 0.05 / epsilon
    expected = 0.5 * epsilon * kappa**2 * 1e-8 * 0.5 * 0.8
    assert found - mixed == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("solver", ["cnab2", "etdrk4"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("name", GEOMETRIES)
def test_energy_never_rises(name, boundary, solver):
    epsilon, law = 0.06, named_law("sixth")
    u0 = initial_field(name, (32, 32), 1 / 32, epsilon=epsilon, boundary=boundary, seed=1)
    settings = {"dx": 1 / 32, "dt": 2e-4, "frames": 26, "epsilon": epsilon, "boundary": boundary}
    found = energy(simulate(law, u0, **settings, solver=solver, substeps=4), law, epsilon)
    assert np.all(np.diff(found) < 0)


@pytest.mark.parametrize("solver", ["cnab2", "etdrk4"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_dissipation_identity_to_second_order(boundary, solver):
    """dE/dt = -(epsilon/q) sum u_t^2 dx^d; central differences over frames make it second order in dt."""
    epsilon, q, law = 0.08, 1.5, named_law("bernstein3")
    u0 = initial_field("nonconvex", (24, 20), (1 / 24, 1 / 20), epsilon=epsilon, boundary=boundary)
    settings = {"dx": (1 / 24, 1 / 20), "epsilon": epsilon, "q": q, "boundary": boundary, "solver": solver}
    errors, intervals = [], np.array([16, 32, 64])
    for n in intervals:
        record = simulate(law, u0, dt=0.004 / n, frames=n + 1, substeps=4, **settings)
        u, e, dt = record.slab(), energy(record, law, epsilon), record.dt
        middle = n // 2  # the same moment in each record
        rate = (e[middle + 1] - e[middle - 1]) / (2 * dt)
        loss = -(epsilon / q) * np.sum(((u[middle + 1] - u[middle - 1]) / (2 * dt)) ** 2) / (24 * 20)
        errors.append(abs(rate / loss - 1.0))
    assert errors[-1] < 5e-4
    assert -np.polyfit(np.log(intervals), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05)

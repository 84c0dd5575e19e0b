"""Measured orders in time and exact solutions, for both steppers and both boundaries."""

import numpy as np
import pytest

from doublewell.dynamics import Cnab2, Etdrk4, Grid
from doublewell.law import Law, named_law

STEPPERS = [Cnab2, Etdrk4]
BOUNDARIES = ["periodic", "neumann"]
COUNTS = {Cnab2: (64, 128, 256), Etdrk4: (16, 32, 64)}


def final(stepper, grid, law, u0, *, time, steps, q=1.0):
    """The field at `time` after `steps` steps; one step a frame, so that JAX compiles once for all counts."""
    *_, last = stepper(grid, time / steps, q, 1).run(law, u0, intervals=steps)
    return last


def measured_order(stepper, grid, law, u0, *, time, exact, q=1.0):
    counts = np.array(COUNTS[stepper])
    errors = [np.abs(final(stepper, grid, law, u0, time=time, steps=n, q=q) - exact).max() for n in counts]
    assert errors[-1] < 1e-3
    return -np.polyfit(np.log(counts), np.log(errors), 1)[0]


def smooth_start(grid):
    lines = np.meshgrid(*grid.points, indexing="ij")
    u = sum(np.cos(2 * np.pi * x / length) for x, length in zip(lines, grid.extent, strict=True))
    return 0.55 * u / len(lines) + 0.2 * np.cos(2 * np.pi * lines[-1] / grid.extent[-1]) ** 2 - 0.1


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("cells", [(24,), (16, 12)])
def test_order_against_a_fine_solution(stepper, boundary, cells):
    grid = Grid(cells, [1 / n for n in cells], boundary)
    law, u0 = named_law("sixth").effective(0.15), smooth_start(grid)
    exact = final(Etdrk4, grid, law, u0, time=0.04, steps=256)
    order = measured_order(stepper, grid, law, u0, time=0.04, exact=exact)
    assert order == pytest.approx(stepper.order, abs=0.15)


def test_the_first_step_of_cnab2_has_a_third_order_error():
    grid = Grid((24,), 1 / 24, "periodic")
    law, u0 = named_law("sixth").effective(0.15), smooth_start(grid)
    times = np.array([4e-5, 2e-5, 1e-5])
    exact = [final(Etdrk4, grid, law, u0, time=t, steps=8) for t in times]
    errors = [np.abs(final(Cnab2, grid, law, u0, time=t, steps=1) - e).max() for t, e in zip(times, exact, strict=True)]
    assert np.polyfit(np.log(times), np.log(errors), 1)[0] == pytest.approx(3.0, abs=0.15)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_order_on_the_exact_travelling_front(stepper):
    """The quartic law's front into the mixed state: u = (1 + tanh(x / sqrt(8) + 3 t / 4)) / 2."""
    grid = Grid((256,), 100 / 256, "neumann")
    x = grid.points[0] - 50.0

    def front(t):
        return 0.5 * (1 + np.tanh(x / np.sqrt(8) + 0.75 * t))

    order = measured_order(stepper, grid, named_law("quartic"), front(0.0), time=2.0, exact=front(2.0))
    assert order == pytest.approx(stepper.order, abs=0.15)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_order_on_the_homogeneous_equation(stepper):
    """Without gradients u' = q u (1 - u^2) / epsilon^2, which has a closed solution."""
    epsilon, q, time, start = 0.5, 2.0, 0.3, 0.1
    growth = np.exp(q * time / epsilon**2)
    exact = start * growth / np.sqrt(1 + start**2 * (growth**2 - 1))
    grid, u0 = Grid((4, 4), 0.3, "periodic"), np.full((4, 4), start)
    order = measured_order(stepper, grid, named_law("quartic").effective(epsilon), u0, time=time, exact=exact, q=q)
    assert order == pytest.approx(stepper.order, abs=0.15)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_order_outside_the_pure_phases(stepper):
    """Above u = 1 the force is linear: u - 1 decays with the rate q G'(1)."""
    law, q, time = Law.bernstein([0.5, 1.5]), 2.0, 0.5
    exact = 1 + 0.5 * np.exp(-q * law.well_curvature * time)
    grid, u0 = Grid((6,), 0.3, "neumann"), np.full(6, 1.5)
    order = measured_order(stepper, grid, law, u0, time=time, exact=exact, q=q)
    assert order == pytest.approx(stepper.order, abs=0.15)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_standing_kink_of_the_quartic_law_stands(stepper):
    epsilon = 0.02
    grid = Grid((256,), 1 / 256, "neumann")
    kink = np.tanh((grid.points[0] - 0.5) / (np.sqrt(2) * epsilon))
    moved = final(stepper, grid, named_law("quartic").effective(epsilon), kink, time=0.004, steps=100)
    assert np.abs(moved - kink).max() < 1e-11


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("cells", "dx"), [((12,), (0.2,)), ((8, 9), (0.3, 0.1)), ((5, 6, 4), (0.3, 0.2, 0.1))])
def test_a_small_wave_follows_its_linear_rate(stepper, boundary, cells, dx):
    """A mode of amplitude 1e-7 goes as exp(q (-kappa^2 - G'(0)) t)."""
    grid, law, q, time = Grid(cells, dx, boundary), named_law("sixth").effective(0.4), 0.7, 0.05
    base = (2 if boundary == "periodic" else 1) * np.pi
    kappas = [base * k / length for k, length in zip((1, 1, 1), grid.extent, strict=False)]
    lines = np.meshgrid(*grid.points, indexing="ij")
    wave = 1e-7 * np.prod([np.cos(k * x) for k, x in zip(kappas, lines, strict=True)], axis=0)
    rate = q * (-sum(k * k for k in kappas) - law.centre_curvature)
    steps = {Cnab2: 4000, Etdrk4: 64}[stepper]
    expected = wave * np.exp(rate * time)
    assert abs(rate) > 0.5
    tolerance = {Cnab2: 2e-4, Etdrk4: 1e-6}[stepper]
    np.testing.assert_allclose(
        final(stepper, grid, law, wave, time=time, steps=steps, q=q), expected, atol=tolerance * np.abs(expected).max()
    )

"""Sizes of links and of aliased waves: drawn noise against movies, block averages against their exact spectrum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

import doublewell as dw
from doublewell.dynamics import dynamics_of
from doublewell.dynamics.thermal import exposure_weights
from doublewell.errors import InputError
from doublewell.law import Bernstein
from doublewell.likelihood import FluctuatingBatch
from doublewell.likelihood.levels import Levels
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import View, transfer
from doublewell.options import Observation
from doublewell.runtime import double_precision

WIDTH, CELLS, FRAMES = 3.0, 32, 13


def links(law, degree, theta, equation="allen-cahn", seed=1):
    """Return whitened gaps of a movie at its own law and theta, those that are drawn there, and white noise."""
    family, truth, dt = Bernstein(degree), dw.named_law(law).effective(WIDTH), 12.0 if equation[0] == "c" else 1.0
    u = np.linspace(-1.0, 1.0, 101)
    coefficients = np.linalg.lstsq(family.features(u).T, truth.force(u), rcond=None)[0]
    first = dw.initial_field("circle", (CELLS, CELLS), 1.0, epsilon=WIDTH)
    made = dw.simulate(
        dw.named_law(law), first, dx=1.0, dt=dt, frames=FRAMES + 6, epsilon=WIDTH, substeps=40, theta=theta, seed=seed,
        dynamics=equation,
    ).clip(6, FRAMES + 6)  # fmt: skip
    view = View(Observation(contrast="exact", blur=0.0, pixel=False, drift="none", noise="none"))
    batch = FluctuatingBatch([made], dynamics_of(equation).changed(thermal=True), view)
    (model, plain), fields = batch.model(family, 3), batch.observed.values
    levels, point = [Levels(theta, 1e-3 * theta**0.5, exact=True)], (fields, coefficients[None])
    constants = batch.linked(family, 3, *point, levels, plain)
    with double_precision():
        gaps = compiled().whiten(model, compiled().predict(model, *point, constants), constants)
        drawn = [compiled().drawn(model, *point, np.array([k]), constants) for k in range(3)]
    own = np.asarray(gaps)[0, FRAMES:] / levels[0].camera
    return own, np.array([a[0] for a, _ in drawn]), np.array([b[0] for _, b in drawn])


@pytest.mark.parametrize(("law", "degree", "theta"), [("quartic", 0, 1e-3), ("outside_cone", 2, 0.1)])
def test_drawn_links_are_as_large_as_those_of_a_movie(law, degree, theta):
    own, drawn, white = links(law, degree, theta)
    sd = np.sqrt(2.0 / own.size)
    assert np.mean(white**2) == pytest.approx(1.0, abs=4 * sd / np.sqrt(3))
    wanted = 1.0 + np.mean(drawn**2 - white**2)
    assert np.mean(own**2) == pytest.approx(wanted, abs=4 * sd)
    assert wanted == pytest.approx(1.0, abs=3e-3) if degree == 0 else 1.06 < wanted < 1.12


def test_drawn_links_of_a_conserved_field_have_no_mean():
    _, drawn, white = links("quartic", 0, 1e-3, "cahn-hilliard")
    assert np.max(np.abs(np.mean(drawn, axis=(2, 3)))) < 0.3 / CELLS  # of white noise 1 / CELLS
    assert np.max(np.abs(np.mean(white, axis=(2, 3)))) < 1e-9


@pytest.mark.parametrize("count", [2, 3])
def test_folded_waves_of_block_averages_are_exact(count):
    """Of a linear field on the mesh of the cells: the spectrum of means of n x n of them."""
    cells, slope = 6, 0.3
    fine = np.hypot(*np.meshgrid(*[2 * np.pi * count * np.fft.fftfreq(cells * count)] * 2, indexing="ij"))
    covariance = np.fft.ifftn(count**2 / (fine**2 + slope)).real  # of two cells, over theta
    lags = np.arange(-cells * count + 1, cells * count)
    box = np.maximum(0, count - np.abs(lags)) / count**2
    smooth = np.zeros_like(covariance)
    for a, b in np.ndindex(2 * count - 1, 2 * count - 1):
        shift = a - count + 1, b - count + 1
        smooth += box[lags == shift[0]] * box[lags == shift[1]] * np.roll(covariance, shift, (0, 1))
    power = np.fft.rfftn(smooth[::count, ::count]).real
    record = dw.Record(np.zeros((3, cells, cells)), dx=1.0, dt=1.0, q=1.0, boundary="periodic")
    optics = Observation(contrast="exact", blur=0.0, pixel=count, drift="none")
    batch = FluctuatingBatch([record], dynamics_of("allen-cahn").changed(thermal=True), View(optics))
    seen = transfer(batch.grid.waves, batch.grid.dx, optics) ** 2 / (slope - batch.grid.laplacian)
    np.testing.assert_allclose(seen + batch._aliased(slope), power, rtol=1e-10)


@pytest.mark.parametrize(("rate", "part"), [(1e-7, 1.0), (0.01, 0.5), (0.7, 0.3), (6.0, 1.0), (40.0, 0.5)])
def test_an_exposure_shows_what_the_integrals_say(rate, part):
    """The mean of du = -r u dt + sqrt(2) dW over an exposure: its share of u(0), of the next gap, and the rest."""
    tau = 1.3
    t = part * tau
    weights = exposure_weights(np.array(rate), tau, part)

    def seen(s):  # of a kick at s in the mean over the exposure
        return -np.expm1(-rate * (t - s)) / (rate * t)

    gap = quad(lambda s: 2.0 * np.exp(-2.0 * rate * (tau - s)), 0.0, tau)[0]
    shared = quad(lambda s: 2.0 * seen(s) * np.exp(-rate * (tau - s)), 0.0, t)[0]
    whole = quad(lambda s: 2.0 * seen(s) ** 2, 0.0, t)[0]
    left = -np.expm1(-rate * t) / (rate * t)
    assert weights.left == pytest.approx(left, rel=1e-7)
    assert weights.follows == pytest.approx(shared / gap, rel=1e-6)
    assert weights.own == pytest.approx(whole - shared**2 / gap, rel=1e-5)
    assert weights.short == pytest.approx(rate * whole + left**2, rel=1e-6)  # in equilibrium u(0) has the variance 1/r


def test_pixels_of_one_cell_are_refused():
    with pytest.raises(InputError, match="pixel is 1: expected True, False, an integer from 2"):
        Observation(pixel=1)

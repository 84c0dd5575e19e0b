"""Linked fields: the force of a fluctuating field, thermal covariances, and what fields of a uniform rate leave."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm

from doublewell.dynamics import ALLEN_CAHN
from doublewell.errors import InputError
from doublewell.law import Bernstein, EqualWells, Law, Wells, named_law
from doublewell.likelihood import FluctuatingBatch
from doublewell.likelihood.levels import Levels, lagrange
from doublewell.likelihood.linked import HERMITE, mean_variance, smooth_force, thermal_covariance
from doublewell.likelihood.model import record_model
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import View
from doublewell.options import Observation
from doublewell.record import Record
from doublewell.runtime import double_precision

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("family", [Bernstein(0), Bernstein(8), Wells(3), EqualWells(5)])
def test_the_force_is_the_laws_between_the_phases_and_smooth_beyond_the_reach(family) -> None:
    """Values and three derivatives are continuous where the polynomial ends."""
    law, u = RNG.uniform(0.5, 1.5, family.size), np.linspace(-1.0, 1.0, 41)
    with double_precision():
        force = smooth_force(family)
        assert np.allclose(np.asarray(force(law, u, 1.2)), family.force(law, u), atol=1e-9)
        ends = np.array([-1.2, 1.2])
        for step in (1e-3, -1e-3):  # third differences across the end are those of a cubic
            beyond = np.asarray(force(law, ends + 1.5 * step * np.array([-1.0, 1.0]), 1.2))
            exact = Law(family, law).continued().force(ends + 1.5 * step * np.array([-1.0, 1.0]))
            exact = exact - Law(family, law).continued().force(np.zeros(2)) + family.force(law, np.zeros(2))
            assert np.allclose(beyond, exact, rtol=1e-6)


def test_a_law_of_fourth_degree_is_exact_everywhere() -> None:
    u = np.linspace(-2.0, 2.0, 9)
    with double_precision():
        assert np.allclose(np.asarray(smooth_force(Bernstein(0))(np.ones(1), u, 1.0)), u**3 - u)


def test_three_points_give_the_mean_of_a_polynomial_of_fifth_degree() -> None:
    means = [sum(weight * node**n for node, weight in HERMITE) for n in range(6)]
    assert np.allclose(means, [1.0, 0.0, 1.0, 0.0, 3.0, 0.0])


def test_lagrange_reproduces_polynomials() -> None:
    nodes, values = np.array([-1.0, 0.2, 0.9, 2.0]), np.linspace(-1.0, 2.0, 7)
    assert np.allclose(nodes**3 @ lagrange(nodes, values), values**3)


def _record(frames: int = 4, cells: int = 8) -> Record:
    values = RNG.uniform(-1.0, 1.0, (frames, cells, cells))
    return Record(values, dx=0.5, dt=0.3, q=1.0, boundary="periodic")


@pytest.mark.parametrize("slope", [-0.4, 0.0, 2.0])
def test_thermal_variances_are_the_integrals_of_what_decays(slope) -> None:
    _, constants = record_model(_record(), Bernstein(0), 1)
    rate = slope - constants.linear

    def grown(r: float, time: float) -> float:
        return quad(lambda s: 2.0 * np.exp(-2.0 * r * s), 0.0, time)[0] / 0.25

    with double_precision():
        found = np.asarray(thermal_covariance(constants, slope, 0.3, 0.25))
        mean = np.asarray(mean_variance(constants, slope, 0.3, 0.25))
    for at in ((0, 0), (1, 2), (4, 4)):
        assert found[at] == pytest.approx(grown(rate[at], 0.3), rel=1e-6)
        wanted = quad(lambda t, r=rate[at]: grown(r, t), 0.0, 0.3)[0] / 0.3
        assert mean[at] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("noise_of_frames", ["camera", "aliased waves", "exposure"])
def test_what_fields_of_a_uniform_rate_leave_has_the_traces_of_a_projection(noise_of_frames: str) -> None:
    """Against the projection itself, mode by mode as dense matrices, and applied to noise.

    The noise of frames is the camera's, in part that of aliased waves, or of an exposure, which shows the next field.
    """
    record, part = _record(frames=5), 0.8 if noise_of_frames == "exposure" else 0.0
    optics = Observation(contrast="exact", blur=0.0, pixel=False, drift="none", exposure=part * 0.3)
    batch = FluctuatingBatch([record], ALLEN_CAHN, View(optics))
    law = np.array([1.0, 1.0])
    levels, fields, theta = [Levels(0.05, 0.1)], batch.observed.values, law[None]
    model, plain = batch.model(Bernstein(1), 1)
    constants = batch.linked(Bernstein(1), 1, fields, theta, levels, plain)
    with double_precision():
        decay, here, later, stiff = (np.asarray(part)[0] for part in compiled().uniform(model, theta, constants))
        noise = RNG.standard_normal((1, 9, 8, 8))
        once = np.asarray(compiled().uniform_rest(model, theta, noise, constants))
        twice = np.asarray(compiled().uniform_rest(model, theta, once, constants))
    assert np.allclose(once, twice, atol=1e-9)
    assert np.any(later[:-1] > 0.1) == bool(part)
    camera = RNG.uniform(0.2, 0.9, here.shape) if noise_of_frames != "camera" else np.ones(here.shape)
    rest, information = batch._uniform(decay, here, later, stiff, camera)
    counts, traces, squares = batch.grid.multiplicity.ravel(), np.zeros(2), np.zeros((2, 2))
    flat = [np.reshape(part, (-1, counts.size)) for part in (decay, here, later, stiff, camera)]
    for k, count in enumerate(counts):
        (d,), see, next_, (a,), own = (part[:, k] for part in flat)
        seen = np.diag(see) + np.diag(next_[:-1], 1)
        rows = np.vstack([seen, np.sqrt(a) * (np.eye(5)[1:] - d * np.eye(5)[:-1])])
        left = np.eye(9) - rows @ np.linalg.solve(rows.T @ rows, rows.T)
        parts = [left * np.append(each, [last] * 4) for each, last in ((own, 0.0), (1.0 - own, 1.0))]  # of s^2, theta
        traces += count * np.array([np.trace(part) for part in parts])
        squares += 0.5 * count * np.array([[np.sum(one * other.T) for one in parts] for other in parts])
    assert np.allclose(rest, traces, rtol=1e-6)
    assert np.allclose(information, squares, rtol=1e-5)


def test_links_of_a_linear_field_have_the_covariance_of_its_equation() -> None:
    """With G = c u the covariance is exact: whitened gaps of drawn fields are white, against the matrix exponential."""
    record = _record(frames=2, cells=6)
    batch = FluctuatingBatch([record], ALLEN_CAHN, View())
    model, plain = batch.model(Bernstein(0), 1)
    constants = batch.linked(Bernstein(0), 1, batch.observed.values, np.zeros((1, 1)), [Levels(0.2, 1.0)], plain)
    n = 36
    with double_precision():
        eye = np.concatenate([np.zeros((n, 2, 6, 6)), np.eye(n).reshape(n, 1, 6, 6)], axis=1)
        columns = [np.asarray(compiled().whiten(model, one[None], constants))[0, 2].ravel() for one in eye]
    whitening = np.stack(columns, axis=1)
    waves = [2.0 * np.pi * np.fft.fftfreq(6, 0.5)] * 2
    square = np.add.outer(waves[0] ** 2, waves[1] ** 2)
    laplacian = np.stack([
        np.fft.ifft2(-square * np.fft.fft2(one.reshape(6, 6))).real.ravel() for one in np.eye(n)
    ], axis=1)  # fmt: skip
    times = (np.arange(400) + 0.5) / 400 * 0.3
    covariance = sum(expm(2.0 * t * laplacian) for t in times) * (0.3 / 400) * 2.0 * 0.2 / 0.25
    assert np.allclose(whitening @ covariance @ whitening.T, np.eye(n), atol=2e-3)


def test_the_reach_of_a_window_grows_with_the_frame_interval() -> None:
    widths = []
    for dt in (0.1, 2.0):
        record = Record(RNG.uniform(-1.0, 1.0, (3, 40, 40)), dx=1.0, dt=dt, q=1.0, boundary="open")
        widths.append(FluctuatingBatch([record], ALLEN_CAHN, View()).links)
    assert widths[0] < widths[1]


def test_the_named_laws_lie_in_families_with_a_polynomial() -> None:
    law = named_law("bernstein3").effective(3.0)
    u = np.linspace(-1.3, 1.3, 9)
    with double_precision():
        force = np.asarray(smooth_force(law.family)(law.coefficients, u, 1.3))
    assert np.allclose(force, law.continued().force(u))


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_thermal_is_a_truth_value(value) -> None:
    with pytest.raises(InputError, match="thermal is"):
        ALLEN_CAHN.changed(thermal=value)

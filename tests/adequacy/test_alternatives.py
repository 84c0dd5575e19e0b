"""Directions and their projection: derivatives by finite differences, and what a fit can imitate disappears."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from found import sentence

from doublewell.adequacy import DIRECTIONS, Fit, projector_of, score_tests
from doublewell.adequacy.alternatives import _slope
from doublewell.adequacy.projection import project, score
from doublewell.dynamics import Etdrk4, Grid
from doublewell.dynamics.grid import numpy_transforms
from doublewell.law import Law
from doublewell.likelihood import Batch
from doublewell.record import Record
from doublewell.runtime import double_precision


@pytest.fixture(scope="module")
def projector(fit):
    return projector_of([fit])


def ask(fit, projector, name, fields):
    """Return the test of given fields."""
    residual = projector.whiten(fit.found.residual[None])
    (test,) = score_tests([fit], projector, residual, name, lambda _: fields)
    return test


def projected(projector, field):
    """Return the projection of one field, and the shift of theta."""
    left, moved = projector.project(field[None])
    return left[0], moved[0]


def forward(fit, *, q=1.0, law=None):
    law = Law(fit.family, fit.found.coefficients) if law is None else law
    stepper = Etdrk4(fit.grid, fit.record.dt, q, fit.found.substeps)
    later = list(stepper.run(law, fit.found.nuisance, intervals=fit.record.frames - 1))
    return np.stack([fit.found.nuisance, *later])


def test_q_direction_matches_finite_differences(fit):
    step = 1e-4
    difference = (forward(fit, q=1 + step) - forward(fit, q=1 - step)) / (2 * step)
    (direction,) = DIRECTIONS["q"](fit)
    np.testing.assert_allclose(direction, difference, atol=1e-6 * np.abs(difference).max())


def test_tilt_direction_solves_the_tilted_equation(fit):
    """A constant force c shifts a field without interface by -q c (1 - exp(-q G'(1) t)) / G'(1) in all cells."""
    flat = replace(fit.found, nuisance=np.ones((32, 32)), residual=fit.record.slab() - 1.0)
    (direction,) = DIRECTIONS["tilt"](Fit(flat))
    slope = 2.0 * fit.found.coefficients[-1]  # G'(1) = 2 p(1)
    exact = -(1.0 - np.exp(-slope * fit.record.times)) / slope
    np.testing.assert_allclose(direction, np.broadcast_to(exact[:, None, None], direction.shape), rtol=1e-5)


def test_advection_direction_is_the_change_of_a_shifted_record(fit, shift):
    speed = 1e-3
    difference = (shift(fit.predicted, speed) - shift(fit.predicted, -speed)) / (2 * speed)
    direction = DIRECTIONS["advection"](fit)[1]
    np.testing.assert_allclose(direction, difference, atol=1e-5 * np.abs(difference).max())


def test_boundary_and_gain_directions_begin_with_the_same_field(fit):
    for name in ("boundary", "gain drift"):
        (direction,) = DIRECTIONS[name](fit)
        np.testing.assert_allclose(direction[0], 0.0, atol=1e-12)
        assert np.abs(direction[-1]).max() > 1e-3
    np.testing.assert_allclose(DIRECTIONS["gain drift"](fit)[0][-1], fit.predicted[-1])
    np.testing.assert_array_equal(DIRECTIONS["gain"](fit)[0], fit.predicted)


def test_offset_direction_is_the_change_of_a_raised_record(fit):
    """The law sees -1 and +1, the camera adds a constant to what it shows: no dynamics in it."""
    step = 1e-3
    raised = [fit.record.replace(fit.record.slab() + h).slab() for h in (-step, step)]
    (direction,) = DIRECTIONS["offset"](fit)
    np.testing.assert_allclose(direction, (raised[1] - raised[0]) / (2 * step), rtol=1e-9)


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_blur_direction_is_the_change_of_a_smoothed_record(fit, boundary):
    """A Gaussian of the variance 2 a multiplies the modes by exp(a symbol)."""
    record = Record(fit.record.slab(), dx=fit.record.dx, dt=fit.record.dt, q=1.0, boundary=boundary)
    other = Fit(replace(fit.found, batch=Batch([record])))
    forward_map, backward_map = numpy_transforms(record.mesh, boundary)
    step, modes = 1e-8, [forward_map(frame) for frame in other.predicted]
    smooth = [np.stack([backward_map(np.exp(a * other.grid.laplacian) * m) for m in modes]) for a in (-step, step)]
    (direction,) = DIRECTIONS["blur"](other)
    np.testing.assert_allclose(direction, (smooth[1] - smooth[0]) / (2 * step), atol=1e-5 * np.abs(direction).max())


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
@pytest.mark.parametrize("cells", [15, 16])
def test_slope_is_exact_for_modes(boundary, cells):
    grid = Grid((4, cells), (0.25, 2.0 / cells), boundary)
    wave = 2 * np.pi * (3 if boundary == "periodic" else 2.5) / 2.0
    x = grid.points[1]
    u = np.broadcast_to(np.cos(wave * x), (2, 4, cells))
    np.testing.assert_allclose(_slope(u, 1, grid), np.broadcast_to(-wave * np.sin(wave * x), u.shape), atol=1e-12)
    np.testing.assert_allclose(_slope(u, 0, grid), 0.0, atol=1e-12)


def test_projection_takes_out_what_the_fit_can_imitate(fit, projector):
    """A change of the initial field and of the coefficients disappears; theta moves back by that change."""
    rng = np.random.default_rng(4)
    change, bump = np.array([1.0, -2.0, 1.5]), 1e-4 * rng.standard_normal((32, 32))
    ends = [
        forward(
            Fit(replace(fit.found, nuisance=fit.found.nuisance + h * bump)),
            law=Law(fit.family, fit.found.coefficients + h * change),
        )
        for h in (-1e-2, 1e-2)
    ]
    imitated = (ends[1] - ends[0]) / 2e-2
    left, shift = projected(projector, imitated)
    assert np.linalg.norm(left) < 1e-3 * np.linalg.norm(imitated)
    scale = fit.found.noise * fit.found.evidence.blocks[0].triangle[:3, :3]
    assert np.linalg.norm(scale @ (shift + change)) < 1e-2 * np.linalg.norm(scale @ change)


def test_projection_of_a_projection_changes_nothing(fit, projector):
    """With solves ten times as exact as a test needs."""
    import jax

    basis = jax.tree.map(lambda part: part[0], projector.basis)
    exact = jax.jit(partial(project, projector.model, tolerance=1e-3))
    point = (fit.found.nuisance, fit.found.coefficients, basis)
    with double_precision():
        first = exact(*point, DIRECTIONS["q"](fit)[0], constants=projector.constants)
        again = exact(*point, first.field, constants=projector.constants)
    left = np.asarray(first.field)
    np.testing.assert_allclose(again.field, left, atol=2e-3 * np.abs(left).max())
    assert np.linalg.norm(again.shift) < 0.01 * np.linalg.norm(first.shift)
    rough, _ = projected(projector, DIRECTIONS["q"](fit)[0])
    assert np.linalg.norm(rough) == pytest.approx(np.linalg.norm(left), rel=0.02)


def test_score_recovers_a_known_amount_and_takes_correlation_into_account():
    rng = np.random.default_rng(1)
    fields = rng.standard_normal((2, 5, 6, 7))
    fields[1] += fields[0]
    seen = score(list(fields), 2.0 * fields[0] - 3.0 * fields[1], 0.1)
    np.testing.assert_allclose(seen.values, [2.0, -3.0])
    single = score([fields[0]], fields[0], 0.1)
    np.testing.assert_allclose(single.chi2, np.sum(fields[0] ** 2) / 0.01)
    np.testing.assert_allclose(single.covariance, 0.01 / np.sum(fields[0] ** 2))


def test_a_direction_that_holds_nothing_has_infinite_error(fit, projector):
    test = ask(fit, projector, "nothing", [np.zeros(fit.record.shape)])
    assert (test.statistic, test.p, test.error) == (0.0, 1.0, (np.inf,))
    assert sentence(test) == "nothing is 0 +- inf"


def test_a_quiet_border_says_so(fit, projector):
    test = ask(fit, projector, "boundary", [1e-4 * direction for direction in DIRECTIONS["boundary"](fit)])
    assert sentence(test) == "the border is too quiet to distinguish periodic from neumann"

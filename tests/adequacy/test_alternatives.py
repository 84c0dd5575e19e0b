"""Directions and their projection: derivatives by finite differences, and what a fit can imitate disappears."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from found import sentence

from doublewell.adequacy.alternatives import directions, slope
from doublewell.adequacy.check import scale_of, score, score_test
from doublewell.dynamics import Etdrk4, Grid, numpy_transforms
from doublewell.law import Law
from doublewell.likelihood import Batch, Projector
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import mode_grid
from doublewell.record import Record
from doublewell.runtime import double_precision


@pytest.fixture(scope="module")
def projector(fit):
    return Projector([fit])


@pytest.fixture(scope="module")
def predicted(fit):
    return fit.batch.predict([fit])[0]


def directions_of(fit):
    """Return the directions of one fit by name."""
    made = directions([fit], fit.batch.predict([fit]), 1.0)
    return {name: [field[0] for field in fields] for name, fields in made}


@pytest.fixture(scope="module")
def made(fit):
    return directions_of(fit)


def ask(fit, projector, name, field):
    """Return the test of one given field."""
    fields, shifts = projector.project(field[None])
    with double_precision():
        residual = np.asarray(projector.model.whiten(fit.residual, projector.constants))
    scale = scale_of(fit, fit.batch.predict([fit])[0])
    return score_test(fit, name, fields, shifts, residual, scale)


def projected(projector, field):
    """Return the projection of one field, and the shift of theta."""
    left, moved = projector.project(field[None])
    return left[0], moved[0]


def forward(fit, *, q=1.0, law=None):
    law = Law(fit.family, fit.coefficients) if law is None else law
    stepper = Etdrk4(mode_grid(fit.record), fit.record.dt, q, fit.substeps)
    later = list(stepper.run(law, fit.nuisance, intervals=fit.record.frames - 1))
    return np.stack([fit.nuisance, *later])


def test_q_direction_matches_finite_differences(fit, made):
    step = 1e-4
    difference = (forward(fit, q=1 + step) - forward(fit, q=1 - step)) / (2 * step)
    (direction,) = made["q"]
    np.testing.assert_allclose(direction, difference, atol=1e-6 * np.abs(difference).max())


def test_tilt_direction_solves_the_tilted_equation(fit):
    """A constant force c shifts a field without interface by -q c (1 - exp(-q G'(1) t)) / G'(1) in all cells."""
    flat = replace(fit, nuisance=np.ones((32, 32)), residual=fit.record.slab() - 1.0)
    (direction,) = directions_of(flat)["tilt"]
    slope = 2.0 * fit.coefficients[-1]  # G'(1) = 2 p(1)
    exact = -(1.0 - np.exp(-slope * fit.record.times)) / slope
    np.testing.assert_allclose(direction, np.broadcast_to(exact[:, None, None], direction.shape), rtol=1e-5)


def test_advection_direction_is_the_change_of_a_shifted_record(predicted, made, shift):
    speed = 1e-3
    difference = (shift(predicted, speed) - shift(predicted, -speed)) / (2 * speed)
    direction = made["advection"][1]
    np.testing.assert_allclose(direction, difference, atol=1e-5 * np.abs(difference).max())


def test_boundary_and_gain_directions_begin_with_the_same_field(predicted, made):
    for name in ("boundary", "gain drift"):
        (direction,) = made[name]
        np.testing.assert_allclose(direction[0], 0.0, atol=1e-12)
        assert np.abs(direction[-1]).max() > 1e-3
    np.testing.assert_allclose(made["gain drift"][0][-1], predicted[-1])
    np.testing.assert_array_equal(made["gain"][0], predicted)


def test_offset_direction_is_the_change_of_a_raised_record(fit, made):
    """The law sees -1 and +1, the camera adds a constant to what it shows: no dynamics in it."""
    step = 1e-3
    raised = [fit.record.replace(fit.record.slab() + h).slab() for h in (-step, step)]
    (direction,) = made["offset"]
    np.testing.assert_allclose(direction, (raised[1] - raised[0]) / (2 * step), rtol=1e-9)


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_blur_direction_is_the_change_of_a_smoothed_record(fit, boundary):
    """A Gaussian of the variance 2 a multiplies the modes by exp(a symbol)."""
    record = Record(fit.record.slab(), dx=fit.record.dx, dt=fit.record.dt, q=1.0, boundary=boundary)
    other = replace(fit, record=record, batch=Batch([record]))
    forward_map, backward_map = numpy_transforms(record.mesh, boundary)
    step, modes = 1e-8, [forward_map(frame) for frame in other.batch.predict([other])[0]]
    smooth = [
        np.stack([backward_map(np.exp(a * mode_grid(record).laplacian) * m) for m in modes]) for a in (-step, step)
    ]
    (direction,) = directions_of(other)["blur"]
    np.testing.assert_allclose(direction, (smooth[1] - smooth[0]) / (2 * step), atol=1e-5 * np.abs(direction).max())


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
@pytest.mark.parametrize("cells", [15, 16])
def test_slope_is_exact_for_modes(boundary, cells):
    grid = Grid((4, cells), (0.25, 2.0 / cells), boundary)
    wave = 2 * np.pi * (3 if boundary == "periodic" else 2.5) / 2.0
    x = grid.points[1]
    u = np.broadcast_to(np.cos(wave * x), (2, 4, cells))
    np.testing.assert_allclose(slope(u, -1, grid), np.broadcast_to(-wave * np.sin(wave * x), u.shape), atol=1e-12)
    np.testing.assert_allclose(slope(u, -2, grid), 0.0, atol=1e-12)


def perturbed(fit, extra, a):
    """Return the movie of u_t = Laplacian u - G(u) + a extra(u, rate, t): spectral Runge-Kutta steps, not ETDRK4."""
    grid, law = mode_grid(fit.record), Law(fit.family, fit.coefficients)
    to, back = numpy_transforms(grid.cells, grid.boundary)
    steps, frames, u = 40, [fit.nuisance], fit.nuisance
    end, h = fit.record.times[-1], fit.record.dt / 40

    def second(field, one, other):
        return back(-grid.waves[one] * grid.waves[other] * to(field))

    def rate(u, t):
        plain = second(u, 0, 0) + second(u, 1, 1) - law.force(u)
        return plain + a * extra(u, plain, t / end, law.force, second)

    for n in range(steps * (fit.record.frames - 1)):
        t = n * h
        k1 = rate(u, t)
        k2 = rate(u + 0.5 * h * k1, t + 0.5 * h)
        k3 = rate(u + 0.5 * h * k2, t + 0.5 * h)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(u + h * k3, t + h))
        if (n + 1) % steps == 0:
            frames.append(u)
    return np.stack(frames)


WAVE = np.cos(2 * np.pi * (np.arange(32) + 0.5) / 32)


@pytest.mark.parametrize(
    ("name", "which", "step", "extra"),
    [
        ("mobility(u)", 1, 1e-3, lambda u, r, *_: u**2 * r),
        ("mobility(x)", 2, 1e-3, lambda u, r, *_: WAVE * r),
        ("anisotropy", 2, 1e-3, lambda u, r, t, force, second: second(u, 1, 1)),
        ("anisotropy", 0, 1e-3, lambda u, r, t, force, second: second(u, 0, 1)),
        ("force(t)", 0, 1e-3, lambda u, r, t, force, second: -t * force(u)),
        ("mass", 0, 1e-3, lambda u, r, t, force, second: np.mean(force(u)) + 0 * u),
        ("conserved", 0, 1e-7, lambda u, r, t, force, second: -second(r, 0, 0) - second(r, 1, 1)),
        (
            "time step", 0, 1e-7,
            lambda u, r, t, force, second: second(r, 0, 0) + second(r, 1, 1)
            - r * (force(u + 1e-5) - force(u - 1e-5)) / 2e-5,
        ),
    ],
)  # fmt: skip
def test_a_term_has_the_response_of_an_equation_that_holds_it(fit, made, name, which, step, extra):
    """The first noisy field is smoothed, because high modes of the fourth derivatives need shorter steps."""
    smooth = replace(fit, nuisance=smoothed(fit))
    difference = (perturbed(smooth, extra, step) - perturbed(smooth, extra, -step)) / (2 * step)
    direction = directions_of(smooth)[name][which]
    np.testing.assert_allclose(direction, difference, atol=3e-3 * np.abs(difference).max())
    assert made.keys() == directions_of(smooth).keys()


def smoothed(fit):
    to, back = numpy_transforms(fit.record.mesh, "periodic")
    return back(np.exp(2e-3 * mode_grid(fit.record).laplacian) * to(fit.nuisance))


def test_the_gradient_by_a_force_is_that_of_a_movie_with_a_kick(fit):
    """<prediction, w> by finite differences, for one cell and one interval."""
    model, constants = fit.batch.model(fit.family, fit.substeps)
    white = np.random.default_rng(2).standard_normal(fit.record.shape)
    pushes = np.zeros((20, 32, 32))
    with double_precision():
        zero = constants._replace(pushes=pushes)
        given = fit.nuisance[None], fit.theta[None], white[None, None], zero
        gradient = np.asarray(compiled().force_needed(model, *given)[0])[0]
        for place in ((0, 5, 7), (12, 16, 3)):
            ends = []
            for size in (-1.0, 1.0):
                pushes[place] = size
                ends.append(np.vdot(model.predict(fit.nuisance, fit.theta, constants._replace(pushes=pushes)), white))
                pushes[place] = 0.0
            assert gradient[0][place] == pytest.approx((ends[1] - ends[0]) / 2, rel=1e-4, abs=1e-9)


def test_projection_takes_out_what_the_fit_can_imitate(fit, projector):
    """A change of the initial field and of the coefficients disappears; theta moves back by that change."""
    rng = np.random.default_rng(4)
    change, bump = np.array([1.0, -2.0, 1.5]), 1e-4 * rng.standard_normal((32, 32))
    ends = [
        forward(
            replace(fit, nuisance=fit.nuisance + h * bump),
            law=Law(fit.family, fit.coefficients + h * change),
        )
        for h in (-1e-2, 1e-2)
    ]
    imitated = (ends[1] - ends[0]) / 2e-2
    left, shift = projected(projector, imitated)
    assert np.linalg.norm(left) < 1e-3 * np.linalg.norm(imitated)
    scale = fit.noise * fit.evidence.blocks[0].triangle[:3, :3]
    assert np.linalg.norm(scale @ (shift + change)) < 1e-2 * np.linalg.norm(scale @ change)


def test_projection_of_a_projection_changes_nothing(fit, projector, made):
    """With solves ten times as exact as a test needs."""
    point = fit.nuisance[None], fit.theta[None], projector.basis

    def exact(field):
        each = projector.model, *point, field[None, None], projector.constants
        rest, move, _ = compiled().project(*each, crossed=True)
        return rest[0, 0], move[0, 0]

    first, moved = exact(made["q"][0])
    again, still = exact(first)
    left = np.asarray(first)
    np.testing.assert_allclose(again, left, atol=2e-3 * np.abs(left).max())
    assert np.linalg.norm(still) < 0.01 * np.linalg.norm(moved)
    rough, _ = projected(projector, made["q"][0])
    assert np.linalg.norm(rough) == pytest.approx(np.linalg.norm(left), rel=0.02)


def test_score_recovers_a_known_amount_and_takes_correlation_into_account():
    rng = np.random.default_rng(1)
    fields = rng.standard_normal((2, 5, 6, 7))
    fields[1] += fields[0]
    _, values, _ = score(fields, 2.0 * fields[0] - 3.0 * fields[1], 0.1)
    np.testing.assert_allclose(values, [2.0, -3.0])
    chi2, _, covariance = score(fields[:1], fields[0], 0.1)
    np.testing.assert_allclose(chi2, np.sum(fields[0] ** 2) / 0.01)
    np.testing.assert_allclose(covariance, 0.01 / np.sum(fields[0] ** 2))


def test_a_direction_that_holds_nothing_has_infinite_error(fit, projector):
    test = ask(fit, projector, "nothing", np.zeros(fit.record.shape))
    assert (test.statistic, test.p, test.error) == (0.0, 1.0, (np.inf,))
    assert sentence(test) == "nothing is 0 +- inf"


def test_a_quiet_border_says_so(fit, projector, made):
    test = ask(fit, projector, "boundary", 1e-4 * made["boundary"][0])
    assert sentence(test) == "the border is too quiet to distinguish periodic from neumann"

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.law import Bernstein, Law
from doublewell.plan import experiment_information
from doublewell.plan.experiment import record_information
from doublewell.simulate import simulate


def trajectory(experiment, start, coefficients):
    """CNAB2 with many steps: another solver than the reader's."""
    law = Law(Bernstein(len(coefficients) - 1), coefficients)
    record = simulate(law, start, dx=experiment.dx, dt=experiment.dt, frames=experiment.frames, substeps=30)
    return record.slab().ravel()


def slopes(function, point, size):
    """Central differences along every entry of a point."""
    steps = size * np.eye(point.size)
    return np.stack([(function(point + s) - function(point - s)) / (2 * size) for s in steps], axis=1)


def gains(one, other):
    """Eigenvalues of one information in units of another."""
    back = np.linalg.inv(other)
    return np.linalg.svd(one @ back, compute_uv=False) ** 2


def test_information_is_that_of_dense_finite_differences(line):
    family, force = Bernstein(3), line.force
    g = force.family.elevation(family) @ force.coefficients
    by_field = slopes(lambda u: trajectory(line, u, g), line.initial, 1e-5)
    by_law = slopes(lambda c: trajectory(line, line.initial, c), g, 1e-2)
    projected = by_law - by_field @ np.linalg.lstsq(by_field, by_law, rcond=None)[0]
    found = record_information(line.movie, family, g)
    np.testing.assert_allclose(gains(found.triangle, np.linalg.qr(projected, mode="r")), 1.0, atol=5e-3)
    assert np.all(np.diag(found.triangle) > 0)
    assert found.rows == 8 * 32
    assert found.solve <= 0.01


def test_first_frames_of_a_long_movie_are_a_short_movie(experiment, known):
    part = experiment_information(experiment(frames=25), frames=13)
    lift = Bernstein(3).elevation(Bernstein(8))  # weaker directions are below the tolerance of the solves
    one, other = (np.linalg.qr(found.triangle @ lift, mode="r") for found in (part, known))
    np.testing.assert_allclose(gains(one, other), 1.0, atol=2e-3)
    assert part.rows == known.rows


def test_every_frame_adds_information(known, small):
    before = None
    for seen in (3, 6, 9, 13):
        now = known if seen == 13 else experiment_information(small, frames=seen)
        if before is not None:
            assert np.min(gains(now.triangle, before.triangle)) > 1.0
        before = now


@pytest.mark.parametrize("law", ["sixth", "exponential"])
def test_a_reading_without_noise_finds_the_law(experiment, law):
    planned = experiment(law)
    found = experiment_information(planned)
    u = np.linspace(-1, 1, 201)
    true = planned.force.force(u)
    error = np.linalg.norm(found.best @ Bernstein(8).features(u) - true) / np.linalg.norm(true)
    assert error < 5e-3  # the time step of CNAB2
    assert np.linalg.norm(found.triangle @ (found.best - _projection(planned))) < 0.05 * planned.noise


def _projection(planned):
    u = np.linspace(-1, 1, 401)
    return np.linalg.lstsq(Bernstein(8).features(u).T, planned.force.force(u), rcond=None)[0]


def test_frames_that_are_not_there_are_refused(small):
    with pytest.raises(InputError, match="frames is 14: expected an integer from 2 to 13"):
        experiment_information(small, frames=14)

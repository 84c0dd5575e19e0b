from dataclasses import replace

import numpy as np
import pytest
from readings import read_trajectories
from scipy.stats import chi2

from doublewell.errors import InputError
from doublewell.inference import approximation_floor, average_degrees
from doublewell.law import Bernstein, Law
from doublewell.plan import Analysis, experiment_information, predict
from doublewell.simulate import add_noise

RECORDS = 48
PHASES = np.linspace(-1, 1, 401)
FALSE_ALARMS = 1e-4


@pytest.fixture(scope="module")
def estimates(small):
    """What the reader makes of repeated noise: evidence of degree 8 from fits of degree 2."""
    records = [add_noise(small.movie, small.noise, seed=7000 + k) for k in range(RECORDS)]
    starts = np.full((RECORDS, 3), 110.0)
    found = read_trajectories(records, starts, family=Bernstein(8))
    assert all(one.status.converged for one in found)
    return [average_degrees(one.evidence, 1.0, constraint="none") for one in found]


def squares(law, coefficients):
    """Squared relative errors of the force, one for each estimate."""
    family = Bernstein(coefficients.shape[1] - 1)
    true = law.force(PHASES)
    return np.sum((coefficients @ family.features(PHASES) - true) ** 2, axis=1) / np.sum(true**2)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_fixed_degree_has_the_predicted_error(small, known, estimates, degree):
    expected = predict(small, known, Analysis(degree, "none"))
    found = squares(small.force, np.stack([average.path[degree].free for average in estimates]))
    lift = Bernstein(degree).elevation(Bernstein(8))
    root = np.linalg.inv(np.linalg.qr(known.triangle @ lift, mode="r")).T @ Bernstein(degree).features(PHASES)
    shares = np.linalg.svd(root, compute_uv=False) ** 2
    freedom = RECORDS * np.sum(shares) ** 2 / np.sum(shares**2)
    low, high = chi2.ppf([FALSE_ALARMS / 2, 1 - FALSE_ALARMS / 2], freedom) / freedom
    assert low < np.mean(found) / expected.force**2 < high


def test_the_average_over_degrees_has_the_predicted_errors(small, known, estimates):
    expected = predict(small, known, Analysis("auto", "none"))
    laws = [Law(Bernstein(8), average.free) for average in estimates]
    ratios = np.array([small.force.tension_integral / law.tension_integral for law in laws])
    heights = ratios[:, None] ** 2 * np.stack([law.primitive(PHASES) for law in laws])
    true = small.force.primitive(PHASES)
    realised = {
        "force": squares(small.force, np.stack([law.coefficients for law in laws])),
        "epsilon": (ratios - 1) ** 2,
        "potential": np.sum((heights - true) ** 2, axis=1) / np.sum(true**2),
    }
    for name, found in realised.items():
        gap = np.log(np.mean(found) / getattr(expected, name) ** 2)
        spread = np.std(found) / np.mean(found) * np.sqrt(1 / RECORDS + 1 / 400)
        assert abs(gap) < 3.9 * spread, name  # two-sided 1e-4
        assert spread < 0.4, name


def test_noise_scales_a_fixed_degree_and_its_bound(small, known):
    loud, quiet = (predict(one, known, Analysis(2, "none")) for one in (small, replace(small, noise=0.5 * small.noise)))
    assert quiet.bound == pytest.approx(0.5 * loud.bound, rel=1e-12)
    assert loud.force == pytest.approx(loud.bound, rel=1e-3)  # unbiased: the law is of degree 1
    assert quiet.force == pytest.approx(0.5 * loud.force, rel=2e-3)
    np.testing.assert_allclose(quiet.pointwise, 0.5 * loud.pointwise, rtol=0.02, atol=1e-12)
    assert loud.pointwise[0] == loud.pointwise[-1] == 0.0


def test_a_degree_that_is_too_low_keeps_its_bias(experiment):
    planned = experiment("bernstein3", noise=1e-3)
    found = predict(planned, experiment_information(planned), Analysis(1, "none"))
    floor = approximation_floor(planned.force, 1).error
    assert found.bias == pytest.approx(found.force, rel=1e-3)
    assert found.force > 0.9 * floor


def test_the_tension_adds_its_own_error(small, known):
    exact = predict(small, known, Analysis(2))
    rough = predict(small, known, Analysis(2, tension_error=0.05))
    assert rough.force == exact.force
    assert rough.epsilon == pytest.approx(np.hypot(0.05, exact.epsilon), rel=0.01)
    assert rough.potential == pytest.approx(0.1, rel=0.1)
    assert exact.refused == 0.0


def test_a_law_without_a_tension_has_an_error_of_the_force_alone(small, known):
    dips = Law.bernstein([-3.0, 1.0, 1.0])
    found = predict(replace(small, law=dips), known, Analysis(2, "none"))
    assert (found.potential, found.epsilon, found.refused) == (None, None, 1.0)


def test_a_movie_of_one_phase_is_refused(small, known):
    still = replace(small, initial=np.full(small.initial.shape, -1.0))
    with pytest.raises(InputError, match="the record does not determine coefficient"):
        predict(still, experiment_information(still), Analysis(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 9}, "degree is 9: expected 'auto', or the degree of the law, an integer from 0 to 8"),
        (
            {"constraint": "cone"},
            "constraint is 'cone': expected 'admissible' .*'bernstein' .*'none'",
        ),
        ({"tension_error": -1}, "tension_error is -1: expected the relative standard deviation"),
    ],
)
def test_wrong_analyses_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Analysis(**options)

"""A short spinodal movie: where the law is not determined is said, and no band is wider than it must be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from found import warned

from doublewell.calibrate import calibrate
from doublewell.errors import InputError
from doublewell.facts import band_size, facts
from doublewell.findings import findings
from doublewell.identify import conclude, identify
from doublewell.inference import Component, DegreeAverage, Posterior
from doublewell.inference.posterior import scalar_interval
from doublewell.law import Bernstein, Law, named_law
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON = 0.05
SIGMA = named_law("sixth").surface_tension(epsilon=1.0)


@pytest.fixture(scope="module")
def short():
    """A spinodal movie of 15 frames that ends at |u| = 0.3."""
    start = initial_field("spinodal", (32, 32), 1 / 32, epsilon=EPSILON, seed=1)
    movie = simulate(named_law("sixth"), start, dx=1 / 32, dt=2e-4, frames=15, epsilon=EPSILON)
    return add_noise(movie, 0.02, seed=1)


@pytest.fixture(scope="module")
def result(short):
    return identify(short, SIGMA, check=False)


def test_the_range_that_was_not_seen_is_named(result):
    found = warned(result)
    assert {"phases-still-forming", "phase-range-not-covered", "numbers-extrapolated"} <= set(found)
    assert "for |u| from 0.3 to 1 the law is not measured" in found["phase-range-not-covered"].sentence


def test_the_band_is_no_wider_than_the_data_ask(result):
    """What a finer step would change is far below the errors here; it used to widen the band ten thousand times.

    Seven tenths of the range were not seen, and a law may be rough there: the band is about as wide as the law.
    """
    assert band_size(result) < 1.2
    table = facts(result)
    low, high = table["epsilon"].interval
    assert low <= EPSILON <= high
    assert low <= result.epsilon <= high
    assert all(table[key].interval for key in ("width", "tension_integral", "epsilon", "barrier", "kappa"))


def test_shifts_that_the_data_feel_stay_as_they_are(result):
    average = DegreeAverage(result.posterior.path, result.posterior.components, None, None, None)
    matrix = 1e-3 * np.triu(np.ones((9, 9)))
    large, small = np.full(9, 100.0), np.full(9, 1e-3)
    felt = conclude.felt(average, result.posterior.family, matrix, np.stack([large, small]))
    np.testing.assert_array_equal(felt[0], large)
    assert not np.allclose(felt[1], small)


def around(law, *, first=1.0, second=1.0, factor=1.0):
    """A posterior of degree 1 around a law, or around a multiple of it, with these errors of its coefficients."""
    mean = factor * law.coefficients
    item = Component(1, None, None, 1.0, mean, mean, np.diag([first**2, second**2]))
    return Posterior(Bernstein(1), (), (item,), np.zeros((1, 2)), constraint="none")


@pytest.fixture(scope="module")
def law():
    return Law(Bernstein(1), named_law("sixth").effective(EPSILON).coefficients)


@pytest.fixture(scope="module")
def found_with(result, law):
    """The findings on what is determined, for a law with another posterior; the movie covers all phases or few."""

    def find(posterior, *, tension=None, covered=True):
        seen = result.diagnostics.survey
        seen = replace(seen, histogram=(0.05,) * 20) if covered else seen
        numbers = replace(result.diagnostics, survey=seen, unconstrained=law.coefficients)
        posterior = replace(posterior, path=result.posterior.path[:1])
        scale = None if tension is None else calibrate(law, tension)
        other = replace(result, law=law, scale=scale, posterior=posterior, diagnostics=numbers)
        return [item for item in findings(other) if item.topic == "determination"]

    return find


def test_a_law_that_is_determined_has_no_warning(law, found_with):
    assert found_with(around(law)) == []


def test_a_band_wider_than_the_law_is_named(law, found_with):
    first = found_with(around(law, second=3000.0))[0]
    assert first.code == "law-undetermined"
    assert 0.2 < first.numbers["low"] < 0.6
    assert 0.8 < first.numbers["high"] < 1.0
    assert "for |u| from" in first.sentence


def test_missing_intervals_are_named_with_their_reason(law, found_with):
    last = found_with(around(law, first=1e6, second=1e6), tension=SIGMA)[-1]
    assert last.code == "interval-missing"
    assert last.sentence.startswith("no interval of width, C_H, epsilon, barrier: more than half of the laws that the")


def test_where_no_law_that_the_data_allow_has_an_interface_intervals_are_refused(law):
    with pytest.raises(InputError, match="more than half"):
        scalar_interval(around(law, factor=-1.0), "width", 0.95, None)


def test_an_estimate_outside_its_own_interval_is_named(law, found_with):
    found = found_with(around(law, factor=4.0), tension=SIGMA, covered=False)
    outside = [item for item in found if item.code == "estimate-outside-interval"]
    assert any(item.sentence.startswith("the estimate of epsilon, 0.05, lies outside its own") for item in outside)


def test_missing_intervals_are_said_in_the_report(result, law):
    posterior = replace(around(law, first=1e6, second=1e6), path=result.posterior.path[:1])
    numbers = replace(result.diagnostics, unconstrained=law.coefficients)
    text = str(replace(result, law=law, posterior=posterior, diagnostics=numbers))
    assert text.count("(no interval: the data allow laws without one)") == 3  # width, epsilon, barrier

"""A short spinodal movie: where the law is not determined is said, and no band is wider than it must be."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from doublewell.calibrate import calibrate
from doublewell.identify import identify
from doublewell.identify.determined import determination_warnings, undetermined
from doublewell.inference import Component, Posterior
from doublewell.law import Bernstein, Law, named_law
from doublewell.observation import survey
from doublewell.result.text import band_size, intervals
from doublewell.simulate import add_noise, initial_field, simulate

ROAD = sys.modules["doublewell.identify.trajectory_road"]
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
    said = result.diagnostics.warnings
    assert any("the pure phases are not reached yet" in line and "record longer" in line for line in said)
    assert any("% of the phase range is visited: for |u| from 0.3 to 1 the law is not seen" in line for line in said)
    assert any(
        "epsilon and F take in all phase values, so they rest on the law where it was not seen" in s for s in said
    )


def test_the_band_is_no_wider_than_the_data_ask(result):
    """What a finer step would change is far below the errors here; it used to widen the band ten thousand times."""
    assert band_size(result) < 1.0
    found = intervals(result)
    low, high = found["epsilon"]
    assert low <= EPSILON <= high
    assert low <= result.epsilon <= high
    assert set(found) == {"width", "tension_integral", "epsilon", "barrier"}


def test_shifts_that_the_data_feel_stay_as_they_are(result):
    average = ROAD.DegreeAverage(result.posterior.path, result.posterior.components, None, None)
    matrix = 1e-3 * np.triu(np.ones((9, 9)))
    large, small = np.full(9, 100.0), np.full(9, 1e-3)
    felt = ROAD.felt(average, result.posterior.family, matrix, np.stack([large, small]))
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
def covered(short):
    return replace(survey(short), histogram=(0.05,) * 20)


def test_a_law_that_is_determined_has_no_warning(law, covered):
    assert determination_warnings(law, around(law), None, covered) == []


def test_a_band_wider_than_the_law_is_said(law, covered):
    posterior = around(law, second=3000.0)
    low, high = undetermined(law, posterior)
    assert 0.2 < low < 0.6
    assert 0.8 < high < 1.0
    said = determination_warnings(law, posterior, None, covered)
    assert said[0].startswith(f"the law is not determined for |u| from {low:.2g} to {high:.2g}: its 95 % band")


def test_missing_intervals_are_named_with_their_reason(law, covered):
    said = determination_warnings(law, around(law, first=1e6, second=1e6), calibrate(law, SIGMA), covered)
    assert said[-1].startswith("no interval of C_H, epsilon, barrier: more than half of the laws that the data allow")


def test_an_estimate_outside_its_own_interval_is_said(law, short):
    said = determination_warnings(law, around(law, factor=4.0), calibrate(law, SIGMA), survey(short))
    assert any(
        line.startswith("the estimate of epsilon, 0.05, lies outside its own 95 % interval, 0.02") for line in said
    )


def test_missing_intervals_are_said_in_the_report(result, law):
    posterior = replace(around(law, first=1e6, second=1e6), path=result.posterior.path[:1])
    numbers = replace(result.diagnostics, unconstrained=law.coefficients)
    text = str(replace(result, law=law, posterior=posterior, diagnostics=numbers))
    assert text.count("(no interval: the data allow laws without one)") == 2

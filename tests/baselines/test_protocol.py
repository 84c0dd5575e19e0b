"""What all methods share: the cost of a block, projections, and whether a force is a double well."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.baselines import BaselineFit, admissible, measured, project
from doublewell.baselines.method import EXACT_DEGREE, evaluated
from doublewell.errors import InputError
from doublewell.law import Law, named_law

U = np.linspace(-1.0, 1.0, 2001)
positive = st.lists(st.floats(0.1, 10.0), min_size=3, max_size=3)


def fit_of(force, law=None):
    return BaselineFit("some", force, 0.0, None, "cpu", law=law)


def test_time_and_memory_are_measured():
    with measured() as cost:
        block = np.ones(8_000_000)
        time.sleep(0.1)
    assert 0.1 <= cost.seconds < 5.0
    assert 0.5 * block.nbytes < cost.memory < 10 * block.nbytes


def test_a_block_that_fails_is_measured_too():
    with pytest.raises(ZeroDivisionError), measured() as cost:
        1 / 0  # noqa: B018
    assert cost.seconds > 0.0


@settings(max_examples=8)
@given(positive)
def test_projection_of_a_member_is_the_member(coefficients):
    law = Law.bernstein(coefficients)
    np.testing.assert_allclose(project(law.force).coefficients, coefficients, rtol=1e-7)
    exact = project(law.force, EXACT_DEGREE, constraint="admissible")
    np.testing.assert_allclose(exact.force(U), law.force(U), atol=1e-7 * max(coefficients))


@settings(max_examples=20)
@given(st.lists(st.floats(-10.0, 10.0), min_size=3, max_size=3))
def test_projections_are_double_wells_and_nearest_of_their_class(coefficients):
    force = Law.bernstein([*coefficients]).force if any(coefficients) else np.sin
    exact = project(force, 2, constraint="admissible")
    inside = project(force, 2)
    assert np.all(inside.coefficients > 0.0)
    assert exact.structure.ok

    def gap(law):
        return np.linalg.norm(law.force(U) - force(U)) / np.linalg.norm(force(U))

    assert gap(exact) <= gap(inside) + 1e-5  # the bracket is held a little above zero


def test_coefficients_decide_the_structure_exactly():
    well, bad = Law.bernstein([1.0, 2.0]), Law.bernstein([1.0, -8.0, 1.0])
    assert admissible(fit_of(well.force, well))
    assert not admissible(fit_of(bad.force, bad))


@pytest.mark.parametrize(
    ("force", "wanted"),
    [
        (named_law("exponential").force, True),
        (named_law("rational").force, True),
        (lambda u: -u * (1 - u**2) + 1e-3, False),  # not zero at the phases
        (lambda u: -u * (1 - u**2) * (u**2 - 0.04), False),  # two more stationary points
        (lambda u: u * (1 - u**2), False),  # upside down
        (lambda u: -(u - 0.1) * (1 - u**2), False),  # the maximum is not in the middle
    ],
)
def test_any_other_force_is_looked_at_on_a_mesh(force, wanted):
    assert admissible(fit_of(force)) is wanted


def test_forces_that_are_no_numbers_are_refused():
    with pytest.raises(InputError, match="not finite at u = -1"), np.errstate(all="ignore"):
        evaluated(lambda u: 1.0 / (u + 1.0), U)
    with pytest.raises(InputError, match=r"returned shape \(\) for \(2001,\) phase values"):
        evaluated(lambda u: 1.0, U)

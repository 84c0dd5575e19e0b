from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.export.content import evaluate, horner, polynomial_of
from doublewell.law import Law, named_law

U = np.linspace(-1.0, 1.0, 301)
W = (1 - U) * (1 + U)
coefficients = st.lists(st.floats(-3.0, 5.0).map(lambda g: round(g, 3)), min_size=1, max_size=9)


@given(coefficients)
def test_force_and_primitive_follow_from_one_list(g):
    law = Law.bernstein(g)
    form = polynomial_of(law)
    assert form.variable == "w"
    force = -U * W * np.polynomial.polynomial.polyval(W, form.force)
    height = W**2 * np.polynomial.polynomial.polyval(W, form.primitive)
    size = max(map(abs, g)) * max(comb(len(g) - 1, j) for j in range(len(g)))
    assert np.allclose(force, law.force(U), rtol=0, atol=1e-12 * size)
    assert np.allclose(height, law.primitive(U), rtol=0, atol=1e-12 * size)


@given(
    st.lists(st.floats(-3.0, 5.0).map(lambda g: round(g, 3)), min_size=2, max_size=8).filter(lambda g: len(g) % 2 == 0)
)
def test_asymmetric_wells_are_written_in_powers_of_the_way_between_the_phases(g):
    law = Law.wells(g, phases=(0.0, 1.0))
    if not np.any(law.coefficients):
        return
    form, t = polynomial_of(law), np.linspace(0.0, 1.0, 301)
    assert form.variable == "t"
    size = max(map(abs, g)) * 2.0 ** len(g)
    assert np.allclose(evaluate(form, t), law.force(t), rtol=0, atol=1e-13 * size)
    height = 0.25 * t**2 * np.polynomial.polynomial.polyval(t, form.primitive)
    assert np.allclose(height, law.primitive(t), rtol=0, atol=1e-12 * size)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6))
def test_horner_reads_as_the_polynomial_with_all_digits(powers):
    for w in (0.0, 0.3, 1.0):
        value = eval(horner(tuple(powers)), {"w": w})
        exact = sum(a * w**k for k, a in enumerate(powers))
        assert value == pytest.approx(exact, rel=1e-12, abs=1e-12 * max(map(abs, powers)) + 1e-300)
    if len(powers) == 1:
        assert eval(horner(tuple(powers))) == powers[0]


def test_well_slope_is_twice_the_first_power():
    law = named_law("bernstein3")
    assert 2 * polynomial_of(law).force[0] == pytest.approx(law.well_curvature, rel=1e-14)


def test_a_formula_of_moderate_degree_is_written_too():
    law = named_law("exponential")
    assert len(polynomial_of(law).force) == law.family.size


def test_a_law_whose_powers_cancel_is_refused():
    steep = Law.from_force(lambda u: -u * (1 - u**2) / (0.05 + (u**2 - 0.5) ** 2))
    with pytest.raises(InputError, match=r"cannot be written in powers.*identify it with a degree of at most 8"):
        polynomial_of(steep)

"""What follows from one force by algebra: primitive, potential, tension, width, and their scaling."""

import subprocess
import sys
from math import atanh, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from doublewell.errors import InputError
from doublewell.law import LAW_NAMES, MAX_DEGREE, Bernstein, Law, named_law
from doublewell.runtime import double_precision

PHASES = np.linspace(-1.3, 1.3, 521)
INSIDE = np.linspace(-1.0, 1.0, 401)
LAWS = [named_law(name) for name in LAW_NAMES]

every_law = pytest.mark.parametrize("law", LAWS, ids=LAW_NAMES)
many = settings(derandomize=True, deadline=None, max_examples=50)


def message(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("degree", range(MAX_DEGREE + 1))
def test_force_and_primitive_are_combinations_of_the_features(degree):
    g = np.random.default_rng(degree).uniform(-2, 2, degree + 1)
    law, family = Law.bernstein(g), Bernstein(degree)
    np.testing.assert_allclose(law.force(PHASES), g @ family.features(PHASES), atol=1e-14)
    np.testing.assert_allclose(law.primitive(PHASES), g @ family.primitives(PHASES), atol=1e-15)


@every_law
def test_primitive_is_the_integral_of_the_force(law):
    for u in (-0.95, -0.3, 0.0, 0.6, 1.0):
        wanted, _ = quad(law.force, -1, u, epsabs=1e-13)
        assert law.primitive(u) == pytest.approx(wanted, abs=1e-13)
    assert np.all(law.primitive(np.array([-1.0, 1.0])) == 0)


@every_law
def test_symmetry(law):
    np.testing.assert_array_equal(law.force(-PHASES), -law.force(PHASES))
    np.testing.assert_array_equal(law.primitive(-PHASES), law.primitive(PHASES))


@every_law
def test_curvatures(law):
    s = 1e-4
    curvature = (law.force(s) - law.force(-s)) / (2 * s)
    assert law.centre_curvature == pytest.approx(curvature, rel=1e-6)
    assert law.well_curvature == pytest.approx(law.force(1 + s) / s, rel=1e-11)
    assert law.barrier == law.primitive(0.0)


def test_potential_is_epsilon_squared_times_the_primitive():
    law = named_law("sixth").effective(0.1)
    np.testing.assert_allclose(law.potential(INSIDE, epsilon=0.1), named_law("sixth").primitive(INSIDE), atol=1e-16)


def test_quartic_has_its_exact_tension_and_width():
    law = named_law("quartic")
    assert law.tension_integral == pytest.approx(2 * sqrt(2) / 3, rel=1e-14)
    assert law.surface_tension(epsilon=0.3) == pytest.approx(0.3 * 2 * sqrt(2) / 3, rel=1e-14)
    assert law.interface_width() == pytest.approx(2 * sqrt(2) * atanh(0.9), rel=1e-14)
    assert law.interface_width(-0.5, 0.99) == pytest.approx(sqrt(2) * (atanh(0.99) + atanh(0.5)), rel=1e-14)
    assert law.barrier == 0.25
    assert (law.well_curvature, law.centre_curvature) == (2.0, -1.0)


@every_law
def test_tension_and_width_agree_with_adaptive_quadrature(law):
    tension, _ = quad(lambda u: np.sqrt(2 * law.primitive(u)), -1, 1, epsabs=1e-13)
    width, _ = quad(lambda u: 1 / np.sqrt(2 * law.primitive(u)), -0.9, 0.9, epsabs=1e-13)
    assert law.tension_integral == pytest.approx(tension, rel=1e-11)
    assert law.interface_width() == pytest.approx(width, rel=1e-11)


def test_width_is_that_of_the_planar_profile():
    law = named_law("bernstein3")  # the profile solves u' = sqrt(2 H)
    run = solve_ivp(
        lambda _, u: np.sqrt(2 * law.primitive(u)),
        (0, 20),
        [-0.9],
        events=lambda _, u: u[0] - 0.9,
        rtol=1e-11,
        atol=1e-12,
    )
    assert law.interface_width() == pytest.approx(run.t_events[0][0], rel=1e-8)


@many
@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=MAX_DEGREE + 1), st.floats(0.1, 10), st.floats(0.01, 1))
def test_scaling_epsilon_and_potential_together(coefficients, s, epsilon):
    law = Law.bernstein(coefficients)  # read as F'
    scaled = law.scaled(s**2)
    one, other = law.effective(epsilon), scaled.effective(s * epsilon)
    np.testing.assert_allclose(other.coefficients, one.coefficients, rtol=1e-14)
    assert other.interface_width() == pytest.approx(one.interface_width(), rel=1e-13)
    assert other.surface_tension(epsilon=s * epsilon) == pytest.approx(
        s * one.surface_tension(epsilon=epsilon), rel=1e-13
    )
    # sigma(F) does not know epsilon: epsilon C_H is the integral of sqrt(2 F)
    assert one.surface_tension(epsilon=epsilon) == pytest.approx(law.tension_integral, rel=1e-13)
    assert one.interface_width() == pytest.approx(epsilon * law.interface_width(), rel=1e-13)


@every_law
def test_jax_gives_the_same_values(law):
    with double_precision():
        u = jnp.asarray(PHASES)
        found = [np.asarray(f(u)) for f in (law.force, law.primitive)]
        compiled = np.asarray(jax.jit(law.force)(u))
        slopes = np.asarray(jax.vmap(jax.grad(law.primitive))(u))
        assert all(isinstance(f(u), jax.Array) for f in (law.force, law.primitive))
    assert found[0].dtype == np.float64
    np.testing.assert_allclose(found[0], law.force(PHASES), atol=1e-14)
    np.testing.assert_allclose(found[1], law.primitive(PHASES), atol=1e-14)
    np.testing.assert_allclose(compiled, law.force(PHASES), atol=1e-14)
    away = np.abs(np.abs(PHASES) - 1) > 1e-9  # the derivative of a clip at its end is a convention
    np.testing.assert_allclose(slopes[away], law.force(PHASES)[away], atol=1e-12)


@pytest.mark.parametrize("degree", range(MAX_DEGREE + 1))
def test_jax_gives_the_same_features(degree):
    family = Bernstein(degree)
    with double_precision():
        u = jnp.asarray(PHASES)
        features, primitives = np.asarray(family.features(u)), np.asarray(family.primitives(u))
    np.testing.assert_allclose(features, family.features(PHASES), atol=1e-15)
    np.testing.assert_allclose(primitives, family.primitives(PHASES), atol=1e-15)


def test_lists_numbers_and_whole_numbers_are_phase_values():
    law = named_law("sixth")
    assert law.force([0.5, -0.5]).tolist() == [law.force(0.5), -law.force(0.5)]
    assert law.force(np.array([2, 0])).tolist() == [law.well_curvature, 0.0]
    assert np.shape(law.primitive(0.5)) == ()


def test_coefficients_are_kept_read_only():
    mine = np.array([1.0, 2.0])
    law = Law.bernstein(mine)
    mine[0] = 9.0
    assert law.coefficients.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        law.coefficients[0] = 3.0


def test_scaled_and_effective():
    law = named_law("sixth")
    assert law.scaled(4.0).coefficients.tolist() == [3.0, 6.0]
    assert law.scaled(4.0).name == "sixth"
    assert law.effective(0.5).coefficients.tolist() == [3.0, 6.0]


def test_repr_says_what_the_law_is():
    assert repr(named_law("sixth")) == (
        "Law('sixth', bernstein degree 1: two stable pure phases and one central maximum)"
    )
    assert repr(Law.bernstein([1.0, 0.0])) == ("Law(bernstein degree 1: the pure phases are marginal (zero curvature))")


def test_lowest_value_of_the_primitive():
    assert named_law("quartic").lowest == 0.25
    law = Law.bernstein([1.0, -2.0])  # bracket 1 - 3 z: wells lower than the pure phases near them
    z = 1 / 3
    assert law.lowest == pytest.approx((1 - z) ** 2 * law.family.reduced(law.coefficients, z))
    assert law.lowest < 0
    assert np.min(law.primitive(INSIDE)) >= law.lowest


def test_no_tension_where_the_potential_falls_below_the_pure_phases():
    law = Law.bernstein([1.0, -2.0])
    text = message(lambda: law.surface_tension(epsilon=0.1))
    assert text == (
        f"the potential falls below the pure phases (lowest H = {law.lowest:.3g}), so no planar interface joins "
        "them and no surface tension exists; use constraint='admissible', or more data"
    )
    assert message(law.interface_width) == (
        "H is not positive between the levels -0.9 and 0.9, so no planar interface joins them"
    )


def test_a_zero_law_has_no_tension_at_all():
    assert Law.bernstein([0.0, 0.0]).tension_integral == 0.0


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.5), (0.5, 0.5), (0.9, -0.9), (-0.5, 1.0)])
def test_width_levels(low, high):
    assert message(lambda: named_law("sixth").interface_width(low, high)) == (
        f"width levels are {low:g} and {high:g}: expected -1 < low < high < 1"
    )


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf])
def test_epsilon_must_be_positive(epsilon):
    assert message(lambda: named_law("sixth").effective(epsilon)) == (
        f"epsilon is {epsilon:g}: expected the interface scale, a positive number"
    )


@pytest.mark.parametrize("epsilon", [1e-200, 1e-160, 1e200])
def test_epsilon_beyond_the_range_of_numbers(epsilon):
    assert message(lambda: named_law("sixth").effective(epsilon)) == (
        f"epsilon is {epsilon:g}, and F'/epsilon^2 is beyond the range of numbers: expected the interface scale in the "
        "units of dx, a few cells"
    )


@pytest.mark.parametrize("epsilon", [-1, "a", None, True, np.ones(2)])
def test_epsilon_of_a_tension_and_a_potential(epsilon):
    law = named_law("sixth")
    for call in (lambda: law.surface_tension(epsilon=epsilon), lambda: law.potential(0.0, epsilon=epsilon)):
        assert message(call).endswith(": expected the interface scale, a positive number")


def test_wrong_levels_of_a_width():
    assert message(lambda: named_law("sixth").interface_width("a")) == (
        "a width level is 'a': expected a phase value, a finite number"
    )


def test_wrong_coefficients():
    assert message(lambda: Law(Bernstein(2), [1.0, 2.0])) == "coefficients have shape (2,): expected (3,)"
    assert message(lambda: Law.bernstein([1.0, np.nan])) == "coefficients are not finite: expected finite numbers"
    assert message(lambda: Law.bernstein(np.ones(10))) == "degree is 9: expected an integer from 0 to 8"
    assert message(lambda: Law.bernstein([])) == "coefficients have shape (0,): expected a list of 1 to 9 numbers"
    assert message(lambda: Law.bernstein(np.ones((2, 2)))) == (
        "coefficients have shape (2, 2): expected a list of 1 to 9 numbers"
    )
    assert message(lambda: Law.bernstein(["a"])) == "coefficients is ['a']: expected numbers"
    assert message(lambda: Law(Bernstein(0), 1j)) == "coefficients is 1j: expected numbers"


def test_laws_do_not_load_jax():
    code = "import sys, doublewell.law as law; law.named_law('rational').force(0.5); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

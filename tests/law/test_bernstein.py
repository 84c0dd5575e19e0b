"""The positive family is the paper's, at every degree."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.law import MAX_DEGREE, Bernstein, Family, Law

PHASES = np.linspace(-1.0, 1.0, 401)
OUTSIDE = np.array([-3.0, -1.5, -1.01, 1.01, 1.5, 3.0])
DEGREES = range(MAX_DEGREE + 1)

many = settings(derandomize=True, deadline=None, max_examples=50)
dyadic = st.integers(-(2**20), 2**20).map(lambda k: k / 2**10)


def coefficients(degree):
    return np.random.default_rng(degree).uniform(-2, 2, degree + 1)


def slope(steps, errors):
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@pytest.mark.parametrize("m", DEGREES)
def test_features_are_the_paper_s_formula(m):
    u, family = PHASES, Bernstein(m)
    wanted = [-u * (1 - u**2) * comb(m, j) * (u**2) ** j * (1 - u**2) ** (m - j) for j in range(m + 1)]
    np.testing.assert_allclose(family.features(u), wanted, rtol=1e-13, atol=1e-16)
    assert family.size == m + 1
    assert isinstance(family, Family)


@pytest.mark.parametrize("m", DEGREES)
def test_partition_of_unity(m):
    u = PHASES
    np.testing.assert_allclose(Bernstein(m).features(u).sum(axis=0), -u * (1 - u**2), atol=1e-15)
    np.testing.assert_allclose(Bernstein(m).primitives(u).sum(axis=0), (1 - u**2) ** 2 / 4, atol=1e-15)


def test_primitive_at_degree_two_is_the_paper_s_closed_form():  # Eq. 9
    v = 1 - PHASES**2
    wanted = [v**4 / 8, v**2 * (v / 3 - v**2 / 4), v**2 * (1 / 4 - v / 3 + v**2 / 8)]
    np.testing.assert_allclose(Bernstein(2).primitives(PHASES), wanted, atol=1e-16)


@pytest.mark.parametrize("m", DEGREES)
def test_primitives_are_the_integrals_of_the_features(m):
    nodes, weights = np.polynomial.legendre.leggauss(16)  # exact up to degree 31; the features have 2 m + 3
    half = 0.5 * (PHASES + 1)
    points = -1 + half[:, None] * (nodes + 1)
    integrals = half * (Bernstein(m).features(points) @ weights)
    np.testing.assert_allclose(Bernstein(m).primitives(PHASES), integrals, atol=1e-15)


@pytest.mark.parametrize("m", DEGREES)
def test_the_derivative_of_the_primitive_is_the_feature(m):
    family, steps = Bernstein(m), 2.0 ** -np.arange(4, 8)
    u = np.concatenate([0.8 * PHASES[::10], OUTSIDE[[0, 1, 4, 5]]])
    errors = []
    for s in steps:  # five-point stencil, order four
        at = [family.primitives(u + k * s) for k in (-2, -1, 1, 2)]
        errors.append(np.max(np.abs((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * s) - family.features(u))))
    if m == 0:
        assert max(errors) < 1e-13  # the stencil is exact for a quartic
    else:
        assert 3.5 < slope(steps, errors) < 4.5


@pytest.mark.parametrize("m", DEGREES)
def test_primitives_are_positive_inside_and_vanish_at_the_wells(m):
    family = Bernstein(m)
    assert np.all(family.primitives(np.array([-1.0, 1.0])) == 0)
    assert np.all(family.features(np.array([-1.0, 0.0, 1.0])) == 0)
    assert np.all(family.primitives(PHASES[1:-1]) > 0)
    np.testing.assert_array_equal(family.primitives(PHASES), family.primitives(-PHASES))
    np.testing.assert_array_equal(family.features(PHASES), -family.features(-PHASES))


@pytest.mark.parametrize("m", DEGREES)
def test_curvatures_at_the_wells_and_at_the_centre(m):
    g = coefficients(m)
    law = Law.bernstein(g)
    assert law.well_curvature == pytest.approx(2 * g[-1], rel=1e-15)
    assert law.centre_curvature == pytest.approx(-g[0], rel=1e-15)
    steps = 2.0 ** -np.arange(10, 15)
    for u, curvature in ((0.0, -g[0]), (1.0, 2 * g[-1]), (-1.0, 2 * g[-1])):
        inward = -np.sign(u) if u else 1.0
        slopes = law.force(u + inward * steps) / (inward * steps)
        errors = np.abs(slopes - curvature)
        assert errors[-1] < 1e-2
        assert slope(steps, errors) > 0.9  # one-sided at the wells


@pytest.mark.parametrize("m", DEGREES)
def test_outside_the_force_is_linear_and_the_primitive_parabolic(m):
    g = coefficients(m)
    law, x = Law.bernstein(g), np.sign(OUTSIDE)
    np.testing.assert_allclose(law.force(OUTSIDE), 2 * g[-1] * (OUTSIDE - x), rtol=1e-14)
    np.testing.assert_allclose(law.primitive(OUTSIDE), g[-1] * (OUTSIDE - x) ** 2, rtol=1e-14)
    features, primitives = Bernstein(m).features(OUTSIDE), Bernstein(m).primitives(OUTSIDE)
    assert np.all(features[:-1] == 0)
    assert np.all(primitives[:-1] == 0)
    np.testing.assert_allclose(features[-1], 2 * (OUTSIDE - x), rtol=1e-15)
    np.testing.assert_allclose(primitives[-1], (OUTSIDE - x) ** 2, rtol=1e-15)


@pytest.mark.parametrize("m", DEGREES)
@pytest.mark.parametrize("well", [-1.0, 1.0])
def test_the_extension_is_twice_continuously_differentiable(m, well):
    law, steps = Law.bernstein(coefficients(m)), 2.0 ** -np.arange(7, 12)
    jumps = np.abs(law.force(well + steps) + law.force(well - steps)) / steps  # zero if both slopes agree
    assert slope(steps, jumps) > 0.9
    gap = np.abs(law.primitive(well + steps) - law.primitive(well - steps)) / steps**2
    assert slope(steps, gap) > 0.9


@pytest.mark.parametrize("low", DEGREES)
@pytest.mark.parametrize("high", DEGREES)
def test_elevation_is_exact(low, high):
    if high < low:
        with pytest.raises(InputError) as error:
            Bernstein(low).elevation(Bernstein(high))
        assert str(error.value) == (
            f"cannot elevate degree {low} to degree {high}: expected a degree of at least {low}"
        )
        return
    matrix = Bernstein(low).elevation(Bernstein(high))
    g = coefficients(low)
    exact = [
        [
            float(Fraction(comb(low, j) * comb(high - low, i - j), comb(high, i))) if i >= j else 0.0
            for j in range(low + 1)
        ]
        for i in range(high + 1)
    ]
    assert matrix.tolist() == exact
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(Law.bernstein(matrix @ g).force(PHASES), Law.bernstein(g).force(PHASES), atol=1e-14)
    np.testing.assert_allclose(
        Bernstein(high).features(PHASES).T @ matrix, Bernstein(low).features(PHASES).T, atol=1e-15
    )


@pytest.mark.parametrize("path", [(0, 3, 8), (1, 2, 5), (2, 5, 8), (4, 4, 7), (3, 8, 8)])
def test_elevations_compose(path):
    low, middle, high = (Bernstein(m) for m in path)
    composed = middle.elevation(high) @ low.elevation(middle)
    np.testing.assert_allclose(composed, low.elevation(high), atol=1e-15)


def test_elevation_of_the_paper_s_law_outside_the_cone():
    elevated = Bernstein(2).elevation(Bernstein(5)) @ [0.26, -0.24, 0.26]
    np.testing.assert_allclose(elevated, [0.26, 0.06, -0.04, -0.04, 0.06, 0.26], atol=1e-16)


@many
@given(st.lists(dyadic, min_size=1, max_size=MAX_DEGREE + 1), st.fractions(0, 1, max_denominator=64))
def test_exact_bracket_is_the_bernstein_sum(g, z):
    m = len(g) - 1
    monomials = Bernstein(m).exact_bracket(np.array(g))
    wanted = sum(Fraction(c) * comb(m, j) * z**j * (1 - z) ** (m - j) for j, c in enumerate(g))
    assert sum(c * z**k for k, c in enumerate(monomials)) == wanted
    scale = max(map(abs, g)) + 1
    assert Bernstein(m).bracket(np.array(g), float(z)) == pytest.approx(float(wanted), abs=1e-14 * scale)


@pytest.mark.parametrize("m", DEGREES)
def test_bracket_and_reduced_primitive(m):
    g, u, family = coefficients(m), PHASES[1:-1], Bernstein(m)
    v = (1 - u) * (1 + u)
    inside = np.abs(u) > 0.01
    force = g @ family.features(u)
    np.testing.assert_allclose((-u * v * family.bracket(g, u * u))[inside], force[inside], atol=1e-14)
    np.testing.assert_allclose(family.reduced(g, u * u), (g @ family.primitives(u)) / v**2, rtol=1e-10)
    assert family.reduced(g, 1.0) == pytest.approx(g[-1] / 4, rel=1e-14)  # H''(1) = 8 h(1)


@pytest.mark.parametrize("m", DEGREES)
def test_kernel_table_describes_the_features(m):
    family = Bernstein(m)
    (low, high, z0, z1, z2, *c), binomials, slopes = family.kernel_table()
    u = np.concatenate([PHASES, OUTSIDE])
    x = np.clip(u, low, high)
    z = z0 + z1 * x + z2 * x**2
    front = sum(c[k] * x**k for k in range(4))
    inside = [front * binomials[j] * z**j * (1 - z) ** (m - j) for j in range(m + 1)]
    linear = slopes[0][:, None] * np.minimum(u - low, 0) + slopes[1][:, None] * np.maximum(u - high, 0)
    np.testing.assert_allclose(np.array(inside) + linear, family.features(u), atol=1e-14)


def test_features_keep_the_shape_of_the_phase_values():
    family = Bernstein(3)
    assert family.features(0.5).shape == (4,)
    assert family.primitives(np.float64(0.5)).shape == (4,)
    u = PHASES[:24].reshape(2, 3, 4)
    assert family.features(u).shape == (4, 2, 3, 4)
    assert family.primitives(u).shape == (4, 2, 3, 4)


@pytest.mark.parametrize("degree", [-1, 9, 2.0, 2.5, "2", None, True])
def test_degree_out_of_range(degree):
    with pytest.raises(InputError) as error:
        Bernstein(degree)
    assert str(error.value) == f"degree is {degree!r}: expected an integer from 0 to 8"


def test_equal_degrees_are_equal_families():
    assert Bernstein(3) == Bernstein(np.int64(3))
    assert type(Bernstein(np.int64(3)).degree) is int
    assert Bernstein(3) != Bernstein(4)

"""Stationary points are counted exactly: no root is missed between samples, none is invented."""

from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial

from doublewell.law import Law, StationaryPoint, Structure
from doublewell.law.structure import bracket_roots, classify

many = settings(derandomize=True, deadline=None, max_examples=150)
places = st.fractions(Fraction(-1), Fraction(2), max_denominator=40)


def product(*factors):
    out = [Fraction(1)]
    for factor in factors:
        longer = [Fraction(0)] * (len(out) + len(factor) - 1)
        for i, a in enumerate(out):
            for j, b in enumerate(factor):
                longer[i + j] += a * b
        out = longer
    return out


def root(z):
    return [-Fraction(z), Fraction(1)]


def bernstein(monomials, degree):
    """Bernstein coefficients of a polynomial given by its monomials."""
    return [
        sum(comb(j, k) / comb(degree, k) * float(c) for k, c in enumerate(monomials) if k <= j)
        for j in range(degree + 1)
    ]


def kind(multiplicity, sign_after):
    if multiplicity % 2 == 0:
        return "inflection"
    return "maximum" if sign_after > 0 else "minimum"


def expected(roots, sign):
    """Kinds of the distinct roots in (0, 1) of sign * prod (z - r)^k, from the right."""
    out = []
    for z in sorted(roots, reverse=True):
        if 0 < z < 1:
            out.append((float(z), kind(roots[z], sign)))
        sign *= (-1) ** roots[z]
    return out[::-1]


@many
@given(st.dictionaries(places, st.integers(1, 4), max_size=4), st.sampled_from([1, -1]), st.integers(0, 2))
def test_polynomials_with_known_roots(roots, sign, pairs):
    factors = [root(z) for z, k in roots.items() for _ in range(k)]
    complex_pairs = [[Fraction(1, 4) + Fraction(1, 10**4), Fraction(-1), Fraction(1)]] * pairs
    polynomial = product([Fraction(3 * sign, 7)], *factors, *complex_pairs)
    found, wanted = bracket_roots(polynomial), expected(roots, sign)
    assert [k for _, k in found] == [k for _, k in wanted]
    np.testing.assert_allclose([z for z, _ in found], [z for z, _ in wanted], rtol=1e-15)


@many
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_random_polynomials_agree_with_numpy(seed, degree):
    coefficients = np.random.default_rng(seed).normal(size=degree + 1)
    roots = polynomial.polyroots(coefficients)
    near = [abs(a - b) for i, a in enumerate(roots) for b in roots[:i]]
    assume(min(near, default=1) > 1e-3)  # numpy loses digits in clusters
    real = np.sort(roots[np.abs(roots.imag) < 1e-10].real)
    inside = real[(real > 0) & (real < 1)]
    found = bracket_roots([Fraction(float(c)) for c in coefficients])
    np.testing.assert_allclose([z for z, _ in found], inside, rtol=1e-8)
    for z, what in found:
        change = polynomial.polyval(z, polynomial.polyder(coefficients))
        assert what == ("maximum" if change > 0 else "minimum")


@pytest.mark.parametrize("gap", ["1e-3", "1e-12", "1e-20", "1e-60", "1e-300"])
def test_roots_close_to_the_end_points(gap):
    small = Fraction(gap)
    (low, first), (high, second) = bracket_roots(product(root(small), root(1 - small)))
    assert low == pytest.approx(float(gap), rel=1e-15, abs=0)
    assert high == float(1 - small)
    assert (first, second) == ("minimum", "maximum")


@pytest.mark.parametrize("gap", ["1e-6", "1e-15", "1e-40"])
def test_touching_crossing_and_missing_zero_are_told_apart(gap):
    double, small = product(root("1/3"), root("1/3")), Fraction(gap)
    assert [k for _, k in bracket_roots(double)] == ["inflection"]
    assert bracket_roots([double[0] + small**2, *double[1:]]) == []
    roots = bracket_roots([double[0] - small**2, *double[1:]])
    assert [k for _, k in roots] == ["minimum", "maximum"]
    np.testing.assert_allclose([z for z, _ in roots], [1 / 3 - float(gap), 1 / 3 + float(gap)], rtol=1e-15)


def test_the_last_bit_of_a_coefficient_decides():
    assert Law.bernstein([0.25, -0.25, 0.25]).structure.stationary[0].kind == "inflection"  # (z - 1/2)^2
    assert Law.bernstein([0.25, np.nextafter(-0.25, 0), 0.25]).structure.ok
    crossing = Law.bernstein([0.25, np.nextafter(-0.25, -1), 0.25]).structure
    assert [p.kind for p in crossing.stationary] == ["maximum", "minimum", "maximum", "minimum", "maximum"]


def test_roots_at_zero_and_one_are_not_interior():
    assert bracket_roots(product(root(0), root(0), root(1), root("1/2"))) == [(0.5, "minimum")]
    assert bracket_roots(product(root(0), root(1), root(1), root(1))) == []
    assert bracket_roots(root(1)) == []
    assert bracket_roots([Fraction(5)]) == []
    assert bracket_roots([Fraction(0), Fraction(0)]) == []
    assert bracket_roots([]) == []


def test_a_double_well():
    found = classify([Fraction(1), Fraction(1)])
    assert found == Structure(True, (), (StationaryPoint(0.0, "maximum"),))
    assert str(found) == "two stable pure phases and one central maximum"


@pytest.mark.parametrize(
    ("polynomial", "problems"),
    [
        ([], ["the force is zero everywhere"]),
        ([0, 0], ["the force is zero everywhere"]),
        ([0, 1], ["the central maximum is flat (zero curvature at u = 0)"]),
        ([1, -1], ["the pure phases are marginal (zero curvature)"]),
        (
            [-1, 4],
            [
                "u = 0 is a local minimum: the mixed state is metastable",
                "a local maximum at u = -0.5 and +0.5",
            ],
        ),
        ([1, -4], ["a local minimum at u = -0.5 and +0.5", "the pure phases are not stable"]),
        ([Fraction(1, 16), Fraction(-1, 2), 1], ["an inflection at u = -0.5 and +0.5"]),
        ([-1], ["u = 0 is a local minimum: the mixed state is metastable", "the pure phases are not stable"]),
        (
            [0, -1, 4],
            [
                "u = 0 is a local minimum: the mixed state is metastable",
                "a local maximum at u = -0.5 and +0.5",
            ],
        ),
    ],
)
def test_what_is_wrong_is_said(polynomial, problems):
    found = classify([Fraction(c) for c in polynomial])
    assert not found.ok
    assert list(found.problems) == problems
    assert str(found) == "; ".join(problems)


def test_stationary_points_are_ordered_and_symmetric():
    found = classify(product([Fraction(1)], root("1/4"), root("9/16")))
    assert found.stationary == (
        StationaryPoint(-0.75, "maximum"),
        StationaryPoint(-0.5, "minimum"),
        StationaryPoint(0.0, "maximum"),
        StationaryPoint(0.5, "minimum"),
        StationaryPoint(0.75, "maximum"),
    )


def test_the_local_minimum_of_the_paper_s_structure_figure():
    # A degree-five law close to a double well whose force has extra zeros at u = +-0.0835.
    hidden = 0.0835**2
    law = Law.bernstein(bernstein(polynomial.polymul([-hidden, 1], [2, 1, 0.5, 1, 1]), 5))
    assert law.coefficients[0] < 0 < min(law.coefficients[1:])
    left, centre, right = law.structure.stationary
    assert (left.kind, centre.kind, right.kind) == ("maximum", "minimum", "maximum")
    assert right.u == pytest.approx(0.0835, rel=1e-13)
    assert left.u == -right.u
    assert not law.structure.ok
    assert law.structure.problems == (
        "u = 0 is a local minimum: the mixed state is metastable",
        "a local maximum at u = -0.0835 and +0.0835",
    )
    assert law.primitive(0.0) < law.primitive(right.u)
    assert law.tension_integral > 0  # H > 0 inside, so it still calibrates


def test_a_minimum_narrower_than_any_sampling_is_found():
    law = Law.bernstein(bernstein(product(root(Fraction(1, 10**9)), [Fraction(2), Fraction(1)]), 2))
    assert law.structure.stationary[-1].u == pytest.approx(sqrt(1e-9), rel=1e-6)
    u = np.linspace(-1, 1, 2001)[1:-1]
    assert np.count_nonzero(np.diff(np.sign(law.force(u[u != 0])))) == 1  # samples see one sign change


@many
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9))
def test_positive_coefficients_are_a_double_well(coefficients):
    structure = Law.bernstein(coefficients).structure
    assert structure.ok
    assert structure.stationary == (StationaryPoint(0.0, "maximum"),)


@many
@given(st.integers(0, 2**32 - 1), st.integers(0, 8), st.floats(1e-8, 1e8))
def test_a_positive_factor_changes_nothing(seed, degree, factor):
    g = np.random.default_rng(seed).integers(-9, 10, degree + 1) / 4
    one, other = Law.bernstein(g).structure, Law.bernstein(g * 2.0 ** np.round(np.log2(factor))).structure
    assert one == other

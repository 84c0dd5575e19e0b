"""Any smooth formula becomes a law to 1e-13 of its size; what is no double well is refused."""

from fractions import Fraction
from math import pi, sin

import numpy as np
import pytest
from numpy.polynomial import chebyshev as cheb

from doublewell.errors import InputError
from doublewell.law import Family, Law
from doublewell.law.chebyshev import Chebyshev

U = np.linspace(-1.0, 1.0, 2001)

FORMULAS = {
    "quartic": (lambda u: (1 - u**2) ** 2 / 4, lambda u: -u * (1 - u**2)),
    "exponential": (
        lambda u: (1 - u**2) ** 2 * np.exp(u**2) / 4,
        lambda u: -u * (1 - u**2) * np.exp(u**2) * (1 + u**2) / 2,
    ),
    "rational": (
        lambda u: (1 - u**2) ** 2 / (4 * (1 + 0.7 * u**2)),
        lambda u: -u * (1 - u**2) * (2.7 + 0.7 * u**2) / (2 * (1 + 0.7 * u**2) ** 2),
    ),
    "cosine": (lambda u: (1 + np.cos(np.pi * u)) / np.pi**2, lambda u: -np.sin(np.pi * u) / np.pi),
    "reciprocal": (
        lambda u: (1 - u**2) ** 2 / (2 + u**2),
        lambda u: -2 * u * (1 - u**2) * (5 + u**2) / (2 + u**2) ** 2,
    ),
    "hyperbolic": (
        lambda u: (np.cosh(3 * u) - np.cosh(3)) ** 2 / 100,
        lambda u: 6 * (np.cosh(3 * u) - np.cosh(3)) * np.sinh(3 * u) / 100,
    ),
    "narrow": (  # poles at +-i/3
        lambda u: (1 - u**2) ** 2 / (1 + 9 * u**2),
        lambda u: -2 * u * (1 - u**2) * (11 + 9 * u**2) / (1 + 9 * u**2) ** 2,
    ),
    "tiny": (lambda u: 1e-30 * (1 - u**2) ** 2 * np.cosh(u), None),
    "raised": (lambda u: 5 + (1 - u**2) ** 2, lambda u: -4 * u * (1 - u**2)),  # a constant in F is free
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_potential_becomes_a_law(name):
    potential, force = FORMULAS[name]
    law = Law.from_potential(potential)
    wanted = potential(U) - potential(1.0)
    assert np.max(np.abs(law.primitive(U) - wanted)) <= 1e-13 * np.max(wanted)
    if force:
        assert np.max(np.abs(law.force(U) - force(U))) <= 1e-13 * np.max(np.abs(force(U)))
    assert law.structure.ok


@pytest.mark.parametrize("name", [name for name, (_, force) in FORMULAS.items() if force])
def test_a_force_becomes_a_law(name):
    potential, force = FORMULAS[name]
    law = Law.from_force(force, name=name)
    assert np.max(np.abs(law.force(U) - force(U))) <= 1e-13 * np.max(np.abs(force(U)))
    wanted = potential(U) - potential(1.0)
    assert np.max(np.abs(law.primitive(U) - wanted)) <= 1e-13 * np.max(wanted)
    assert law.structure.ok
    assert law.name == name


def test_both_ways_agree_and_extend_linearly():
    potential, force = FORMULAS["exponential"]
    one, other = Law.from_potential(potential), Law.from_force(force)
    assert one.tension_integral == pytest.approx(other.tension_integral, rel=1e-13)
    assert one.well_curvature == pytest.approx(2 * np.e, rel=1e-11)  # F''(1) = 2 e
    assert other.well_curvature == pytest.approx(2 * np.e, rel=1e-13)
    assert other.force(1.5) == pytest.approx(np.e, rel=1e-13)


def test_a_polynomial_is_reproduced_at_low_degree():
    law = Law.from_force(lambda u: -u * (1 - u**2) * (1 + 2 * u**2 - u**4))
    assert law.family.degree <= 4
    z = np.linspace(0, 1, 11)
    np.testing.assert_allclose(law.family.bracket(law.coefficients, z), 1 + 2 * z - z**2, rtol=0, atol=1e-15 * 4)


def test_a_law_that_is_no_double_well_is_a_law_all_the_same():
    law = Law.from_force(lambda u: -u * (1 - u**2) * (u**2 - 0.25))
    assert law.structure.stationary[-1].u == pytest.approx(0.5, abs=1e-14)
    assert not law.structure.ok


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 30])
def test_family(degree):
    family = Chebyshev(degree)
    assert isinstance(family, Family)
    assert (family.size, family.name) == (degree + 1, "chebyshev")
    c = np.random.default_rng(degree).normal(size=degree + 1)
    z = np.linspace(0, 1, 33)
    bracket = family.bracket(c, z)
    np.testing.assert_allclose(bracket, cheb.chebval(2 * z - 1, c), atol=1e-13)
    # p = 4 h - 2 (1 - z) h' is H' = -u (1 - u^2) p in terms of the reduced primitive h
    h = cheb.Chebyshev.interpolate(lambda x: family.reduced(c, x), degree, domain=[0, 1])
    np.testing.assert_allclose(4 * h(z) - 2 * (1 - z) * h.deriv()(z), bracket, atol=1e-11)


@pytest.mark.parametrize("degree", [0, 1, 5, 12])
def test_exact_bracket(degree):
    c = np.random.default_rng(degree).integers(-8, 9, degree + 1) / 4
    monomials = Chebyshev(degree).exact_bracket(c)
    assert len(monomials) == degree + 1
    for z in (Fraction(0), Fraction(1, 3), Fraction(5, 7), Fraction(1)):
        before, now, total = Fraction(1), 2 * z - 1, Fraction(c[0])
        for k in range(1, degree + 1):
            total += Fraction(c[k]) * now
            before, now = now, 2 * (2 * z - 1) * now - before
        assert sum(a * z**k for k, a in enumerate(monomials)) == total


def refuse(make, law):
    with pytest.raises(InputError) as error:
        make(law)
    return str(error.value)


def test_a_force_must_be_odd_and_a_potential_even():
    way = "shift and scale the phase values so that the wells lie at -1 and +1"
    assert refuse(Law.from_force, lambda u: (1 - u**2) * (1 + u)) == (
        f"the force F' is not symmetric: expected an odd function of u; {way}"
    )
    assert refuse(Law.from_potential, lambda u: u**2 * (1 - u) ** 2) == (
        f"the potential F is not symmetric: expected an even function of u; {way}"
    )


def test_the_wells_must_lie_at_one():
    assert refuse(Law.from_force, lambda u: -u * (2 - u**2)) == (
        "the force F' has no stationary point at u = 1 (slope -1): expected the pure phases at -1 and +1"
    )
    assert refuse(Law.from_potential, lambda u: (2 - u**2) ** 2) == (
        "the potential F has no stationary point at u = 1 (slope -4): expected the pure phases at -1 and +1"
    )


@pytest.mark.parametrize(
    ("make", "law"),
    [
        (Law.from_force, lambda u: -u * (1 - u**2) * (1 + np.abs(u))),
        (Law.from_force, lambda u: -u * (1 - u**2) * np.sqrt(np.abs(u))),
        (Law.from_potential, lambda u: (1 - u**2) ** 2 * (1 + np.abs(u) ** 3)),
        (Law.from_potential, lambda u: (1 - np.abs(u)) ** 2),
        (Law.from_force, lambda u: -np.sign(u) * (np.abs(u) < 0.7)),
    ],
)
def test_a_law_must_be_smooth(make, law):
    text = refuse(make, law)
    assert text.startswith("the law is not smooth enough for a polynomial proxy: relative error ")
    assert text.endswith("expected 1e-13; give a law that is analytic on [-1, 1]")


def test_a_constant_is_no_double_well():
    assert refuse(Law.from_potential, lambda u: 3.0) == "the potential F is constant on [-1, 1]: expected a double well"
    assert refuse(Law.from_force, lambda u: 0 * u) == "the force F' is constant on [-1, 1]: expected a double well"


@pytest.mark.parametrize(
    ("make", "law", "place"),
    [
        (Law.from_force, lambda u: -(1 - u**2) / u, "0"),
        (Law.from_potential, lambda u: np.log1p(-(u**2)), "1"),
        (Law.from_force, lambda u: np.sqrt(0.5 - u**2) * u, "0.7188"),
        (Law.from_potential, lambda u: np.where(np.abs(np.abs(u) - 0.51) < 5e-3, np.nan, (1 - u**2) ** 2), None),
    ],
)
def test_a_law_must_be_finite(make, law, place):
    text = refuse(make, law)
    assert text.startswith("the law is not finite at u = " + (place or ""))
    assert text.endswith(": expected a smooth function on [-1, 1]")


@pytest.mark.parametrize("degree", [-1, 2.5, "3", True])
def test_degree_is_checked(degree) -> None:
    with pytest.raises(InputError, match="expected an integer from 0"):
        Chebyshev(degree)


def test_a_law_must_take_arrays() -> None:
    way = "use numpy's sin, exp, ..., not math's, or wrap it in numpy.vectorize"
    text = refuse(Law.from_force, lambda u: -sin(pi * u))
    assert text.startswith("the law cannot be evaluated on an array (TypeError: only ")
    assert text.endswith(way)
    assert refuse(Law.from_potential, lambda u: np.ones(7)).endswith(way)
    assert refuse(Law.from_force, 3) == "the law is 3: expected a function of u that takes a NumPy array"
    vectorized = Law.from_force(np.vectorize(lambda u: -sin(pi * u)))
    assert vectorized.force(0.5) == pytest.approx(-1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("potential", "force"),
    [
        (lambda u: (1 - u**2) ** 2 / 4, lambda u: -u * (1 - u**2)),
        (lambda u: (1 - u**2) ** 2 * np.exp(u**2) / 4, lambda u: -u * (1 - u**2) * np.exp(u**2) * (1 + u**2) / 2),
        (
            lambda u: (1 - u**2) ** 2 / (1 + 10 * u**2),
            lambda u: -u * (1 - u**2) * (4 * (1 + 10 * u**2) + 20 * (1 - u**2)) / (1 + 10 * u**2) ** 2,
        ),
    ],
    ids=["quartic", "exponential", "steep rational"],
)
def test_the_force_of_a_potential(potential, force) -> None:
    """F' of the proxy loses one digit to the derivative, not more."""
    u = np.linspace(-1.0, 1.0, 2001)
    wanted = force(u)
    error = np.max(np.abs(Law.from_potential(potential).force(u) - wanted)) / np.max(np.abs(wanted))
    assert error < 1e-12


def test_a_proxy_is_a_family_that_no_record_is_read_with() -> None:
    family, g = Chebyshev(3), np.array([1.0, 0.2, -0.1, 0.05])
    assert isinstance(family, Family)
    np.testing.assert_allclose(g @ family.features(U), family.force(g, U), atol=1e-15)
    np.testing.assert_allclose(
        Chebyshev(5).force(family.elevation(Chebyshev(5)) @ g, U), family.force(g, U), atol=1e-15
    )
    for call in (family.kernel_table, family.series, lambda: family.hold("none", g[None], g[None], g[None])):
        with pytest.raises(InputError, match="'chebyshev'"):
            call()

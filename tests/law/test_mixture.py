"""Laws of conserved fields: algebra against quadrature and differences, the common tangent, the class, ideal mixing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from doublewell.errors import InputError
from doublewell.law import INNER, EqualWells, Ideal, Law, Mixture, named_law
from doublewell.law.mixture import least_distance

FAMILIES = [Mixture(0), Mixture(3, (-2.2, 2.0)), Ideal(0, pure=(-0.6, 0.7)), Ideal(3, (-1.9, 2.4), (-0.52, 0.8))]
BEYOND = np.linspace(-1.4, 1.4, 58)  # none at the ends of the range, where the slope bends


def law_of(force, phases=(-2.2, 2.0), degree=3) -> Law:
    family = Mixture(degree, phases)
    return Law(family, family.fitted(force))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.name}{f.degree}")
def test_curves_are_derivatives_of_each_other(family) -> None:
    g = np.random.default_rng(1).standard_normal(family.size)
    u, h = family.middle + family.half * BEYOND, 1e-6
    np.testing.assert_allclose(family.force(g, u), g @ family.features(u), atol=1e-12)
    np.testing.assert_allclose(family.primitive(g, u), g @ family.primitives(u), atol=1e-12)
    slope = (family.primitive(g, u + h) - family.primitive(g, u - h)) / (2 * h)
    np.testing.assert_allclose(slope, family.force(g, u), atol=1e-7)
    bend = (family.force(g, u + h) - family.force(g, u - h)) / (2 * h)
    np.testing.assert_allclose(bend, g @ family._slopes(BEYOND), atol=1e-6)
    assert family.force(g, np.float64(family.middle)) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.name}{f.degree}")
def test_under_jax_it_is_the_same(family) -> None:
    import jax.numpy as jnp

    from doublewell.runtime import double_precision

    g = np.random.default_rng(2).standard_normal(family.size)
    with double_precision():
        force = np.asarray(family.force(jnp.asarray(g), jnp.asarray(BEYOND)))
    np.testing.assert_allclose(force, family.force(g, BEYOND), atol=1e-12)


@pytest.mark.parametrize("name", ["quartic", "sixth", "bernstein3", "exponential"])
@pytest.mark.parametrize("phases", [(-1.0, 1.0), (0.2, 0.9)], ids=str)
def test_a_law_continues_as_its_polynomial(name, phases) -> None:
    """Inside it is the law; beyond it has the force of its bracket in exact arithmetic, and linear ones do not."""
    law = named_law(name).placed(phases)
    continued, s = law.continued(), np.linspace(-1.0, 1.0, 101)
    np.testing.assert_allclose(
        continued.force(law.middle + law.half * s), law.force(law.middle + law.half * s), atol=1e-13
    )
    np.testing.assert_allclose(continued.phases, phases, atol=1e-13)
    s = Fraction(5, 4)
    bracket = sum(c * s ** (2 * k) for k, c in enumerate(law.family.exact_bracket(law.coefficients)))
    there = law.middle + law.half * float(s)
    assert continued.force(there) == pytest.approx(law.half * float(-s * (1 - s * s) * bracket), rel=1e-9)
    assert abs(law.force(there) / continued.force(there) - 1.0) > 0.1


def test_a_law_of_a_mixture_is_continued_already_and_names_its_phases() -> None:
    law = law_of(lambda u: u**3 - u)
    assert law.continued() is law
    assert str(law.structure).startswith("two coexisting phases and one ")


def test_each_degree_lies_in_the_next() -> None:
    for low, high in ((Mixture(1), Mixture(4)), (Ideal(1, pure=(-0.6, 0.6)), Ideal(4, pure=(-0.6, 0.6)))):
        g = np.random.default_rng(3).standard_normal(low.size)
        np.testing.assert_allclose(high.force(low.elevation(high) @ g, BEYOND), low.force(g, BEYOND), atol=1e-12)
    with pytest.raises(InputError, match="does not lie in"):
        EqualWells(1).elevation(Mixture(2))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(tilt=st.floats(-3.0, 3.0), skew=st.floats(-0.4, 0.4), fifth=st.floats(0.0, 0.5), constant=st.floats(-5.0, 5.0))
def test_the_common_tangent_is_that_of_maxwell(tilt: float, skew: float, fifth: float, constant: float) -> None:
    """Equal forces and equal areas, whatever constant is added; H lies above and touches zero at both phases."""

    def force(u):
        return 8.0 * (u**3 - u) + skew * u**4 + fifth * u**5 + constant + 0.1 * tilt * u**2

    law = law_of(force)
    assert law.coexists
    low, high = law.phases
    assert force(low) == pytest.approx(force(high), abs=1e-9)
    assert quad(lambda u: force(u) - force(low), low, high)[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(law.force([low, high]), 0.0, atol=1e-10)
    np.testing.assert_allclose(law.primitive([low, high]), 0.0, atol=1e-10)
    assert np.all(law.primitive(np.linspace(low, high, 99)[1:-1]) > 0.0)
    assert law.tilt == 0.0
    assert law.structure.ok
    assert low < law.spinodal[0] < law.maximum < law.spinodal[1] < high


def test_numbers_are_those_of_the_quartic_law() -> None:
    law = law_of(lambda u: 4.0 * (u**3 - u) + 7.0)
    quartic = Law.bernstein([4.0])
    np.testing.assert_allclose(law.phases, (-1.0, 1.0), atol=1e-12)
    np.testing.assert_allclose(law.spinodal, (-(3**-0.5), 3**-0.5), atol=1e-5)
    for name in ("tension_integral", "barrier", "well_curvature", "centre_curvature"):
        assert getattr(law, name) == pytest.approx(getattr(quartic, name), rel=1e-9), name
    assert law.interface_width() == pytest.approx(quartic.interface_width(), rel=1e-9)
    assert law.maximum == pytest.approx(0.0, abs=1e-9)


def test_draws_have_the_numbers_of_single_laws() -> None:
    family = Mixture(2, (-2.0, 2.2))
    middle = family.fitted(lambda u: 5.0 * (u**3 - u) + u**2)
    rows = middle + 0.2 * np.random.default_rng(4).standard_normal((20, family.size))
    line = family.tangents(rows)
    for k, g in enumerate(rows):
        law = Law(family, g)
        assert (line.low[k], line.high[k]) == pytest.approx(law.phases, abs=1e-12)
        assert family.barriers(rows)[k] == pytest.approx(law.barrier, rel=1e-4)
        assert family.maxima(rows)[k] == pytest.approx(law.maximum, abs=1e-4)
        np.testing.assert_allclose(family.spinodals(rows)[k], law.spinodal, atol=1e-12)
        s = np.linspace(-0.9, 0.9, 7)
        np.testing.assert_allclose(family.heights(rows, s)[k], law.primitive(law.middle + law.half * s), atol=1e-10)


@pytest.mark.parametrize(
    ("force", "words"),
    [
        (lambda u: u, "the force rises everywhere: one phase"),
        (lambda u: -u, "no straight line touches the potential twice"),
        (lambda u: (u - 4.0) ** 3 - 9.0 * (u - 4.0), "the force rises everywhere|no straight line"),
    ],
)
def test_a_law_without_coexisting_phases_says_so(force, words) -> None:
    law = law_of(force)
    assert not law.coexists
    assert law.phases == law.family.phases
    assert law.force(law.family.middle) == pytest.approx(0.0, abs=1e-12)
    assert not law.structure.ok
    assert any(word in str(law.structure) for word in words.split("|"))
    assert not law.family.tangents(law.coefficients[None]).known[0]


@pytest.mark.parametrize("family", [Mixture(5), Ideal(5, pure=(-0.6, 0.6))], ids=lambda f: f.name)
def test_the_nearest_law_of_the_class_falls_in_one_interval(family) -> None:
    wavy = family.fitted(lambda u: 8.0 * u**3 - 1.5 * u + 0.3 * np.sin(25.0 * u))
    s = np.linspace(-INNER, INNER, 201)
    root = np.linalg.qr(family.features(s).T, mode="r")
    assert not family.single_barrier(wavy[None])[0]
    held = family.hold("admissible", root[None], (root @ wavy)[None], wavy[None])
    assert held.moved[0]
    assert family.single_barrier(held.coefficients)[0]
    near = family.hold("admissible", root[None], (root @ wavy)[None], wavy[None], near=wavy)
    assert held.rise[0] <= near.rise[0] * (1.0 + 1e-9)  # the search is never worse than one guess
    free = family.hold("none", root[None], (root @ wavy)[None], wavy[None])
    assert free.rise[0] == 0.0
    plain = family.fitted(lambda u: 8.0 * u**3 - 1.5 * u)
    assert not family.hold("admissible", root[None], (root @ plain)[None], plain[None]).moved[0]


def test_least_distance() -> None:
    """Against the projection on a half-plane and on a corner; infeasible sides have no answer."""
    np.testing.assert_allclose(least_distance(np.array([[3.0, 4.0]]), np.array([5.0])), [0.6, 0.8], atol=1e-12)
    corner = least_distance(np.eye(2), np.array([1.0, -2.0]))
    np.testing.assert_allclose(corner, [1.0, 0.0], atol=1e-12)
    assert least_distance(np.array([[1.0], [-1.0]]), np.array([1.0, 1.0])) is None


def test_the_series_is_that_of_legendre() -> None:
    family = Mixture(3)
    turn, orders = family.series()
    assert orders.tolist() == [0, 0, 0, 1, 2, 3]
    s = np.linspace(-INNER, INNER, 9)
    p4 = np.polynomial.Legendre.basis(4)
    curve = turn[:, 3] @ family.features(s)
    np.testing.assert_allclose(curve - curve[4], p4(s / INNER) - p4(0.0), atol=1e-11)


def regular(chi: float, a: float = 1.0, b: float = 1.0):
    """Return G of f = a phi ln phi + b (1 - phi) ln(1 - phi) + chi phi (1 - phi) for u in (-1, 1), kappa = 1."""
    return lambda u: 0.5 * (a * np.log(0.5 + 0.5 * u) - b * np.log(0.5 - 0.5 * u)) - 0.5 * chi * u


def composition(visited: float, degree: int = 0) -> Ideal:
    """The family of a record with values up to +-visited, pure components at -1 and +1."""
    return Ideal(degree, (-visited / INNER, visited / INNER), (-INNER / visited, INNER / visited))


@pytest.mark.parametrize("chi", [2.2, 2.6, 3.5])
def test_a_regular_solution_has_its_binodal_spinodal_and_chi(chi: float) -> None:
    family = composition(0.999)
    law = Law(family, family.fitted(regular(chi)))
    low, high = law.phases
    assert low == pytest.approx(-high, abs=1e-8)
    assert np.log((1 + high) / (1 - high)) / high == pytest.approx(chi, rel=1e-6)  # equal chemical potentials
    assert law.spinodal[1] == pytest.approx(np.sqrt(1.0 - 2.0 / chi), abs=1e-4)
    assert family.interaction(law.coefficients)[0] == pytest.approx(chi, rel=1e-8)
    assert law.structure.ok


def test_flory_and_huggins_has_unequal_entropies() -> None:
    family = composition(0.99, 1)
    g = family.fitted(regular(1.2, a=1.0, b=0.25))
    np.testing.assert_allclose(g[0] / g[1], 4.0, rtol=1e-6)
    law = Law(family, g)
    low, high = law.phases
    exact = regular(1.2, a=1.0, b=0.25)
    assert exact(low) == pytest.approx(exact(high), abs=1e-6)


def test_the_equation_of_an_ideal_mixture_is_its_force() -> None:
    family = Ideal(2, (-2.0, 2.1), (-0.56, 0.57))
    law = Law(family, np.array([1.0, 1.3, -2.6, 0.05, -0.03]))
    text, _, scale = law.equation(12).split(", ")
    u = np.linspace(*law.phases, 9)
    v = eval(scale.split("=")[1], {"u": u})
    words = {"ln(phi)": "*log(phi)", "ln(1 - phi)": "*log(1 - phi)", " v^": "*v**", " v": "*v"}
    code = text.split("=")[1]
    for word, python in words.items():
        code = code.replace(word, python)
    force = eval(code, {"v": v, "phi": (1 + v) / 2, "log": np.log})
    np.testing.assert_allclose(force, law.force(u), atol=1e-9)


def test_values_beyond_a_pure_component_are_refused() -> None:
    with pytest.raises(InputError, match="reach beyond a pure component"):
        Ideal(0, pure=(-0.4, 0.6))
    with pytest.raises(InputError, match="is not a polynomial"):
        Ideal(0, pure=(-0.6, 0.6)).exact_factor(np.ones(3))

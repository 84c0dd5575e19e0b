"""Laws whose wells differ: algebra against quadrature and differences, symmetric laws inside, exact structure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from doublewell.errors import InputError
from doublewell.law import Bernstein, EqualWells, Law, Wells, named_law

U = np.linspace(-1.0, 1.0, 41)
BEYOND = np.linspace(-1.6, 1.6, 65)
FAMILIES = [
    Wells(0),
    Wells(3),
    EqualWells(0),
    EqualWells(2),
    Wells(2, (-0.3, 2.0)),
    Bernstein(2, (0.0, 1.0)),
]


def coefficients(size: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, size, elements=st.floats(-3.0, 3.0))


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_primitives_are_the_integrals_of_the_features(family) -> None:
    low, high = family.phases
    nodes, weights = np.polynomial.legendre.leggauss(24)
    for u in np.linspace(low, high, 7)[1:]:
        x = 0.5 * (u - low) * nodes + 0.5 * (u + low)
        integral = 0.5 * (u - low) * family.features(x) @ weights
        np.testing.assert_allclose(family.primitives(np.array([u]))[:, 0], integral, atol=1e-14)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_force_is_the_sum_of_features_and_bends_into_straight_lines(family) -> None:
    g = np.random.default_rng(1).standard_normal(family.size)
    low, high = family.phases
    u = 0.5 * (low + high) + 0.5 * (high - low) * BEYOND
    np.testing.assert_allclose(family.force(g, u), g @ family.features(u), atol=1e-13)
    np.testing.assert_allclose(family.primitive(g, u), g @ family.primitives(u), atol=1e-13)
    for end, curvature in zip((low, high), family.well_curvatures(g), strict=True):
        out = end + (0.1 if end == high else -0.1) * np.array([1.0, 2.0])
        np.testing.assert_allclose(family.force(g, out), curvature * (out - end), atol=1e-12)
        bend = family.primitive(g, out) - family.primitive(g, np.array([end]))
        np.testing.assert_allclose(bend, 0.5 * curvature * (out - end) ** 2, atol=1e-12)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(m=st.integers(0, 4), data=st.data())
def test_symmetric_laws_lie_in_both_families(m: int, data: st.DataObject) -> None:
    g = data.draw(coefficients(m + 1))
    wanted = Bernstein(m).force(g, BEYOND)
    size = max(1.0, float(np.max(np.abs(g))))
    for family in (Wells(m), Wells(m + 1), EqualWells(m), EqualWells(m + 1)):
        inside = Bernstein(m).elevation(family) @ g
        np.testing.assert_allclose(family.force(inside, BEYOND), wanted, atol=1e-12 * size * 4.0**m)


def test_elevation_keeps_the_law_and_smaller_families_are_no_target() -> None:
    g = np.array([-1.0, 0.3, 0.2, 1.4])
    np.testing.assert_allclose(
        Wells(3).force(Wells(1).elevation(Wells(3)) @ g, BEYOND), Wells(1).force(g, BEYOND), atol=1e-14
    )
    h = EqualWells(1).elevation(EqualWells(4)) @ g[:3]
    np.testing.assert_allclose(EqualWells(4).force(h, BEYOND), EqualWells(1).force(g[:3], BEYOND), atol=1e-13)
    with pytest.raises(InputError, match="cannot elevate degree 2 to degree 1"):
        Wells(2).elevation(Wells(1))
    with pytest.raises(InputError, match="does not lie in 'equal_wells'"):
        Wells(1).elevation(EqualWells(2))
    with pytest.raises(InputError, match="the phases differ"):
        Wells(1).elevation(Wells(1, (0.0, 1.0)))


@pytest.mark.parametrize("name", ["quartic", "sixth", "bernstein3"])
@pytest.mark.parametrize("kind", [Wells, EqualWells])
def test_a_symmetric_law_written_with_wells_has_the_same_numbers(name: str, kind: type) -> None:
    law = named_law(name)
    family = kind(law.family.degree)
    other = Law(family, law.family.elevation(family) @ law.coefficients)
    assert other.structure.ok
    assert abs(other.maximum) < 1e-14
    assert other.tilt == 0.0
    np.testing.assert_allclose(other.barrier, law.barrier, rtol=1e-13)
    np.testing.assert_allclose(other.well_curvatures, law.well_curvatures, rtol=1e-12)
    np.testing.assert_allclose(other.centre_curvature, law.centre_curvature, rtol=1e-12)
    np.testing.assert_allclose(other.tension_integral, law.tension_integral, rtol=1e-12)
    np.testing.assert_allclose(other.interface_width(), law.interface_width(), rtol=1e-12)


def test_a_tilted_law_has_two_barriers_and_no_planar_tension() -> None:
    law = Law.wells([-1.2, 0.8])  # r = s - 0.2
    assert law.structure.ok
    assert str(law.structure) == "two stable pure phases and one maximum between, at u = 0.2"
    np.testing.assert_allclose(law.tilt, 4.0 / 15.0, rtol=1e-14)  # 0.2 times the integral of 1 - s^2
    np.testing.assert_allclose(law.barriers[0] - law.barriers[1], law.tilt, rtol=1e-14)
    assert law.barrier == law.barriers[1]
    np.testing.assert_allclose(law.well_curvatures, (2.4, 1.6))
    np.testing.assert_allclose(law.centre_curvature, -(1.0 - 0.04), rtol=1e-14)
    assert not law.has_interface
    for ask in (lambda: law.tension_integral, law.interface_width):
        with pytest.raises(InputError, match=r"not equally deep \(they differ by 66 %.*travels.*no planar tension"):
            ask()


def test_phases_move_the_law_and_keep_its_interface() -> None:
    law = named_law("sixth")
    moved = law.placed((0.0, 1.0))
    u = np.linspace(-0.2, 1.2, 29)
    np.testing.assert_allclose(moved.force(u), 0.5 * law.force(2.0 * u - 1.0), atol=1e-15)
    assert moved.structure.ok
    assert moved.maximum == 0.5
    np.testing.assert_allclose(moved.tension_integral, 0.25 * law.tension_integral, rtol=1e-14)
    np.testing.assert_allclose(moved.interface_width(), law.interface_width(), rtol=1e-14)
    assert moved.placed((-1.0, 1.0)).family == law.family
    with pytest.raises(InputError, match="width levels are 0.05 and 1.2: expected 0 < low < high < 1"):
        moved.interface_width(high=1.2)


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        ([1.0, 1.0], "the phase u = -1 is not stable"),
        ([-1.0, 0.0], r"the phase u = 1 is marginal"),
        ([0.0, 0.0], "the force is zero everywhere"),
    ],
)
def test_structure_says_what_is_wrong(factor: list[float], said: str) -> None:
    import re

    assert re.search(said, str(Law.wells(factor).structure))


def test_extra_stationary_points_and_a_flat_maximum_are_found() -> None:
    three = np.polynomial.polynomial.polyfromroots([-0.5, 0.1, 0.6])
    law = Law(Wells(1), _bernstein_of(three))
    kinds = [(round(point.u, 10), point.kind) for point in law.structure.stationary]
    assert kinds == [(-0.5, "maximum"), (0.1, "minimum"), (0.6, "maximum")]
    assert not law.structure.ok
    flat = Law(Wells(1), np.array([-1.0, 1.0, -1.0, 1.0]))  # r = s^3
    assert "the maximum at u = 0 is flat" in str(flat.structure)


def _bernstein_of(powers: np.ndarray) -> np.ndarray:
    s = np.cos(np.linspace(0.0, np.pi, powers.size))
    family = Wells(powers.size // 2 - 1)
    basis = np.stack([family.factor(row, s) for row in np.eye(powers.size)], axis=1)
    return np.linalg.solve(basis, np.polynomial.polynomial.polyval(s, powers))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="expected a list of 2, 4, ... 18 numbers"):
        Law.wells([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="expected the lower one first"):
        named_law("quartic").placed((1.0, 0.0))
    with pytest.raises(InputError, match="expected a pair such as"):
        named_law("quartic").placed(3.0)
    with pytest.raises(InputError, match="use family.read_with"):
        EqualWells(1).kernel_table()
    with pytest.raises(InputError, match=r"use phases=\(0.0, 1.0\) of identify"):
        Wells(1, (0.0, 1.0)).kernel_table()


def test_jax_and_numpy_agree() -> None:
    import jax.numpy as jnp

    from doublewell.runtime import double_precision

    for family in FAMILIES:
        g = np.random.default_rng(3).standard_normal(family.size)
        with double_precision():
            np.testing.assert_allclose(
                np.asarray(family.force(jnp.asarray(g), jnp.asarray(BEYOND))), family.force(g, BEYOND), atol=1e-13
            )

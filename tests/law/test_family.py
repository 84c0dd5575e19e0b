"""What every family promises: linear in its coefficients, the same under reflection, phases, files and embedding."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.io.result_file import decode, encode
from doublewell.law import FAMILIES, Bernstein, Chebyshev, EqualWells, Family, Law, Wells, family_of

KINDS = [Bernstein, EqualWells, Wells]
PHASES = [(-1.0, 1.0), (0.0, 1.0), (-0.3, 2.5)]
S = np.linspace(-1.4, 1.4, 57)  # on both sides of the wells
FITTED = [kind(degree) for kind, degree in product(KINDS, (0, 1, 3))]

seeds = st.integers(0, 10_000)
few = settings(derandomize=True, deadline=None, max_examples=15)


def drawn(family: Family, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(family.size)


def reflected(family: Family, g: np.ndarray) -> np.ndarray:
    """Return the coefficients of the law with u and -u exchanged."""
    if family.symmetric:
        return g
    return g[::-1] if family.equal_depths else -g[::-1]


def u_of(family: Family) -> np.ndarray:
    return family.middle + family.half * S


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("kind", [*KINDS, Chebyshev])
def test_a_family_is_read_back_as_it_was_written(kind: type[Family], phases: tuple[float, float]) -> None:
    family = kind(3, phases)
    written = encode(family, Family, "family")
    assert written["name"] == family.name
    assert decode(written, Family, "family") == family
    assert FAMILIES[family.name] is kind


@pytest.mark.parametrize("family", FITTED, ids=str)
@given(seed=seeds)
@few
def test_reflection_turns_the_force_over(family: Family, seed: int) -> None:
    g = drawn(family, seed)
    law, mirror = Law(family, g), Law(family, reflected(family, g))
    np.testing.assert_allclose(mirror.force(-S), -law.force(S), atol=1e-12)
    assert mirror.well_curvatures == pytest.approx(law.well_curvatures[::-1], abs=1e-12)
    assert mirror.tilt == pytest.approx(-law.tilt, abs=1e-12)
    assert mirror.structure.ok == law.structure.ok
    assert [-p.u for p in reversed(mirror.structure.stationary)] == pytest.approx(
        [p.u for p in law.structure.stationary], abs=1e-9
    )


@pytest.mark.parametrize("family", FITTED, ids=str)
@given(seed=seeds, factor=st.floats(1e-3, 1e3))
@few
def test_everything_is_linear_in_the_coefficients(family: Family, seed: int, factor: float) -> None:
    g, other = drawn(family, seed), drawn(family, seed + 1)
    size = factor * float(np.max(np.abs(g))) + float(np.max(np.abs(other)))
    for curve in (family.force, family.primitive):
        both = factor * curve(g, S) + curve(other, S)
        np.testing.assert_allclose(curve(factor * g + other, S), both, atol=1e-11 * size)
    assert Law(family, factor * g).structure.ok == Law(family, g).structure.ok


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("family", FITTED, ids=str)
def test_other_phases_scale_the_law(family: Family, phases: tuple[float, float]) -> None:
    there, g = family.placed(phases), drawn(family, 3)
    w, u = there.half, u_of(there)
    np.testing.assert_allclose(there.force(g, u), w * family.force(g, S), atol=1e-12)
    np.testing.assert_allclose(there.primitive(g, u), w**2 * family.primitive(g, S), atol=1e-12)
    np.testing.assert_allclose(g @ there.features(u), there.force(g, u), atol=1e-12)
    np.testing.assert_allclose(g @ there.primitives(u), there.primitive(g, u), atol=1e-12)
    assert there.tilt(g) == pytest.approx(w**2 * family.tilt(g))
    assert there.well_curvatures(g) == family.well_curvatures(g)
    assert there.structure(g).ok == family.structure(g).ok
    assert there.placed((-1, 1)) == family
    assert there.at(2).phases == phases
    assert there.read_with.phases == phases


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("family", FITTED, ids=str)
def test_draws_have_their_barrier_at_their_maximum(family: Family, phases: tuple[float, float]) -> None:
    there = family.placed(phases)
    quartic = there.series()[0][:, 0]
    rows = quartic + 0.05 * np.random.default_rng(1).standard_normal((20, family.size))
    assert there.single_barrier(rows).all()
    assert not there.single_barrier(-rows).any()
    laws = [Law(there, g) for g in rows]
    np.testing.assert_allclose(there.maxima(rows), [law.maximum for law in laws], atol=1e-4 * there.half)
    np.testing.assert_allclose(there.barriers(rows), [law.barriers[0] for law in laws], rtol=1e-4)


@pytest.mark.parametrize("phases", PHASES)
def test_embeddings_keep_the_law_and_chain(phases: tuple[float, float]) -> None:
    chain = [Bernstein(1, phases), EqualWells(1, phases), EqualWells(3, phases), Wells(3, phases), Wells(5, phases)]
    for i, small in enumerate(chain):
        g, u = drawn(small, i), u_of(small)
        for k, large in enumerate(chain[i:], start=i):
            np.testing.assert_allclose(large.force(small.elevation(large) @ g, u), small.force(g, u), atol=1e-10)
            for between in chain[i : k + 1]:
                two = between.elevation(large) @ small.elevation(between)
                np.testing.assert_allclose(two, small.elevation(large), atol=1e-10)
        np.testing.assert_allclose(Law(small, g).projected(chain[-1]), small.elevation(chain[-1]) @ g)
    for large, small in ((Wells(2), EqualWells(3)), (EqualWells(2), Bernstein(3)), (Chebyshev(1), Bernstein(3))):
        with pytest.raises(InputError, match="does not lie in"):
            large.elevation(small)


def test_a_law_outside_a_family_is_projected() -> None:
    law = Law.from_force(lambda u: -u * (1 - u**2) * np.exp(u**2))
    found = Law(Bernstein(8), law.projected(Bernstein(8)))
    np.testing.assert_allclose(found.force(S), law.force(S), atol=1e-4)


@pytest.mark.parametrize("family", FITTED, ids=str)
@given(seed=seeds, factor=st.floats(1e-3, 1e3))
@settings(derandomize=True, deadline=None, max_examples=4)
def test_the_nearest_double_well_is_the_same_in_any_unit_and_stays(family: Family, seed: int, factor: float) -> None:
    free = np.stack([drawn(family, seed), drawn(family, seed + 1)])
    root = np.linalg.qr(family.features(np.linspace(-0.95, 0.95, 40)).T, mode="r")
    roots = np.broadcast_to(root, (2, *root.shape))
    held = family.hold("admissible", roots, free @ root.T, free)
    assert all(family.structure(g).ok for g in held.coefficients)
    again = family.hold("admissible", roots, held.coefficients @ root.T, held.coefficients)
    assert not again.moved.any()
    scaled = family.hold("admissible", roots, factor * free @ root.T, factor * free)
    size = float(np.max(np.abs(held.coefficients)))
    np.testing.assert_allclose(scaled.coefficients / factor, held.coefficients, atol=2e-3 * size)
    unchanged = family.hold("none", roots, free @ root.T, free)
    assert np.array_equal(unchanged.coefficients, free)


@pytest.mark.parametrize("family", FITTED, ids=str)
def test_the_series_begins_with_the_quartic_law_and_spans_the_family(family: Family) -> None:
    turn, orders = family.series()
    np.testing.assert_allclose(family.force(turn[:, 0], S), Bernstein(0).force([1.0], S), atol=1e-13)
    assert np.linalg.matrix_rank(turn) == family.size == orders.size
    assert orders.max() == family.degree


def test_wells_by_name() -> None:
    kinds = {"symmetric": Bernstein, "equal": EqualWells, "unequal": Wells}
    for name, kind in kinds.items():
        assert family_of(name, 3) == kind(3)
        assert family_of(name, "auto") == kind(kind.average_degree)
    assert EqualWells(2, (0.0, 1.0)).read_with == Wells(2, (0.0, 1.0))
    assert str(Wells(2, (0.0, 1.0))) == "wells of degree 2 with phases at 0 and 1"


def test_how_a_force_is_written() -> None:
    assert Law.bernstein([0.75, 1.5]).equation() == "G(u) = -u (1 - u^2) [0.75 + 0.75 u^2]"
    assert Law.wells([-1.25, 0.75]).equation() == "G(u) = -(1 - u^2) [-0.25 + 1 u]"
    placed = Law.bernstein([2.0]).placed((0.0, 1.0))
    assert placed.equation(3) == "G(u) = -0.5 (1 - s^2) [2 s], s = (u - 0.5) / 0.5"
    assert Law.bernstein([0.0]).equation() == "G(u) = -u (1 - u^2) [0]"

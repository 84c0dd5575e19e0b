from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.calibrate import NoScale, SurfaceTension, calibrate, refusal_of
from doublewell.errors import InputError
from doublewell.law import LAW_NAMES, Law, named_law


@pytest.mark.parametrize("name", LAW_NAMES)
def test_the_true_tension_gives_the_true_scale(name: str) -> None:
    law = named_law(name)
    scale = calibrate(law.effective(0.03), law.surface_tension(epsilon=1.0))
    assert scale.epsilon == pytest.approx(0.03, rel=1e-12)
    scale = calibrate(law.effective(0.03), SurfaceTension(0.03 * law.surface_tension(epsilon=1.0), normalisation="eE"))
    assert scale.epsilon == pytest.approx(0.03, rel=1e-12)


@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_scale_class_has_one_member_with_a_tension(s: float, sigma: float) -> None:
    """(epsilon, F) and (s epsilon, s^2 F) share G; the tension alone decides, sigma(s^2 F) = s sigma(F)."""
    law = Law.bernstein([2.0, 0.5, 1.0])
    one, other = calibrate(law, sigma), calibrate(law, s * sigma)
    assert other.epsilon == pytest.approx(s * one.epsilon, rel=1e-12)
    assert law.surface_tension(epsilon=other.epsilon) == pytest.approx(s * sigma, rel=1e-12)


def test_sd_is_propagated() -> None:
    law = named_law("quartic").effective(0.1)
    assert calibrate(law, 1.0).epsilon_sd is None
    plain = calibrate(law, SurfaceTension(1.0, sd=0.1))
    root = calibrate(law, SurfaceTension(1.0, sd=0.1, normalisation="eE"))
    assert plain.epsilon_sd == pytest.approx(0.1 * plain.epsilon)
    assert root.epsilon_sd == pytest.approx(0.05 * root.epsilon)


def test_extra_stationary_points_calibrate_while_h_is_positive() -> None:
    law = Law.bernstein([-0.05, 1.0, 1.0])
    assert not law.structure.ok
    assert calibrate(law, 1.0).epsilon > 0


def test_refusals() -> None:
    with pytest.raises(InputError, match="falls below the pure phases .lowest H = -.*constraint='admissible'"):
        calibrate(Law.bernstein([1.0, -20.0, 1.0]), 1.0)
    with pytest.raises(InputError, match=r"law is 'sixth': expected a Law; pass named_law\('sixth'\)"):
        calibrate("sixth", 1.0)
    with pytest.raises(InputError, match="the primitive is zero"):
        calibrate(Law.bernstein([0.0, 0.0]), 1.0)


@pytest.mark.parametrize(
    ("law", "bound", "kind", "number"),
    [
        (Law.bernstein([1.0, -20.0, 1.0]), None, NoScale.NO_INTERFACE, Law.bernstein([1.0, -20.0, 1.0]).lowest),
        (Law.wells([-1.2, 0.8]), None, NoScale.UNEQUAL_DEPTHS, 4.0 / 15.0),
        (Law.bernstein([0.0, 0.0]), None, NoScale.ZERO_LAW, 0.0),
        (Law.bernstein([1e-6, 5e-6]), 1e-6, NoScale.FLAT_LAW, 1e-6),
    ],
)
def test_a_law_without_a_scale_has_a_code_and_a_number(law: Law, bound: float, kind: NoScale, number: float) -> None:
    refused = refusal_of(law, bound)
    assert refused is not None
    assert refused.kind is kind
    assert refused.number == pytest.approx(number)
    assert refusal_of(named_law("outside_cone"), bound) is None


@pytest.mark.parametrize(
    "bad", [0.0, -1.0, float("nan"), float("inf"), "1", True, None, [1.0], np.array([1.0]), 1j, 10**400]
)
def test_tension_must_be_positive(bad) -> None:
    with pytest.raises(InputError, match=r"surface tension is .*: expected a positive number"):
        SurfaceTension(bad)


def test_other_wrong_tensions() -> None:
    with pytest.raises(
        InputError, match="the sd of the surface tension is -1: expected None or a standard deviation, a number of at"
    ):
        SurfaceTension(1.0, sd=-1.0)
    with pytest.raises(InputError, match="normalisation is 'F': expected 'E' or 'eE'"):
        SurfaceTension(1.0, normalisation="F")


def test_numbers_of_numpy_are_numbers() -> None:
    tension = SurfaceTension.of(np.float64(2.0))
    assert tension == SurfaceTension(2.0)
    assert type(tension.value) is float

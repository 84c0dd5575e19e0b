from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.calibrate import Mixing, NoScale, SurfaceTension, calibrate, refusal_of, scaling_of
from doublewell.errors import InputError
from doublewell.law import LAW_NAMES, Ideal, Law, named_law
from doublewell.problem import ask
from doublewell.record import Record


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


def mixture(a: float, b: float, pure=(0.0, 1.0)) -> Law:
    """A mixture of Flory and Huggins with G = a ln phi - b ln(1 - phi) + ..., lengths in um."""
    family = Ideal(0, (-0.4, 1.4), tuple((u - 0.5) / 0.9 for u in pure))
    return Law(family, family.fitted(lambda u: a * np.log(u) - b * np.log(1 - u) - 2.7 * (a + b) * u))


def test_temperature_and_site_volume_fix_kappa() -> None:
    """kappa a_1 du = k T / v_1: for equal volumes, and for chains of different length."""
    density = 1.380649e-23 * 300.0 / 2e-29
    scale = calibrate(mixture(0.8, 0.8), Mixing.of("300 K", "0.02 nm^3"), length_unit="um")
    assert scale.kappa == pytest.approx(density / 0.8 * 1e-6)  # in (J/m^2) um
    assert scale.tension.unit == "J/m^2"
    assert scale.tension.value == pytest.approx(scale.kappa * scale.tension_integral)
    chains = Mixing(300.0, (2e-29, 8e-29), sd=0.1)
    scale = calibrate(mixture(0.8, 0.2), chains, length_unit="um")
    assert scale.kappa == pytest.approx(density / 0.8 * 1e-6)
    assert scale.epsilon_sd == pytest.approx(0.1 * scale.epsilon)


def test_kappa_does_not_depend_on_the_units_of_the_record() -> None:
    mixing = Mixing.of(300.0, 2e-29)
    um = calibrate(mixture(0.8, 0.8), mixing, length_unit="um")
    nm = calibrate(mixture(0.8, 0.8).scaled(1e-6), mixing, length_unit="nm")
    assert nm.tension.value == pytest.approx(um.tension.value)


def test_texts_of_a_mixing() -> None:
    for text in ("300 K, 0.02 nm^3 +- 3 %", "0.3 kK, 20 angstrom^3 +- 0.6 angstrom^3"):
        mixing = scaling_of(text)
        assert (mixing.temperature, mixing.volume, mixing.sd) == (
            pytest.approx(300.0), pytest.approx((2e-29, 2e-29)), pytest.approx(0.03)
        )  # fmt: skip
    assert Mixing(300, 2e-29) == Mixing(300.0, (2e-29, 2e-29))
    assert scaling_of("300 K +- 4 %, 0.02 nm^3 +- 3 %").sd == pytest.approx(0.05)
    assert isinstance(scaling_of("0.3 J/m^2 +- 5 %"), SurfaceTension)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Mixing(-1.0, 2e-29), "temperature is -1"),
        (lambda: Mixing(300.0, (1e-29, 1e-29, 1e-29)), "expected one, or one for each component"),
        (lambda: Mixing.of("300 m", "0.02 nm^3"), "the temperature"),
        (lambda: Mixing.of("300 K", "0.02 nm^2"), "the site volume"),
        (lambda: calibrate(named_law("quartic"), Mixing(300.0, 2e-29), length_unit="um"), "no entropy of ideal mixing"),
        (lambda: calibrate(mixture(0.8, 0.8), Mixing(300.0, 2e-29)), "lengths have no unit"),
        (lambda: calibrate(mixture(-0.8, -0.8), Mixing(300.0, 2e-29), length_unit="um"), "entropy .* is not positive"),
        (
            lambda: ask(
                [Record(np.zeros((3, 8, 8)), dx=1.0, dt=1.0, length_unit="um", time_unit="s")],
                "300 K, 0.02 nm^3",
                dynamics="cahn-hilliard",
            ),
            "the law has none: use wells='ideal'",
        ),
    ],
)
def test_a_mixing_that_cannot_be_used_is_refused(call, words) -> None:
    with pytest.raises(InputError, match=words):
        call()

"""The named laws are the paper's formulas."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.law import LAW_NAMES, Bernstein, Law, named_law

U = np.linspace(-1.0, 1.0, 1001)
V = 1 - U**2
POTENTIALS = {
    "quartic": V**2 / 4,
    "sixth": V**2 * (1 + U**2 / 2) / 4,
    "exponential": V**2 * np.exp(U**2) / 4,
    "rational": V**2 / (4 * (1 + 0.7 * U**2)),
}


def test_names():
    assert LAW_NAMES == ("quartic", "sixth", "bernstein3", "exponential", "rational", "outside_cone")
    for name in LAW_NAMES:
        assert named_law(name).name == name
        assert named_law(name) is named_law(name)


@pytest.mark.parametrize("name", POTENTIALS)
def test_potentials(name):
    np.testing.assert_allclose(named_law(name).primitive(U), POTENTIALS[name], atol=1e-14)


@pytest.mark.parametrize("name", POTENTIALS)
def test_forces_are_the_derivatives_of_the_potentials(name):
    s = U[1] - U[0]
    slopes = (POTENTIALS[name][:-4] - 8 * POTENTIALS[name][1:-3] + 8 * POTENTIALS[name][3:-1]) / (12 * s)
    slopes -= POTENTIALS[name][4:] / (12 * s)
    np.testing.assert_allclose(named_law(name).force(U[2:-2]), slopes, atol=1e-9)


def test_bernstein3():
    law = named_law("bernstein3")
    assert law.family == Bernstein(3)
    assert law.coefficients.tolist() == [0.8, 3.0, 0.3, 1.8]


def test_outside_cone_is_the_paper_s_law_with_the_width_of_the_sixth():
    law = named_law("outside_cone")
    assert law.interface_width() == pytest.approx(named_law("sixth").interface_width(), rel=1e-13)
    z = np.linspace(0, 1, 11)
    bracket = law.family.bracket(law.coefficients, z)
    shape = (z - 0.5) ** 2 + 0.01
    np.testing.assert_allclose(bracket / shape, np.full(11, bracket[0] / shape[0]), rtol=1e-12)
    assert np.min(law.coefficients) < 0
    assert np.min(Bernstein(2).elevation(Bernstein(5)) @ law.coefficients) < 0


@pytest.mark.parametrize("name", LAW_NAMES)
def test_every_named_law_is_a_double_well(name):
    law = named_law(name)
    assert law.structure.ok
    assert [point.u for point in law.structure.stationary] == [0.0]
    assert law.tension_integral > 0
    assert np.all(law.primitive(U[1:-1]) > 0)


def test_laws_outside_every_polynomial_space_need_high_degree():
    for name in ("exponential", "rational"):
        assert named_law(name).family.name == "chebyshev"
        assert named_law(name).family.degree > 8


def test_an_unknown_name():
    with pytest.raises(InputError) as error:
        named_law("octic")
    assert str(error.value) == (
        "no law is named 'octic': expected one of quartic, sixth, bernstein3, exponential, rational, outside_cone"
    )


def test_what_is_no_name():
    with pytest.raises(InputError, match=r"no law is named \['sixth'\]: expected one of quartic"):
        named_law(["sixth"])


def test_a_named_law_is_made_once():
    assert named_law("rational") is named_law("rational")


def test_sixth_is_the_same_law_at_every_degree():
    law = named_law("sixth")
    for degree in range(1, 9):
        g = law.family.elevation(Bernstein(degree)) @ law.coefficients
        np.testing.assert_allclose(Law.bernstein(g).force(U), law.force(U), atol=1e-15)

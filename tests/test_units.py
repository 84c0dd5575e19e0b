"""Units by name: what is read, what is refused, and that conversions are those of arithmetic."""

import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell import units
from doublewell.calibrate import SurfaceTension
from doublewell.errors import InputError
from doublewell.units import check_dimension, convert, energy_power, factor, parse_quantity, unit_text

pint = pytest.importorskip("pint")


@pytest.mark.parametrize(
    ("text", "value", "unit", "joules"),
    [
        ("0.3 J/m^2", 0.3, "J/m^2", 0.3),
        (" 12 mN/m ", 12.0, "mN/m", 0.012),
        ("72 dyn/cm", 72.0, "dyn/cm", 0.072),
        ("5 mJ m^-2", 5.0, "mJ m^-2", 0.005),
        ("2e-3 J / m ** 2", 2e-3, "J / m ** 2", 2e-3),
        ("1 µJ/m²", 1.0, "µJ/m²", 1e-6),
        ("1 eV/nm^2", 1.0, "eV/nm^2", 0.1602176634),
    ],
)
def test_a_quantity_is_a_number_and_a_unit(text, value, unit, joules):
    assert parse_quantity(text, "it") == (value, unit)
    assert convert(value, unit, "J/m^2", "it") == pytest.approx(joules, rel=1e-8)
    assert energy_power(unit, "it") == 2


def test_plain_numbers_have_no_unit():
    assert parse_quantity("0.3", "it") == (0.3, None)
    assert parse_quantity(-2, "it") == (-2.0, None)


def test_quantities_of_any_registry_of_pint_are_read():
    quantity = 0.3 * pint.UnitRegistry()("joule / meter ** 2")
    value, unit = parse_quantity(quantity, "it")
    assert convert(value, unit, "mJ/m^2", "it") == pytest.approx(300.0)
    assert SurfaceTension.of(quantity).value == 0.3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("much", "it is 'much': expected a number, or a number with its unit such as '0.3 J/m^2'"),
        ("nan", "expected a number"),
        ("", "expected a number"),
        ("1 parsnip", "it has the unit 'parsnip', which is not known"),
        ("1 m^9^9^9", "expected the name of a unit"),
        ("1 m^(9^9)", "expected the name of a unit"),
        ("1 m^12345", "expected the name of a unit"),
        ("1 __import__('os').system('true')", "expected the name of a unit"),
        ("1 " + "m" * 200, "expected the name of a unit"),
        ("1 (", "expected the name of a unit"),
        ("1 m/(", "which is not known"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(InputError) as error:
        parse_quantity(text, "it")
    assert message in str(error.value)


@given(st.text(alphabet="mJs/^*()-.0129 eNuk²", max_size=14))
def test_any_text_ends_in_a_unit_or_a_clear_error(text):
    try:
        value, unit = parse_quantity("1 " + text, "it")
    except InputError:
        return
    assert value == float(("1 " + text).split()[0]) or unit is None or value > 0


def test_other_kinds_are_named_in_words():
    with pytest.raises(InputError, match=r"length_unit is in s, which is a time: expected a length, such as m"):
        check_dimension("s", "m", "length_unit")
    with pytest.raises(InputError, match=r"expected a time"):
        check_dimension("kg", "s", "time_unit")


def test_factors_and_names_of_products():
    assert factor((("J/m^2", 1), ("um", 1)), (("J", 1), ("m", -1))) == pytest.approx(1e-6)
    assert factor((("um", 1), ("ms", -1), ("J/m^2", -1)), (("m", 3), ("J", -1), ("s", -1))) == pytest.approx(1e-3)
    assert unit_text((("J", 1), ("m", 0))) == "J"
    assert unit_text((("J/m^2", 2),)) == "(J/m^2)^2"
    assert unit_text((("m", -2),)) == "1/m^2"


@pytest.mark.parametrize(
    ("text", "sd", "unit"),
    [
        ("0.3", None, None),
        ("0.3 +- 2 %", 0.006, None),
        ("0.3 J/m^2", None, "J/m^2"),
        ("0.3 J/m^2 +- 5%", 0.015, "J/m^2"),
        ("0.3 +- 0.01 J/m^2", 0.01, "J/m^2"),
        ("0.3 J/m^2 ± 15 mJ/m^2", 0.015, "J/m^2"),
        ("0.3 J/m^2 +/- 0.015", 0.015, "J/m^2"),
    ],
)
def test_tensions_as_text(text, sd, unit):
    tension = SurfaceTension.of(text)
    assert (tension.value, tension.unit, tension.normalisation) == (0.3, unit, "E")
    assert tension.sd == (None if sd is None else pytest.approx(sd))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.3 Pa", "the surface tension is in Pa: expected an energy per area such as J/m^2 or mN/m"),
        ("-0.3 J/m^2", "surface tension is -0.3: expected a positive number"),
        ("0.3 +- 1 +- 2", "expected one value and one error, such as '0.3 J/m^2 +- 5 %'"),
        ("0.3 J/m^2 +- 1 s", "the error of the surface tension is in s, which is a time"),
        ("0.3 J/m^2 +- x %", "is 'x': expected a number"),
    ],
)
def test_wrong_tensions_are_refused(text, message):
    with pytest.raises(InputError) as error:
        SurfaceTension.of(text)
    assert message in str(error.value)


def test_a_unit_that_is_no_name_is_refused():
    with pytest.raises(InputError, match=r"the unit of the surface tension is 2: expected a name such as 'J/m\^2'"):
        SurfaceTension(0.3, unit=2)
    with pytest.raises(InputError, match=r"in kg: expected an energy per area"):
        SurfaceTension(0.3, unit="kg")


def test_without_pint_the_error_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name == "pint":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match=r"pip install 'doublewell\[units\]'"):
        parse_quantity("0.3 J/m^2", "it")
    monkeypatch.setattr(units, "find_spec", lambda _: None)
    assert SurfaceTension(0.3, unit="J/m^2").unit == "J/m^2"  # as a saved result brings it
    assert parse_quantity("0.3", "it") == (0.3, None)

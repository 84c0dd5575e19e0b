"""Physical numbers against closed forms: a quartic law has kappa = sigma e 3/(2 sqrt 2), f(0) = kappa/(4 e^2)."""

import re
from dataclasses import replace
from math import atanh, sqrt
from pathlib import Path

import numpy as np
import pytest
from grouping import changed

from doublewell.calibrate import SurfaceTension, calibrate
from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.inference import Component, DegreeFit, Posterior
from doublewell.io import load_result, save
from doublewell.law import Bernstein, named_law
from doublewell.physical import physical
from doublewell.record import Record
from doublewell.simulate import initial_field, simulate

pytest.importorskip("pint")

E = 0.3  # um
LAW = named_law("quartic").effective(E)
Q = 2e-3  # um^2/s
SIGMA = 0.4  # J/m^2
KAPPA = SIGMA * E * 1e-6 * 3 / (2 * sqrt(2))  # J/m
BARRIER = KAPPA / (4 * (E * 1e-6) ** 2)  # J/m^3
PAGE = (Path(__file__).parents[1] / "docs/units.md").read_text()


@pytest.fixture(scope="module")
def movie():
    start = initial_field("circle", (32, 32), 0.1, epsilon=E)
    return simulate(named_law("quartic"), start, dx=0.1, dt=2.0, frames=21, epsilon=E, q=Q)


def with_units(movie, **given):
    units = {"length_unit": "um", "time_unit": "s"} | given
    return Record(movie.slab(), dx=movie.dx, dt=movie.dt, q=movie.q, boundary=movie.boundary, **units)


@pytest.fixture(scope="module")
def make(movie):
    """A result of the exact law, as if identified from a movie with these units."""
    weak = identify(with_units(movie), law=0, method="weak")

    def build(tension, axes=2, **settings):
        asked = changed(weak, q=Q, dx=(0.1,) * axes, shape=(21,) + (32,) * axes, **settings)
        return replace(asked, law=LAW, scale=calibrate(LAW, tension))

    return build


@pytest.fixture(scope="module")
def banded(make):
    g = LAW.coefficients
    spread = np.diag((0.02 * g) ** 2)
    fit = DegreeFit(0, 0.0, 1.0, g, g, spread, ())
    posterior = Posterior(
        Bernstein(0), (fit,), (Component(0, None, None, 1.0, g, g, spread),), np.zeros((0, 1)), "bernstein"
    )
    return replace(make(SurfaceTension(SIGMA, 0.02, unit="J/m^2")), posterior=posterior)


@pytest.mark.parametrize("unit", ["J/m^2", "N/m", "pJ/um^2"])
@pytest.mark.parametrize("name", ["E", "eE"])
def test_closed_forms_in_both_normalisations(make, unit, name):
    value = SIGMA / {"J/m^2": 1.0, "N/m": 1.0, "pJ/um^2": 1.0}[unit]
    found = physical(make(SurfaceTension(value, normalisation=name, unit=unit)))
    assert found.kappa.value == pytest.approx(KAPPA, rel=1e-12)
    assert found.barrier.value == pytest.approx(BARRIER, rel=1e-12)
    assert found.mobility.value == pytest.approx(Q * 1e-12 / KAPPA, rel=1e-12)
    assert found.width.value == pytest.approx(2 * atanh(0.9) * sqrt(2) * E, rel=1e-12)
    assert found.diffusion.value == pytest.approx(Q * 1e-12)
    units = [getattr(found, part).unit for part in ("kappa", "barrier", "mobility", "width", "diffusion")]
    assert units == ["J/m", "J/m^3", "m^3/(J s)", "um", "m^2/s"]
    pair = (found.epsilon.value, found.epsilon.unit, found.paper_barrier.value, found.paper_barrier.unit)
    if name == "E":
        assert pair == (found.kappa.value, "J/m", pytest.approx(KAPPA * BARRIER), "J^2/m^4")
    else:
        assert pair == (pytest.approx(sqrt(KAPPA)), "J^0.5/m^0.5", found.barrier.value, "J/m^3")


def test_the_energy_balance_is_the_tension(make):
    """Integrate kappa/2 u_x^2 + f over a planar interface, in SI: this is what the tension means."""
    found = physical(make(SurfaceTension(SIGMA, unit="J/m^2")))
    x = np.linspace(-6 * E, 6 * E, 20001) * 1e-6
    u = np.tanh(x / (sqrt(2) * E * 1e-6))
    density = 0.5 * found.kappa.value * np.gradient(u, x) ** 2 + found.bulk_energy(u)
    assert np.trapezoid(density, x) == pytest.approx(SIGMA, rel=1e-6)


def test_a_line_tension_of_a_film(make):
    found = physical(make(SurfaceTension(SIGMA, unit="pJ/um")))
    assert (found.kappa.unit, found.barrier.unit, found.mobility.unit) == ("J", "J/m^2", "m^2/(J s)")
    assert found.kappa.value == pytest.approx(KAPPA * 1e-6)  # the same number of pJ, not per um
    assert found.paper_barrier.unit == "J^2/m^2"
    line = physical(make(SurfaceTension(SIGMA, unit="pJ"), axes=1))
    assert (line.kappa.unit, line.barrier.unit) == ("J m", "J/m")


def test_other_units_to_show(make):
    result = make(SurfaceTension(SIGMA, unit="J/m^2"))
    found = physical(result, show=("eV", "nm", "ns"))
    assert found.kappa.unit == "eV/nm"
    assert found.kappa.value == pytest.approx(KAPPA / 1.602176634e-19 * 1e-9, rel=1e-8)
    assert found.mobility.unit == "nm^3/(eV ns)"
    assert found.kappa.value * found.mobility.value == pytest.approx(Q * 1e6 * 1e-9)
    with pytest.raises(InputError, match=r"show is in s, which is a time: expected a length"):
        physical(result, show=("J", "s", "s"))


def test_intervals_hold_the_tension_and_the_record(banded):
    found = physical(banded)
    for part in (found.kappa, found.mobility, found.barrier, found.width, found.epsilon, found.paper_barrier):
        assert part.low < part.value < part.high
        assert part.sd is None
    # the tension has 5 %, C_H half of the 2 % of g: kappa sqrt(5^2 + 1^2) %
    assert (found.kappa.high - found.kappa.low) / found.kappa.value == pytest.approx(2 * 1.96 * 0.051, rel=0.06)
    assert found.mobility.low == pytest.approx(Q * 1e-12 / found.kappa.high)
    u = np.array([0.0, 0.5])
    low, high = found.band(u)
    assert low[0] == pytest.approx(found.barrier.low)
    assert high[0] == pytest.approx(found.barrier.high)
    assert np.all((low < found.bulk_energy(u)) & (found.bulk_energy(u) < high))
    ends = banded.interval("kappa")
    assert found.kappa.low == pytest.approx(1e-6 * ends[0])
    with pytest.raises(
        InputError,
        match=r"interval of 'sigma': expected one of 'epsilon'.*'maximum', 'tilt', 'low'.*'q'",
    ):
        banded.interval("sigma")
    with pytest.raises(InputError, match=r"'potential', 'bulk_energy', 'diffusion'"):
        banded.band("energy", u)


def test_without_draws_the_tension_alone_gives_an_error(make):
    found = physical(make(SurfaceTension(SIGMA, 0.02, normalisation="eE", unit="J/m^2")))
    assert found.kappa.low is None
    assert found.kappa.sd == pytest.approx(0.05 * KAPPA)
    assert found.mobility.sd == pytest.approx(0.05 * found.mobility.value)
    assert found.epsilon.sd == pytest.approx(0.025 * found.epsilon.value)
    assert "(from the surface tension alone)" in str(found)
    assert physical(make(SurfaceTension(SIGMA, 0.02, unit="J/m^2"))).paper_barrier.sd == pytest.approx(
        0.1 * KAPPA * BARRIER
    )


def test_units_may_be_said_afterwards(make):
    bare = make(SurfaceTension(SIGMA), length_unit=None, time_unit=None)
    with pytest.raises(InputError, match=r"does not know all its units: pass length=, time=, tension=, such as"):
        physical(bare)
    found = physical(bare, length="um", time="s", tension="J/m^2")
    assert found.kappa.value == pytest.approx(KAPPA)
    with pytest.raises(InputError, match=r"epsilon and F are not determined"):
        physical(replace(bare, scale=None), length="um", time="s", tension="J/m^2")


@pytest.mark.parametrize(
    ("units", "tension", "message"),
    [
        (
            {"length_unit": None, "time_unit": None},
            "0.3 J/m^2",
            "in J/m^2, but the record's lengths have no unit: pass",
        ),
        ({"time_unit": None}, "0.3 J/m^2", "the record's times have no unit"),
        ({"length_unit": "s"}, "0.3 J/m^2", "length_unit is in s, which is a time: expected a length"),
        ({"time_unit": "um"}, "0.3", "time_unit is in um, which is a length: expected a time"),
        ({"length_unit": "parsnip"}, None, "has the unit 'parsnip', which is not known"),
        ({}, "0.3 J", "in J, which does not fit a record of 2 space axes: expected an energy per area (J/m^2) or per"),
    ],
)
def test_units_that_do_not_fit_are_refused_before_the_fit(movie, units, tension, message):
    with pytest.raises(InputError) as error:
        identify(with_units(movie, **units), tension, method="weak")
    assert message in str(error.value)


def test_a_line_tension_does_not_fit_three_axes(make):
    with pytest.raises(InputError, match=r"in J/m, which does not fit a record of 3 space axes.*J/m\^2"):
        physical(make(SurfaceTension(SIGMA, unit="J/m"), axes=3))


def test_print_shows_units_and_survives_a_file(movie, tmp_path):
    result = identify(with_units(movie), "0.4 J/m^2 +- 5 %", method="weak")
    save(result, tmp_path / "result.json")
    again = load_result(tmp_path / "result.json")
    assert str(again) == str(result)
    text = str(result)
    assert "dx = 0.1 um, dt = 2 s" in text
    assert "surface tension 0.4 +- 0.02 J/m^2 of E" in text
    assert "(J/m^2) um" in text
    assert text.index("\nPhysical units\n") < text.index("\nEffective force\n") < text.index("\nScale\n")
    assert "epsilon = kappa" in text.split("\nScale\n")[1].partition("\n\n")[0]
    section = text.split("\nPhysical units\n")[1].partition("\n\n")[0]
    for words in (
        "lengths in um, times in s; G and H in 1/um^2",
        "J/m ",
        "m^3/(J s)",
        "J/m^3",
        " um",
    ):
        assert words in section
    assert physical(again).kappa.value == pytest.approx(KAPPA, rel=0.03)


def test_print_without_a_unit_of_the_tension(movie):
    text = str(identify(with_units(movie), 0.4, method="weak"))
    assert "the surface tension has no unit, so energies have none" in text
    assert "J/m^3" not in text
    assert "Physical units" not in str(identify(movie, 0.4, method="weak"))
    only_lengths = str(identify(with_units(movie, time_unit=None), method="weak"))
    assert "lengths in um, times in an unknown unit" in only_lengths


def numbers(text):
    return [float(x) for x in re.findall(r"(?<![\w.^-])-?\d+\.?\d*(?:e[+-]?\d+)?(?![\w^])", text)]


def test_the_page_runs_and_prints_what_it_says(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (said,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    names = {}
    exec(compile(block, "units.md", "exec"), names)
    printed = capsys.readouterr().out
    assert re.sub(r"[\d.e+-]+", "#", printed) == re.sub(r"[\d.e+-]+", "#", said)
    assert numbers(printed) == pytest.approx(numbers(said), rel=2e-3)
    found = names["dw"].physical(names["result"])
    kappa = 0.3 * 0.3e-6 * 3 / (2 * sqrt(2))
    assert found.kappa.low < kappa < found.kappa.high
    assert found.barrier.low < kappa / (4 * 0.3e-6**2) < found.barrier.high
    by_hand = re.search(r"kappa = 0.3 J/m\^2/C_H = ([\d.e-]+)\s+J/m, f\(0\) = .*? = ([\d.e]+) J", PAGE, flags=re.DOTALL)
    assert float(by_hand[1]) == pytest.approx(kappa, rel=1e-3)
    assert float(by_hand[2]) == pytest.approx(kappa / (4 * 0.3e-6**2), rel=1e-3)

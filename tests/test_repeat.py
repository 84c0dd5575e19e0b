"""Repeat and compare: the same question to the same data gives the same numbers, and anything else is seen."""

from dataclasses import replace

import numpy as np
import pytest
from grouping import changed, grouped

from doublewell.calibrate import SurfaceTension
from doublewell.difference import compare
from doublewell.errors import InputError
from doublewell.identify import identify, repeat
from doublewell.law import named_law
from doublewell.record import Record, checksum
from doublewell.simulate import add_noise, initial_field, simulate

TENSION = SurfaceTension(0.9877, 0.01)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture(scope="module")
def weak(noisy):
    return identify(noisy, TENSION, method="weak")


@pytest.fixture(scope="module")
def small():
    start = initial_field("circle", (24, 24), 1 / 24, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=13, epsilon=0.1)
    return add_noise(clean, 0.02, seed=1)


@pytest.fixture(scope="module")
def fitted(small):
    return identify(small, TENSION, law=1, check=False)


def test_a_result_knows_its_data_and_its_tension(weak, noisy, fitted, small):
    assert weak.problem.records[0].checksum == checksum(noisy)
    assert fitted.problem.records[0].checksum == checksum(small)
    assert weak.problem.tension == fitted.problem.tension == TENSION
    assert identify(noisy, method="weak").problem.tension is None


def test_the_same_again(weak, noisy, fitted, small):
    for result, record in ((weak, noisy), (fitted, small)):
        done = repeat(result, record)
        assert done.data == "the same"
        assert done.comparison.same
        assert done.comparison.equal == done.comparison.fields > 40
        assert "equal to the last bit" in str(done)
        assert checksum(record) in str(done)


def test_the_same_again_with_units(noisy):
    pytest.importorskip("pint")
    known = {"dx": noisy.dx, "dt": noisy.dt, "q": noisy.q, "length_unit": "um", "time_unit": "s"}
    record = Record(noisy.slab(), **known)
    result = identify(record, "0.3 J/m^2 +- 5 %", method="weak")
    for data in (record, noisy):  # the units are those of the result
        assert repeat(result, data).comparison.same


@pytest.mark.parametrize(
    "options",
    [
        {"degree": 4, "constraint": "none", "ridge": 1e-4},
        {"ridge": "validated", "supports": [(3, 0.08)]},
        {"supports": "paper", "derivative": "analytic"},
        {"supports": [(3, 0.08)], "degree": 1},
    ],
)
def test_every_option_is_stored(options, noisy):
    result = identify(noisy, TENSION, **grouped(method="weak", **options))
    assert repeat(result, noisy).comparison.same


def test_a_refused_tension_is_refused_again(noisy):
    result = identify(noisy, TENSION, method="weak")
    no = replace(result, scale=None)
    assert [item.field for item in repeat(no, noisy).comparison.differences] == ["scale"]


def test_the_metadata_are_those_of_the_result(weak, noisy):
    other = Record(noisy.slab(), dx=1.0, dt=1.0, q=7.0)
    done = repeat(weak, other)
    assert done.data == "the same"
    assert done.comparison.same
    assert done.again.resolved.boundary == noisy.boundary
    shifted = Record(noisy.slab(), dx=noisy.dx, times=noisy.times + 3.0, q=1.0)
    assert repeat(weak, shifted).comparison.same


def test_other_data_are_refused_unless_wanted(weak, noisy):
    other = noisy.replace(noisy.slab() * 1.01)
    with refused(r"these are not the data of the result: shape \(31, 64, 64\) with checksum sha256:.*any_data=True"):
        repeat(weak, other)
    done = repeat(weak, other, any_data=True)
    assert done.data == "other data"
    assert not done.comparison.same
    assert "law.coefficients" in [item.field for item in done.comparison.differences]
    assert "not the same" in str(done)
    assert "  and " in str(done)
    with refused("the record has 1 space axes and the result is of 2"):
        repeat(weak, Record(np.zeros((31, 64)), dx=0.1, dt=0.1), any_data=True)


def test_a_result_without_checksum(weak, noisy):
    old = changed(weak, checksum=None)
    with refused("holds no checksum of its data.*any_data=True"):
        repeat(old, noisy)
    done = repeat(old, noisy, any_data=True)
    assert done.data == "not known to be the same"
    assert done.comparison.same


def test_round_off_is_no_difference_and_more_is(weak):
    near = replace(weak, law=replace(weak.law, coefficients=weak.coefficients * (1 + 1e-12)))
    found = compare(weak, near)
    assert found.same
    assert found.equal == found.fields - 1
    assert found.largest == pytest.approx(1e-12, rel=0.01)
    assert str(found).startswith("the same to round-off: ")
    far = replace(weak, law=replace(weak.law, coefficients=weak.coefficients * (1 + 1e-5)))
    (apart,) = compare(weak, far).differences
    assert apart.field == "law.coefficients"
    assert apart.size == pytest.approx(1e-5, rel=0.01)
    assert compare(weak, far, tolerance=1e-4).same
    assert "law.coefficients: [" in str(apart)
    assert "by 1e-05 of its size" in str(apart)


def test_what_counts_and_what_does_not(weak):
    def compared(**changes):
        return compare(weak, changed(weak, **changes))

    assert compared(version="9.9.9").equal == compared().fields  # said apart, and no number
    assert not compared(degree=3).same
    assert not compared(phases=(0.0, 1.0)).same
    numbers = replace(weak.diagnostics, residual=weak.diagnostics.residual + 1e-12, kkt=0.5)
    assert compare(weak, replace(weak, diagnostics=numbers)).same
    assert not compare(weak, replace(weak, diagnostics=replace(numbers, residual=float("nan")))).same
    lost = replace(numbers, active=(0, 1, 2), unconstrained=np.zeros(9))
    assert {item.field for item in compare(weak, replace(weak, diagnostics=lost)).differences} == {
        "diagnostics.active",
        "diagnostics.unconstrained",
    }


def test_texts_are_compared_without_their_numbers(weak):
    def named(words):
        return replace(weak, law=replace(weak.law, name=words))

    assert compare(named("noise 0.1 of 3"), named("noise 0.1000001 of 3")).same
    assert not compare(named("noise 0.1"), named("drift 0.1")).same


def test_the_checksum_is_of_values_and_shape_alone(noisy):
    u = noisy.slab()
    same = [Record(u, dx=9.0, dt=9.0), Record(u.astype(">f8"), dx=1, dt=1), Record(np.asfortranarray(u), dx=1, dt=1)]
    assert {checksum(record) for record in same} == {checksum(noisy)}
    narrow = u.astype(np.float32)
    assert checksum(Record(narrow, dx=1, dt=1)) == checksum(Record(narrow.astype(float), dx=1, dt=1))
    others = [u.reshape(31, 32, 128), u[:, ::-1], u[:-1], np.nextafter(u, 9.0)]
    assert len({checksum(Record(v, dx=1, dt=1)) for v in others} | {checksum(noisy)}) == 5


def test_the_checksum_is_read_in_parts(noisy, monkeypatch):
    whole = checksum(noisy)
    monkeypatch.setattr("doublewell.record.digest._PART", 1)
    sizes = []
    slab = Record.slab
    monkeypatch.setattr(Record, "slab", lambda self, a=0, b=None: sizes.append(b - a) or slab(self, a, b))
    assert checksum(noisy) == whole
    assert sizes == [1] * 31

"""Units: every spelling has one short name; lengths in different units become one; a record keeps both names."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.record import Record
from doublewell.units import common_length, unit_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("µm", "um"), ("μm", "um"), ("\\u00B5m", "um"), ("micron", "um"), ("Microns", "um"), ("micrometer", "um"),
        ("nm", "nm"), ("nanometre", "nm"), ("mm", "mm"), ("m", "m"), ("Å", "angstrom"), ("inch", "inch"), ("cm", "cm"),
        ("s", "s"), ("sec", "s"), ("seconds", "s"), ("msec", "ms"), ("millisecond", "ms"), ("µs", "us"), ("min", "min"),
        ("hours", "h"), ("days", "d"), (" um\0", "um"), ("Mm", "Mm"), ("lattice units", "lattice units"),
        ("pixel", None), ("pixels", None), ("", None), ("1", None), (None, None), (3, None), ("x" * 99, None),
    ],
)  # fmt: skip
def test_spellings(text, name) -> None:
    assert unit_name(text) == name


def test_lengths_of_different_units() -> None:
    assert common_length([100.0, 0.5, 2.0], ["nm", "mm", "um"]) == ([0.1, 500.0, 2.0], "um")
    assert common_length([1.0, 2.0], [None, None]) == ([1.0, 2.0], None)
    assert common_length([1.0, 2.0], ["furlong", "furlong"]) == ([1.0, 2.0], "furlong")
    for units in (["um", None], ["um", "furlong"], ["um", "s"]):
        with pytest.raises(InputError, match="lengths in different units .*pass dx=, in one unit, and length_unit="):
            common_length([1.0, 2.0], units)
    with pytest.raises(InputError, match="not a finite number: pass dx="):
        common_length([1.0, float("nan")], ["um", "nm"])


@pytest.mark.parametrize("suffix", ["npz", "zarr", "nc"])
def test_a_record_keeps_its_units(suffix, tmp_path) -> None:
    record = Record(np.zeros((3, 4, 5)), dx=(0.3, 0.1), dt=0.7, length_unit="um", time_unit=" ms ")
    assert (record.length_unit, record.time_unit) == ("um", "ms")
    assert "dx = 0.3, 0.1 um, t = 0 to 1.4 ms," in repr(record)
    assert (record.clip(0, 2).length_unit, record.replace(np.ones((3, 4, 5))).time_unit) == ("um", "ms")
    save(record, tmp_path / f"movie.{suffix}")
    back = open_record(tmp_path / f"movie.{suffix}")
    assert (back.dx, back.length_unit, back.time_unit) == ((0.3, 0.1), "um", "ms")
    assert back.times.tobytes() == record.times.tobytes()
    other = open_record(tmp_path / f"movie.{suffix}", dx=2.0, dt=3.0)  # of which the unit is not said
    assert (other.length_unit, other.time_unit) == (None, None)
    other = open_record(tmp_path / f"movie.{suffix}", dt=3.0, time_unit="s", length_unit="nm")
    assert (other.dx, other.length_unit, other.time_unit) == ((0.3, 0.1), "nm", "s")


@pytest.mark.parametrize("unit", ["", "  ", 3, "a\nb", "x" * 50])
def test_texts_that_are_no_units(unit) -> None:
    for name in ("length_unit", "time_unit"):
        with pytest.raises(InputError, match=f"{name} is .*: expected the name of a unit, such as 'um' or 's'"):
            Record(np.zeros((3, 4)), dx=1.0, dt=1.0, **{name: unit})

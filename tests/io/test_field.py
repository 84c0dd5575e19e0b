"""Real files of the field: each opens, or asks one true question. They are not in the repository; DOUBLEWELL_FIELD_DATA
names their folder. Files made here with the same traits are in the other tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.io import open_record

OPEN = {
    "moose/Nonconserved_1var_out.e": ({}, (11, 41, 41), "nodal variable 'eta'"),
    "moose/AC_mobility_derivative_test_out.e": ({}, (21, 41), "nodal variable 'op'"),
    "moose/SplitCH_out.e": ({"var": "c", "boundary": "periodic"}, (3, 30, 30), "nodal variable 'c', and not 'w'"),
    "moose/SimpleCHInterface_out.e": ({}, (3, 33, 33), "nodal variable 'cv'"),
    "moose/grain_growth_out.e": ({"var": "gr0"}, None, "nodal variable 'gr0', and not 'bnds', 'gr1'"),
    "moose/auxkernel_out.e": ({}, None, "element variable 'c'"),
    "moose/variable_cahnhilliard_out.e": ({"var": "w"}, (3, 17, 17), "nodal variable 'w', and not 'c', 'disp_x'"),
    "moose/marker_out.e-s002": ({"var": "F"}, None, "element variable 'F'"),
    "mat/deepxde_Allen_Cahn.mat": ({}, (101, 201), "array 'u'"),
    "mat/pysindy_burgers.mat": ({}, (101, 256), "array 'usol'"),
    "png": ({"var": "green", "dx": 1.0, "dt": 1.0, "levels": (0, 255)}, (2, 424, 640), None),
}
ASK = {
    "moose/SplitCH_out.e": ({}, "holds several nodal variables: pass var= with one of c, w"),
    "moose/grain_growth_out.e": ({}, "holds several nodal variables: pass var= with one of bnds, gr0, gr1"),
    "moose/variable_cahnhilliard_out.e": ({}, "several nodal variables: pass var= with one of c, disp_x, disp_y, w"),
    "moose/marker_out.e-s002": ({}, "holds several element variables: pass var= with one of nuc, F, dF/dc"),
    "png": ({}, "png holds several colours: pass var= with one of red, green, blue"),
    "png/bulk_water_005.png": ({}, "holds one picture: expected one for each frame; pass the folder of all pictures"),
}  # fmt: skip


@pytest.fixture(scope="module")
def field() -> Path:
    place = os.environ.get("DOUBLEWELL_FIELD_DATA")
    if place is None:
        pytest.skip("set DOUBLEWELL_FIELD_DATA to the folder of the real files to run this")
    return Path(place)


@pytest.mark.parametrize("name", OPEN)
def test_files_that_open(name, field) -> None:
    said, shape, words = OPEN[name]
    record = open_record(field / name, **said)
    assert np.all(np.isfinite(record.slab()))
    if shape is not None:
        assert record.shape == shape
    if words is not None:
        assert words in record.notes[0].sentence


@pytest.mark.parametrize("name", ASK)
def test_files_that_ask(name, field) -> None:
    said, words = ASK[name]
    with pytest.raises(InputError) as caught:
        open_record(field / name, **said)
    assert words in str(caught.value)


def test_every_file_is_in_these_tests(field) -> None:
    files = {item.relative_to(field).as_posix() for item in field.rglob("*") if item.is_file()} - {"README.md"}
    assert {name for name in files if not name.startswith("png/")} <= {*OPEN, *ASK}


def test_the_second_part_of_an_adaptive_run(field) -> None:
    record = open_record(field / "moose/marker_out.e-s002", var="F")
    assert [note.code for note in record.notes][-1] == "part-of-run"

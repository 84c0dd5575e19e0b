"""Records, results, options and errors travel: pickled and copied they are the same."""

import copyreg
import pickle
from copy import copy, deepcopy

import numpy as np
import pytest

import doublewell as dw
from doublewell.difference import compare
from doublewell.errors import NoStartError, UnfinishedError
from doublewell.facts import facts

WAYS = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": deepcopy, "copy": copy}


@pytest.fixture(params=WAYS)
def travelled(request):
    return WAYS[request.param]


def same(first, second):
    kept = ("dx", "q", "boundary", "length_unit", "time_unit", "origin", "shape", "uniform", "extent")
    return all(getattr(first, name) == getattr(second, name) for name in kept) and np.array_equal(
        first.times, second.times
    )


@pytest.mark.parametrize("kind", ["array", "masked", "xarray", "dask", "file"])
def test_a_record_is_the_same_and_stays_frozen(noisy, travelled, kind, tmp_path):
    record = noisy.clip(0, 3).replace(length_unit="um", boundary=None)
    if kind == "masked":
        record = record.replace(mask=np.arange(64 * 64).reshape(64, 64) % 7 > 0)
    if kind == "xarray":
        pytest.importorskip("xarray")
        record = dw.Record(record.to_xarray(), q=2.0)
    if kind == "dask":
        dask = pytest.importorskip("dask.array")
        record = record.replace(dask.from_array(np.array(record.values), chunks=(1, 64, 64)))
    if kind == "file":
        dw.save(record, tmp_path / "movie.zarr")
        record = dw.open_record(tmp_path / "movie.zarr")
    found = travelled(record)
    assert same(found, record)
    assert repr(found) == repr(record)
    assert np.array_equal(found.slab(), record.slab())
    assert np.array_equal(found.observed(), record.observed())
    for array in (found.times, found.values, found.slab()):
        assert not isinstance(array, np.ndarray) or not array.flags.writeable


@pytest.fixture(scope="module", params=["trajectory", "weak"])
def fitted(request, small):
    law = {"law": 1, "check": False} if request.param == "trajectory" else {}
    return dw.identify(small, 0.3, method=request.param, **law)


def test_a_result_is_the_same(fitted, travelled):
    found = travelled(fitted)
    difference = compare(fitted, found)
    assert difference.equal == difference.fields > 50
    assert str(found) == str(fitted)
    assert found.problem == fitted.problem
    assert facts(found).document() == facts(fitted).document()


OPTIONS = (
    dw.DoubleWell(degree=3, wells="unequal"), dw.Trajectory(memory="2GB"), dw.Weak(ridge="validated"),
    dw.Observation(noise="shot", phases=(0, 1)), dw.Compute(workers=2), dw.SurfaceTension.of("0.3 J/m^2 +- 5 %"),
    dw.AllenCahn(anisotropy="estimated"), dw.CahnHilliard(), dw.named_law("sixth"), dw.Temperature(1.0),
)  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: type(option).__name__)
def test_an_option_is_the_same(option, travelled):
    found = travelled(option)
    assert type(found) is type(option)
    assert repr(found) == repr(option)
    assert found == option or isinstance(option, dw.Law)


@pytest.mark.parametrize(
    "error",
    [
        dw.InputError("dx is -1: expected more"), NoStartError("none"), dw.Interrupted("by hand", 3), dw.Interrupted(),
        UnfinishedError("1 of 2 failed", [None, "result"], {0: "why"}),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_is_the_same(error, travelled, monkeypatch):
    monkeypatch.delitem(copyreg.dispatch_table, type(error), raising=False)  # a library of Dask pickles all errors
    found = travelled(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)

"""Results and records as plain values, DataFrames and Datasets."""

import json
import sys

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.facts import facts
from doublewell.findings import findings
from doublewell.identify import identify
from doublewell.record import Record


@pytest.fixture(scope="module")
def fitted(small):
    return identify(small, 0.3, law=1, check=False)


def test_the_dict_is_json_and_has_facts_and_findings(fitted):
    found = fitted.to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(json.dumps(found))
    assert found["facts"]["epsilon"]["value"] == found["epsilon"] == fitted.epsilon
    assert found["coefficients"] == fitted.coefficients.tolist()
    assert [item["code"] for item in found["findings"]] == [item.code for item in findings(fitted)]


def test_the_frame_has_a_row_for_each_fact(fitted):
    pytest.importorskip("pandas")
    frame, table = fitted.to_dataframe(), facts(fitted)
    assert list(frame.index) == list(table.numbers)
    assert list(frame.columns) == ["name", "symbol", "value", "low", "high", "sd", "unit", "note"]
    assert tuple(frame.loc["epsilon", ["value", "low", "high"]]) == (fitted.epsilon, *fitted.interval("epsilon"))
    assert np.isnan(frame.loc["height", "low"])
    assert frame.loc["height", "unit"] == ""


def test_the_dataset_has_curves_bands_and_fields(fitted, small):
    pytest.importorskip("xarray")
    found = fitted.to_xarray()
    for name in ("force", "primitive", "potential"):
        assert found[name].values == pytest.approx(getattr(fitted, name)(found["u"].values))
        low, high = fitted.band(name, found["u"].values)
        assert np.array_equal(found[f"{name}_low"], low)
        assert np.array_equal(found[f"{name}_high"], high)
    assert float(found["force"].interp(u=0.5)) == pytest.approx(fitted.force(0.5), rel=1e-4)
    fit = fitted.diagnostics.likelihood
    assert found["initial"].dims == ("y", "x")
    assert np.array_equal(found["initial"], fit.initial)
    assert np.array_equal(found["residual_frames"], fit.residual_frames / fit.noise)
    assert np.array_equal(found["residual_variance"], fit.residual_map)
    assert float(found["x"][1]) == small.dx[-1]
    assert found["x_block"].values[-1] < small.extent[-1]


def test_the_dataset_of_a_weak_fit_has_curves_alone(noisy):
    pytest.importorskip("xarray")
    assert set(identify(noisy, method="weak").to_xarray().data_vars) == {"force", "primitive"}


@pytest.mark.parametrize("shape", [(4, 9), (4, 5, 6), (4, 5, 6, 7)])
def test_a_record_becomes_an_array_and_comes_back(make_rough, shape):
    pytest.importorskip("xarray")
    mask = np.ones(shape[1:], dtype=bool)
    mask[..., 2] = False
    metadata = {"times": [0.0, 1.0, 2.0, 4.0], "length_unit": "um", "time_unit": "s", "boundary": "neumann"}
    record = make_rough(shape).replace(dx=np.arange(1, len(shape)) / 10, mask=mask, **metadata)
    found = record.to_xarray()
    assert found.dims == ("time", *"zyx"[4 - len(shape) :])
    assert found["x"].attrs == {"units": "um"}
    assert found["time"].attrs == {"units": "s"}
    assert found.attrs["boundary"] == "neumann"
    back = Record(found, mask="finite")
    assert back.dx == pytest.approx(record.dx)
    assert np.array_equal(back.times, record.times)
    assert np.array_equal(back.slab(), record.slab())
    assert np.array_equal(back.observed(), record.observed())


@pytest.mark.parametrize("name", ["pandas", "xarray"])
def test_a_missing_library_is_named(fitted, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    convert = fitted.to_dataframe if name == "pandas" else fitted.to_xarray
    with pytest.raises(InputError, match=rf"needs the library {name}, .*pip install 'doublewell\[xarray\]'"):
        convert()

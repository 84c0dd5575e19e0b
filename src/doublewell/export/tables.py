"""Tables: a result and a record as plain values, and as those of pandas and xarray."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from doublewell.curves import curves
from doublewell.errors import library
from doublewell.facts import facts
from doublewell.findings import findings, model_tests
from doublewell.record import Record
from doublewell.record.record import KNOWN
from doublewell.result import Result


def result_dict(result: Result) -> dict[str, Any]:
    """Return facts and findings as JSON values, and the most used numbers also by themselves."""
    table = facts(result)
    epsilon, barrier = table.get("epsilon"), table.get("barrier")
    return {
        "dynamics": table.problem.dynamics.name,
        "method": table.method,
        "equation": table.equation,
        "phases": list(table.law.phases),
        "degree": table.law.family.degree,
        "coefficients": [g.value for g in table.coefficients],
        "epsilon": None if epsilon is None else epsilon.value,
        "barrier": None if barrier is None else barrier.value,
        "double_well": table.structure.ok,
        "structure": str(table.structure),
        "facts": table.document(),
        "degrees": [{"degree": fit.degree, "chi2": fit.chi2, "weight": fit.weight} for fit in table.degrees],
        "verdict": table.verdict,
        "tests": [asdict(test) for test in model_tests(result)],
        "findings": [asdict(item) for item in findings(result, table=table)],
    }


def fact_frame(result: Result) -> Any:
    """Return the facts as a pandas DataFrame: a row for each, by its key."""
    pandas = library("pandas", "xarray", "to_dataframe")
    rows = [
        {
            "name": fact.name, "symbol": fact.symbol, "value": fact.value,
            "low": np.nan if fact.interval is None else fact.interval[0],
            "high": np.nan if fact.interval is None else fact.interval[1],
            "sd": np.nan if fact.sd is None else fact.sd, "unit": fact.unit or "", "note": fact.note or fact.why,
        }
        for fact in facts(result).numbers.values()
    ]  # fmt: skip
    return pandas.DataFrame(rows, index=pandas.Index(facts(result).numbers, name="key"))


def curve_dataset(result: Result) -> Any:
    """Return curves with their 95 % bands over u, and what a trajectory fit leaves, as an xarray Dataset."""
    xarray = library("xarray", "xarray", "to_xarray")
    table, shown, fit = facts(result), curves(result), result.diagnostics.likelihood
    coordinates: dict[str, Any] = {"u": ("u", shown.law[0].u, {"long_name": "phase value"})}
    made: dict[str, Any] = {}
    for name, curve in shown.named.items():
        for end, values in (("", curve.values), ("_low", curve.low), ("_high", curve.high)):
            if values is not None:
                about = f"{curve.name}{f', 95 % band, {end[1:]} edge' if end else ''}"
                made[name + end] = ("u", values, {"long_name": about, "units": curve.unit})
    axes, length, left = "zyx"[4 - len(table.data.shape) :], _unit(table.data.length_unit), shown.residual
    if left is not None:
        coordinates["time"] = ("time", left.times, _unit(table.data.time_unit))
        about = "standard deviation of the residual over the noise of the fit"
        made["residual_frames"] = ("time", left.frames, {"long_name": about, "units": "1"})
        blocks = [f"{axis}_block" for axis in axes]
        for name, edges in zip(blocks, left.edges, strict=True):
            coordinates[name] = (name, 0.5 * (edges[1:] + edges[:-1]), length)
        about = "variance of the residual above or below its mean"
        made["residual_variance"] = (blocks, left.blocks, {"long_name": about, "units": "sigma"})
    if fit is not None and fit.initial is not None:
        for name, cells, step in zip(axes, fit.initial.shape, table.data.dx, strict=True):
            coordinates[name] = (name, step * np.arange(cells), length)
        made["initial"] = (list(axes), fit.initial, {"long_name": "fitted initial field"})
    return xarray.Dataset(made, coordinates, {"title": table.headline, "equation": table.equation})


def record_array(record: Record) -> Any:
    """Return all values of a record as an xarray DataArray with its axes and units, NaN where one is missing."""
    xarray = library("xarray", "xarray", "to_xarray")
    values = record.slab()
    if record.mask is not None:
        values = np.where(record.observed(), values, np.nan)
    coordinates: dict[str, Any] = {"time": ("time", record.times, _unit(record.time_unit))}
    for name, cells, step in zip("zyx"[3 - len(record.mesh) :], record.mesh, record.dx, strict=True):
        coordinates[name] = (name, step * np.arange(cells), _unit(record.length_unit))
    known = {name: getattr(record, name) for name in KNOWN if name != "times"}
    about = {name: value for name, value in known.items() if value is not None}
    return xarray.DataArray(values, coordinates, tuple(coordinates), name="u", attrs=about)


def _unit(name: str | None) -> dict[str, str]:
    return {} if name is None else {"units": name}

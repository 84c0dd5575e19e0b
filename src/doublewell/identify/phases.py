"""Phases: where the values of a record pile up, and the pair of phases that leaves the least misfit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.record import Record

_LOOKS = 12  # frames that the plateaus are sought in
_VALUES = 200_000  # values of them that are sorted
_OUTER = 0.25  # of the range of values, at either end: where a phase is sought
_STEP = 0.02  # of the distance of the phases: the first simplex of the search
_CLOSE = 2e-4  # of the distance of the phases: to which they are found
_MOST = 80  # weak-form fits of the search
_SAME = 1e-3  # of the distance of the phases: plateaus as near as this are the declared phases
_NEIGHBOURS, _RARE = 3, 0.02  # cells along each axis of a mean, and the percentage of means left out at either end
_APART = 0.5  # of the range of values: plateaus nearer than this are none
_FAR = 0.2  # of the distance of the plateaus: farther from its plateau the search has failed


def plateaus(record: Record) -> tuple[float, float]:
    """Return where the lowest and the highest values of a record pile up: the low and the high phase."""
    frames = np.unique(np.linspace(record.frames // 3, record.frames - 1, _LOOKS).astype(int))
    values = np.concatenate([record.slab(k, k + 1)[record.observed(k, k + 1)] for k in frames.tolist()])
    values = np.sort(values[:: max(1, values.size // _VALUES)])
    low, high = np.percentile(values, [1.0, 99.0])
    reach = _OUTER * (high - low)
    below, above = values[values < low + reach], values[values > high - reach]
    if min(below.size, above.size) < 20:
        raise InputError(
            "the values of the record do not pile up at two phases, so the phases cannot be estimated: expected two "
            f"phases with an interface between them; give {option('phases')} a pair, low and high"
        )
    return _mode(below), _mode(above)


def plateaus_or(record: Record, pair: tuple[float, float]) -> tuple[float, float]:
    """Return the plateaus of a record, or the ends of its values where it has none, as within one phase."""
    try:
        low, high = plateaus(record)
    except InputError:
        return pair
    return (low, high) if high - low > _APART * (pair[1] - pair[0]) else pair


def visited(records: Sequence[Record]) -> tuple[float, float]:
    """Return the lowest and the highest value that the fields of records have: of means over small neighbourhoods.

    Noise is smaller in these, and rare values are not left out: a drop is a small part of a picture.
    """
    from scipy.ndimage import uniform_filter

    ends = []
    for record in records:
        for k in np.unique(np.linspace(0, record.frames - 1, _LOOKS).astype(int)).tolist():
            known = record.observed(k, k + 1)[0].astype(float)
            weight = uniform_filter(known, _NEIGHBOURS)
            mean = uniform_filter(record.slab(k, k + 1)[0] * known, _NEIGHBOURS)[weight > 0.5] / weight[weight > 0.5]
            ends.append(np.percentile(mean, [_RARE, 100.0 - _RARE]) if mean.size else (np.inf, -np.inf))
    low, high = float(np.min(ends)), float(np.max(ends))
    if not low < high:
        raise InputError("the record shows no values that differ: expected a field that varies")
    return low, high


def near_plateaus(record: Record, phases: tuple[float, float]) -> tuple[float, float] | None:
    """Return the plateaus of a record where they lie near its declared phases but are not these, else None."""
    try:
        pair = plateaus(record)
    except InputError:
        return None
    off = float(np.max(np.abs(np.subtract(pair, phases)))) / (phases[1] - phases[0])
    return pair if _SAME < off < _FAR else None


def _mode(values: Array) -> float:
    """Return the half-sample mode of sorted values: the densest half of the densest half, and so on."""
    while values.size > 200:
        half = values.size // 2
        first = int(np.argmin(values[half:] - values[:-half]))
        values = values[first : first + half]
    return float(np.median(values))


def find_phases(record: Record, misfit: Callable[[float, float], float]) -> tuple[float, float]:
    """Search the phases that leave the least misfit, from the plateaus on (Nelder and Mead).

    `misfit` of a low and a high phase has the linear fit inside: only the two phases are searched.
    """
    from scipy.optimize import minimize

    start = np.array(plateaus(record))
    size = float(start[1] - start[0])

    def cost(move: Array) -> float:
        low, high = (start + size * move).tolist()
        return misfit(low, high) if low < high else np.inf

    simplex = np.array([[0.0, 0.0], [-_STEP, 0.0], [0.0, _STEP]])
    options = {"initial_simplex": simplex, "xatol": _CLOSE, "fatol": np.inf, "maxfev": _MOST}
    end = minimize(cost, simplex[0], method="Nelder-Mead", options=options)
    low, high = (start + size * end.x).tolist()
    if not (end.success and np.max(np.abs(end.x)) < _FAR):
        raise InputError(
            f"the phases could not be estimated (the search ended at {low:.4g} and {high:.4g}, the values pile up at "
            f"{start[0]:.4g} and {start[1]:.4g}): give {option('phases')}, or record until both phases are there"
        )
    return low, high

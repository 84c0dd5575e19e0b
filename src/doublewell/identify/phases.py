"""Phases: a record whose pure phases are not at -1 and +1, given or found, brought there and back.

A phase field u = middle + half s obeys the equation of s with the force half G(s). So a record is read as s, and its
law is moved to the phases of u afterwards; nothing between needs to know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference import Posterior
from doublewell.record import Record
from doublewell.record.arrays import PhaseScale, lazy
from doublewell.result import Diagnostics

__all__ = ["find_phases", "from_minus_one", "place_numbers", "place_posterior", "plateaus"]

_LOOKS = 12  # frames that the plateaus are sought in
_VALUES = 200_000  # values of them that are sorted
_OUTER = 0.25  # of the range of values, at either end: where a phase is sought
_STEP = 0.02  # of the distance of the phases: the first simplex of the search
_CLOSE = 2e-4  # of the distance of the phases: to which they are found
_MOST = 80  # readings of the search
_FAR = 0.2  # of the distance of the plateaus: where a phase found there is no phase


def from_minus_one(record: Record, phases: tuple[float, float], *, copy: bool = True) -> Record:
    """Return the record with its phases at -1 and +1; one that has them there is returned as it is.

    Values that are stored, or without `copy` all of them, are converted as they are read.
    """
    if phases == (-1.0, 1.0):
        return record
    scale, values = PhaseScale(*phases), record.values
    return record.replace(scale(values) if copy and isinstance(values, np.ndarray) else lazy(values).map(scale))


def place_posterior(posterior: Posterior, phases: tuple[float, float]) -> Posterior:
    """Return the same mixture for the phases of the record."""
    return replace(posterior, family=posterior.family.placed(phases))


def place_numbers(numbers: Diagnostics, phases: tuple[float, float]) -> Diagnostics:
    """Return noise and values in the units of the record; shares and standard errors have none."""
    if phases == (-1.0, 1.0):
        return numbers
    middle, half = 0.5 * (phases[0] + phases[1]), 0.5 * (phases[1] - phases[0])
    seen, fit = numbers.survey, numbers.likelihood
    seen = replace(
        seen, noise=half * seen.noise, low=middle + half * seen.low, high=middle + half * seen.high,
        change=half * seen.change,
    )  # fmt: skip
    if fit is not None:
        initial = None if fit.initial is None else _read_only((middle + half * fit.initial).astype(np.float32))
        fit = replace(fit, noise=half * fit.noise, residual_frames=half * fit.residual_frames, initial=initial)
    return replace(numbers, survey=seen, likelihood=fit)


def _read_only(field: NDArray[np.float32]) -> NDArray[np.float32]:
    field.flags.writeable = False
    return field


def plateaus(record: Record) -> tuple[float, float]:
    """Return where the lowest and the highest values of a record pile up: the low and the high phase."""
    frames = np.unique(np.linspace(record.frames // 3, record.frames - 1, _LOOKS).astype(int))
    values = np.concatenate([_observed(record, int(k)) for k in frames])
    values = np.sort(values[:: max(1, values.size // _VALUES)])
    low, high = np.percentile(values, [1.0, 99.0])
    reach = _OUTER * (high - low)
    below, above = values[values < low + reach], values[values > high - reach]
    if min(below.size, above.size) < 20:
        raise InputError(
            "the values of the record do not pile up at two phases, so the phases cannot be estimated: expected two "
            "phases with an interface between them; give phases=(low, high)"
        )
    return _mode(below), _mode(above)


def _observed(record: Record, frame: int) -> Array:
    return np.asarray(record.slab(frame, frame + 1)[record.observed(frame, frame + 1)])


def _mode(values: Array) -> float:
    """Return the half-sample mode of sorted values: the densest half of the densest half, and so on."""
    while values.size > 200:
        half = values.size // 2
        first = int(np.argmin(values[half:] - values[:-half]))
        values = values[first : first + half]
    return float(np.median(values))


def find_phases(record: Record, misfit: Callable[[Record], float]) -> tuple[float, float]:
    """Search the phases that leave the least misfit, from the plateaus on (Nelder and Mead).

    `misfit` of a record brought to the phases -1 and +1 has the linear fit inside: only the two phases are searched.
    """
    from scipy.optimize import minimize

    start = np.array(plateaus(record))
    size = float(start[1] - start[0])

    def cost(place: Array) -> float:
        low, high = start + size * place
        return misfit(from_minus_one(record, (float(low), float(high)))) if low < high else np.inf

    simplex = np.array([[0.0, 0.0], [-_STEP, 0.0], [0.0, _STEP]])
    options = {"initial_simplex": simplex, "xatol": _CLOSE, "fatol": np.inf, "maxfev": _MOST}
    found = minimize(cost, simplex[0], method="Nelder-Mead", options=options)
    if not (found.success and np.max(np.abs(found.x)) < _FAR):
        raise InputError(
            f"the phases could not be estimated (the search ended at {start + size * found.x}, the values pile up at "
            f"{start}): give phases=(low, high), or record until both phases are there"
        )
    low, high = start + size * found.x
    return float(low), float(high)

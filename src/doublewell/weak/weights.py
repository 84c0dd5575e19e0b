"""Test weights: the paper's test function sampled on the mesh, with discrete or analytic derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from doublewell.checks import is_whole, shown
from doublewell.errors import InputError
from doublewell.hints import Array

__all__ = ["MARGIN", "POWER", "AxisWeights", "Derivative", "Support", "axis_weights", "check_supports", "half_cells"]

Derivative = Literal["discrete", "analytic"]
MARGIN = 2  # cells that a fourth-order difference reaches beyond the weights it acts on
POWER = 5
_FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0


@dataclass(frozen=True)
class Support:
    """The half-widths of a test function: frame intervals in time, a length in space."""

    frames: int
    length: float

    def __str__(self) -> str:
        return f"({self.frames} frames, {self.length:.4g})"


@dataclass(frozen=True)
class AxisWeights:
    """Weights along one axis: value sums to one; first and second are its derivatives' weights.

    All are centred; ``half`` is the half-length, in cells, that a centre must keep from the edge of the record: the
    weights' own half-width and the full margin of the difference stencil.
    """

    value: Array
    first: Array
    second: Array
    half: int


def half_cells(width: float) -> int:
    """Return the half-width in whole cells, rounded up, and exact for whole numbers despite round-off."""
    return max(1, ceil(width - 1e-9 * max(1.0, width)))


def axis_weights(
    width: float, spacing: float, derivative: Derivative = "discrete", *, power: int = POWER
) -> AxisWeights:
    """Sample (1 - xi^2)^power with half-width `width` cells of size `spacing`, normalised to unit sum.

    The power is the paper's five, unless another is given.

    With "discrete" the derivative weights are fourth-order centred differences of the sampled weights, carried with
    their full margins: summation by parts is exact and constants are annihilated to round-off. With "analytic" they
    are samples of the derivatives of the test function (the paper's control).

    >>> weights = axis_weights(6.0, 1/96)
    >>> weights.half, float(round(weights.value.sum(), 12)), weights.first.size
    (8, 1.0, 15)
    """
    cells = half_cells(width)
    xi = np.arange(-cells + 1, cells) / width
    value = (1.0 - xi**2) ** power
    mass = value.sum()
    if derivative == "discrete":
        first = np.convolve(value, _FIRST) / (mass * spacing)
        second = np.convolve(value, _SECOND) / (mass * spacing**2)
    else:
        rest = 1.0 - xi**2
        reach = width * spacing
        first = 2 * power * xi * rest ** (power - 1) / (mass * reach)
        bend = (4 * power * (power - 1) * xi**2 - 2 * power * rest) * rest ** (power - 2)
        second = bend / (mass * reach**2)
    return AxisWeights(value / mass, first, second, cells + MARGIN)


def check_supports(
    supports: Iterable[Support | tuple[int, float]], frames: int, mesh: tuple[int, ...], dx: tuple[float, ...]
) -> tuple[Support, ...]:
    """Return the supports as values, each checked to fit the record with its margins."""
    given = _members(supports)
    if not given:
        came = shown(supports) if given is None else "empty"
        raise InputError(f"supports is {came}: expected pairs (frames, length) such as [(5, 0.06), (8, 0.12)]")
    checked = []
    for item in given:
        pair = (item.frames, item.length) if isinstance(item, Support) else _members(item) or ()
        if len(pair) != 2 or not is_whole(pair[0]) or pair[0] < 2 or not _length(pair[1]):
            raise InputError(f"support {shown(item)}: expected a pair (whole number of frames >= 2, positive length)")
        support = Support(int(pair[0]), float(pair[1]))
        _check_fit(support, frames, mesh, dx)
        checked.append(support)
    if len(set(checked)) != len(checked):
        raise InputError("supports: the same support is given twice; expected different ones")
    return tuple(checked)


def _members(value: object) -> tuple[Any, ...] | None:
    """Return the members of a list, a tuple or a generator; None for a text or what has none."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else None


def _length(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(0 < value < np.inf)


def _check_fit(support: Support, frames: int, mesh: tuple[int, ...], dx: tuple[float, ...]) -> None:
    needs = 2 * (support.frames + MARGIN) + 1
    if needs > frames:
        shorter = (frames - 1) // 2 - MARGIN
        way = f"pass supports=[({shorter}, {support.length:.3g})] or record longer" if shorter >= 2 else "record longer"
        raise InputError(
            f"record is too short for a temporal half-width of {support.frames} intervals: needs {needs} frames, "
            f"has {frames}; {way}"
        )
    for cells, spacing in zip(mesh, dx, strict=True):
        half = half_cells(support.length / spacing)
        if half < 2:
            raise InputError(
                f"support length {support.length:.3g} is below two cells ({spacing:.3g} each): "
                f"pass at least {2 * spacing:.3g}"
            )
        if 2 * (half + MARGIN) + 1 > cells:
            raise InputError(
                f"record is too small for a spatial half-width of {support.length:.3g} ({half} cells): needs "
                f"{2 * (half + MARGIN) + 1} cells, has {cells}; pass a shorter support length"
            )

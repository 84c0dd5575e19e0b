"""Test weights: the paper's test function sampled on the mesh, the supports of a record, and columns as sums of taps.

At uneven frame times there is one row of taps for each centre frame c: the test function is (1 - xi^2)^5 over the time
from frame c - n to frame c + n. Each of its samples has the quadrature weight of its frame, from cubics through four
neighbouring frames, so that sums are integrals to fourth order in the interval. On even times this is `axis_weights`.
The shortest half-width, one interval, has the centre frame as its value and the difference of its neighbours as the
derivative, with an error of second order in the interval: three frames are enough.

A column factor * D^time Lap^space S[source] of a weak form is a sum of terms, each a factor times a product of taps
along t, z, y and x: their kind is the number of time derivatives along t, and along a space axis half the number of
derivatives there (value, second, fourth). Lap^2 is the sum over all pairs of axes, with the second differences applied
twice along one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.dynamics import Column, WeakForm
from doublewell.errors import InputError, NoStartError, option, positive, shown, whole
from doublewell.hints import Array, Bools
from doublewell.record import Record

Derivative = Literal["discrete", "analytic"]
AXES = 4  # t, z, y, x
Kinds = tuple[int, ...]  # of taps along t, z, y and x
MARGIN = 2  # cells that a fourth-order difference reaches beyond the weights it acts on
POWER = 5
FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
_EXACT = 4  # highest power of time whose derivative is exact, as on even times
_BEYOND = 2  # frames that a difference or a cubic needs beyond the frames with a tap
_LEAST_WEIGHT = 0.2  # of the trapezium weight: a smaller weight of the cubics, next to a wide gap, is not used
_FRAMES = (5, 8)  # the paper's temporal half-widths
_CENTRES = 5  # centre frames that the longest support should leave
LEAST_FRAMES = 2 * (2 + MARGIN) + _CENTRES  # of a record that supports of several intervals fit
_LEAST_CELLS = 2  # cells of the shortest half-width that a weak moment can have
# spatial half-widths in interface widths, the least of them in cells, the rule in words; benchmarks/support_rules.py
_SHORT = (0.25, 0.5), (4, 6), "a quarter and half of the interface width"
_LONG = (0.5, 1.0), (6, 8), "half and one interface width"
_FOURTH = (1.0, 1.5), (8, 12), "one and one and a half interface widths"


@dataclass(frozen=True)
class Support:
    """The half-widths of a test function: frame intervals in time, a length in space."""

    frames: int
    length: float

    def __str__(self) -> str:
        return f"({self.frames} frames, {self.length:.4g})"

    @property
    def reach(self) -> int:
        """Frames on either side of a centre that its moments take in, with the margins of the differences."""
        return self.frames + (MARGIN if self.frames > 1 else 0)

    @property
    def key(self) -> str:
        """The name of the support in the keys of evidence: every digit, so that different supports stay apart."""
        return f"({self.frames} frames, {float(self.length)!r})"


@dataclass(frozen=True)
class AxisWeights:
    """Weights along one axis: value sums to one; first, second and fourth are its derivatives' weights.

    All are centred; ``half`` is the half-length, in cells, that a centre must keep from the edge of the record: the
    weights' own half-width and the full margins of the difference stencils.
    """

    value: Array
    first: Array
    second: Array
    fourth: Array
    half: int


def half_cells(width: float) -> int:
    """Return the half-width in whole cells, rounded up, and exact for integers despite round-off."""
    return max(1, ceil(width - 1e-9 * max(1.0, width)))


def axis_weights(
    width: float, spacing: float, derivative: Derivative = "discrete", *, power: int = POWER, bends: int = 1
) -> AxisWeights:
    """Sample (1 - xi^2)^power with half-width `width` cells of size `spacing`, normalised to unit sum.

    The power is the paper's five, unless another is given; `bends` is the most second derivatives that are taken.

    With "discrete" the derivative weights are fourth-order centred differences of the sampled weights, for the fourth
    derivative taken twice, carried with their full margins: summation by parts is exact and constants are annihilated
    to round-off. With "analytic" they are samples of the derivatives of the test function (the paper's control),
    without a fourth: it ends in kinks, and sums over it would converge with the second power of the spacing only.

    >>> weights = axis_weights(6.0, 1/96)
    >>> weights.half, float(round(weights.value.sum(), 12)), weights.first.size
    (8, 1.0, 15)
    """
    if derivative == "analytic" and bends > 1:
        raise InputError(
            "derivative is 'analytic', and this equation has fourth derivatives in space, which the test function has "
            "with kinks: expected 'discrete'"
        )
    cells = half_cells(width)
    xi = np.arange(-cells + 1, cells) / width
    value = (1.0 - xi**2) ** power
    mass = value.sum()
    if derivative == "discrete":
        first = np.convolve(value, FIRST) / (mass * spacing)
        second = np.convolve(value, SECOND) / (mass * spacing**2)
        fourth = np.convolve(second, SECOND) / spacing**2
    else:
        rest = 1.0 - xi**2
        reach = width * spacing
        first = 2 * power * xi * rest ** (power - 1) / (mass * reach)
        bend = (4 * power * (power - 1) * xi**2 - 2 * power * rest) * rest ** (power - 2)
        second = bend / (mass * reach**2)
        fourth = np.empty(0)
    return AxisWeights(value / mass, first, second, fourth, cells + MARGIN * bends)


def time_weights(frames: int, interval: float, derivative: Derivative = "discrete") -> AxisWeights:
    """Return the weights along time of a half-width of so many intervals; of one, a difference of the neighbours."""
    if frames > 1:
        return axis_weights(frames, interval, derivative)
    value, first = uneven_weights(1, interval * np.array([[-1.0, 0.0, 1.0]]))
    return AxisWeights(value[0], first[0], np.empty(0), np.empty(0), 1)


def check_supports(
    supports: Iterable[Support | tuple[int, float]], frames: int, mesh: tuple[int, ...], dx: tuple[float, ...],
    bends: int = 1,
) -> tuple[Support, ...]:  # fmt: skip
    """Return the supports as values, each checked to fit the record with its margins."""
    listed = isinstance(supports, Iterable) and not isinstance(supports, str)
    checked: dict[Support, None] = {}
    for item in supports if listed else ():
        try:
            duration, length = (item.frames, item.length) if isinstance(item, Support) else item
            support = Support(whole(duration, "frames", least=1), positive(length, "length"))
        except (TypeError, ValueError):
            raise InputError(
                f"support {shown(item)}: expected a pair (integer number of frames >= 1, positive length)"
            ) from None
        _check_fit(support, frames, mesh, dx, MARGIN * bends)
        if support in checked:
            raise InputError("supports: the same support is given twice; expected different ones")
        checked[support] = None
    if not checked:
        came = "empty" if listed else shown(supports)
        raise InputError(f"supports is {came}: expected pairs (frames, length) such as [(5, 0.06), (8, 0.12)]")
    return tuple(checked)


def _check_fit(support: Support, frames: int, mesh: tuple[int, ...], dx: tuple[float, ...], margin: int) -> None:
    needs = 2 * support.reach + 1
    if needs > frames:
        pair = (max((frames - 1) // 2 - MARGIN, 1), float(f"{support.length:.3g}"))
        way = f"pass {option('supports', [pair])}" if frames > 2 else f"use {option('method', 'trajectory')}"
        raise InputError(
            f"record is too short for a temporal half-width of {support.frames} intervals: needs {needs} frames, "
            f"has {frames}; {way} or record longer"
        )
    for cells, spacing in zip(mesh, dx, strict=True):
        half = half_cells(support.length / spacing)
        if half < 2:
            raise InputError(
                f"support length {support.length:.3g} is below two cells ({spacing:.3g} each): "
                f"pass at least {2 * spacing:.3g}"
            )
        if 2 * (half + margin) + 1 > cells:
            raise InputError(
                f"record is too small for a spatial half-width of {support.length:.3g} ({half} cells): needs "
                f"{2 * (half + margin) + 1} cells, has {cells}; pass a shorter support length"
            )


def uneven_weights(half: int, windows: Array, derivative: Derivative = "discrete") -> tuple[Array, Array]:
    """Return the taps of value and first derivative, one row for each row of `windows`.

    A window holds the times of the frames c - half - 2 to c + half + 2. "discrete": summation by parts with five-point
    differences of the sampled test function, and then the smallest smooth change that makes derivatives of polynomials
    up to the fourth degree exact, first @ t^k = k value @ t^(k-1), as they are on even times. "analytic": samples of
    the derivative of the test function.

    Of one interval a window holds three frames, and the derivative is that of the parabola through them.

    >>> value, first = uneven_weights(5, np.array([[0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10.5, 11, 12, 13, 14]]))
    >>> value.shape, first.shape, bool(abs(first.sum()) < 1e-12)
    ((1, 9), (1, 13), True)
    """
    if half == 1:
        before, after = np.diff(windows, axis=1).T
        low, high = -after / (before * (before + after)), before / (after * (before + after))
        return np.tile([0.0, 1.0, 0.0], (len(windows), 1)), np.stack([low, -low - high, high], axis=1)
    start, end = windows[:, MARGIN, None], windows[:, MARGIN + 2 * half, None]
    middle, reach = 0.5 * (start + end), 0.5 * (end - start)
    before = 2.0 * windows[:, :1] - windows[:, _BEYOND:0:-1]  # intervals mirrored: no time outside the support's own
    after = 2.0 * windows[:, -1:] - windows[:, -2 : -2 - _BEYOND : -1]
    wide = np.concatenate([before, windows, after], axis=1)
    xi = (wide - middle) / reach
    test = np.zeros_like(xi)
    inner = slice(MARGIN + _BEYOND + 1, -MARGIN - _BEYOND - 1)
    test[:, inner] = (1.0 - xi[:, inner] ** 2) ** POWER
    weight = _quadrature(xi)
    value = weight[:, inner] * test[:, inner]
    mass = value.sum(axis=1, keepdims=True)
    if derivative == "analytic":
        slope = 2 * POWER * xi[:, inner] * (1.0 - xi[:, inner] ** 2) ** (POWER - 1)
        return value / mass, weight[:, inner] * slope / (mass * reach)
    outer = slice(_BEYOND + 1, -_BEYOND - 1)
    rough = -weight[:, outer] * _slope(xi, test)[:, 1:-1]
    first = rough + _correction(xi[:, outer], weight[:, outer], rough, value)
    return value / mass, first / (mass * reach)


def _quadrature(xi: Array) -> Array:
    """Return the weights of all points: the integral over each interval of the cubic through the four points around it.

    Next to a gap these may be small or negative. There the trapezium rule takes their place for the whole row.
    """
    points = sliding_window_view(xi, 4, axis=1)
    centre = 0.5 * (points[..., 1:2] + points[..., 2:3])
    half = 0.5 * (points[..., 2:3] - points[..., 1:2])
    powers = ((points - centre) / half)[..., None, :] ** np.arange(4)[:, None]
    moments = np.broadcast_to(np.array([2.0, 0.0, 2.0 / 3.0, 0.0])[:, None], (*powers.shape[:-1], 1))
    fractions = half * np.linalg.solve(powers, moments)[..., 0]
    weights, plain = np.zeros_like(xi), np.zeros_like(xi)
    for k in range(4):
        weights[:, k : k + fractions.shape[1]] += fractions[..., k]
    plain[:, 1:-1] = 0.5 * (xi[:, 2:] - xi[:, :-2])
    used = slice(_BEYOND + 1, -_BEYOND - 1)
    poor = np.any(weights[:, used] < _LEAST_WEIGHT * plain[:, used], axis=1, keepdims=True)
    return np.where(poor, plain, weights)


def _slope(xi: Array, test: Array) -> Array:
    """Return five-point differences of the test function at all points but two at each end."""
    points = sliding_window_view(xi, 5, axis=1)
    offsets = points - points[..., 2:3]
    size = np.max(np.abs(offsets), axis=-1, keepdims=True)
    powers = (offsets / size)[..., None, :] ** np.arange(5)[:, None]
    unit = np.broadcast_to(np.eye(5)[:, 1:2], (*powers.shape[:-1], 1))
    taps = np.linalg.solve(powers, unit)[..., 0] / size
    return np.asarray(np.sum(taps * sliding_window_view(test, 5, axis=1), axis=-1))


def _correction(xi: Array, weight: Array, rough: Array, value: Array) -> Array:
    """Return the change of the taps, smooth and small, that makes derivatives exact up to the fourth power."""
    places = xi / np.max(np.abs(xi), axis=1, keepdims=True)
    bell = weight * (1.1 - places**2)
    powers = places[:, None, :] ** np.arange(_EXACT + 1)[:, None]
    size = np.max(np.abs(xi), axis=1)[:, None]
    inner = powers[:, :-1, 2:-2]
    wanted = np.zeros((len(xi), _EXACT + 1))
    wanted[:, 1:] = np.arange(1, _EXACT + 1) * np.einsum("rkj,rj->rk", inner, value) / size
    defect = wanted - np.einsum("rkj,rj->rk", powers, rough)
    gram = np.einsum("rkj,rj,rlj->rkl", powers, bell, powers)
    factors = np.linalg.solve(gram, defect[..., None])[..., 0]
    return np.asarray(bell * np.einsum("rk,rkj->rj", factors, powers))


def paper_supports(record: Record) -> tuple[Support, ...]:
    """Return (5, 1/16) and (8, 1/8) of the shortest extent: the paper's supports on a unit domain."""
    side = min(record.extent)
    return Support(5, side / 16), Support(8, side / 8)


def default_supports(
    record: Record, interface_width: float | None, *, long: bool = False, order: int = 2
) -> tuple[tuple[Support, ...], str]:
    """Return two supports for a record whose interface is `interface_width` wide (between u = -0.9 and 0.9).

    The rule: in space a quarter and half of a width, but at least 4 and 6 cells, at most a quarter of the shortest side
    and never more than fits; in time 5 and 8 intervals, shortened so that at least 5 centre frames remain, to one
    interval of fewer than 13 frames. Where both come out the same there is one support. The paper's supports are about
    twice as long in space. So are `long` ones, for "analytic" derivatives, which need at least 6 and 8 cells to be
    accurate, and for a search of the phases. For an equation of fourth `order` they are one and one and a half widths,
    because the noise of fourth derivatives falls with the fourth power of the length (benchmarks/conserved.py), but at
    most a sixth of the side: with their wider margins longer ones leave centres in the middle of the record only.
    The text states how they were chosen, and where the record forced other half-widths than the rule's.
    """
    fractions, least, rule = _FOURTH if order > 2 else _LONG if long else _SHORT
    longest = (record.frames - _CENTRES - 2 * MARGIN) // 2 if record.frames >= LEAST_FRAMES else 1
    if record.frames < 3:
        raise InputError(
            f"the record has {record.frames} frames: weak moments need three at least; use "
            f"{option('method', 'trajectory')}, which needs two, or record longer"
        )
    coarse, part, words = max(record.dx), min(record.extent) / 4, "a quarter"
    if order > 2:
        part, words = min(record.extent) / 6, "a sixth"
    margin = MARGIN * order // 2
    fits = float(np.min(((np.array(record.mesh) - 1) // 2 - margin) * np.array(record.dx)))
    if fits < _LEAST_CELLS * coarse * (1 - 1e-9):
        needs = tuple([2 * (half_cells(_LEAST_CELLS * coarse / h) + margin) + 1 for h in record.dx])
        raise NoStartError(
            f"the mesh {record.mesh} is too small for a weak moment: expected at least {needs} cells, with which a "
            "test function and its margins fit; record a larger field of view"
        )
    notes = [f"{n} frames cut to {longest}" for n in _FRAMES if n > longest]
    unknown = least[0] / fractions[0]  # cells that stand for the width of an interface
    supports: dict[Support, None] = {}
    for frames, fraction, cells in zip(_FRAMES, fractions, least, strict=True):
        wanted = fraction * (unknown * coarse if interface_width is None else interface_width)
        resolved = cells * coarse
        limits = max(wanted, resolved), part, fits
        reasons = (
            f"raised to {resolved:.4g}, the least that is resolved" if resolved > wanted else "",
            f"cut to {part:.4g}, {words} of the shortest side",
            f"cut to {fits:.4g}, the most that fits",
        )
        shortest = int(np.argmin(limits))
        supports[Support(min(frames, longest), limits[shortest])] = None
        notes += [f"{wanted:.4g} {reasons[shortest]}"] if reasons[shortest] else []
    if interface_width is None:
        rule = " and ".join([f"{fraction * unknown:g}" for fraction in fractions]) + " cells, no interface seen"
    return tuple(supports), f"{rule}, chosen from the record" + (f" ({'; '.join(notes)})" if notes else "")


@dataclass(frozen=True)
class Fold:
    """A named range of frames. Rows whose whole support lies inside belong to it."""

    name: str
    start: int
    stop: int


def split_folds(frames: int, longest: int, training: float = 0.6) -> tuple[Fold, Fold]:
    """Split a record in time into training and validation frames; rows that straddle belong to neither.

    `longest` is the temporal half-width, in intervals, of the longest support: both parts must hold it.
    """
    cut = round(training * frames)
    needs = 2 * Support(longest, 1.0).reach + 1
    if min(cut, frames - cut) < needs:
        raise InputError(
            f"record is too short for a validated ridge: each part needs {needs} frames, but {frames} frames split "
            f"into {cut} and {frames - cut}; record longer, pass shorter supports, or give ridge a number"
        )
    return Fold("training", 0, cut), Fold("validation", cut, frames)


class Step(NamedTuple):
    """One smoothing along an axis: factor * (taps of a kind) of a source, stored as a result or added to it."""

    result: int
    source: int
    kind: int
    factor: float


def terms(column: Column, axes: int) -> dict[Kinds, float]:
    """Return the factors of the terms of a column for a record with so many space axes, the last of z, y, x.

    >>> terms(Column("target", "field", space=1), 2)
    {(0, 0, 1, 0): 1.0, (0, 0, 0, 1): 1.0}
    >>> terms(Column("target", "field", space=2), 2)
    {(0, 0, 2, 0): 1.0, (0, 0, 1, 1): 2.0, (0, 0, 0, 2): 1.0}
    """
    sums: dict[Kinds, float] = {(column.time, 0, 0, 0): column.factor}
    for _ in range(column.space):  # once more the sum over the axes
        more: dict[Kinds, float] = {}
        for kinds, factor in sums.items():
            for axis in range(AXES - axes, AXES):
                bent = (*kinds[:axis], kinds[axis] + 1, *kinds[axis + 1 :])
                more[bent] = more.get(bent, 0.0) + factor
        sums = more
    return sums


def bends(form: WeakForm) -> int:
    """Return the highest power of the Laplacian in a form, at least 1: it sets the margins of the supports."""
    return int(max([1, *map(attrgetter("space"), form)]))


def steps(columns: Sequence[Mapping[Kinds, float]], order: Sequence[int], *, mean: bool = False) -> list[list[Step]]:
    """Return the smoothings along each axis, in an order of axes, that make columns of one source.

    What several terms have in common is made once, and terms of a column that continue in the same way are added up as
    soon as they do. Results of the last axis are the columns, in order; the source of the first is 0. With `mean` the
    first result along the first axis is the plain value, whether a column needs it or not.
    """
    turned = itemgetter(*order)
    left: list[dict[Kinds, tuple[int, float]]] = []  # of each column: kinds along the axes to come -> result, factor
    for given in columns:
        left.append({turned(kinds): (0, factor) for kinds, factor in given.items()})
    out: list[list[Step]] = []
    for level in range(len(order)):
        made = [Step(0, 0, 0, 1.0)] if mean and level == 0 else []
        results: dict[tuple[tuple[int, int, float], ...], int] = {((0, 0, 1.0),): 0} if made else {}
        for k, column in enumerate(left):
            groups: dict[Kinds, list[tuple[int, int, float]]] = {}
            for (kind, *rest), (node, factor) in column.items():
                groups.setdefault(tuple(rest), []).append((node, kind, factor))
            left[k] = {}
            for later, group in groups.items():
                scale = group[0][2] if later else 1.0
                content = tuple([(node, kind, factor / scale) for node, kind, factor in group])
                if not later or content not in results:  # a column is a result of its own, even where two are identical
                    results[content] = len(results) if later else k
                    made += [Step(results[content], *part) for part in content]
                left[k][later] = results[content], scale
        out.append(made)
    return out


def check_centred(form: WeakForm, record: Record, cells: Sequence[tuple[int, int]] | None = None) -> bool:
    """Return whether features are centred in a form; refuse where the mean over the domain is not known.

    `cells` are those of a part of each frame that is read, all without them.
    """
    centred = [column.source for column in form if column.centred]
    if not centred:
        return False
    if "field" in centred:
        raise InputError("a column of the field is centred: expected only columns of the features to be")
    if len(centred) < len([column for column in form if column.source == "features"]):
        raise InputError("some columns of the features are centred and others not: expected all or none")
    if record.boundary in (None, "open"):
        whole = f"expected the whole domain, {option('boundary', 'periodic')} or so"
        reason = f"the record's boundary is {record.boundary!r}: {whole}"
    elif record.mask is not None:
        reason = "the record has missing values: expected complete frames; cut them out with record.clip(start, stop)"
    elif cells is not None and tuple(cells) != tuple([(0, n) for n in record.mesh]):
        reason = "only a part of each frame is read: expected whole frames; give more memory, or fewer workers"
    else:
        return True
    raise InputError(f"this equation needs the mean over the domain in each frame, and {reason}")


def complete_centres(observed: Bools, boxes: Iterable[tuple[int, ...]]) -> Bools:
    """Return for each centre [t, z, y, x] whether all values that its moments use were observed.

    The support of a moment is the union of boxes, given by their half-lengths along each axis. What lies outside the
    array counts as observed: no centre reaches it.
    """
    missing, halves = ~observed, np.array(sorted(set(boxes)))
    inside = np.all(halves[:, None] <= halves, axis=-1) & ~np.eye(len(halves), dtype=bool)
    return ~_near(missing, halves[~inside.any(axis=1)], 0) if missing.any() else np.ones(observed.shape, dtype=bool)


def _near(missing: Bools, boxes: Array, axis: int) -> Bools:
    """Mark the places that have a missing value in one of the boxes around them, along this axis and later ones."""
    if axis == missing.ndim:
        return missing
    out = np.zeros_like(missing)
    for half in set(boxes[:, axis].tolist()):
        margin = [(half, half) if k == axis else (0, 0) for k in range(missing.ndim)]
        window, length = np.moveaxis(np.pad(missing, margin), axis, 0), 1
        while length < 2 * half + 1:  # windows double in length
            more = min(length, 2 * half + 1 - length)
            window = window[:-more] | window[more:]
            length += more
        out |= _near(np.moveaxis(window, 0, axis), boxes[boxes[:, axis] == half], axis + 1)
    return out

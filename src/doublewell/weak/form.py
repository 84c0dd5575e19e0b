"""The weak form as sums of taps: what a table of columns asks for along t, z, y and x, and the order to make it in.

A column factor * D^time Lap^space S[source] is a sum of terms, each a product of taps along the four axes: their kind
is the number of time derivatives along t, and along a space axis half the number of derivatives there (value, second,
fourth). Lap^2 is the sum over all pairs of axes, with the second differences applied twice along one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from doublewell.dynamics import Column, WeakForm
from doublewell.errors import InputError
from doublewell.hints import Array, Bools
from doublewell.record import Record
from doublewell.weak.weights import AxisWeights, Derivative, axis_weights

AXES = 4  # t, z, y, x


class Term(NamedTuple):
    """A product of taps: their kind along t, z, y and x, and a factor."""

    kinds: tuple[int, ...]
    factor: float


class Step(NamedTuple):
    """One smoothing along an axis: factor * (taps of a kind) of a source, stored as a result or added to it."""

    result: int
    source: int
    kind: int
    factor: float


def terms(column: Column, axes: int) -> list[Term]:
    """Return the terms of a column for a record with so many space axes, the last of z, y, x.

    >>> [term.kinds for term in terms(Column("target", "field", space=1), 2)]
    [(0, 0, 1, 0), (0, 0, 0, 1)]
    >>> [(term.kinds, term.factor) for term in terms(Column("target", "field", space=2), 2)]
    [((0, 0, 2, 0), 1.0), ((0, 0, 1, 1), 2.0), ((0, 0, 0, 2), 1.0)]
    """
    space = range(AXES - axes, AXES)
    sums: dict[tuple[int, ...], float] = {(column.time, 0, 0, 0): column.factor}
    for _ in range(column.space):  # once more the sum over the axes
        more: dict[tuple[int, ...], float] = {}
        for kinds, factor in sums.items():
            for axis in space:
                bent = tuple(kind + (k == axis) for k, kind in enumerate(kinds))
                more[bent] = more.get(bent, 0.0) + factor
        sums = more
    return [Term(kinds, factor) for kinds, factor in sums.items()]


def bends(form: WeakForm) -> int:
    """Return the highest power of the Laplacian in a form, at least 1: it sets the margins of the supports."""
    return max(1, *(column.space for column in form))


def width(form: WeakForm, size: int) -> int:
    """Return the number of columns of a form with so many features."""
    return sum(size if column.source == "features" else 1 for column in form)


def starts(form: WeakForm, size: int, source: str) -> list[int]:
    """Return where the columns of a source begin."""
    return [width(form[:k], size) for k, column in enumerate(form) if column.source == source]


def steps(columns: Sequence[Sequence[Term]], order: Sequence[int], *, mean: bool = False) -> list[list[Step]]:
    """Return the smoothings along each axis, in an order of axes, that make columns of one source.

    What several terms have in common is made once, and terms of a column that go on alike are added up as soon as they
    do. Results of the last axis are the columns, in order; the source of the first is 0. With `mean` the first result
    along the first axis is the plain value, whether a column needs it or not.
    """
    going = [{tuple(term.kinds[axis] for axis in order): (0, term.factor) for term in column} for column in columns]
    out: list[list[Step]] = []
    for level in range(len(order)):
        nodes: dict[tuple[tuple[int, int, float], ...], int] = {((0, 0, 1.0),): 0} if mean and not level else {}
        after = []
        for k, column in enumerate(going):
            groups: dict[tuple[int, ...], list[tuple[int, int, float]]] = {}
            for (kind, *rest), (node, factor) in column.items():
                groups.setdefault(tuple(rest), []).append((node, kind, factor))
            if level == len(order) - 1:
                nodes[(*groups[()], (k, k, 0.0))] = k  # a column of its own, even where two are alike
                continue
            next_nodes = {}
            for rest_kinds, group in groups.items():
                scale = group[0][2]
                content = tuple((node, kind, factor / scale) for node, kind, factor in group)
                next_nodes[rest_kinds] = nodes.setdefault(content, len(nodes)), scale
            after.append(next_nodes)
        going = after
        last = level == len(order) - 1
        contents = ((result, content[:-1] if last else content) for content, result in nodes.items())
        out.append([Step(result, *part) for result, content in contents for part in content])
    return out


def check_centred(form: WeakForm, record: Record, cells: Sequence[tuple[int, int]]) -> bool:
    """Return whether features are centred in a form; refuse where the mean over the domain is not known."""
    if any(column.centred and column.source == "field" for column in form):
        raise InputError("a column of the field is centred: expected only columns of the features to be")
    centred = {column.centred for column in form if column.source == "features"}
    if centred != {True}:
        if len(centred) > 1:
            raise InputError("some columns of the features are centred and others not: expected all or none")
        return False
    reason = None
    if record.boundary in (None, "open"):
        reason = f"the record's boundary is {record.boundary!r}: expected the whole domain, boundary='periodic' or so"
    elif record.mask is not None:
        reason = "the record has missing values: expected complete frames; cut them out with record.clip(start, stop)"
    elif tuple(cells) != tuple((0, n) for n in record.mesh):
        reason = "only a part of each frame is read: expected whole frames; give more memory, or fewer workers"
    if reason is not None:
        raise InputError(f"this equation needs the mean over the domain in each frame, and {reason}")
    return True


def complete_centres(observed: Bools, boxes: Iterable[tuple[int, ...]]) -> Bools:
    """Return for each centre [t, z, y, x] whether all values that its moments use were observed.

    The support of a moment is the union of boxes, given by their half-lengths along each axis. What lies outside the
    array counts as observed: no centre reaches it.
    """
    missing = ~observed
    given = set(boxes)
    largest = {b for b in given if not any(b != c and all(x <= y for x, y in zip(b, c, strict=True)) for c in given)}
    return np.asarray(~_near(missing, largest, 0)) if missing.any() else np.ones(observed.shape, dtype=bool)


def _near(missing: Bools, boxes: set[tuple[int, ...]], axis: int) -> Bools:
    """Mark the places that have a missing value in one of the boxes around them, along this axis and later ones."""
    if axis == missing.ndim:
        return missing
    out = np.zeros_like(missing)
    for half in {box[axis] for box in boxes}:
        margin = [(half, half) if k == axis else (0, 0) for k in range(missing.ndim)]
        window, length = np.moveaxis(np.pad(missing, margin), axis, 0), 1
        while length < 2 * half + 1:  # windows double in length
            more = min(length, 2 * half + 1 - length)
            window = window[:-more] | window[more:]
            length += more
        out |= _near(np.moveaxis(window, 0, axis), {box for box in boxes if box[axis] == half}, axis + 1)
    return out


class Smoother:
    """The test weights of one support on the mesh of one record, for fields u[t, (z, y,) x], one field at a time.

    For what the compacting kernel does not offer: moments of polynomials that are not clipped, rows that another rule
    chooses, and the difference between two designs on one mask. The weights are the kernel's own.
    """

    def __init__(
        self, record: Record, support: tuple[int, float], derivative: Derivative = "discrete", form: WeakForm = ()
    ) -> None:
        frames, length = support
        time = axis_weights(frames, record.dt, derivative)
        power = bends(form) if form else 1
        self._set(record, time, [axis_weights(length / h, h, derivative, bends=power) for h in record.dx])

    @classmethod
    def of_weights(cls, record: Record, time: AxisWeights, space: Sequence[AxisWeights]) -> Smoother:
        """Return the smoother of any test weights, one for each axis."""
        smoother = cls.__new__(cls)
        smoother._set(record, time, space)
        return smoother

    def _set(self, record: Record, time: AxisWeights, space: Sequence[AxisWeights]) -> None:
        self.time, self.space = time, list(space)
        self.inside = tuple(slice(w.half, n - w.half) for w, n in zip(self.axes, record.shape, strict=True))

    @property
    def axes(self) -> list[AxisWeights]:
        """The weights along every axis, time first."""
        return [self.time, *self.space]

    def taps(self, column: Column) -> list[list[Array]]:
        """Return the taps along each axis of the terms of a column; factors are in those along time."""
        count = len(self.space)
        return [
            [
                term.factor * self.time.of_time(term.kinds[0]),
                *(w.of_space(kind) for w, kind in zip(self.space, term.kinds[AXES - count :], strict=True)),
            ]
            for term in terms(column, count)
        ]

    def column(self, column: Column, field: Array) -> Array:
        """Return a column at all centres, of one feature or of the field; a centred one without its mean."""
        if column.centred:
            field = field - field.mean(axis=tuple(range(1, field.ndim)), keepdims=True)
        return np.asarray(sum(self._apply(field, taps) for taps in self.taps(column)))

    def value(self, field: Array) -> Array:
        """Return S[field] at all centres, as field[t, y, x] without the margins."""
        return self._apply(field, [w.value for w in self.axes])

    def rate(self, u: Array) -> Array:
        """Return D S[u], the time derivative of the smoothed field."""
        return self._apply(u, [self.time.first, *(w.value for w in self.space)])

    def laplacian(self, u: Array) -> Array:
        """Return Lap S[u]."""
        return self.column(Column("laplacian", "field", space=1), u)

    def temporal_mean(self, u: Array) -> Array:
        """Return the weighted mean in time of u at the centres, which the mask is made of."""
        return self._apply(u, [self.time.value, *(np.ones(1) for _ in self.space)])

    def columns(self, fields: Sequence[Array], keep: Bools | None = None) -> Array:
        """Return S of several fields as columns, one row for each centre, of the kept centres or all."""
        smoothed = [self.value(field) for field in fields]
        return np.stack([s.reshape(-1) if keep is None else s[keep] for s in smoothed], axis=1)

    def _apply(self, field: Array, taps: Sequence[Array]) -> Array:
        frames = slice(self.time.half, len(field) - self.time.half)  # a field may hold fewer frames than the record
        return np.asarray(correlate(field, taps)[(frames, *self.inside[1:])])


def correlate(field: Array, taps: Sequence[Array]) -> Array:
    """Return sum_k taps[k] field[. + k] along every axis, the taps centred; zero outside the field."""
    from scipy.ndimage import correlate1d

    for axis in reversed(range(field.ndim)):
        if taps[axis].size > 1:
            field = correlate1d(field, taps[axis], axis=axis, mode="constant")
        elif taps[axis][0] != 1.0:
            field = taps[axis][0] * field
    return np.asarray(field)

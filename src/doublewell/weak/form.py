"""The weak form as sums of taps: what a table of columns asks for along t, z, y and x, and the order to make it in.

A column factor * D^time Lap^space S[source] is a sum of terms, each a factor times a product of taps along the four
axes: their kind is the number of time derivatives along t, and along a space axis half the number of derivatives there
(value, second, fourth). Lap^2 is the sum over all pairs of axes, with the second differences applied twice along one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from doublewell.dynamics import Column, WeakForm
from doublewell.errors import InputError
from doublewell.hints import Array, Bools
from doublewell.record import Record
from doublewell.weak.weights import AxisWeights, Derivative, axis_weights

AXES = 4  # t, z, y, x
Kinds = tuple[int, ...]  # of taps along t, z, y and x


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
    return max([1, *[column.space for column in form]])


def steps(columns: Sequence[Mapping[Kinds, float]], order: Sequence[int], *, mean: bool = False) -> list[list[Step]]:
    """Return the smoothings along each axis, in an order of axes, that make columns of one source.

    What several terms have in common is made once, and terms of a column that continue alike are added up as soon as
    they do. Results of the last axis are the columns, in order; the source of the first is 0. With `mean` the first
    result along the first axis is the plain value, whether a column needs it or not.
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
                if not later or content not in results:  # a column is a result of its own, even where two are alike
                    results[content] = len(results) if later else k
                    made += [Step(results[content], *part) for part in content]
                left[k][later] = results[content], scale
        out.append(made)
    return out


def check_centred(form: WeakForm, record: Record, cells: Sequence[tuple[int, int]]) -> bool:
    """Return whether features are centred in a form; refuse where the mean over the domain is not known."""
    centred = [column.source for column in form if column.centred]
    if not centred:
        return False
    if "field" in centred:
        raise InputError("a column of the field is centred: expected only columns of the features to be")
    if len(centred) < len([column for column in form if column.source == "features"]):
        raise InputError("some columns of the features are centred and others not: expected all or none")
    if record.boundary in (None, "open"):
        reason = f"the record's boundary is {record.boundary!r}: expected the whole domain, boundary='periodic' or so"
    elif record.mask is not None:
        reason = "the record has missing values: expected complete frames; cut them out with record.clip(start, stop)"
    elif tuple(cells) != tuple([(0, n) for n in record.mesh]):
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


@dataclass(frozen=True, eq=False)
class Smoother:
    """Test weights along the axes of fields u[t, (z, y,) x], time first, applied to one field at a time.

    For what the compacting kernel does not offer: moments of polynomials that are not clipped, rows that another rule
    chooses, and the difference between two designs on one mask. The weights are the kernel's own.
    """

    axes: Sequence[AxisWeights]

    @classmethod
    def of(
        cls, record: Record, support: tuple[int, float], derivative: Derivative = "discrete", form: WeakForm = ()
    ) -> Smoother:
        """Return the smoother of a support on the mesh of a record."""
        frames, length = support
        space = [axis_weights(length / h, h, derivative, bends=bends(form)) for h in record.dx]
        return cls([axis_weights(frames, record.dt, derivative), *space])

    def taps(self, column: Column) -> list[list[Array]]:
        """Return the taps along each axis of the terms of a column; factors are in those along time."""
        time, *space = self.axes
        out = []
        for kinds, factor in terms(column, len(space)).items():
            taps = [factor * (time.value, time.first)[kinds[0]]]
            for weights, kind in zip(space, kinds[AXES - len(space) :], strict=True):
                taps.append((weights.value, weights.second, weights.fourth)[kind])
            out.append(taps)
        return out

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
        return self.column(Column("rate", "field", time=1), u)

    def laplacian(self, u: Array) -> Array:
        """Return Lap S[u]."""
        return self.column(Column("laplacian", "field", space=1), u)

    def temporal_mean(self, u: Array) -> Array:
        """Return the weighted mean in time of u at the centres, which the mask is made of."""
        return self._apply(u, [self.axes[0].value, *[np.ones(1)] * (u.ndim - 1)])

    def columns(self, fields: Iterable[Array], keep: Bools) -> Array:
        """Return S of several fields as columns, one row for each kept centre."""
        return np.stack([self.value(field)[keep] for field in fields], axis=1)

    def inside(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """Return the centres of fields of a shape."""
        return tuple(slice(w.half, n - w.half) for w, n in zip(self.axes, shape, strict=True))

    def _apply(self, field: Array, taps: Sequence[Array]) -> Array:
        return np.asarray(correlate(field, taps)[self.inside(field.shape)])


def correlate(field: Array, taps: Sequence[Array]) -> Array:
    """Return sum_k taps[k] field[. + k] along every axis, the taps centred; zero outside the field."""
    from scipy.ndimage import correlate1d

    for axis in reversed(range(field.ndim)):
        if taps[axis].size > 1:
            field = correlate1d(field, taps[axis], axis=axis, mode="constant")
        elif taps[axis][0] != 1.0:
            field = taps[axis][0] * field
    return np.asarray(field)

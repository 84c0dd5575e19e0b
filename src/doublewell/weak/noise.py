"""What white noise does to weak moments, and moments that are free of its bias.

A row of Allen-Cahn's weak form is sum_j g_j S[B_j(u)] + (1/q) D S[u] = Lap S[u]; other equations have other columns.
Noise of standard deviation s shifts the mean of S[B_j] by s^2/2 S[B_j''], and it adds to the squares of every column
(errors in variables), which pulls coefficients towards zero. Here the features are corrected, the rows are chosen by
frames outside their own support, and the covariance of what noise is left in a row, summed over the rows, is taken off
the squares. The corrected squares are again a triangle R, so that everything behind the evidence stays as it is.

For Gaussian noise of variance s^2 the mean of s^k He_k(v/s) over v = u + noise is u^k, so every polynomial f has a
corrected one, H[f], with mean f(u): the mean of f(v + i s Z) over a normal Z, by a quadrature that is exact. The
corrected features of one pixel still vary together: an estimate of their covariance without bias is H[f] H[g] - H[f g].
Both are exact for polynomials on the whole line and a known variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.dynamics import ALLEN_CAHN, Column, WeakForm
from doublewell.errors import InputError, not_negative, option
from doublewell.evidence import Block, Key, compact
from doublewell.hints import Array, Bools, Progress
from doublewell.law import Family
from doublewell.record import Record
from doublewell.weak.weights import (
    AxisWeights,
    Derivative,
    Support,
    axis_weights,
    bends,
    check_centred,
    terms,
    time_weights,
    uneven_weights,
)

CUT = 0.95  # centres whose neighbours in time reach this are bulk; as PULL, chosen on a population of random laws
PULL = 0.2  # fraction of the squares that is not noise below which the law of low degree has its say
FLOOR = 0.1  # least such fraction of the law of low degree, and of the rate
_LOW = 2  # the paper's degree
_LEAST = 1e-3  # least fraction, in place of one that came out as zero or less
_VALUES = 2**22  # of a field that is held at a time
_PIXELS = 2**14  # whose features are evaluated at a time
_LOOK = 5  # frames on either side of a support that decide whether its centre counts
_EVEN = np.ones(0)  # taps of a mean over the domain: the same for every pixel of an axis, whatever its length


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
        return cls([time_weights(frames, record.dt, derivative), *space])

    def taps(self, column: Column) -> list[list[Array]]:
        """Return the taps along each axis of the terms of a column; factors are in those along time."""
        time, *space = self.axes
        out = []
        for kinds, factor in terms(column, len(space)).items():
            taps = [factor * (time.value, time.first)[kinds[0]]]
            for weights, kind in zip(space, kinds[-len(space) :], strict=True):
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

    def temporal_mean(self, u: Array) -> Array:
        """Return the weighted mean in time of u at the centres, which the mask is made of."""
        return self._apply(u, [self.axes[0].value, *[np.ones(1)] * (u.ndim - 1)])

    def inside(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """Return the centres of fields of a shape."""
        return tuple(slice(w.half, n - w.half) for w, n in zip(self.axes, shape, strict=True))

    def _apply(self, field: Array, taps: Sequence[Array]) -> Array:
        return np.asarray(correlate(field, taps)[self.inside(field.shape)])


def correlate(field: Array, taps: Sequence[Array]) -> Array:
    """Return sum_k taps[k] field[. + k] along every axis, the taps centred; zero outside the field.

    _EVEN stands for ones along the whole axis.
    """
    from scipy.ndimage import correlate1d

    for axis in reversed(range(field.ndim)):
        if taps[axis] is _EVEN:
            field = np.broadcast_to(field.sum(axis=axis, keepdims=True), field.shape)
        elif taps[axis].size > 1:
            field = correlate1d(field, taps[axis], axis=axis, mode="constant")
        elif taps[axis][0] != 1.0:
            field = taps[axis][0] * field
    return np.asarray(field)


@dataclass(frozen=True, eq=False)
class NoisyMoments(Block):
    """Moments of one support as they are, R of [features | rate | target], and the noise in R^T R."""

    noise: Array

    def turned(self, change: Array) -> NoisyMoments:
        """Return the moments in other columns, which these give times `change`."""
        return replace(self, triangle=compact(self.triangle @ change), noise=change.T @ self.noise @ change)


def without_noise(moments: NoisyMoments, family: Family, *, pull: float = PULL) -> Block:
    """Return the block whose squares are those moments less those of the noise.

    Where a fraction x of the squares in a direction of the coefficients is not noise, dividing by x alone would blow up
    for x near zero. So the answer there is x/(x^2 + pull^2) of what the rows say, which is never more than 1/(2 pull),
    and for the rest the corrected law of degree two. The target keeps its own square: noise in it biases nothing.
    """
    p = len(moments.triangle) - 2
    if not _full(moments):
        return Block(moments.key, moments.triangle, moments.rows)
    root, noise = moments.triangle[:p, :p], moments.noise
    fractions, turn = _directions(root, noise[:p, :p])
    left = np.maximum(1.0 - fractions, _LEAST)
    weight = pull**2 / left
    cross = root.T @ moments.triangle[:p, p:] - noise[:p, p:]
    law = turn.T @ (root @ _low_degree(moments, cross, family))
    right = turn.T @ np.linalg.solve(root.T, cross) + weight[:, None] * law
    size = np.sqrt(left + weight)
    # the last two rows: what rate and target hold besides the squares that the features explain
    squares = moments.triangle[:, p:].T @ moments.triangle[:, p:] + law.T @ (weight[:, None] * law)
    squares -= right.T @ (right / size[:, None] ** 2)
    rate = np.sqrt(max(squares[0, 0] - noise[p, p], FLOOR * moments.triangle[p, p] ** 2))
    both = (squares[0, 1] - noise[p, p + 1]) / rate
    rest = [[rate, both], [0.0, np.sqrt(max(squares[1, 1] - both**2, 0.0))]]
    rows = np.block([[size[:, None] * (turn.T @ root), right / size[:, None]], [np.zeros((2, p)), np.array(rest)]])
    return Block(moments.key, compact(rows), moments.rows)


def noise_fractions(moments: NoisyMoments) -> Array:
    """Return which fraction of the features' squares is noise in each direction of the coefficients, smallest first."""
    p = len(moments.triangle) - 2
    return _directions(moments.triangle[:p, :p], moments.noise[:p, :p])[0] if _full(moments) else np.zeros(0)


def _full(moments: NoisyMoments) -> bool:
    """Whether every column has something to say; one that has not is refused when solving."""
    return bool(moments.rows) and bool(np.all(np.diag(moments.triangle)[:-1] > 0.0))


def _directions(root: Array, noise: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and vectors of the noise in units of the squares of `root`."""
    half = np.linalg.solve(root.T, noise)
    fractions, turn = np.linalg.eigh(np.linalg.solve(root.T, half.T))
    return fractions, turn


def _low_degree(moments: NoisyMoments, cross: Array, family: Family) -> Array:
    """Return the corrected coefficients of a low degree, written at the degree of the rows, for rate and target."""
    p, lift = len(cross), family.at(min(_LOW, family.degree)).elevation(family)
    root = compact(moments.triangle[:p, :p] @ lift)
    fractions, turn = _directions(root, lift.T @ moments.noise[:p, :p] @ lift)
    inner = (turn.T @ np.linalg.solve(root.T, lift.T @ cross)) / np.maximum(1.0 - fractions, FLOOR)[:, None]
    return np.asarray(lift @ np.linalg.solve(root, turn @ inner))


def noisy_moments(
    record: Record, family: Family, support: Support, noise: float, *, derivative: Derivative = "discrete",
    form: WeakForm = ALLEN_CAHN.weak_form, progress: Progress | None = None,
) -> NoisyMoments:  # fmt: skip
    """Read the moments of one support over the chosen rows, with the noise's part of their squares.

    `noise` is the standard deviation of one pixel; the noise is white and normal.
    """
    variance = not_negative(noise, "noise", "the standard deviation of one pixel") ** 2
    if [column.source for column in form] != ["features", "field", "field"]:
        raise InputError(
            "the correction for noise is for equations with the columns force, rate and target: expected one of these; "
            f"use {option('method', 'weak')} without it"
        )
    check_centred(form, record)
    smoother = Smoother.of(record, (support.frames, support.length), derivative, form)
    size, half = family.size + 2, smoother.axes[0].half
    triangle, spread, rows = np.zeros((size, size)), np.zeros((size, size)), 0
    held = max(1, _VALUES // int(np.prod(record.mesh)))
    for start in range(half, record.frames - half, held):
        stop = min(start + held, record.frames - half)
        first = max(0, start - half - _LOOK)
        fields = record.slab(first, min(record.frames, stop + half + _LOOK))
        keep = chosen_centres(fields, range(start - first, stop - first), smoother)
        u = fields[start - half - first : stop + half - first]
        columns = [smoother.column(form[0], field) for field in corrected_features(family, u, variance)]
        columns += [smoother.column(column, u) for column in form[1:]]
        part = np.stack([column[keep] for column in columns], axis=1)
        triangle, rows = compact(np.vstack([triangle, part])), rows + len(part)
        spread += _row_noise(u, keep, family, variance, smoother, form)
        if progress is not None:
            progress(stop, record.frames)
    return NoisyMoments(Key("record", support.key, "all"), triangle, rows, spread)


def chosen_centres(fields: Array, centres: range, smoother: Smoother) -> Bools:
    """Return which centres count: those where the frames outside their support are not a pure phase.

    White noise in these frames has nothing to do with the noise in the row, so the choice biases nothing. Where a
    support takes in the whole record all centres count.
    """
    flat, half = [np.ones(1), *[w.value for w in smoother.axes[1:]]], smoother.axes[0].half
    smooth = correlate(fields, flat)[(slice(None), *smoother.inside(fields.shape)[1:])]
    keep = np.ones((len(centres), *smooth.shape[1:]), dtype=bool)
    for k, centre in enumerate(centres):
        before = smooth[max(0, centre - half - _LOOK) : centre - half]
        around = np.concatenate([before, smooth[centre + half + 1 : centre + half + 1 + _LOOK]])
        if len(around):
            keep[k] = np.abs(np.mean(around, axis=0)) < CUT
    return keep


def _row_noise(u: Array, keep: Bools, family: Family, variance: float, smoother: Smoother, form: WeakForm) -> Array:
    """Return the covariance of the noise in a row, summed over the chosen rows.

    Pixels are independent, so it is a sum over pixels of the covariance of what one pixel gives to two columns, times
    the sum over rows of the products of their weights.
    """
    p = family.size
    force, rate, target = (smoother.taps(column) for column in form)
    if form[0].centred:  # each pixel is in the mean over the domain too
        time, cells = smoother.axes[0].value, u[0].size
        force.append([-form[0].factor / cells * time, *[_EVEN] * (u.ndim - 1)])
    centres, out = np.zeros(u.shape), np.zeros((p + 2, p + 2))
    centres[smoother.inside(u.shape)] = keep
    for column, taps in ((slice(p), force), (p, rate), (p + 1, target)):
        weights = np.zeros(u.shape)  # of each pixel: the sum over all chosen centres of the products
        for one, other in product(force, taps):
            weights += correlate(
                centres, [x if x is _EVEN else x[::-1] for x in _products(one, other)]
            )  # seen from the pixel
        points, sizes = exact_nodes(u, weights, 2 * _power(family) + 1)
        covariance = np.einsum("n,nab->ab", sizes, noise_covariance(family, points, variance))
        out[:p, column] = covariance[:p, column if taps is force else p]
        out[column, :p] = out[:p, column].T
    for (i, a), (j, b) in product(enumerate((rate, target), p), repeat=2):
        overlap = sum(np.prod([x.sum() for x in _products(one, other)]) for one, other in product(a, b))
        out[i, j] = variance * np.sum(keep) * overlap
    return out


def _products(one: list[Array], other: list[Array]) -> list[Array]:
    """Return the products of two centred sets of taps along each axis, of the length of the shorter."""
    out = []
    for x, y in zip(one, other, strict=True):
        if x is _EVEN or y is _EVEN:
            out.append(y if x is _EVEN else x)
            continue
        n = min(x.size, y.size)
        out.append(x[(x.size - n) // 2 : (x.size + n) // 2] * y[(y.size - n) // 2 : (y.size + n) // 2])
    return out


def corrected_features(family: Family, u: Array, variance: float) -> Array:
    """Evaluate the corrected features H[B_j] at u; shape (size, *u.shape). Without noise they are the B_j."""
    nodes, weights = _normal(_power(family) // 2 + 1)
    nodes, weights = nodes[nodes >= 0.0], np.where(nodes > 0.0, 2.0, 1.0)[nodes >= 0.0] * weights[nodes >= 0.0]
    pixels, out = u.ravel(), np.zeros((family.size, u.size))
    for start in range(0, u.size, _PIXELS):
        part = slice(start, start + _PIXELS)
        for node, weight in zip(nodes, weights, strict=True):  # those below zero give the conjugates
            out[:, part] += weight * _polynomials(family, pixels[part] + 1j * np.sqrt(variance) * node)[:-1].real
    return out.reshape(family.size, *u.shape)


def noise_covariance(family: Family, u: Array, variance: float) -> Array:
    """Evaluate the estimated covariance of (H[B_0], ..., H[B_m], u) at the pixels u; shape (n, size + 1, size + 1)."""
    nodes, weights = _normal(_power(family) + 1)
    values = _polynomials(family, u[:, None] + 1j * np.sqrt(variance) * nodes)
    means = np.real(values @ weights)
    products = np.einsum("ank,bnk,k->nab", values, values, weights)
    return np.asarray(np.einsum("an,bn->nab", means, means) - np.real(products))


def exact_nodes(u: Array, weights: Array, count: int) -> tuple[Array, Array]:
    """Return Chebyshev points and weights with the sums of all polynomials below degree `count` over weighted pixels.

    A sum over a million pixels becomes one over some thirty points, exactly.
    """
    reach = float(np.max(np.abs(u), initial=1.0))
    points = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    x, moments = u.ravel() / reach, np.empty(count)
    before, now, size = x, np.ones_like(x), weights.ravel()  # T_(-1) = x and T_0 = 1 start the recursion
    for k in range(count):
        moments[k] = size @ now
        before, now = now, 2.0 * x * now - before
    table = np.polynomial.chebyshev.chebvander(points, count - 1)
    moments[1:] *= 2.0
    return reach * points, table @ moments / count


def _normal(count: int) -> tuple[Array, Array]:
    """Return nodes and weights of means over a normal variable, exact for polynomials below degree 2 `count`."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def _power(family: Family) -> int:
    """Return the highest power of u in the features."""
    table, counts, _ = family.kernel_table()
    inner, outer = (int(np.flatnonzero(part)[-1]) for part in (table[2:5], table[5:]))
    return outer + inner * (len(counts) - 1)


def _polynomials(family: Family, u: Array) -> Array:
    """Evaluate B_0, ..., B_m and u as polynomials, at complex points too; shape (size + 1, *u.shape)."""
    table, counts, _ = family.kernel_table()
    z, factor = np.polyval(table[4:1:-1], u), np.polyval(table[:4:-1], u)
    out, rest = np.empty((family.size + 1, *u.shape), u.dtype), np.ones_like(u)
    out[-1] = u
    for j, count in enumerate(counts):  # powers of z from the left, of 1 - z from the right
        out[j] = count * factor
        factor = factor * z
    for j in reversed(range(family.size)):
        out[j] *= rest
        rest *= 1.0 - z
    return out


@dataclass(frozen=True)
class RateNoise:
    """The variance of the noise in the rate D S[u] of one row, and how many neighbouring rows share one such noise."""

    variance: float
    overlap: float


def rate_noise(record: Record, support: Support, noise: float, derivative: Derivative = "discrete") -> RateNoise:
    """Return the noise in the rate of one support for pixels with white noise of a standard deviation.

    Rows overlap: as far as their squares are concerned, `overlap` of them count as one, the sum of the squared
    correlations of all shifts. At uneven times the variance is the mean over the centre frames, and the overlap that of
    frames at their mean interval.
    """
    interval = float(record.times[-1] - record.times[0]) / (record.frames - 1)
    axes = [time_weights(support.frames, interval, derivative)]
    axes += [axis_weights(support.length / h, h, derivative) for h in record.dx]
    variance, overlap = noise**2, 1.0
    for k, (weights, length) in enumerate(zip(axes, record.shape, strict=True)):
        taps = weights.value if k else weights.first
        shifts = np.correlate(taps, taps, mode="full")
        overlap *= min(float(np.sum((shifts / shifts.max()) ** 2)), float(length - 2 * weights.half))
        square = float(np.sum(taps**2))
        if k == 0 and not record.uniform:
            windows = sliding_window_view(record.times, 2 * support.reach + 1)
            square = float(np.mean(np.sum(uneven_weights(support.frames, windows, derivative)[1] ** 2, axis=1)))
        variance *= square
    return RateNoise(variance, overlap)

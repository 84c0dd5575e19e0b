"""The corrected weak reader: moments whose features and squares are free of the bias that white noise gives them.

A row of the weak reader is sum_j g_j S[B_j(u)] + (1/q) D S[u] = Lap S[u]. Noise of standard deviation s shifts the
mean of S[B_j] by s^2/2 S[B_j''], and it adds to the squares of every column (errors in variables), which pulls
coefficients towards zero. Here the features are corrected (hermite.py), the rows are chosen by frames outside their own
support, and the covariance of what noise is left in a row, summed over the rows, is taken off the squares.

The corrected squares are again a triangle R, so that everything behind the evidence stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublewell.checks import not_negative
from doublewell.evidence import Block, Key, compact
from doublewell.hints import Array, Progress
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak.hermite import corrected_features, exact_nodes, noise_covariance
from doublewell.weak.smoother import Smoother, correlate
from doublewell.weak.weak import support_key
from doublewell.weak.weights import Derivative, Support

__all__ = ["CUT", "FLOOR", "PULL", "NoisyMoments", "noise_shares", "noisy_moments", "without_noise"]

CUT = 0.95  # centres whose neighbours in time reach this are bulk; as PULL, chosen on a population of random laws
PULL = 0.2  # share of the squares that is no noise below which the law of low degree has its say
FLOOR = 0.1  # least such share of the law of low degree, and of the rate
_LOW = 2  # the paper's degree
_LEAST = 1e-3  # least share, in place of one that came out as zero or less
_VALUES = 2**22  # of a field that is held at a time
_LOOK = 5  # frames on either side of a support that decide whether its centre counts


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Moments of one support as they are seen: R of [features | rate | Laplacian], the noise in R^T R, and the rows."""

    key: Key
    triangle: Array
    noise: Array
    rows: int


def without_noise(seen: NoisyMoments, *, pull: float = PULL) -> Block:
    """Return the block whose squares are those seen less those of the noise.

    Where the share x of the squares in a direction of the coefficients is no noise, dividing by x alone would blow up
    for x near zero. So the answer there is x/(x^2 + pull^2) of what the rows say, which is never more than 1/(2 pull),
    and for the rest the corrected law of degree two. The Laplacian keeps its own square: noise in a target biases
    nothing.
    """
    p = len(seen.triangle) - 2
    if not _full(seen):
        return Block(seen.key, seen.triangle, seen.rows)
    root = seen.triangle[:p, :p]
    shares, turn = _directions(root, seen.noise[:p, :p])
    left = np.maximum(1.0 - shares, _LEAST)
    weight = pull**2 / left
    cross = root.T @ seen.triangle[:p, p:] - seen.noise[:p, p:]
    law = turn.T @ (root @ _low_degree(seen, cross))
    right = turn.T @ np.linalg.solve(root.T, cross) + weight[:, None] * law
    size = np.sqrt(left + weight)
    rows = np.hstack([size[:, None] * (turn.T @ root), right / size[:, None]])
    rest = _rest(seen, right.T @ (right / size[:, None] ** 2) - law.T @ (weight[:, None] * law))
    return Block(seen.key, compact(np.vstack([rows, rest])), seen.rows)


def noise_shares(seen: NoisyMoments) -> Array:
    """Return which share of the features' squares is noise in each direction of the coefficients, smallest first."""
    p = len(seen.triangle) - 2
    return _directions(seen.triangle[:p, :p], seen.noise[:p, :p])[0] if _full(seen) else np.zeros(0)


def _full(seen: NoisyMoments) -> bool:
    """Whether every column has something to say; one that has not is refused when solving."""
    return bool(seen.rows) and bool(np.all(np.diag(seen.triangle)[:-1] > 0.0))


def _directions(root: Array, noise: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and vectors of the noise in units of the squares of `root`."""
    half = np.linalg.solve(root.T, noise)
    shares, turn = np.linalg.eigh(np.linalg.solve(root.T, half.T))
    return shares, turn


def _low_degree(seen: NoisyMoments, cross: Array) -> Array:
    """Return the corrected coefficients of a low degree, written at the degree of the rows, for rate and Laplacian."""
    p = len(cross)
    family = Bernstein(p - 1)
    lift = Bernstein(min(_LOW, p - 1)).elevation(family)
    root = compact(seen.triangle[:p, :p] @ lift)
    shares, turn = _directions(root, lift.T @ seen.noise[:p, :p] @ lift)
    left = np.maximum(1.0 - shares, FLOOR)
    inner = (turn.T @ np.linalg.solve(root.T, lift.T @ cross)) / left[:, None]
    return np.asarray(lift @ np.linalg.solve(root, turn @ inner))


def _rest(seen: NoisyMoments, told: Array) -> Array:
    """Return the last two rows of the triangle: what rate and Laplacian hold beside the squares that features tell."""
    p = len(seen.triangle) - 2
    squares = seen.triangle[:, p:].T @ seen.triangle[:, p:] - told
    rate = max(squares[0, 0] - seen.noise[p, p], FLOOR * seen.triangle[p, p] ** 2)
    both = (squares[0, 1] - seen.noise[p, p + 1]) / np.sqrt(rate)
    out = np.zeros((2, p + 2))
    out[0, p:] = np.sqrt(rate), both
    out[1, p + 1] = np.sqrt(max(squares[1, 1] - both**2, 0.0))
    return out


def noisy_moments(
    record: Record,
    family: Bernstein,
    support: Support,
    noise: float,
    *,
    derivative: Derivative = "discrete",
    label: str = "record",
    progress: Progress | None = None,
) -> NoisyMoments:
    """Read the moments of one support over the chosen rows, with the noise's part of their squares.

    `noise` is the standard deviation of one pixel; the noise is white and normal.
    """
    variance = not_negative(noise, "noise", "the standard deviation of one pixel") ** 2
    smoother = Smoother(record, (support.frames, support.length), derivative)
    size = family.size + 2
    triangle, spread, rows = np.zeros((size, size)), np.zeros((size, size)), 0
    for window in _windows(record, smoother):
        keep = window.chosen(smoother)
        part = _rows(window.inner, keep, family, variance, smoother)
        triangle = compact(np.vstack([triangle, part]))
        spread += _row_noise(window.inner, keep, family, variance, smoother)
        rows += len(part)
        if progress is not None:
            progress(window.stop, record.frames)
    return NoisyMoments(Key(label, support_key(support), "all"), triangle, spread, rows)


@dataclass(frozen=True, eq=False)
class _Window:
    """The centre frames start..stop-1 with fields from frame `first` on: what their supports hold and _LOOK more."""

    start: int
    stop: int
    first: int
    half: int
    fields: Array

    @property
    def inner(self) -> Array:
        """The frames that the supports hold."""
        return self.fields[self.start - self.half - self.first : self.stop + self.half - self.first]

    def chosen(self, smoother: Smoother) -> NDArray[np.bool_]:
        """Return which centres count: those where the frames outside their support are not a pure phase.

        White noise in these frames has nothing to do with the noise in the row, so the choice biases nothing. Where a
        support takes in the whole record all centres count.
        """
        flat = [np.ones(1), *(w.value for w in smoother.space)]
        smooth = correlate(self.fields, flat)[(slice(None), *smoother.inside[1:])]
        keep = np.empty((self.stop - self.start, *smooth.shape[1:]), dtype=bool)
        for k in range(self.start, self.stop):
            around = [
                *range(k - self.half - _LOOK, k - self.half),
                *range(k + self.half + 1, k + self.half + 1 + _LOOK),
            ]
            seen = [frame - self.first for frame in around if 0 <= frame - self.first < len(self.fields)]
            keep[k - self.start] = np.abs(np.mean(smooth[seen], axis=0)) < CUT if seen else True
        return keep


def _windows(record: Record, smoother: Smoother) -> Iterator[_Window]:
    half = smoother.time.half
    size = max(1, _VALUES // int(np.prod(record.mesh)))
    for start in range(half, record.frames - half, size):
        stop = min(start + size, record.frames - half)
        first, last = max(0, start - half - _LOOK), min(record.frames, stop + half + _LOOK)
        yield _Window(start, stop, first, half, record.slab(first, last))


def _rows(u: Array, keep: NDArray[np.bool_], family: Bernstein, variance: float, smoother: Smoother) -> Array:
    """Return the rows [corrected features | rate | Laplacian] of the chosen centres."""
    columns = [smoother.value(field)[keep] for field in corrected_features(family, u, variance)]
    return np.stack([*columns, smoother.rate(u)[keep], smoother.laplacian(u)[keep]], axis=1)


def _row_noise(u: Array, keep: NDArray[np.bool_], family: Bernstein, variance: float, smoother: Smoother) -> Array:
    """Return the covariance of the noise in a row, summed over the chosen rows.

    Pixels are independent, so it is a sum over pixels of the covariance of what one pixel gives to two columns, times
    the sum over rows of the products of their weights.
    """
    p = family.size
    value = [[w.value for w in smoother.axes]]
    rate, bend = [[smoother.time.first, *value[0][1:]]], smoother.laplacian_taps()
    centres = _spread_out(keep, u.shape, smoother)
    out = np.zeros((p + 2, p + 2))
    out[:p, :p] = _pixel_sum(u, _pixel_weights(centres, value, value), family, variance)[:p, :p]
    for column, taps in ((p, rate), (p + 1, bend)):
        out[:p, column] = _pixel_sum(u, _pixel_weights(centres, value, taps), family, variance)[:p, p]
        out[column, :p] = out[:p, column]
    for i, one in enumerate((rate, bend)):
        for j, other in enumerate((rate, bend)):
            out[p + i, p + j] = variance * np.sum(keep) * _overlap(one, other)
    return out


def _pixel_sum(u: Array, weights: Array, family: Bernstein, variance: float) -> Array:
    points, shares = exact_nodes(u, weights, 4 * family.degree + 7)
    return np.asarray(np.einsum("n,nab->ab", shares, noise_covariance(family, points, variance)))


def _spread_out(keep: NDArray[np.bool_], shape: tuple[int, ...], smoother: Smoother) -> Array:
    """Return the chosen centres as ones in a field with margins."""
    out = np.zeros(shape)
    out[tuple(slice(w.half, n - w.half) for w, n in zip(smoother.axes, shape, strict=True))] = keep
    return out


def _pixel_weights(centres: Array, one: list[list[Array]], other: list[list[Array]]) -> Array:
    """Return for each pixel the sum over all chosen centres of the product of two weights."""
    total = np.zeros_like(centres)
    for a in one:
        for b in other:
            taps = [_product(x, y)[::-1] for x, y in zip(a, b, strict=True)]  # seen from the pixel
            total += correlate(centres, taps)
    return total


def _overlap(one: list[list[Array]], other: list[list[Array]]) -> float:
    return float(sum(np.prod([_product(x, y).sum() for x, y in zip(a, b, strict=True)]) for a in one for b in other))


def _product(x: Array, y: Array) -> Array:
    """Return the product of two centred sets of taps, of the length of the shorter."""
    gap = (x.size - y.size) // 2
    return x[gap : x.size - gap] * y if gap > 0 else x * y[-gap : y.size + gap]

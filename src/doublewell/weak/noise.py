"""What white noise does to weak moments, and moments that are free of its bias.

A row of the weak reader is sum_j g_j S[B_j(u)] + (1/q) D S[u] = Lap S[u]. Noise of standard deviation s shifts the
mean of S[B_j] by s^2/2 S[B_j''], and it adds to the squares of every column (errors in variables), which pulls
coefficients towards zero. Here the features are corrected, the rows are chosen by frames outside their own support, and
the covariance of what noise is left in a row, summed over the rows, is taken off the squares. The corrected squares are
again a triangle R, so that everything behind the evidence stays as it is.

For Gaussian noise of variance s^2 the mean of s^k He_k(v/s) over v = u + noise is u^k, so every polynomial f has a
corrected one, H[f], with mean f(u). The corrected features of one pixel still vary together: an estimate of their
covariance without bias is H[f] H[g] - H[f g]. Both are exact for polynomials on the whole line and a known variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.dynamics import ALLEN_CAHN, WeakForm
from doublewell.errors import InputError, not_negative
from doublewell.evidence import Block, Key, compact
from doublewell.hints import Array, Bools, Progress
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak.assembly import support_key
from doublewell.weak.form import Smoother, correlate
from doublewell.weak.weights import MARGIN, Derivative, Support, axis_weights, uneven_weights

CUT = 0.95  # centres whose neighbours in time reach this are bulk; as PULL, chosen on a population of random laws
PULL = 0.2  # share of the squares that is no noise below which the law of low degree has its say
FLOOR = 0.1  # least such share of the law of low degree, and of the rate
_LOW = 2  # the paper's degree
_LEAST = 1e-3  # least share, in place of one that came out as zero or less
_VALUES = 2**22  # of a field that is held at a time
_LOOK = 5  # frames on either side of a support that decide whether its centre counts


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Moments of one support as they are seen: R of [features | rate | target], the noise in R^T R, and the rows."""

    key: Key
    triangle: Array
    noise: Array
    rows: int


def without_noise(moments: NoisyMoments, *, pull: float = PULL) -> Block:
    """Return the block whose squares are those moments less those of the noise.

    Where the share x of the squares in a direction of the coefficients is no noise, dividing by x alone would blow up
    for x near zero. So the answer there is x/(x^2 + pull^2) of what the rows say, which is never more than 1/(2 pull),
    and for the rest the corrected law of degree two. The target keeps its own square: noise in a target biases
    nothing.
    """
    p = len(moments.triangle) - 2
    if not _full(moments):
        return Block(moments.key, moments.triangle, moments.rows)
    root = moments.triangle[:p, :p]
    shares, turn = _directions(root, moments.noise[:p, :p])
    left = np.maximum(1.0 - shares, _LEAST)
    weight = pull**2 / left
    cross = root.T @ moments.triangle[:p, p:] - moments.noise[:p, p:]
    law = turn.T @ (root @ _low_degree(moments, cross))
    right = turn.T @ np.linalg.solve(root.T, cross) + weight[:, None] * law
    size = np.sqrt(left + weight)
    rows = np.hstack([size[:, None] * (turn.T @ root), right / size[:, None]])
    rest = _rest(moments, right.T @ (right / size[:, None] ** 2) - law.T @ (weight[:, None] * law))
    return Block(moments.key, compact(np.vstack([rows, rest])), moments.rows)


def noise_shares(moments: NoisyMoments) -> Array:
    """Return which share of the features' squares is noise in each direction of the coefficients, smallest first."""
    p = len(moments.triangle) - 2
    return _directions(moments.triangle[:p, :p], moments.noise[:p, :p])[0] if _full(moments) else np.zeros(0)


def _full(moments: NoisyMoments) -> bool:
    """Whether every column has something to say; one that has not is refused when solving."""
    return bool(moments.rows) and bool(np.all(np.diag(moments.triangle)[:-1] > 0.0))


def _directions(root: Array, noise: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and vectors of the noise in units of the squares of `root`."""
    half = np.linalg.solve(root.T, noise)
    shares, turn = np.linalg.eigh(np.linalg.solve(root.T, half.T))
    return shares, turn


def _low_degree(moments: NoisyMoments, cross: Array) -> Array:
    """Return the corrected coefficients of a low degree, written at the degree of the rows, for rate and target."""
    p = len(cross)
    family = Bernstein(p - 1)
    lift = Bernstein(min(_LOW, p - 1)).elevation(family)
    root = compact(moments.triangle[:p, :p] @ lift)
    shares, turn = _directions(root, lift.T @ moments.noise[:p, :p] @ lift)
    left = np.maximum(1.0 - shares, FLOOR)
    inner = (turn.T @ np.linalg.solve(root.T, lift.T @ cross)) / left[:, None]
    return np.asarray(lift @ np.linalg.solve(root, turn @ inner))


def _rest(moments: NoisyMoments, explained: Array) -> Array:
    """Return the last two rows of the triangle: what rate and target hold beside the squares that features tell."""
    p = len(moments.triangle) - 2
    squares = moments.triangle[:, p:].T @ moments.triangle[:, p:] - explained
    rate = max(squares[0, 0] - moments.noise[p, p], FLOOR * moments.triangle[p, p] ** 2)
    both = (squares[0, 1] - moments.noise[p, p + 1]) / np.sqrt(rate)
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
    form: WeakForm = ALLEN_CAHN.weak_form,
    label: str = "record",
    progress: Progress | None = None,
) -> NoisyMoments:
    """Read the moments of one support over the chosen rows, with the noise's part of their squares.

    `noise` is the standard deviation of one pixel; the noise is white and normal.
    """
    variance = not_negative(noise, "noise", "the standard deviation of one pixel") ** 2
    if [column.source for column in form] != ["features", "field", "field"] or form[0].centred:
        raise InputError(
            "the correction for noise is for equations with the columns force, rate and target, none of them centred: "
            "expected one of these; use method='weak' without it"
        )
    smoother = Smoother(record, (support.frames, support.length), derivative, form)
    size = family.size + 2
    triangle, spread, rows = np.zeros((size, size)), np.zeros((size, size)), 0
    for window in _windows(record, smoother):
        keep = window.chosen(smoother)
        part = _rows(window.inner, keep, family, variance, smoother, form)
        triangle = compact(np.vstack([triangle, part]))
        spread += _row_noise(window.inner, keep, family, variance, smoother, form)
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

    def chosen(self, smoother: Smoother) -> Bools:
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
            given = [frame - self.first for frame in around if 0 <= frame - self.first < len(self.fields)]
            keep[k - self.start] = np.abs(np.mean(smooth[given], axis=0)) < CUT if given else True
        return keep


def _windows(record: Record, smoother: Smoother) -> Iterator[_Window]:
    half = smoother.time.half
    size = max(1, _VALUES // int(np.prod(record.mesh)))
    for start in range(half, record.frames - half, size):
        stop = min(start + size, record.frames - half)
        first, last = max(0, start - half - _LOOK), min(record.frames, stop + half + _LOOK)
        yield _Window(start, stop, first, half, record.slab(first, last))


def _rows(u: Array, keep: Bools, family: Bernstein, variance: float, smoother: Smoother, form: WeakForm) -> Array:
    """Return the rows [corrected features | rate | target] of the chosen centres."""
    force, *others = form
    features = corrected_features(family, u, variance)
    columns = [smoother.column(force, field) for field in features] + [smoother.column(column, u) for column in others]
    return np.stack([column[keep] for column in columns], axis=1)


def _row_noise(u: Array, keep: Bools, family: Bernstein, variance: float, smoother: Smoother, form: WeakForm) -> Array:
    """Return the covariance of the noise in a row, summed over the chosen rows.

    Pixels are independent, so it is a sum over pixels of the covariance of what one pixel gives to two columns, times
    the sum over rows of the products of their weights.
    """
    p = family.size
    force, rate, target = (smoother.taps(column) for column in form)
    centres = _spread_out(keep, u.shape, smoother)
    out = np.zeros((p + 2, p + 2))
    out[:p, :p] = _pixel_sum(u, _pixel_weights(centres, force, force), family, variance)[:p, :p]
    for column, taps in ((p, rate), (p + 1, target)):
        out[:p, column] = _pixel_sum(u, _pixel_weights(centres, force, taps), family, variance)[:p, p]
        out[column, :p] = out[:p, column]
    for i, one in enumerate((rate, target)):
        for j, other in enumerate((rate, target)):
            out[p + i, p + j] = variance * np.sum(keep) * _overlap(one, other)
    return out


def _pixel_sum(u: Array, weights: Array, family: Bernstein, variance: float) -> Array:
    points, shares = exact_nodes(u, weights, 4 * family.degree + 7)
    return np.asarray(np.einsum("n,nab->ab", shares, noise_covariance(family, points, variance)))


def _spread_out(keep: Bools, shape: tuple[int, ...], smoother: Smoother) -> Array:
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


def monomial_matrix(family: Bernstein) -> Array:
    """Return the features as polynomials, in the odd powers u, u^3, ...: one column a feature."""
    out = np.zeros((family.size + 1, family.size))
    for j in range(family.size):
        bracket = [float(c) for c in family.exact_bracket(np.eye(family.size)[j])]
        for i, c in enumerate(bracket):  # -u (1 - u^2) z^i = -u^(2i + 1) + u^(2i + 3)
            out[i, j] -= c
            out[i + 1, j] += c
    return out


def hermite_matrix(size: int, variance: float) -> Array:
    """Return the corrected powers in powers: column k is s^n He_n(u/s) for the k-th odd power n = 2 k + 1."""
    return _as_floats(_hermite(size, Fraction(variance)))


def corrected_features(family: Bernstein, u: Array, variance: float) -> Array:
    """Evaluate the corrected features H[B_j] at u; shape (size, *u.shape). Without noise they are the B_j."""
    # in u times Bernstein polynomials of u^2, one degree higher: powers of u would cancel at high degree
    turn = _as_floats(_from_powers(family.size) @ _hermite(family.size + 1, Fraction(variance)) @ _powers(family))
    order = family.size
    z = (u * u).ravel()
    fields = np.empty((order + 1, z.size))
    fields[0] = u.ravel()
    for i in range(order):  # powers of z from the left, of 1 - z from the right
        np.multiply(fields[i], z, out=fields[i + 1])
    rest = np.ones_like(z)
    for i in range(order - 1, -1, -1):
        rest *= 1.0 - z
        fields[i] *= rest
    scale = np.array([comb(order, i) for i in range(order + 1)], dtype=np.float64)
    return np.asarray((turn * scale[:, None]).T @ fields).reshape(family.size, *u.shape)


def noise_covariance(family: Bernstein, u: Array, variance: float) -> Array:
    """Evaluate the estimated covariance of (H[B_0], ..., H[B_m], u) at each of the pixels u; shape (n, size + 1, ...).

    H[f](u) is the mean of f(u + i s Z) over a normal Z, so quadrature does it without powers of u.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * family.size + 4)
    points = u[:, None] + 1j * np.sqrt(variance) * nodes
    values = _polynomials(family, points)
    means = np.real(values @ (weights / weights.sum()))
    products = np.einsum("ank,bnk,k->nab", values, values, weights / weights.sum())
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


def _polynomials(family: Bernstein, u: Array) -> Array:
    """Evaluate B_0, ..., B_m and u as polynomials, at complex points too; shape (size + 1, *u.shape)."""
    z, v = u * u, (1.0 - u) * (1.0 + u)
    inside = [-u * v * c * z**j * v ** (family.degree - j) for j, c in enumerate(family.binomials)]
    return np.stack([*inside, u])


def _hermite(size: int, variance: Fraction) -> Array:
    out = np.full((size, size), Fraction(0), dtype=object)
    for column in range(size):
        k = 2 * column + 1
        for i in range(column + 1):
            out[column - i, column] = (-variance / 2) ** i * factorial(k) / (factorial(i) * factorial(k - 2 * i))
    return out


def _powers(family: Bernstein) -> Array:
    """Return monomial_matrix in exact arithmetic; its entries are integers."""
    return np.asarray(np.vectorize(Fraction, otypes=[object])(monomial_matrix(family)))


def _from_powers(order: int) -> Array:
    """Return the odd powers in the columns u C(n, j) z^j (1 - z)^(n - j), j = 0..n, n = order."""
    out = np.full((order + 1, order + 1), Fraction(0), dtype=object)
    for k in range(order + 1):
        for j in range(k, order + 1):
            out[j, k] = Fraction(comb(j, k), comb(order, k))
    return out


def _as_floats(values: Array) -> Array:
    return np.array(values, dtype=np.float64)


@dataclass(frozen=True)
class RateNoise:
    """The variance of the noise in the rate D S[u] of one row, and how many neighbouring rows share one such noise."""

    variance: float
    overlap: float


def rate_noise(record: Record, support: Support, noise: float, derivative: Derivative = "discrete") -> RateNoise:
    """Return the noise in the rate of one support for pixels with white noise of a standard deviation.

    Rows overlap: as far as their squares are concerned, `overlap` of them count as one. At uneven times the variance
    is the mean over the centre frames, and the overlap that of frames at their mean interval.
    """
    interval = float(record.times[-1] - record.times[0]) / (record.frames - 1)
    time = axis_weights(support.frames, interval, derivative)
    space = [axis_weights(support.length / h, h, derivative) for h in record.dx]
    taps = [time.first, *(w.value for w in space)]
    centres = [n - 2 * w.half for n, w in zip(record.shape, [time, *space], strict=True)]
    alike = [min(_alike(t), float(n)) for t, n in zip(taps, centres, strict=True)]
    squares = [float(np.sum(t**2)) for t in taps]
    if not record.uniform:
        windows = sliding_window_view(record.times, 2 * (support.frames + MARGIN) + 1)
        _, first = uneven_weights(support.frames, windows, derivative)
        squares[0] = float(np.mean(np.sum(first**2, axis=1)))
    return RateNoise(noise**2 * float(np.prod(squares)), float(np.prod(alike)))


def _alike(taps: Array) -> float:
    """Return the sum of the squared correlations of all shifts of the taps with themselves."""
    shifts = np.correlate(taps, taps, mode="full")
    return float(np.sum((shifts / shifts.max()) ** 2))

"""The weak reading on a GPU: the moments of many centres at once, by JAX.

The same sums as in `kernels`, in another order. Along time a matrix of taps is multiplied with the features: a GPU does
that at its full rate, and uneven times are other numbers in the matrix. Along space shifted copies are added. For
the first space axes the last one is cut into lines of 32 cells, so that neighbours lie near each other in memory.

R comes from Cholesky factors, but not from those of the normal equations: the rows are divided by the factor that was
found, and what is left is factored again until it is well conditioned. One round is a guess, two have the accuracy of
Householder steps (Yamamoto et al., 2015), and no row is ever moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics import double_precision
from doublewell.hints import Array

__all__ = ["on_device", "read_centres"]

Row = tuple[float, ...]
Taps = tuple[tuple[Row, Row], ...]  # for value and second derivative, along z, y and x
_LINE = 32  # cells along x that stay together: 256 bytes, two cache lines
_WIDEST = 64  # taps that are added as shifted copies; longer ones are a matrix product
_ROUNDS = 5
_GOOD = 1e4  # condition number of a Gram matrix whose Cholesky factor is good to twelve digits
_SAMPLED = 8  # frames that give the first guess of R
_COPIES, _THREADS = 2, 8  # of copies to the device: parts for each thread, threads
_KINDS: dict[str, Any] = {"double": np.float64, "single": np.float32}


def on_device(fields: Array, precision: str = "double") -> Any:
    """Copy frames to the device, several parts at once: one copy at a time is held up by the host's pages."""
    import jax
    import jax.numpy as jnp

    kind = _KINDS[precision]
    parts = np.array_split(fields, min(len(fields), _COPIES * _THREADS))

    def put(part: Array) -> Any:
        with double_precision():
            return jax.device_put(part.astype(kind, copy=False))

    with double_precision(), ThreadPoolExecutor(_THREADS) as pool:
        return jnp.concatenate(list(pool.map(put, parts)))


def read_centres(
    fields: Any, complete: NDArray[np.bool_] | None, time: tuple[Array, Array], space: Sequence[tuple[Array, Array]],
    table: tuple[Array, Array, Array], cut: float,
) -> tuple[Array, int]:  # fmt: skip
    """Return R of the moments of all centres of fields[t, z, y, x], and their number.

    fields are on the device, in the precision that the moments are to have. time has one row of taps per centre frame,
    for value and first derivative; space has the taps for value and second derivative along z, y and x.
    complete[t, z, y, x] says which centres have a complete support, None for all.
    """
    import jax.numpy as jnp

    kind = np.dtype(fields.dtype)
    centres = (len(time[0]), *(n - len(second) + 1 for n, (_, second) in zip(fields.shape[1:], space, strict=True)))
    odd = tuple(n | 1 for n in centres)
    weights = tuple(_matrix(taps, fields.shape[0], odd[0]).astype(kind) for taps in time)
    taps = tuple((tuple(value.tolist()), tuple(second.tolist())) for value, second in space)
    with double_precision():
        filled = _filled(fields, [m - n for m, n in zip(odd[1:], centres[1:], strict=True)])
        columns, means = _moments(taps)(filled, weights, *(one.astype(kind) for one in table))
        keep = _kept(means, centres, cut, None if complete is None else jnp.asarray(complete))
        return _triangle(columns, keep), int(jnp.sum(keep))


def _filled(fields: Any, more: list[int]) -> Any:
    """Add cells at the ends so that the number of centres along every axis is odd.

    Where the number of results is divisible by four, XLA lets a thread make four neighbours, and loads at odd places
    are then scattered: the sums along x take 1.8 to 2.4 times as long (H200).
    """
    import jax.numpy as jnp

    return fields if not any(more) else jnp.pad(fields, [(0, 0), *((0, n) for n in more)])


def _matrix(taps: Array, frames: int, rows: int) -> Array:
    """Return the taps of each centre frame as a row of a matrix that acts on all frames; further rows are zero."""
    matrix = np.zeros((rows, frames))
    margin = (frames - len(taps) - taps.shape[1] + 1) // 2
    for k, row in enumerate(taps):
        matrix[k, margin + k : margin + k + len(row)] = row
    return matrix


@lru_cache(maxsize=64)
def _moments(taps: Taps) -> Any:
    """Return the compiled sums for given taps along space; as constants they are read no more than once."""
    import jax

    return jax.jit(partial(_moments_of, taps=taps))


def _moments_of(
    u: Any, weights: tuple[Any, Any], table: Any, binomials: Any, slopes: Any, *, taps: Taps
) -> tuple[tuple[Any, ...], Any]:
    """Return the columns of all centres, features[t, column, z, y, x], D S u, Lap S u, and their temporal means.

    Columns of different kinds stay arrays of their own: joining them would copy all of them.
    """
    import jax.numpy as jnp
    from jax import lax

    lines = lax.optimization_barrier(_to_lines(u)[:, None])
    features = lax.optimization_barrier(jnp.concatenate(_features(lines, table, binomials, slopes), axis=1))
    smooth, mean = (_along_time(weights[0], values) for values in (features, lines))
    state = _State(smooth, _along_time(weights[1], lines), mean, None)
    halves = [len(second) // 2 for _, second in taps]
    inside = [slice(half, n - half) for half, n in zip(halves, u.shape[1:], strict=True)]
    means = _from_lines(mean)[:, 0, inside[0], inside[1], inside[2]]
    for axis, pair in zip((3, 4), taps, strict=False):
        if len(pair[1]) > 1:
            state = _State(*lax.optimization_barrier(state)).after(pair, axis, mean.shape[axis])
    whole = _State(*(None if part is None else _from_lines(part) for part in state))
    smooth, rate, _, bent = _State(*lax.optimization_barrier(whole)).after(taps[-1], 4, u.shape[-1])
    return (smooth, rate, bent), means


def _along_time(weights: Any, values: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    return lax.optimization_barrier(jnp.tensordot(weights, values, axes=1, precision="highest"))


class _State(NamedTuple):
    """Columns on their way through the space axes: features, D S u, S u, and the second derivatives of S u so far."""

    smooth: Any
    rate: Any
    mean: Any
    bent: Any

    def after(self, taps: tuple[Row, Row], axis: int, cells: int) -> _State:
        """Smooth all columns along a space axis, of which `cells` are used, and add the second derivative along it."""
        value, second = taps
        length, margin = cells - len(second) + 1, (len(second) - len(value)) // 2
        smooth, rate, mean = (_correlate(part, value, axis, margin, length) for part in self[:3])
        bent = _correlate(self.mean, second, axis, 0, length)
        if self.bent is not None:
            bent = bent + _correlate(self.bent, value, axis, margin, length)
        return _State(smooth, rate, mean, bent)


def _features(u: Any, table: Any, binomials: Any, slopes: Any) -> list[Any]:
    """Return all features of u, as `kernels.evaluate` does."""
    import jax.numpy as jnp

    low, high, z0, z1, z2, c0, c1, c2, c3 = table
    count = binomials.shape[0]
    x = jnp.clip(u, low, high)
    below, above = jnp.minimum(u - x, 0.0), jnp.maximum(u - x, 0.0)
    z = z0 + x * (z1 + x * z2)
    front = c0 + x * (c1 + x * (c2 + x * c3))
    rising, falling = [front], [jnp.ones_like(z)]
    for _ in range(count - 1):
        rising.append(rising[-1] * z)
        falling.append(falling[-1] * (1.0 - z))
    return [
        binomials[j] * rising[j] * falling[count - 1 - j] + slopes[0, j] * below + slopes[1, j] * above
        for j in range(count)
    ]


def _correlate(values: Any, taps: Row, axis: int, start: int, length: int) -> Any:
    """Return sum_k taps[k] values[start + i + k] along an axis, for so many i."""
    import jax.numpy as jnp
    from jax import lax

    count = len(taps)
    if count > _WIDEST:
        matrix = jnp.asarray(sum(taps[k] * np.eye(length, length + count - 1, k) for k in range(count)), values.dtype)
        part = lax.slice_in_dim(values, start, start + length + count - 1, axis=axis)
        return jnp.moveaxis(jnp.tensordot(matrix, part, axes=[[1], [axis]], precision="highest"), 0, axis)
    shifted = (lax.slice_in_dim(values, start + k, start + k + length, axis=axis) for k in range(count))
    terms = (tap * part for tap, part in zip(taps, shifted, strict=True))
    return reduce(add, terms)


def _to_lines(u: Any) -> Any:
    """Return u[t, z, y, x] as [t, line, z, y, cell of the line], the last line filled up with zeros."""
    import jax.numpy as jnp

    frames, depth, height, width = u.shape
    count = -(-width // _LINE)
    padded = jnp.pad(u, ((0, 0), (0, 0), (0, 0), (0, count * _LINE - width)))
    return jnp.moveaxis(padded.reshape(frames, depth, height, count, _LINE), 3, 1)


def _from_lines(values: Any) -> Any:
    """Return [..., line, z, y, cell] as [..., z, y, x], with the cells that were filled in."""
    import jax.numpy as jnp

    moved = jnp.moveaxis(values, -4, -2)
    return moved.reshape(*moved.shape[:-2], -1)


def _kept(means: Any, centres: tuple[int, ...], cut: float, complete: Any) -> Any:
    """Return which centres count: between the phases, with a complete support, and not such as were filled in."""
    import jax.numpy as jnp

    keep = jnp.abs(means[tuple(slice(n) for n in centres)]) < cut
    keep = keep if complete is None else keep & complete
    return jnp.pad(keep, [(0, m - n) for m, n in zip(means.shape, centres, strict=True)])


def _triangle(columns: tuple[Any, ...], keep: Any) -> Array:
    """Return R of the kept rows, with a positive diagonal."""
    count = columns[0].shape[1] + 2
    few = max(1, len(keep) // _SAMPLED)
    found = _rounds(tuple(one[::few] for one in columns), keep[::few], np.eye(count))
    return _rounds(columns, keep, found if found.all(where=np.eye(count, dtype=bool)) else np.eye(count))


def _rounds(columns: tuple[Any, ...], keep: Any, found: Array) -> Array:
    """Improve a guess of R until the rows divided by it are well conditioned."""
    count = len(found)
    gram, upper = _gram(), np.triu_indices(count)
    for _ in range(_ROUNDS):
        squares = np.zeros((count, count))
        squares[upper] = np.asarray(gram(columns, keep, found))
        squares = squares + np.triu(squares, 1).T
        norms = np.sqrt(np.diag(squares))
        if not norms.any():
            return squares
        norms[norms == 0.0] = 1.0
        scaled = squares / np.outer(norms, norms)
        lift = 10.0 * count * np.finfo(float).eps  # keeps dependent columns factorable; the next round takes it off
        factor = np.linalg.cholesky(scaled + lift * np.eye(count)).T
        found = factor * norms @ found
        if np.linalg.cond(scaled) < _GOOD:
            break
    return found


@lru_cache(maxsize=1)
def _gram() -> Any:
    import jax

    return jax.jit(_gram_of)


def _gram_of(columns: tuple[Any, ...], keep: Any, triangle: Any) -> Any:
    """Return the upper half of the squares of the kept rows divided by the triangle, summed in double precision.

    All sums are one reduction, so that the columns are read once.
    """
    import jax.numpy as jnp
    from jax import lax

    features, rate, bent = columns
    weight = keep.astype(jnp.float64)
    rows: list[Any] = []
    for j, column in enumerate([*(features[:, k] for k in range(features.shape[1])), rate[:, 0], bent[:, 0]]):
        rest = column.astype(jnp.float64) * weight
        for i, row in enumerate(rows):
            rest = rest - row * triangle[i, j]
        rows.append(rest / triangle[j, j])
    products = [one * other for i, one in enumerate(rows) for other in rows[i:]]
    starts = [jnp.float64(0.0)] * len(products)

    def add_all(sums: Any, terms: Any) -> Any:
        return [one + term for one, term in zip(sums, terms, strict=True)]

    lines = lax.reduce(products, starts, add_all, dimensions=(3,))
    return jnp.stack([jnp.sum(one) for one in lines])

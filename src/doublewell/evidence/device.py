"""The weak reading on a GPU: the moments of many centres at once, by JAX.

The same sums as in `kernels`, in another order. Along time a matrix of taps is multiplied with the features: a GPU does
that at its full rate, and uneven times are other numbers in the matrix. Along space shifted copies are added. For
the first space axes the last one is cut into lines of 32 cells, so that neighbours lie near each other in memory.

R comes from Cholesky factors, but not from those of the normal equations: the rows are divided by the factor that was
found, and what is left is factored again until it is well conditioned. One round is a guess, two have the accuracy of
Householder steps (Yamamoto et al., 2015), and no row is ever moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics import double_precision
from doublewell.hints import Array
from doublewell.threads import kept_threads

__all__ = ["on_device", "read_centres"]

Row = tuple[float, ...]
Side = tuple[int, int]
Taps = tuple[tuple[Row, Row], ...]  # for value and second derivative, along z, y and x
_LINE = 32  # cells along x that stay together: 256 bytes, two cache lines
_WIDEST = 64  # taps that are added as shifted copies; longer ones are a matrix product
_EIGHT = 8
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

    with double_precision():
        return jnp.concatenate(list(kept_threads(_THREADS).map(put, parts)))


def read_centres(
    fields: Any, box: Sequence[Side], complete: NDArray[np.bool_] | None, time: tuple[Array, Array],
    space: Sequence[tuple[Array, Array]], table: tuple[Array, Array, Array], cut: float,
) -> tuple[Array, int]:  # fmt: skip
    """Return R of the moments of all centres of a box of fields[t, z, y, x], and their number.

    fields are on the device, in the precision that the moments are to have; the box has its (first, past the last)
    along each axis. time has one row of taps per centre frame, for value and first derivative; space has the taps for
    value and second derivative along z, y and x. complete[t, z, y, x] says which centres have a complete support, None
    for all.
    """
    import jax.numpy as jnp

    kind = np.dtype(fields.dtype)
    sides = tuple(high - low for low, high in box)
    centres = (len(time[0]), *(n - len(second) + 1 for n, (_, second) in zip(sides[1:], space, strict=True)))
    odd = tuple(n | 1 for n in centres)
    taps = tuple((tuple(value.tolist()), tuple(second.tolist())) for value, second in space)
    mesh = tuple(n + len(second) - 1 for n, (_, second) in zip(odd[1:], taps, strict=True))
    frames = _eights(sides[0])
    weights = tuple(_matrix(rows, sides[0], frames).astype(kind) for rows in time)
    with double_precision():
        lines = _program(_lines, sides, (frames, *mesh))(fields, tuple(low for low, _ in box))
        columns, mean = _columns(lines, weights, [one.astype(kind) for one in table], taps, odd)
        whole = None if complete is None else jnp.asarray(complete)
        keep, count = _program(_kept, taps, centres, odd, cut)(mean, whole)
        return _triangle(columns, keep), int(count)


@lru_cache(maxsize=256)
def _program(stage: Callable[..., Any], *fixed: Any) -> Any:
    """Return a stage compiled for fixed sizes and taps; as constants they are read no more than once.

    Stages are programs of their own, because the arrays between programs lie in the order of their axes. Inside one
    program the compiler may choose other orders, and copies everything for the matrix product and back.
    """
    import jax

    return jax.jit(partial(stage, *fixed))


def _lines(sides: tuple[int, ...], ends: tuple[int, ...], fields: Any, starts: tuple[Any, ...]) -> Any:
    """Cut a box out of fields[t, z, y, x] and return it as [t, 1, line, z, y, cell of the line].

    Cells are added at the ends, so that the number of centres along every axis is odd. Where the number of results is
    divisible by four, XLA lets a thread make four neighbours, and loads at odd places are then scattered: the sums
    along x take 1.8 to 2.4 times as long (H200). The last line is filled up too.
    """
    import jax.numpy as jnp
    from jax import lax

    frames, depth, height, width = ends
    count = -(-width // _LINE)
    box = lax.dynamic_slice(fields, starts, sides)
    padded = jnp.pad(box, [(0, m - n) for m, n in zip((*ends[:3], count * _LINE), sides, strict=True)])
    return jnp.moveaxis(padded.reshape(frames, depth, height, count, _LINE), 3, 1)[:, None]


def _eights(count: int) -> int:
    """Round up to a side that a matrix product is fast with; others take a quarter longer (H200)."""
    return -(-count // _EIGHT) * _EIGHT


def _matrix(taps: Array, frames: int, columns: int) -> Array:
    """Return the taps of each centre frame as a row of a matrix that acts on all frames; the rest of it is zero."""
    matrix = np.zeros((_eights(len(taps) | 1), columns))
    margin = (frames - len(taps) - taps.shape[1] + 1) // 2
    for k, row in enumerate(taps):
        matrix[k, margin + k : margin + k + len(row)] = row
    return matrix


def _along_time(lines: Any, weights: tuple[Any, ...], table: Any, binomials: Any, slopes: Any) -> tuple[Any, Any, Any]:
    """Return the features smoothed along time, D S u and S u of all centre frames."""
    import jax.numpy as jnp
    from jax import lax

    features = lax.optimization_barrier(jnp.concatenate(_features(lines, table, binomials, slopes), axis=1))
    pairs = (weights[0], features), (weights[1], lines), (weights[0], lines)
    smooth, rate, mean = (jnp.tensordot(taps, values, axes=1, precision="highest") for taps, values in pairs)
    return smooth, rate, mean


def _columns(
    lines: Any, weights: tuple[Any, ...], table: list[Array], taps: Taps, odd: tuple[int, ...]
) -> tuple[tuple[Any, ...], Any]:
    """Return the columns of all centres, features[t, column, z, y, x], D S u and Lap S u, and S u after time alone.

    Columns of different kinds stay arrays of their own: joining them would copy all of them.
    """
    state = _State(*_program(_along_time)(lines, weights, *table))
    mean = state.mean
    axes = [k for k in (0, 1) if len(taps[k][1]) > 1]
    for k in axes:
        state = _State(*_program(_along_space, taps[k], 3 + k, odd[1 + k], odd[0], k == axes[-1])(state))
    if not axes:
        state = _State(*_program(_whole_rows)(state))
    return _program(_along_rows, taps[2], odd[3], odd[0])(state), mean


def _along_space(pair: tuple[Row, Row], axis: int, count: int, frames: int, last: bool, state: _State) -> _State:
    """Make the sums along one axis, of so many centres in so many frames; after the last of them lines become rows."""
    found = _State(*(None if part is None else part[:frames] for part in state)).after(pair, axis, count)
    return _whole_rows(found) if last else found


def _along_rows(pair: tuple[Row, Row], count: int, frames: int, state: _State) -> tuple[Any, Any, Any]:
    """Make the last sums, those along x; S u has served then."""
    smooth, rate, _, bent = _along_space(pair, 4, count, frames, False, state)
    return smooth, rate, bent


def _whole_rows(state: _State) -> _State:
    return _State(*(None if part is None else _from_lines(part) for part in state))


class _State(NamedTuple):
    """Columns on their way through the space axes: features, D S u, S u, and the second derivatives of S u so far."""

    smooth: Any
    rate: Any
    mean: Any
    bent: Any = None

    def after(self, taps: tuple[Row, Row], axis: int, length: int) -> _State:
        """Smooth all columns along a space axis at so many centres, and add the second derivative along it."""
        value, second = taps
        margin = (len(second) - len(value)) // 2
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


def _from_lines(values: Any) -> Any:
    """Return [..., line, z, y, cell] as [..., z, y, x], with the cells that were filled in."""
    import jax.numpy as jnp

    moved = jnp.moveaxis(values, -4, -2)
    return moved.reshape(*moved.shape[:-2], -1)


def _kept(
    taps: Taps, centres: tuple[int, ...], odd: tuple[int, ...], cut: float, mean: Any, complete: Any
) -> tuple[Any, Any]:
    """Return which centres count, and how many: between the phases, with a complete support, and not filled in."""
    import jax.numpy as jnp

    inside = [slice(len(second) // 2, len(second) // 2 + n) for (_, second), n in zip(taps, centres[1:], strict=True)]
    keep = jnp.abs(_from_lines(mean)[: centres[0], 0, inside[0], inside[1], inside[2]]) < cut
    keep = keep if complete is None else keep & complete
    return jnp.pad(keep, [(0, m - n) for m, n in zip(odd, centres, strict=True)]), jnp.sum(keep)


def _triangle(columns: tuple[Any, ...], keep: Any) -> Array:
    """Return R of the kept rows, with a positive diagonal."""
    count = columns[0].shape[1] + 2
    found = _rounds(columns, keep, np.eye(count), max(1, len(keep) // _SAMPLED))
    return _rounds(columns, keep, found if found.all(where=np.eye(count, dtype=bool)) else np.eye(count))


def _rounds(columns: tuple[Any, ...], keep: Any, found: Array, each: int = 1) -> Array:
    """Improve a guess of R, of each so-manieth frame, until the rows divided by it are well conditioned."""
    count = len(found)
    gram, upper = _program(_gram, each), np.triu_indices(count)
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


def _gram(each: int, columns: tuple[Any, ...], keep: Any, triangle: Any) -> Any:
    """Return the upper half of the squares of the kept rows divided by the triangle, summed in double precision.

    All sums are one reduction, so that the columns are read once.
    """
    import jax.numpy as jnp
    from jax import lax

    features, rate, bent = (one[::each] for one in columns)
    weight = keep[::each].astype(jnp.float64)
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
    return jnp.sum(jnp.stack(lines), axis=(1, 2, 3))

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

from doublewell.hints import Array
from doublewell.jax_runtime import double_precision
from doublewell.threads import map_threads

__all__ = ["Shown", "on_device", "read_centres"]

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
        return jnp.concatenate(map_threads(_THREADS, put, parts))


class Shown:
    """Fields on the device, and the features of the box that was asked for last: supports often share their box."""

    def __init__(self, fields: Any, table: tuple[Array, Array, Array]) -> None:
        self.fields, self.kind = fields, np.dtype(fields.dtype)
        self._table = [one.astype(self.kind) for one in table]
        self._asked: tuple[Any, ...] | None = None
        self._found: tuple[Any, Any] | None = None

    def box(self, box: Sequence[Side], ends: tuple[int, ...]) -> tuple[Any, Any]:
        """Return u and its features in a box that is filled up to sides of `ends`, as [t, column, line, z, y, cell]."""
        asked = (*box, ends)
        if self._found is None or self._asked != asked:
            self._found = None  # its memory is needed
            sides = tuple(high - low for low, high in box)
            lines = _program(_lines, sides, ends)(self.fields, tuple(low for low, _ in box))
            self._asked, self._found = asked, (lines, _program(_features)(lines, *self._table))
        return self._found


def read_centres(
    shown: Shown, box: Sequence[Side], complete: NDArray[np.bool_] | None, time: tuple[Array, Array],
    space: Sequence[tuple[Array, Array]], cut: float,
) -> tuple[Array, int]:  # fmt: skip
    """Return R of the moments of all centres of a box of fields[t, z, y, x], and their number.

    The fields have the precision that the moments are to have; the box has its (first, past the last) along each axis.
    time has one row of taps per centre frame, for value and first derivative; space has the taps for value and second
    derivative along z, y and x. complete[t, z, y, x] says which centres have a complete support, None for all.
    """
    import jax.numpy as jnp

    sides = tuple(high - low for low, high in box)
    centres = (len(time[0]), *(n - len(second) + 1 for n, (_, second) in zip(sides[1:], space, strict=True)))
    odd = tuple(n | 1 for n in centres)
    taps = tuple((tuple(value.tolist()), tuple(second.tolist())) for value, second in space)
    mesh = tuple(n + len(second) - 1 for n, (_, second) in zip(odd[1:], taps, strict=True))
    frames = _eights(sides[0])
    weights = [_matrix(rows, sides[0], frames).astype(shown.kind) for rows in time]
    with double_precision():
        lines, features = shown.box(box, (frames, *mesh))
        product = _program(_product)
        state = _State(product(weights[0], features), product(weights[1], lines), product(weights[0], lines))
        whole = None if complete is None else jnp.asarray(complete)
        keep, count = _program(_kept, taps, centres, odd, cut)(state.mean, whole)
        across = [k for k in (0, 1) if len(taps[k][1]) > 1]  # of z and y, those that the record has
        for k in across:
            state = state.after(taps[k], 3 + k, (odd[0], odd[1 + k]), whole=k == across[-1])
        if not across:
            state = _State(*(_program(_from_lines)(part) for part in state[:3]))
        state = state.after(taps[2], 4, (odd[0], odd[3]), last=True)
        return _triangle((state.smooth, state.rate, state.bent), keep), int(count)


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


def _product(weights: Any, values: Any) -> Any:
    """Make the sums along time."""
    import jax.numpy as jnp

    return jnp.tensordot(weights, values, axes=1, precision="highest")


class _State(NamedTuple):
    """Columns on their way through the space axes: features[t, column, ...], D S u, S u, and its second derivatives.

    Columns of different kinds stay arrays of their own: joining them would copy all of them. Each is a program too,
    because the compiler makes the two sums of S u at once, which takes twice as long as one after the other (H200).
    """

    smooth: Any
    rate: Any
    mean: Any
    bent: Any = None

    def after(
        self, taps: tuple[Row, Row], axis: int, sizes: tuple[int, int], *, whole: bool = False, last: bool = False
    ) -> _State:
        """Smooth all columns along a space axis, of so many frames and centres, and add the second derivative along it.

        With `whole` lines become whole rows. After the last axis S u has served.
        """
        value, second = taps
        smooth = _program(_smoothed, value, (len(second) - len(value)) // 2, axis, sizes, whole)
        bent = _program(_bent, taps, axis, sizes, whole)(self.mean, self.bent)
        return _State(smooth(self.smooth), smooth(self.rate), None if last else smooth(self.mean), bent)


def _smoothed(taps: Row, margin: int, axis: int, sizes: tuple[int, int], whole: bool, values: Any) -> Any:
    frames, count = sizes
    found = _correlate(values[:frames], taps, axis, margin, count)
    return _from_lines(found) if whole else found


def _bent(pair: tuple[Row, Row], axis: int, sizes: tuple[int, int], whole: bool, mean: Any, before: Any) -> Any:
    """Return the second derivative of S u along this axis, and those along others smoothed along it."""
    (value, second), (frames, count) = pair, sizes
    found = _correlate(mean[:frames], second, axis, 0, count)
    if before is not None:
        found = found + _correlate(before[:frames], value, axis, (len(second) - len(value)) // 2, count)
    return _from_lines(found) if whole else found


def _features(u: Any, table: Any, binomials: Any, slopes: Any) -> Any:
    """Return all features of u[t, 1, ...] as [t, column, ...], as `kernels.evaluate` does."""
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
    columns = [
        binomials[j] * rising[j] * falling[count - 1 - j] + slopes[0, j] * below + slopes[1, j] * above
        for j in range(count)
    ]
    return jnp.concatenate(columns, axis=1)


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
    """Improve a guess of R, of every frame or of one in `each`, until the rows divided by it are well conditioned."""
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

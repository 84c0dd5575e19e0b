"""Weak moments on a GPU: those of many centres at once, by JAX.

The same sums as in `kernel`, from the same table of columns, in another order. Along time a matrix of taps is
multiplied with the features: a GPU does that at its full rate, and uneven times are other numbers in the matrix. Along
space shifted copies are added. For the first space axes the last one is cut into lines of 32 cells, so that neighbours
lie near each other in memory.

R comes from Cholesky factors, but not from those of the normal equations: the rows are divided by the factor that was
found, and what is left is factored again until it is well conditioned. One round is a guess, two have the accuracy of
Householder steps (Yamamoto et al., 2015), and no row is ever moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from itertools import groupby, product
from operator import add, itemgetter
from typing import Any

import numpy as np

from doublewell.evidence import compact
from doublewell.hints import Array, Bools
from doublewell.runtime import device_memory, double_precision, map_threads
from doublewell.weak.assembly import PHASE_CUT, Part, Reader, Window, even_steps
from doublewell.weak.weights import Step, steps

Row = tuple[float, ...]
Side = Sequence[int]  # first, past the last
_LINE = 32  # cells along x that stay together: 256 bytes, two cache lines
_WIDEST = 64  # taps that are added as shifted copies; longer ones are a matrix product
_EIGHT = 8  # sides that a matrix product is fast with are multiples of this; others take a quarter longer (H200)
_ROUNDS = 5
_GOOD = 1e4  # condition number of a Gram matrix whose Cholesky factor is good to twelve digits
_SAMPLED = 8  # frames that give the first guess of R
_COPIES, _THREADS = 2, 8  # of copies to the device: parts for each thread, threads
_FRAMES = 95  # most centre frames per call; with more, most of the matrix of taps along time is zero
_SHARE = 0.4  # of the device's memory that the arrays of one call may take
_HELD = 4  # arrays of all columns that are there at once: features, and after each axis
_FEWEST = 8  # rows along y per call
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


class DeviceFields:
    """Fields on the device, and the features of the box that was asked for last: supports often share their box."""

    def __init__(self, fields: Any, table: tuple[Array, Array, Array], means: Array) -> None:
        self.fields, self.kind, self.means = fields, np.dtype(fields.dtype), means
        self._table = [numbers.astype(self.kind) for numbers in table]
        self._key: tuple[Any, ...] | None = None
        self._held: tuple[Any, Any] | None = None

    def box(self, box: Sequence[Side], ends: tuple[int, ...]) -> tuple[Any, Any]:
        """Return u and its features in a box that is filled up to sides of `ends`, as [t, column, line, z, y, cell]."""
        key = (*box, ends)
        if self._held is None or self._key != key:
            self._held = None  # its memory is needed
            sides = tuple(high - low for low, high in box)
            lines = _program(_lines, sides, ends)(self.fields, tuple(low for low, _ in box))
            means = np.zeros((ends[0], len(self._table[1])), self.kind)
            if self.means.size:
                means[: sides[0]] = self.means[slice(*box[0])]
            self._key, self._held = key, (lines, _program(_features)(lines, means, *self._table))
        return self._held


class DevicePass:
    """One or two supports of a window on the device, one after the other; a call takes what the device has room for."""

    def __init__(self, readers: Sequence[Reader], precision: str) -> None:
        self.readers, self.precision, self.family = readers, precision, readers[0].family
        present = [k for k in (1, 2, 3) if len(readers[0].taps[k][0]) > 1 or k == 3]
        self.axes = [0, *present]
        terms = readers[0].terms
        self.levels = {name: steps(terms[name], self.axes, mean=name == "field") for name in terms}

    def read(self, window: Window, parts: Sequence[Part]) -> list[tuple[Array, int]]:
        """Read all centres of the parts' frames, counted in the window; return R and the rows of each."""
        return self.read_copy(on_device(window.fields, self.precision), window, parts)

    def read_copy(self, copy: Any, window: Window, parts: Sequence[Part]) -> list[tuple[Array, int]]:
        """Do the same with the window's fields on the device."""
        fields = DeviceFields(copy, self.family.kernel_table(), window.means)
        return [self._read(reader, fields, window, part) for reader, part in zip(self.readers, parts, strict=True)]

    def _read(self, reader: Reader, fields: DeviceFields, window: Window, part: Part) -> tuple[Array, int]:
        """Read one support in steps of frames and of rows along y."""
        first, last = part.frames
        triangle, rows = np.zeros((reader.columns, reader.columns)), 0
        z, y, x = (reader.centres - np.array(window.origin)[:, None]).tolist()
        if z[0] == z[1] or x[0] == x[1]:
            return triangle, rows
        tall = self._rows(reader, z[1] - z[0], x[1] - x[0])
        for (start, stop), some in product(even_steps(first, last, _FRAMES), even_steps(y[0], y[1], tall)):
            own, box = slice(start - first, stop - first), np.array([(start, stop), z, some, x])
            complete = None if part.complete is None else part.complete[(own, *[slice(*side) for side in box[1:]])]
            sides = (box + np.array(reader.reach)[:, None] * [-1, 1]).tolist()
            added, kept = self._centres(reader, fields, sides, complete, [taps[own] for taps in part.taps])
            triangle, rows = compact(np.vstack([triangle, added])), rows + kept
        return triangle, rows

    def _rows(self, reader: Reader, planes: int, cells: int) -> int:
        """Return how many rows of centres along y a call has room for."""
        results = [[len({step.result for step in level}) for level in self.levels[name]] for name in self.levels]
        most: int = max(self.family.size * force + field for force, field in zip(*results, strict=True))
        t, z, y, x = reader.reach
        line: int = 8 * most * _HELD * (planes + 2 * z) * (cells + 2 * x)
        return max(_FEWEST, int(_SHARE * device_memory()) // (line * (_FRAMES + 2 * t)) - 2 * y)

    def _centres(
        self, reader: Reader, fields: DeviceFields, box: Sequence[Side], complete: Bools | None, time: Sequence[Array]
    ) -> tuple[Array, int]:
        """Return R of the moments of all centres of a box of the fields, and their number.

        The box has its (first, past the last) along t, z, y and x, halos included. time has one row of taps per centre
        frame, for value and first derivative; complete[t, z, y, x] marks the centres that have a complete support.
        """
        import jax.numpy as jnp

        sides = tuple(high - low for low, high in box)
        centres = tuple(n - 2 * reach for n, reach in zip(sides, reader.reach, strict=True))
        odd = tuple(n | 1 for n in centres)
        mesh = tuple(n + 2 * reach for n, reach in zip(odd[1:], reader.reach[1:], strict=True))
        frames = -(-sides[0] // _EIGHT) * _EIGHT
        weights = [_matrix(rows, sides[0], frames).astype(fields.kind) for rows in time]
        with double_precision():
            nodes, multiply = {}, _program(_product)
            for name, values in zip(("field", "features"), fields.box(box, (frames, *mesh)), strict=True):
                nodes[name] = [multiply(weights[step.kind], values) for step in self.levels[name][0]]
            whole = None if complete is None else jnp.asarray(complete)
            keep, count = _program(_kept, reader.reach, centres, odd)(nodes["field"][0], whole)
            if len(self.axes) == 2:
                nodes = {name: list(map(_program(_from_lines), arrays)) for name, arrays in nodes.items()}
            for level, axis in enumerate(self.axes[1:], 1):
                at = (4 if axis == 3 else 2 + axis, (odd[0], odd[axis]), level == len(self.axes) - 2)
                for name in nodes:
                    nodes[name] = _smoothed(reader, axis, nodes[name], self.levels[name][level], at)
            left = {name: iter(arrays) for name, arrays in nodes.items()}
            return _triangle(tuple(next(left[column.source]) for column in reader.form), keep), int(count)


def _smoothed(
    reader: Reader, axis: int, arrays: Sequence[Any], level: Sequence[Step], at: tuple[Any, ...]
) -> list[Any]:
    """Return the results of one source along a space axis, each the sum of its steps.

    Each is a program of its own, because the compiler makes the sums of two results at once, which takes twice as long
    as one after the other (H200). Columns of different kinds stay arrays of their own: joining them would copy them.
    """
    out = []
    for _, group in groupby(level, key=itemgetter(0)):
        own = list(group)
        weights = [step.factor * reader.taps[axis][step.kind] for step in own]
        taps = tuple((tuple(row.tolist()), reader.reach[axis] - len(row) // 2) for row in weights)
        out.append(_program(_sum, taps, *at)(*(arrays[step.source] for step in own)))
    return out


def _sum(taps: tuple[tuple[Row, int], ...], axis: int, sizes: tuple[int, int], whole: bool, *values: Any) -> Any:
    """Add up correlations along an axis, of so many frames and centres; with `whole` lines become whole rows."""
    frames, count = sizes
    parts = zip(values, taps, strict=True)
    total = reduce(add, (_correlate(value[:frames], row, axis, start, count) for value, (row, start) in parts))
    return _from_lines(total) if whole else total


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


def _matrix(taps: Array, frames: int, columns: int) -> Array:
    """Return the taps of each centre frame as a row of a matrix that acts on all frames; the rest of it is zero."""
    matrix = np.zeros((-(-(len(taps) | 1) // _EIGHT) * _EIGHT, columns))
    margin = (frames - len(taps) - taps.shape[1] + 1) // 2
    for k, row in enumerate(taps):
        matrix[k, margin + k : margin + k + len(row)] = row
    return matrix


def _product(weights: Any, values: Any) -> Any:
    """Make the sums along time."""
    import jax.numpy as jnp

    return jnp.tensordot(weights, values, axes=1, precision="highest")


def _features(u: Any, means: Any, table: Any, binomials: Any, slopes: Any) -> Any:
    """Return all features of u[t, 1, ...] less their means[t, column] as [t, column, ...], as `loops.evaluate` does."""
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
    taken = means[:, :, None, None, None, None, None]
    columns = [
        binomials[j] * rising[j] * falling[count - 1 - j] + slopes[0, j] * below + slopes[1, j] * above - taken[:, j]
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
    reach: tuple[int, ...], centres: tuple[int, ...], odd: tuple[int, ...], mean: Any, complete: Any
) -> tuple[Any, Any]:
    """Return which centres count, and how many: between the phases, with a complete support, and not filled in."""
    import jax.numpy as jnp

    inside = [slice(half, half + n) for half, n in zip(reach[1:], centres[1:], strict=True)]
    keep = jnp.abs(_from_lines(mean)[: centres[0], 0, inside[0], inside[1], inside[2]]) < PHASE_CUT
    keep = keep if complete is None else keep & complete
    return jnp.pad(keep, [(0, m - n) for m, n in zip(odd, centres, strict=True)]), jnp.sum(keep)


def _triangle(columns: tuple[Any, ...], keep: Any) -> Array:
    """Return R of the kept rows, with a positive diagonal."""
    count = sum(column.shape[1] for column in columns)
    guess = _rounds(columns, keep, np.eye(count), max(1, len(keep) // _SAMPLED))
    return _rounds(columns, keep, guess if guess.all(where=np.eye(count, dtype=bool)) else np.eye(count))


def _rounds(columns: tuple[Any, ...], keep: Any, triangle: Array, each: int = 1) -> Array:
    """Improve a guess of R, of every frame or of one in `each`, until the rows divided by it are well conditioned."""
    count = len(triangle)
    gram, upper = _program(_gram, each), np.triu_indices(count)
    for _ in range(_ROUNDS):
        squares = np.zeros((count, count))
        squares[upper] = np.asarray(gram(columns, keep, triangle))
        squares = squares + np.triu(squares, 1).T
        norms = np.sqrt(np.diag(squares))
        if not norms.any():
            return squares
        norms[norms == 0.0] = 1.0
        scaled = squares / np.outer(norms, norms)
        lift = 10.0 * count * np.finfo(float).eps  # keeps dependent columns factorable; the next round takes it off
        factor = np.linalg.cholesky(scaled + lift * np.eye(count)).T
        triangle = factor * norms @ triangle
        if np.linalg.cond(scaled) < _GOOD:
            break
    return triangle


def _gram(each: int, columns: tuple[Any, ...], keep: Any, triangle: Any) -> Any:
    """Return the upper half of the squares of the kept rows divided by the triangle, summed in double precision.

    All sums are one reduction, so that the columns are read once.
    """
    import jax.numpy as jnp
    from jax import lax

    weight = keep[::each].astype(jnp.float64)
    rows: list[Any] = []
    for j, column in enumerate(values[::each, k] for values in columns for k in range(values.shape[1])):
        rest = column.astype(jnp.float64) * weight
        for i, row in enumerate(rows):
            rest = rest - row * triangle[i, j]
        rows.append(rest / triangle[j, j])
    products = [row * other for i, row in enumerate(rows) for other in rows[i:]]
    starts = [jnp.float64(0.0)] * len(products)

    def add_all(sums: Any, terms: Any) -> Any:
        return [total + term for total, term in zip(sums, terms, strict=True)]

    lines = lax.reduce(products, starts, add_all, dimensions=(3,))
    return jnp.sum(jnp.stack(lines), axis=(1, 2, 3))

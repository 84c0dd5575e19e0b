"""Inner loops: a tile of every smoothing, in vectors and as plain loops; features; Householder steps.

A tile is four outputs along the smoothed axis, times 16 numbers that lie side by side. Each step loads 16 numbers of
the source once and uses them for all four outputs, so that the multiply-adds and not the loads set the pace. LLVM does
not find this form by itself where the number of taps is known at run time only; here it is written out as vectors.

    out[o + r o_row + v o_vector + i] = sum_k taps[a + r a_row + k] source[s + (r + k) step + 4 v + i],  r, v, i = 0..3

Calls are tile(out, (o, o_row, o_vector), source, (s, step, end, back), taps, (a, a_row, width), mode), with at least
three taps. A place that reaches `end` goes back by `back`: the source may be a ring of rows. The mode ADD adds to what
is there; TURN stores output r where another stores lane i: out[o + i o_row + v o_vector + r].

`plain_tile` is the reference that tests compare with. It takes the place of `tile` where DOUBLEWELL_PLAIN is set, or
where llvmlite has no such way to write code; the whole weak call then takes about 7 times as long (architecture.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numba import njit

from doublewell.hints import Array, Integers

_FAST = {"contract", "reassoc", "nsz", "arcp"}  # sums may be reordered, products and sums fused
BLOCK = 512  # rows of the moment matrix held before a Householder step
CELLS = 512  # cells whose features are evaluated together
LANES = 4  # numbers that stay together wherever they are laid: the frames that are smoothed together
CHUNK = 4 * LANES  # numbers side by side in a tile
FOREVER = 2**62  # the end of a source that is not a ring
STORE, ADD, TURN = 0, 1, 2
PLAIN = bool(os.environ.get("DOUBLEWELL_PLAIN"))
_ROWS = 4
_FUSE = ("contract",)  # a product and a sum may become one multiply-add


def jit(kernel: Callable[..., Any], cache: bool = False) -> Any:
    """Compile a part of the kernel, which lets other threads run; only the whole is kept on disk (kernel.py)."""
    return njit(nogil=True, fastmath=_FAST, cache=cache, no_cfunc_wrapper=True)(kernel)


@jit
def plain_tile(out: Any, to: Any, source: Any, at: Any, taps: Any, use: Any, mode: int) -> None:
    """Smooth one tile."""
    (o, o_row, o_vector), (s, step, end, back), (a, a_row, width) = to, at, use
    weights, sums = taps.reshape(taps.size), np.zeros(_ROWS * CHUNK)
    for r in range(_ROWS):
        total, place = sums[r * CHUNK : (r + 1) * CHUNK], s + r * step
        for k in range(width):
            if place >= end:
                place -= back
            tap, line = weights[a + r * a_row + k], source[place : place + CHUNK]
            for i in range(CHUNK):
                total[i] += tap * line[i]
            place += step
    for r in range(_ROWS):
        for k in range(CHUNK):
            i, cell = k % LANES, o + k // LANES * o_vector
            cell += i * o_row + r if mode == TURN else r * o_row + i
            out[cell] = sums[r * CHUNK + k] + (out[cell] if mode == ADD else 0.0)


def _vector_tile() -> Callable[..., None]:
    """Write the tile for LLVM: eight numbers a register with AVX-512, four elsewhere."""
    from llvmlite import binding, ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np.arrayobj import make_array

    long = bool(binding.get_host_cpu_features().get("avx512vl", False))
    lanes = 8 if long else LANES
    # The sums of a tile and what they are made of need more than 16 registers; where there are not more, a chunk is
    # taken in two halves.
    parts = 1 if long else 2
    whole, small, double = ir.IntType(64), ir.IntType(32), ir.DoubleType()
    short, vector = ir.VectorType(double, LANES), ir.VectorType(double, lanes)
    vectors, shorts = CHUNK // lanes // parts, CHUNK // LANES // parts
    words = (("o", "o_row", "o_vector"), ("s", "step", "end", "back"), ("a", "a_row", "width"))

    def mix(b: Any, one: Any, two: Any, order: Sequence[int]) -> Any:
        """Give the vector of the numbered lanes of two, counted through both."""
        return b.shuffle_vector(one, two, ir.Constant(ir.VectorType(small, len(order)), list(order)))

    def turned(b: Any, rows: list[Any]) -> list[Any]:
        """Transpose four vectors of four."""
        even, odd, low, high = (0, 4, 2, 6), (1, 5, 3, 7), (0, 1, 4, 5), (2, 3, 6, 7)
        c, d, e, f = (mix(b, rows[k], rows[k + 1], order) for k in (0, 2) for order in (even, odd))
        return [mix(b, c, e, low), mix(b, d, f, low), mix(b, c, e, high), mix(b, d, f, high)]

    class Writer:
        """Writes the code of one part of a tile at a builder's place; LLVM keeps its variables in registers."""

        def __init__(self, builder: Any, pointers: Sequence[Any], given: dict[str, Any], mode: Any, part: int) -> None:
            self.b, self.n, self.part = builder, given, part
            self.out, self.source, self.taps = pointers
            self.adds = builder.icmp_signed("==", mode, self.number(ADD))
            self.turns = builder.icmp_signed("==", mode, self.number(TURN))
            zero = ir.Constant(vector, [0.0] * lanes)
            self.sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(_ROWS)]
            for variable in (variable for row in self.sums for variable in row):
                builder.store(zero, variable)  # alloca_once_value stores in the entry block, a loop comes here again
            self.place = cgutils.alloca_once(builder, whole)
            builder.store(builder.add(given["s"], self.number(part * vectors * lanes)), self.place)

        def number(self, value: int) -> Any:
            return ir.Constant(whole, value)

        def vector_at(self, pointer: Any, place: Any, kind: Any) -> Any:
            return self.b.bitcast(self.b.gep(pointer, [place]), kind.as_pointer())

        def write(self) -> None:
            """Write the steps in which outputs begin, those of all outputs as a loop, and those in which they end."""
            b, width = self.b, self.n["width"]
            with b.if_then(self.adds):
                for r, row in enumerate(self.sums):
                    held = [b.load(self.vector_at(self.out, self.target(r, v), short), align=8) for v in range(shorts)]
                    for k, variable in enumerate(row):
                        b.store(mix(b, held[2 * k], held[2 * k + 1], range(lanes)) if long else held[k], variable)
            for j in range(_ROWS - 1):
                self.step(self.number(j), range(j + 1))
            with cgutils.for_range(b, b.sub(width, self.number(_ROWS - 1))) as loop:
                self.step(b.add(loop.index, self.number(_ROWS - 1)), range(_ROWS))
            for j in range(_ROWS - 1):
                self.step(b.add(width, self.number(j)), range(j + 1, _ROWS))
            pieces = [range(k, k + LANES) for k in range(0, lanes, LANES)]
            sums = [[b.load(variable) for variable in row] for row in self.sums]
            fours = [[mix(b, value, value, piece) for value in row for piece in pieces] for row in sums]
            with b.if_else(self.turns) as (then, otherwise):
                for branch, change in ((then, turned), (otherwise, lambda _, rows: rows)):
                    with branch:
                        for v in range(shorts):
                            for r, value in enumerate(change(b, [row[v] for row in fours])):
                                b.store(value, self.vector_at(self.out, self.target(r, v), short), align=8)

        def step(self, j: Any, rows: range) -> None:
            """Use the j-th line of the source for some of the outputs, tap j - r for output r; move to the next."""
            b, n, place = self.b, self.n, self.b.load(self.place)
            starts = [b.add(place, self.number(lanes * v)) for v in range(vectors)]
            line = [b.load(self.vector_at(self.source, start, vector), align=8) for start in starts]
            for r in rows:
                first = b.add(n["a"], b.mul(self.number(r), n["a_row"]))
                tap = b.load(b.gep(self.taps, [b.add(first, b.sub(j, self.number(r)))]))
                empty = ir.Constant(vector, ir.Undefined)
                spread = mix(b, b.insert_element(empty, tap, ir.Constant(small, 0)), empty, [0] * lanes)
                for variable, x in zip(self.sums[r], line, strict=True):
                    b.store(b.fadd(b.load(variable), b.fmul(spread, x, flags=_FUSE), flags=_FUSE), variable)
            further = b.add(place, n["step"])
            over = b.icmp_signed(">=", further, n["end"])
            b.store(b.select(over, b.sub(further, n["back"]), further), self.place)

        def target(self, r: int, v: int) -> Any:
            b, n = self.b, self.n
            along = b.mul(self.number(self.part * shorts + v), n["o_vector"])
            return b.add(b.add(n["o"], b.mul(self.number(r), n["o_row"])), along)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        pointers = [make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2, 4)]
        numbers = {
            word: builder.extract_value(arguments[2 * k + 1], place)
            for k, group in enumerate(words)
            for place, word in enumerate(group)
        }
        for part in range(parts):
            Writer(builder, pointers, numbers, arguments[6], part).write()
        return context.get_dummy_value()

    def vector_tile(_: Any, out: Any, _to: Any, source: Any, _at: Any, taps: Any, _use: Any, _mode: Any) -> Any:
        to, at, use = (types.UniTuple(types.intp, len(group)) for group in words)
        return types.void(out, to, source, at, taps, use, types.intp), codegen

    return cast("Callable[..., None]", intrinsic(vector_tile))


if not PLAIN:
    try:
        tile = _vector_tile()
    except (ImportError, AttributeError):  # another llvmlite or numba
        PLAIN = True
if PLAIN:
    tile = plain_tile


@jit
def evaluate(
    features: Array, start: int, stop: int, table: Array, binomials: Array, slopes: Array, held: Array
) -> None:
    """Evaluate features[j, start:stop], j = 0..m, of the values u that are the row after them.

    A feature is prefactor(x) C(m, j) z^j (1 - z)^(m - j), x = u inside the wells, and linear outside. table = [low,
    high, z0, z1, z2, c0, c1, c2, c3] with z = z0 + z1 x + z2 x^2 and a cubic prefactor.
    """
    count = binomials.size
    low, high, z0, z1, z2 = table[0], table[1], table[2], table[3], table[4]
    c0, c1, c2, c3 = table[5], table[6], table[7], table[8]
    z, rising, falling, rest = held[0], held[1], held[2], held[3]
    for at in range(start, stop, CELLS):
        n = min(CELLS, stop - at)
        u = features[count, at : at + n]
        for i in range(n):
            x = min(max(u[i], low), high)
            rest[i] = u[i] - x
            z[i] = z0 + x * (z1 + x * z2)
            rising[i] = c0 + x * (c1 + x * (c2 + x * c3))
            falling[i] = 1.0
        for j in range(count):
            out, c = features[j, at : at + n], binomials[j]
            for i in range(n):
                out[i] = c * rising[i]
                rising[i] *= z[i]
        for j in range(count - 2, -1, -1):
            out = features[j, at : at + n]
            for i in range(n):
                falling[i] *= 1.0 - z[i]
                out[i] *= falling[i]
        for j in range(count):
            below, above = slopes[0, j], slopes[1, j]
            if below != 0.0 or above != 0.0:
                out = features[j, at : at + n]
                for i in range(n):
                    out[i] += below * min(rest[i], 0.0) + above * max(rest[i], 0.0)


@jit
def fold(triangle: Array, block: Array, n: int) -> None:
    """Fold the first n rows of a block, stored column by column, into the triangle R by Householder steps.

    Column k + 1 is reflected first; then one walk over each later column reflects it and takes its product with that
    one, which the next step needs.
    """
    columns = triangle.shape[0]
    dots = np.empty(columns)
    for j in range(columns):
        dots[j] = product(block[0, :n], block[j, :n])
    for k in range(columns):
        x, below = block[k, :n], dots[k]
        pivot = triangle[k, k]
        norm = math.sqrt(pivot * pivot + below)
        target = -norm if pivot > 0.0 else norm
        head = pivot - target
        scale = 2.0 / (head * head + below) if below > 0.0 else 0.0
        if below > 0.0:
            triangle[k, k] = target
        for j in range(k + 1, columns):
            dots[j] = scale * (dots[j] + head * triangle[k, j])
            triangle[k, j] -= dots[j] * head
        if k + 1 < columns:
            y = block[k + 1, :n]
            dots[k + 1] = reflect_first(x, y, dots[k + 1])
            odd = (columns - k) % 2
            if odd:
                dots[k + 2] = reflect(x, y, block[k + 2, :n], dots[k + 2])
            for j in range(k + 2 + odd, columns, 2):
                pair = block[j, :n], block[j + 1, :n]
                dots[j], dots[j + 1] = reflect_two(x, y, *pair, dots[j], dots[j + 1])


@jit
def product(x: Array, y: Array) -> float:
    """Return x . y."""
    dot = 0.0
    for i in range(x.size):
        dot += x[i] * y[i]
    return dot


@jit
def reflect_first(x: Array, y: Array, factor: float) -> float:
    """Take factor times x from y; return the new y . y."""
    dot = 0.0
    for i in range(x.size):
        y[i] -= factor * x[i]
        dot += y[i] * y[i]
    return dot


@jit
def reflect(x: Array, y: Array, z: Array, factor: float) -> float:
    """Take factor times x from z; return y . z of the new z."""
    dot = 0.0
    for i in range(x.size):
        z[i] -= factor * x[i]
        dot += y[i] * z[i]
    return dot


@jit
def reflect_two(x: Array, y: Array, z: Array, w: Array, factor: float, other: float) -> tuple[float, float]:
    """Do the work of reflect for two columns, which share the loads of x and y."""
    dot, second = 0.0, 0.0
    for i in range(x.size):
        z[i] -= factor * x[i]
        w[i] -= other * x[i]
        dot += y[i] * z[i]
        second += y[i] * w[i]
    return dot, second


@jit
def gather(moment: Array, quads: Integers, singles: Integers, block: Array, filled: int, triangle: Array) -> int:
    """Copy kept centres, fours and single ones, into the block; fold it when full; return how many rows it holds."""
    taken = 0
    while taken < quads.size:
        if filled > BLOCK - LANES:
            fold(triangle, block, filled)
            filled = 0
        step = min((BLOCK - filled) // LANES, quads.size - taken)
        for c in range(block.shape[0]):
            row, source = block[c], moment[c]
            for i in range(step):
                for j in range(LANES):
                    row[filled + LANES * i + j] = source[quads[taken + i] + j]
        filled += LANES * step
        taken += step
    for place in singles:
        if filled == BLOCK:
            fold(triangle, block, filled)
            filled = 0
        for c in range(block.shape[0]):
            block[c, filled] = moment[c, place]
        filled += 1
    return filled

"""Tiles: the inner loop of every smoothing, in vectors that stay in registers.

A tile is four outputs along the smoothed axis, times 16 numbers that lie side by side. Each step loads 16 numbers of
the source once and uses them for all four outputs, so that the multiply-adds and not the loads set the pace. LLVM does
not find this form by itself where the number of taps is known at run time only; here it is written out as vectors.

    out[o + r o_row + v o_vector + i] = sum_k taps[a + r a_row + k] source[s + (r + k) step + 4 v + i],  r, v, i = 0..3

Calls are tile(out, (o, o_row, o_vector), source, (s, step), taps, (a, a_row, width)), with at least three taps. A
turned tile stores output r where another stores lane i: out[o + i o_row + v o_vector + r]. A ring tile has (s, step,
end, back) and goes back by `back` where a place reaches `end`. An add tile adds to what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from doublewell.weak.vectors import CHUNK, LANES, LONG, SHORT, VECTOR, WIDTH, Vectors, number

__all__ = ["add_tile", "ring_add_tile", "ring_tile", "tile", "turned_tile"]

_ROWS = 4
# The sums of a tile and what they are made of need more than 16 registers; where there are not more, a chunk is taken
# in two halves.
_PARTS = 1 if LONG else 2
_VECTORS, _SHORTS = CHUNK // WIDTH // _PARTS, CHUNK // LANES // _PARTS
_WHOLE = ir.IntType(64)

Values = list[list[Any]]


@dataclass(frozen=True)
class _Form:
    """What kinds of tile there are: added to what is there, stored turned, read from a ring of rows."""

    add: bool = False
    turned: bool = False
    ring: bool = False


class _Writer(Vectors):
    """Writes the code of one tile at the builder's place."""

    def __init__(self, builder: Any, pointers: Sequence[Any], numbers: dict[str, Any], form: _Form) -> None:
        super().__init__(builder)
        self.form, self.n = form, numbers
        self.out, self.source, self.taps = pointers

    def write(self, part: int) -> None:
        """Write the steps in which outputs begin, those of all outputs as a loop, and those in which outputs end."""
        shift = self.b.add(self.n["s"], number(part * _VECTORS * WIDTH))
        sums, place = self._start(part), shift
        for j in range(_ROWS - 1):
            sums = self._step(sums, place, number(j), range(j + 1))
            place = self._next(place)
        sums, place = self._loop(sums, place)
        for j in range(_ROWS - 1):
            sums = self._step(sums, place, self.b.add(self.n["width"], number(j)), range(j + 1, _ROWS))
            place = self._next(place)
        self._finish(sums, part)

    def _loop(self, sums: Values, place: Any) -> tuple[Values, Any]:
        b, before, width = self.b, self.b.block, self.n["width"]
        loop, after = b.append_basic_block("taps"), b.append_basic_block("taps.end")
        b.cbranch(b.icmp_signed("<", number(_ROWS - 1), width), loop, after)
        b.position_at_end(loop)
        j, at = b.phi(_WHOLE), b.phi(_WHOLE)
        inner = _phis(b, sums, before)
        new = self._step(inner, at, j, range(_ROWS))
        k, further = b.add(j, number(1)), self._next(at)
        b.cbranch(b.icmp_signed("<", k, width), loop, after)
        for phi, first, later in ((j, number(_ROWS - 1), k), (at, place, further)):
            phi.add_incoming(first, before)
            phi.add_incoming(later, loop)
        _join(inner, new, loop)
        b.position_at_end(after)
        result = _phis(b, sums, before)
        _join(result, new, loop)
        end = b.phi(_WHOLE)
        end.add_incoming(place, before)
        end.add_incoming(further, loop)
        return result, end

    def _step(self, sums: Values, place: Any, j: Any, rows: range) -> Values:
        """Use the j-th line of the source for some of the outputs: tap j - r for output r."""
        b, sums = self.b, [list(row) for row in sums]
        line = [self.load(self.source, b.add(place, number(WIDTH * v))) for v in range(_VECTORS)]
        for r in rows:
            first = b.add(self.n["a"], b.mul(number(r), self.n["a_row"]))
            tap = self.spread(self.taps, b.add(first, b.sub(j, number(r))))
            for v, x in enumerate(line):
                sums[r][v] = self.fused(tap, x, sums[r][v])
        return sums

    def _next(self, place: Any) -> Any:
        b, further = self.b, self.b.add(place, self.n["step"])
        if not self.form.ring:
            return further
        over = b.icmp_signed(">=", further, self.n["end"])
        return b.select(over, b.sub(further, self.n["back"]), further)

    def _start(self, part: int) -> Values:
        if not self.form.add:
            return [[self.constant(0.0)] * _VECTORS for _ in range(_ROWS)]
        short = [[self.load(self.out, self._place(r, part, v), SHORT) for v in range(_SHORTS)] for r in range(_ROWS)]
        return [self._joined(row) for row in short]

    def _finish(self, sums: Values, part: int) -> None:
        short = [self._split(row) for row in sums]
        for v in range(_SHORTS):
            rows = [row[v] for row in short]
            for r, vector in enumerate(self._turned(rows) if self.form.turned else rows):
                self.store(vector, self.out, self._place(r, part, v))

    def _place(self, r: int, part: int, v: int) -> Any:
        b, n = self.b, self.n
        along = b.mul(number(part * _SHORTS + v), n["o_vector"])
        return b.add(b.add(n["o"], b.mul(number(r), n["o_row"])), along)

    def _split(self, row: list[Any]) -> list[Any]:
        """Cut registers into fours."""
        pieces = [range(k, k + LANES) for k in range(0, WIDTH, LANES)]
        return [self.mix(vector, vector, piece) for vector in row for piece in pieces]

    def _joined(self, row: list[Any]) -> list[Any]:
        """Put fours together to registers."""
        return [self.mix(one, two, range(WIDTH)) for one, two in zip(row[::2], row[1::2], strict=True)] if LONG else row

    def _turned(self, rows: list[Any]) -> list[Any]:
        """Transpose four vectors of four."""
        even, odd = (0, 4, 2, 6), (1, 5, 3, 7)
        low, high = (0, 1, 4, 5), (2, 3, 6, 7)
        a, c, d, e = (self.mix(rows[k], rows[k + 1], lanes) for k in (0, 2) for lanes in (even, odd))
        return [self.mix(a, d, low), self.mix(c, e, low), self.mix(a, d, high), self.mix(c, e, high)]


def _phis(b: Any, sums: Values, block: Any) -> Values:
    phis = [[b.phi(VECTOR) for _ in row] for row in sums]
    _join(phis, sums, block)
    return phis


def _join(phis: Values, sums: Values, block: Any) -> None:
    for row, values in zip(phis, sums, strict=True):
        for phi, value in zip(row, values, strict=True):
            phi.add_incoming(value, block)


def _intrinsic(form: _Form, name: str) -> Callable[..., None]:
    """Make the function of one form for compiled code."""
    names = (("o", "o_row", "o_vector"), ("s", "step", "end", "back") if form.ring else ("s", "step"), _TAPS)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        pointers = [make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2, 4)]
        numbers = {
            word: builder.extract_value(arguments[2 * k + 1], place)
            for k, words in enumerate(names)
            for place, word in enumerate(words)
        }
        for part in range(_PARTS):
            _Writer(builder, pointers, numbers, form).write(part)
        return context.get_dummy_value()

    def typed(_: Any, out: Any, to: Any, source: Any, at: Any, taps: Any, use: Any) -> Any:
        to, at, use = (types.UniTuple(types.intp, len(words)) for words in names)
        return types.void(out, to, source, at, taps, use), codegen

    typed.__name__ = typed.__qualname__ = name
    return cast("Callable[..., None]", intrinsic(typed))


_TAPS = ("a", "a_row", "width")
tile = _intrinsic(_Form(), "tile")
add_tile = _intrinsic(_Form(add=True), "add_tile")
turned_tile = _intrinsic(_Form(turned=True), "turned_tile")
ring_tile = _intrinsic(_Form(ring=True), "ring_tile")
ring_add_tile = _intrinsic(_Form(add=True, ring=True), "ring_add_tile")

"""The features of cells, sixteen at a time, in vectors that stay in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from doublewell.hints import Array
from doublewell.weak.compiled import FAST, jit
from doublewell.weak.vectors import CHUNK, WIDTH, Vectors, number

__all__ = ["evaluate"]


class _Writer(Vectors):
    """Writes the code that evaluates the features of one chunk of cells."""

    def __init__(self, builder: Any, pointers: Sequence[Any], place: Any, pitch: Any, count: Any) -> None:
        super().__init__(builder)
        self.data, self.table, self.binomials, self.slopes = pointers
        self.place, self.pitch, self.count = place, pitch, count

    def write(self) -> None:
        """Write c_j z^j upwards, then the factors (1 - z)^(m - j) downwards, then the lines outside the wells."""
        b, low, high = self.b, self._entry(0), self._entry(1)
        u = self._row(self.count)
        x = [self.largest(self.smallest(value, high), low) for value in u]
        rest = [b.fsub(value, inside) for value, inside in zip(u, x, strict=True)]
        z = [self._polynomial(value, 2, 3) for value in x]
        one = self.constant(1.0)
        upwards = self._powers([self._polynomial(value, 5, 4) for value in x])
        with cgutils.for_range(b, self.count) as loop:
            c = self.spread(self.binomials, loop.index)
            self._store(loop.index, [b.fmul(c, value) for value in upwards.value])
            upwards.times(z)
        down = [b.fsub(one, value) for value in z]
        downwards = self._powers(down)
        with cgutils.for_range(b, b.sub(self.count, number(1))) as loop:
            j = b.sub(b.sub(self.count, number(2)), loop.index)
            self._store(j, [b.fmul(a, power) for a, power in zip(self._row(j), downwards.value, strict=True)])
            downwards.times(down)
        with cgutils.for_range(b, self.count) as loop:
            self._lines(loop.index, rest)

    def _lines(self, j: Any, rest: list[Any]) -> None:
        """Continue feature j linearly outside the wells, if its slopes are not zero."""
        b, zero = self.b, self.constant(0.0)
        sides = [b.load(b.gep(self.slopes, [b.add(j, b.mul(number(k), self.count))])) for k in (0, 1)]
        nothing = ir.Constant(ir.DoubleType(), 0.0)
        with b.if_then(b.or_(*(b.fcmp_unordered("!=", slope, nothing) for slope in sides))):
            below, above = (self.spread_value(slope) for slope in sides)
            new = []
            for value, outside in zip(self._row(j), rest, strict=True):
                low = self.fused(below, self.smallest(outside, zero), value)
                new.append(self.fused(above, self.largest(outside, zero), low))
            self._store(j, new)

    def _powers(self, first: list[Any]) -> _Powers:
        return _Powers(self.b, first)

    def _polynomial(self, x: Any, first: int, terms: int) -> Any:
        value = self._entry(first + terms - 1)
        for k in reversed(range(terms - 1)):
            value = self.fused(value, x, self._entry(first + k))
        return value

    def _entry(self, k: int) -> Any:
        return self.spread(self.table, number(k))

    def _at(self, j: Any, v: int) -> Any:
        return self.b.add(self.b.add(self.place, number(v * WIDTH)), self.b.mul(j, self.pitch))

    def _row(self, j: Any) -> list[Any]:
        return [self.load(self.data, self._at(j, v)) for v in range(CHUNK // WIDTH)]

    def _store(self, j: Any, values: list[Any]) -> None:
        for v, value in enumerate(values):
            self.store(value, self.data, self._at(j, v))


class _Powers:
    """Vectors that change in a loop; LLVM keeps them in registers."""

    def __init__(self, builder: Any, first: list[Any]) -> None:
        self.b, self.places = builder, [cgutils.alloca_once_value(builder, value) for value in first]

    @property
    def value(self) -> list[Any]:
        return [self.b.load(place) for place in self.places]

    def times(self, factors: list[Any]) -> None:
        for place, factor in zip(self.places, factors, strict=True):
            self.b.store(self.b.fmul(self.b.load(place), factor), place)


def _typed(_: Any, features: Any, _place: Any, table: Any, binomials: Any, slopes: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        arrays = [make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 2, 3, 4)]
        count = builder.extract_value(arrays[2].shape, 0)
        pitch = builder.extract_value(arrays[0].shape, 1)
        _Writer(builder, [array.data for array in arrays], arguments[1], pitch, count).write()
        return context.get_dummy_value()

    return types.void(features, types.intp, table, binomials, slopes), codegen


_evaluate_chunk = cast("Callable[..., None]", intrinsic(_typed))


@jit(fastmath=FAST)
def evaluate(features: Array, start: int, stop: int, table: Array, binomials: Array, slopes: Array) -> None:
    """Evaluate features[j, start:stop], j = 0..m, of the values u that are the row after them, in whole chunks.

    A feature is prefactor(x) C(m, j) z^j (1 - z)^(m - j), x = u inside the wells, and linear outside. table = [low,
    high, z0, z1, z2, c0, c1, c2, c3] with z = z0 + z1 x + z2 x^2 and a cubic prefactor.
    """
    for at in range(start, stop, CHUNK):
        _evaluate_chunk(features, at, table, binomials, slopes)

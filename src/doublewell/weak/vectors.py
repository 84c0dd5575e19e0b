"""Vectors: short code for what a processor does with several numbers at once, written for LLVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = ["CHUNK", "LANES", "LONG", "SHORT", "VECTOR", "WIDTH", "Vectors", "move", "number", "prefetch"]

LANES = 4  # numbers that stay together wherever they are laid: the frames that are smoothed together
CHUNK = 4 * LANES  # numbers side by side in a tile
LONG = bool(binding.get_host_cpu_features().get("avx512vl", False))
WIDTH = 8 if LONG else LANES  # numbers in a register
SHORT = ir.VectorType(ir.DoubleType(), LANES)
VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_WHOLE, _SMALL = ir.IntType(64), ir.IntType(32)
_FUSE = ("contract",)  # a product and a sum may become one multiply-add


class Vectors:
    """Writes vector code at a builder's place."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def load(self, pointer: Any, place: Any, kind: Any = VECTOR) -> Any:
        """Load the vector that begins at a place of an array."""
        return self.b.load(self.b.bitcast(self.b.gep(pointer, [place]), kind.as_pointer()), align=8)

    def store(self, value: Any, pointer: Any, place: Any) -> None:
        """Store a vector at a place of an array."""
        self.b.store(value, self.b.bitcast(self.b.gep(pointer, [place]), value.type.as_pointer()), align=8)

    def spread(self, pointer: Any, place: Any) -> Any:
        """Give a vector with one number of an array in all lanes."""
        return self.spread_value(self.b.load(self.b.gep(pointer, [place])))

    def spread_value(self, value: Any) -> Any:
        """Give a vector with one number in all lanes."""
        nothing = ir.Constant(VECTOR, ir.Undefined)
        one = self.b.insert_element(nothing, value, ir.Constant(_SMALL, 0))
        return self.mix(one, nothing, [0] * WIDTH)

    def constant(self, value: float) -> Any:
        """Give a vector with the same constant in all lanes."""
        return ir.Constant(VECTOR, [value] * WIDTH)

    def mix(self, one: Any, two: Any, lanes: Sequence[int]) -> Any:
        """Give the vector of the numbered lanes of two, counted through both."""
        return self.b.shuffle_vector(one, two, ir.Constant(ir.VectorType(_SMALL, len(lanes)), list(lanes)))

    def fused(self, one: Any, two: Any, rest: Any) -> Any:
        """Give one * two + rest, in one instruction where there is one."""
        return self.b.fadd(rest, self.b.fmul(one, two, flags=_FUSE), flags=_FUSE)

    def smallest(self, one: Any, two: Any) -> Any:
        """Give the smaller of two in each lane."""
        return self.b.select(self.b.fcmp_ordered("<", one, two), one, two)

    def largest(self, one: Any, two: Any) -> Any:
        """Give the larger of two in each lane."""
        return self.b.select(self.b.fcmp_ordered(">", one, two), one, two)


def number(value: int) -> Any:
    """Give an integer as a constant of the code."""
    return ir.Constant(_WHOLE, value)


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(_: Any, out: Any, _place: Any) -> Any:
    """Say that a line of memory will be written soon."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        pointer = make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _SMALL, _SMALL, _SMALL])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        words = [ir.Constant(_SMALL, k) for k in (1, 3, 1)]  # for writing, into the nearest cache, data
        builder.call(function, [builder.bitcast(builder.gep(pointer, [arguments[1]]), byte), *words])
        return context.get_dummy_value()

    return types.void(out, types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]
def move(_: Any, out: Any, _to: Any, source: Any, _at: Any) -> Any:
    """Copy four numbers from a place of one array to a place of another."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        target, origin = (make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2))
        lanes = Vectors(builder)
        lanes.store(lanes.load(origin, arguments[3], SHORT), target, arguments[1])
        return context.get_dummy_value()

    return types.void(out, types.intp, source, types.intp), codegen

"""Processor: what the weak moments are summed on, and in which precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.jax_runtime import gpu_found, on_gpu
from doublewell.weak.passes import Part, Pass, Run
from doublewell.weak.reader import Reader

__all__ = ["CPU", "Device", "Kernel", "Precision", "Processor", "choose_processor"]

Device = Literal["cpu", "gpu"]
Precision = Literal["double", "single"]
_WORTH = 30_000_000  # values below which compiling for a GPU takes longer than reading on a CPU


class Kernel(Protocol):
    """What makes the moments of one or two supports of a window into triangles."""

    def read(
        self, fields: Array, origin: tuple[int, ...], parts: Sequence[Part], cut: float, run: Run
    ) -> list[tuple[Array, int]]:
        """Return R and the number of rows of each support."""


@dataclass(frozen=True)
class Processor:
    """A device, and the precision of the sums on it; they are added up in double precision."""

    device: Device = "cpu"
    precision: Precision = "double"

    def passes(self, readers: list[Reader]) -> list[tuple[list[Reader], Kernel]]:
        """Put supports in pairs, each with what reads them."""
        pairs = [readers[k : k + 2] for k in range(0, len(readers), 2)]
        if self.device == "cpu":
            return [(pair, _pass(pair)) for pair in pairs]
        from doublewell.weak.device_pass import DevicePass

        return [(pair, DevicePass(pair[0].family, *_sides(pair), precision=self.precision)) for pair in pairs]


def _pass(pair: list[Reader]) -> Pass:
    frames, cells = min(reader.frames for reader in pair), min(reader.cells for reader in pair)
    return Pass(pair[0].family, *_sides(pair), frames, cells)


def _sides(pair: list[Reader]) -> tuple[Any, Any, Any]:
    """Return for each support its weights along space, its centres, and half-lengths of its taps along time."""
    return (
        tuple(tuple(reader.space) for reader in pair),
        tuple(reader.centres() for reader in pair),
        tuple((len(reader.time.value) // 2, len(reader.time.first) // 2) for reader in pair),
    )


CPU = Processor()


def choose_processor(device: str | None, precision: str, values: int) -> Processor:
    """Return what a record of so many values is read on: what was asked for, or a GPU where one is and it is worth it.

    >>> choose_processor(None, "double", 1000)
    Processor(device='cpu', precision='double')
    """
    if precision not in get_args(Precision):
        raise InputError(f"precision is {precision!r}: expected 'double' or 'single'")
    if device not in (None, *get_args(Device)):
        raise InputError(f"device is {device!r}: expected 'cpu', 'gpu', or None for the one that is found")
    if device == "gpu" and not on_gpu():
        raise InputError(
            "device='gpu', but JAX sees only a CPU here: install JAX for the GPU (pip install 'jax[cuda12]'), see "
            "'doublewell doctor', or leave device out"
        )
    gpu = device == "gpu" or (device is None and values >= _WORTH and gpu_found())
    if precision == "single":
        if not gpu:
            raise InputError("precision='single' is for a GPU, on a CPU it saves nothing: add device='gpu' or leave it")
        return Processor("gpu", "single")
    return Processor("gpu") if gpu else CPU

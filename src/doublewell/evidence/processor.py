"""Processor: what the weak moments are summed on, and in which precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from doublewell.dynamics import gpu_found, on_gpu
from doublewell.errors import InputError
from doublewell.evidence.reader import Reader, Region
from doublewell.evidence.weights import Derivative, Support
from doublewell.law import LinearFamily
from doublewell.record import Record

__all__ = ["CPU", "Device", "Precision", "Processor", "choose_processor", "reader_on"]

Device = Literal["cpu", "gpu"]
Precision = Literal["double", "single"]
_WORTH = 30_000_000  # values below which compiling for a GPU takes longer than reading on a CPU


@dataclass(frozen=True)
class Processor:
    """A device, and the precision of the sums on it; they are added up in double precision."""

    device: Device = "cpu"
    precision: Precision = "double"


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


def reader_on(
    processor: Processor, record: Record, family: LinearFamily, support: Support, derivative: Derivative, region: Region
) -> Reader:
    """Return the reader of a support for a processor."""
    if processor.device == "cpu":
        return Reader(record, family, support, derivative, region)
    from doublewell.evidence.device_reader import DeviceReader

    return DeviceReader(record, family, support, derivative, region, processor.precision)

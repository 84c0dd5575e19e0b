"""Rescaled: a stored record whose pure phases are brought to -1 and +1 when it is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.hints import Array

__all__ = ["Lazy", "Rescaled"]


class Lazy(ABC):
    """What a Record asks of values that are made when they are read, beside shape and slicing."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Frames, then cells along each axis."""

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """Always float64."""
        return np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Rescaled(Lazy):
    """The values of a stored record, brought to the phases -1 and +1 when they are read."""

    source: Any
    low: float
    high: float

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the source."""
        return tuple(int(n) for n in self.source.shape)

    @property
    def chunks(self) -> Any:
        """How the source is stored."""
        return getattr(self.source, "chunks", None)

    def __getitem__(self, index: slice | tuple[slice, ...]) -> Array:
        block = self.source[index]
        if isinstance(block, np.ma.MaskedArray):
            block = np.ma.filled(block.astype(np.float64), np.nan)
        return self.apply(np.asarray(block).astype(np.float64))

    def apply(self, values: Array) -> Array:
        """Bring phase values of the source to the phases -1 and +1."""
        return np.asarray((values - 0.5 * (self.low + self.high)) / (0.5 * (self.high - self.low)))

"""Reduce: pieces are joined in the order of the plan, whoever finished first, so that the answer is one to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

from doublewell.hints import Array

__all__ = ["Joinable", "P", "Partial", "add"]


class Joinable(Protocol):
    """What a task returns: a piece that can be joined with the next one, and packed for a file."""

    def joined(self, other: Self) -> Self:
        """Return this piece and the next one as one."""

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what JSON can hold, and arrays by name."""


P = TypeVar("P", bound=Joinable)


@dataclass(frozen=True, eq=False)
class Partial(Generic[P]):
    """The pieces of the first `done` tasks as one, and those of later ones that are there already."""

    done: int = 0
    merged: P | None = None
    waiting: Mapping[int, P] = field(default_factory=dict)

    def has(self, place: int) -> bool:
        """Whether the piece of a task is there."""
        return place < self.done or place in self.waiting

    @property
    def count(self) -> int:
        """How many pieces are there."""
        return self.done + len(self.waiting)


def add(partial: Partial[P], place: int, piece: P) -> Partial[P]:
    """Return the pieces with one more; what is next in order is joined."""
    waiting = {**partial.waiting, place: piece}
    done, merged = partial.done, partial.merged
    while done in waiting:
        one = waiting.pop(done)
        merged = one if merged is None else merged.joined(one)
        done += 1
    return Partial(done, merged, waiting)

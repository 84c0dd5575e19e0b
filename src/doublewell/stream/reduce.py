"""Reduce: pieces are merged in the order of the plan, whoever finished first, so that the answer is one to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from doublewell.evidence import Evidence, merge
from doublewell.stream.tasks import Piece

__all__ = ["Partial", "add"]


@dataclass(frozen=True, eq=False)
class Partial:
    """The pieces of the first `done` regions as one, and those of later ones that are there already."""

    done: int = 0
    merged: Piece | None = None
    waiting: Mapping[int, Piece] = field(default_factory=dict)

    def has(self, place: int) -> bool:
        """Whether the piece of a region is there."""
        return place < self.done or place in self.waiting

    @property
    def count(self) -> int:
        """How many pieces are there."""
        return self.done + len(self.waiting)


def add(partial: Partial, place: int, piece: Piece) -> Partial:
    """Return the pieces with one more; what is next in order is merged."""
    waiting = {**partial.waiting, place: piece}
    done, merged = partial.done, partial.merged
    while done in waiting:
        one = waiting.pop(done)
        merged = one if merged is None else _joined(merged, one)
        done += 1
    return Partial(done, merged, waiting)


def _joined(first: Piece, second: Piece) -> Piece:
    evidence: Evidence = merge([first.evidence, second.evidence])
    return Piece(evidence, first.lines + second.lines, first.observed + second.observed)

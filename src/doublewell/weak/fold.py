"""Folds: named ranges of frames whose rows are kept apart."""

from __future__ import annotations

from dataclasses import dataclass

from doublewell.errors import InputError

__all__ = ["STRADDLE", "Fold", "split_folds"]


STRADDLE = "straddle"  # the name of rows whose support lies in none of them


@dataclass(frozen=True)
class Fold:
    """A named range of frames. Rows whose whole support lies inside belong to it."""

    name: str
    start: int
    stop: int


def split_folds(frames: int, longest: int, training: float = 0.6) -> tuple[Fold, Fold]:
    """Split a record in time into training and validation frames; rows that straddle belong to neither.

    `longest` is the temporal half-width, in intervals, of the longest support: both parts must hold it.
    """
    cut = round(training * frames)
    needs = 2 * (longest + 2) + 1
    if min(cut, frames - cut) < needs:
        raise InputError(
            f"record is too short for a validated ridge: each part needs {needs} frames, but {frames} frames split "
            f"into {cut} and {frames - cut}; record longer, pass shorter supports, or give ridge a number"
        )
    return Fold("training", 0, cut), Fold("validation", cut, frames)

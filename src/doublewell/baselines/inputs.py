"""Inputs: what a method may ask of a record before it reads it, and the supports of the weak ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from doublewell.errors import InputError
from doublewell.observation import survey
from doublewell.record import Record, check_record
from doublewell.weak import Derivative, Support, check_supports, default_supports, paper_supports

__all__ = ["Supports", "chosen_supports", "complete", "known_q"]

Supports = Sequence[Support | tuple[int, float]] | Literal["paper"] | None


def known_q(record: Record, name: str) -> float:
    """Return the diffusion coefficient, which the other methods do not estimate."""
    q = check_record(record).q
    if q is None:
        raise InputError(
            f"{name} needs the diffusion coefficient, which the record does not say: expected a number; pass q= to "
            "Record, or let identify estimate it first"
        )
    return q


def complete(record: Record, name: str) -> float:
    """Refuse missing values and uneven times, which only our own readings take; return q."""
    q = known_q(record, name)
    if record.mask is not None:
        raise InputError(
            f"{name} cannot leave out missing values: expected a record without a mask; use STAC or trajectory, or cut "
            "the record to a part that is complete"
        )
    if not record.uniform:
        raise InputError(
            f"{name} needs frames that are evenly spaced in time, and these are not: use STAC or trajectory, or cut "
            "the record where the interval changes"
        )
    return q


def chosen_supports(record: Record, supports: Supports, derivative: Derivative = "discrete") -> tuple[Support, ...]:
    """Return the supports of a weak reading: given ones, the paper's, or by the rule that follows the interface."""
    if supports == "paper":
        return paper_supports(record)
    if supports is None:
        return default_supports(record, survey(record).interface_width, long=derivative == "analytic")
    return check_supports(supports, record.frames, record.mesh, record.dx)

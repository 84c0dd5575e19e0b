"""Outcome and Method: what a method makes of a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from doublewell.inference import Constraint
from doublewell.law import Law
from doublewell_paper.sample import Sample

__all__ = ["Method", "Outcome"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The force a method found, or None with the reason in ``status``.

    ``active`` counts coefficients at their bound, None where they have none; ``condition`` is that of the design
    with unit columns; ``extra`` holds what only this method knows: a chosen degree, alpha, width, noise.
    """

    law: Law | None
    status: str = "fitted"
    active: int | None = None
    seconds: float = 0.0
    condition: float | None = None
    rows: int | None = None
    extra: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A named way from a sample to an outcome.

    ``title`` is its name in tables; ``settings`` says what is not in the name, and is part of a result's fingerprint;
    ``reads`` is the constraint of the trajectory reading that it takes, None for the weak methods.
    """

    name: str
    title: str
    fit: Callable[[Sample], Outcome]
    settings: str = ""
    reads: Constraint | None = None

    @property
    def slow(self) -> bool:
        """Whether it needs a trajectory reading; those run after all others."""
        return self.reads is not None

"""Analytic weak: STAC with samples of the test function's derivatives, the paper's control."""

from __future__ import annotations

from dataclasses import dataclass, field

from doublewell.baselines.inputs import Supports
from doublewell.baselines.protocol import BaselineFit
from doublewell.baselines.weak import DEGREE, weak_baseline
from doublewell.record import Record

__all__ = ["Analytic"]


@dataclass(frozen=True)
class Analytic:
    """The weak reading whose summation by parts is not exact on the mesh."""

    supports: Supports = None
    degree: int = DEGREE
    name: str = "analytic weak"
    needs: tuple[str, ...] = field(default=(), init=False)

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force from the weak moments of a record."""
        return weak_baseline(self.name, record, self.supports, self.degree, "analytic")

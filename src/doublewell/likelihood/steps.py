"""Steps: how a Gauss-Newton iteration went, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CG_MOST", "CG_TOLERANCE", "MOST_STEPS", "SMALL", "Step", "Watch", "step_of", "verdict"]

MOST_STEPS = 15
SMALL = 0.05  # standard errors: a step in theta below this ends the iteration
CG_TOLERANCE = 1e-2
CG_MOST = 200


@dataclass(frozen=True)
class Step:
    """One Gauss-Newton step: cost before and after, its size in standard errors, the share taken, and the solve.

    ``stage`` is "whole record", or "segments, links w" while the record is still cut into segments whose ends count w
    times as much as an observation.
    """

    number: int
    before: float
    after: float
    size: float
    length: float
    iterations: int
    residual: float
    stage: str = "whole record"

    def __str__(self) -> str:
        return (
            f"{self.stage}, step {self.number}: cost {self.after:.6g}, moved {self.size:.2g} standard errors, "
            f"{self.iterations} CG iterations to {self.residual:.1e}"
        )


Watch = Callable[[Step], None]


def step_of(number: int, point: dict[str, Any], freedom: int, stage: str) -> Step:
    """Return a step in plain numbers, its size in standard errors."""
    scale = float(np.sqrt(point["cost"] / freedom))
    return Step(
        number=number,
        before=float(point["before"]),
        after=float(point["cost"]),
        size=float(point["size"]) / scale,
        length=float(point["length"]),
        iterations=int(point["iterations"]),
        residual=float(point["residual"]),
        stage=stage,
    )


def verdict(steps: Sequence[Step], *, small: float = SMALL, least: int = 1, most: int = MOST_STEPS) -> str:
    """Return why the iteration ends after these steps, or nothing where it goes on."""
    if not steps:
        return ""
    last = steps[-1]
    if last.length == 0.0 and last.size <= small and len(steps) >= least:  # round-off hides what it would gain
        return f"converged: the last step, of {last.size:.2g} standard errors, was too small to lower the cost"
    if last.length == 0.0:
        return "stopped: no share of the step lowers the cost"
    if last.length == 1.0 and last.size <= small and len(steps) >= least:
        return f"converged: the last step was {last.size:.2g} standard errors"
    if len(steps) == most:
        return f"stopped: {most} steps, the last one {last.size:.2g} standard errors"
    return ""

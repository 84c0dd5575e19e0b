"""Whether the recovered potential is the double well that was asked for."""

from __future__ import annotations

import numpy as np

from doublewell_paper.outcome import Outcome
from doublewell_paper.sample import Sample

__all__ = ["inside_cone", "violation"]


def violation(_sample: Sample, outcome: Outcome) -> float | None:
    """Return 1 where the potential is no plain double well, else 0; decided in exact arithmetic."""
    return None if outcome.law is None else float(not outcome.law.structure.ok)


def inside_cone(_sample: Sample, outcome: Outcome) -> float | None:
    """Return 1 where all coefficients are positive, else 0."""
    return None if outcome.law is None else float(np.all(outcome.law.coefficients > 0.0))

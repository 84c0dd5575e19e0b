"""How far a movie of the recovered force runs from the true one."""

from __future__ import annotations

import numpy as np

from doublewell.errors import InputError
from doublewell_paper.outcome import Outcome
from doublewell_paper.sample import Sample, evolve

__all__ = ["field_error"]


def field_error(sample: Sample, outcome: Outcome) -> float | None:
    """Return e_u in percent at the end of the horizon; None without a horizon, or where the solution blows up."""
    if outcome.law is None or sample.spec.horizon is None:
        return None
    try:
        found = evolve(outcome.law, sample)
    except InputError:
        return None
    truth = sample.final_field
    return 100 * float(np.linalg.norm(found - truth) / np.linalg.norm(truth))

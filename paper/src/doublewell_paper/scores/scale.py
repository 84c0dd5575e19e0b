"""How far the calibrated scale and potential are from the true ones; None where calibration fails."""

from __future__ import annotations

import numpy as np

from doublewell.calibrate import calibrate
from doublewell.errors import InputError
from doublewell.law import Law
from doublewell_paper.outcome import Outcome
from doublewell_paper.sample import Sample

__all__ = ["epsilon_error", "potential_error", "scale_errors"]


def epsilon_error(sample: Sample, outcome: Outcome) -> float | None:
    """Return the relative error of epsilon in percent, with its sign."""
    return _errors(sample, outcome)[0]


def potential_error(sample: Sample, outcome: Outcome) -> float | None:
    """Return e_F in percent, the relative L2 error of the potential."""
    return _errors(sample, outcome)[1]


def _errors(sample: Sample, outcome: Outcome) -> tuple[float | None, float | None]:
    if outcome.law is None:
        return None, None
    try:
        return scale_errors(
            outcome.law, sample.truth, sample.tension, epsilon=sample.spec.epsilon, phases=sample.spec.phases
        )
    except InputError:  # the potential dips below the wells: an outcome, kept in the counts
        return None, None


def scale_errors(found: Law, truth: Law, tension: float, *, epsilon: float, phases: int) -> tuple[float, float]:
    """Return the signed error of epsilon and e_F, in percent, of a force calibrated with a tension."""
    scale = calibrate(found, tension).epsilon
    u = np.linspace(-1.0, 1.0, phases)
    potential = truth.potential(u, epsilon=epsilon)
    rest = found.potential(u, epsilon=scale) - potential
    return 100 * (scale / epsilon - 1.0), 100 * float(np.linalg.norm(rest) / np.linalg.norm(potential))

"""Adequacy: whether the record is the fitted model plus white noise, and what is missing if not.

Score tests look for an error in q, an advection, the other boundary condition, a tilt of the force, the gain, its
drift, an offset and a blur; each costs one linear solve and no fit. The residual itself is tested for correlations of
neighbours in space and time, for tails, and for a few cells that stand out. Holm's correction at 3 % keeps the
probability of any false alarm below 5 %.
"""

from doublewell.adequacy.check import check_adequacies, worst_of_parts
from doublewell.adequacy.statistics import (
    FALSE_ALARMS,
    NUMERICAL,
    STEADY,
    Adequacy,
    ScoreTest,
    Spot,
    Verdict,
    holm_adjusted,
)

__all__ = [
    "FALSE_ALARMS",
    "NUMERICAL",
    "STEADY",
    "Adequacy",
    "ScoreTest",
    "Spot",
    "Verdict",
    "check_adequacies",
    "holm_adjusted",
    "worst_of_parts",
]

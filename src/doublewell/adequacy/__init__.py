"""Adequacy: whether the record is the fitted model plus white noise, and what is missing if not.

Alternatives are what the model may lack: terms of the equation, faults of the observation. Each is a direction of the
prediction that costs one linear solve and no fit; the one that explains most of the residual is the likeliest. The
residual itself is tested for correlations of neighbours in space and time, for a force that nobody named, for tails,
and for a few cells that stand out. Holm's correction at 3 % keeps the probability of any false alarm below 5 %; the
verdict weighs what a fault does to the law.
"""

from doublewell.adequacy.check import check_adequacies, worst_of_parts
from doublewell.adequacy.moments import MomentTests, check_moments
from doublewell.adequacy.statistics import (
    FALSE_ALARMS,
    NUMERICAL,
    STEADY,
    TOLERANCE,
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
    "TOLERANCE",
    "Adequacy",
    "MomentTests",
    "ScoreTest",
    "Spot",
    "Verdict",
    "check_adequacies",
    "check_moments",
    "holm_adjusted",
    "worst_of_parts",
]

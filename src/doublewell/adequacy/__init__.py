"""Adequacy: whether the record is the fitted model plus white noise, and what is missing if not.

Score tests ask for an error in q, an advection, the other boundary condition, a tilt of the force, the gain, its
drift, an offset and a blur; each costs one linear solve and no fit. The residual itself is asked whether neighbours in
space and time are correlated, whether its tails are normal, and whether a few cells stand out. Holm's correction at 3 %
keeps the chance of any false alarm below 5 %.
"""

from doublewell.adequacy.alternatives import DIRECTIONS, Fit
from doublewell.adequacy.check import check_adequacies, holm_adjusted, projector_of, score_tests, worst_of_parts
from doublewell.adequacy.values import FALSE_ALARMS, STEADY, Adequacy, ScoreTest, Spot, Verdict

__all__ = [
    "DIRECTIONS",
    "FALSE_ALARMS",
    "STEADY",
    "Adequacy",
    "Fit",
    "ScoreTest",
    "Spot",
    "Verdict",
    "check_adequacies",
    "holm_adjusted",
    "projector_of",
    "score_tests",
    "worst_of_parts",
]

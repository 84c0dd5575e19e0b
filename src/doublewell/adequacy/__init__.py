"""Adequacy: whether the record is the fitted model plus white noise, and what is missing if not.

Score tests ask for an error in q, an advection, the other boundary condition, a tilt of the force and a drift of the
gain; each costs one linear solve and no fit. The residual itself is asked whether neighbours in space and time are
correlated and whether its tails are normal. Holm's correction keeps the chance of any false alarm below 5 %.
"""

from doublewell.adequacy.check import check_adequacy, score_test
from doublewell.adequacy.directions import DIRECTIONS, Fit
from doublewell.evidence.likelihood.score import Adequacy, ScoreTest

__all__ = ["DIRECTIONS", "Adequacy", "Fit", "ScoreTest", "check_adequacy", "score_test"]

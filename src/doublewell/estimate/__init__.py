"""Estimate: from evidence to coefficients."""

from doublewell.estimate.estimate import Constraint, Estimate, SupportFit, estimate
from doublewell.estimate.floor import Floor, approximation_floor
from doublewell.estimate.ridge import ALPHAS, RidgeChoice

__all__ = [
    "ALPHAS",
    "Constraint",
    "Estimate",
    "Floor",
    "RidgeChoice",
    "SupportFit",
    "approximation_floor",
    "estimate",
]

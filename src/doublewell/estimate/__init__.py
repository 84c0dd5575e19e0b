"""Estimate: from evidence to coefficients."""

from doublewell.estimate.degrees import PENALTY, DegreeFit, average_coefficients, degree_path
from doublewell.estimate.estimate import Constraint, Estimate, SupportFit, estimate
from doublewell.estimate.floor import Floor, approximation_floor
from doublewell.estimate.posterior import Posterior, quantile_interval
from doublewell.estimate.ridge import ALPHAS, RidgeChoice

__all__ = [
    "ALPHAS",
    "PENALTY",
    "Constraint",
    "DegreeFit",
    "Estimate",
    "Floor",
    "Posterior",
    "RidgeChoice",
    "SupportFit",
    "approximation_floor",
    "average_coefficients",
    "degree_path",
    "estimate",
    "quantile_interval",
]

"""Estimate: from evidence to coefficients."""

from doublewell.estimate.degrees import Component, DegreeAverage, DegreeFit, average_degrees, fit_degree
from doublewell.estimate.estimate import Constraint, Estimate, SupportFit, estimate
from doublewell.estimate.floor import Floor, approximation_floor
from doublewell.estimate.posterior import Posterior, quantile_interval
from doublewell.estimate.ridge import ALPHAS, RidgeChoice

__all__ = [
    "ALPHAS",
    "Component",
    "Constraint",
    "DegreeAverage",
    "DegreeFit",
    "Estimate",
    "Floor",
    "Posterior",
    "RidgeChoice",
    "SupportFit",
    "approximation_floor",
    "average_degrees",
    "estimate",
    "fit_degree",
    "quantile_interval",
]

"""Estimate: from evidence to coefficients."""

from doublewell.estimate.constraint import CONSTRAINTS, Constraint, check_constraint
from doublewell.estimate.degree_prior import DEGREE_PRIOR, DegreePrior, legendre_to_bernstein
from doublewell.estimate.degrees import Component, DegreeAverage, DegreeFit, average_degrees, fit_degree
from doublewell.estimate.diffusion import Diffusion, check_motion, estimate_q
from doublewell.estimate.estimate import Estimate, SupportFit, estimate
from doublewell.estimate.floor import Floor, approximation_floor
from doublewell.estimate.mixture import FittedRows, WeighedTerm, fit_rows, mixture_mean, weigh_terms
from doublewell.estimate.posterior import Posterior, quantile_interval
from doublewell.estimate.ridge import ALPHAS, RidgeChoice

__all__ = [
    "ALPHAS",
    "CONSTRAINTS",
    "DEGREE_PRIOR",
    "Component",
    "Constraint",
    "DegreeAverage",
    "DegreeFit",
    "DegreePrior",
    "Diffusion",
    "Estimate",
    "FittedRows",
    "Floor",
    "Posterior",
    "RidgeChoice",
    "SupportFit",
    "WeighedTerm",
    "approximation_floor",
    "average_degrees",
    "check_constraint",
    "check_motion",
    "estimate",
    "estimate_q",
    "fit_degree",
    "fit_rows",
    "legendre_to_bernstein",
    "mixture_mean",
    "quantile_interval",
    "weigh_terms",
]

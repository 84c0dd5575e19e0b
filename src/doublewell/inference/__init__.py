"""Estimate: from evidence to coefficients."""

from doublewell.inference.constraint import CONSTRAINTS, Constraint, check_constraint
from doublewell.inference.degree_prior import DEGREE_PRIOR, DegreePrior, legendre_to_bernstein
from doublewell.inference.degrees import Component, DegreeAverage, DegreeFit, average_degrees, fit_degree
from doublewell.inference.diffusion import Diffusion, check_motion, estimate_q
from doublewell.inference.estimate import Estimate, SupportFit, estimate
from doublewell.inference.floor import Floor, approximation_floor
from doublewell.inference.mixture import FittedRows, WeighedTerm, fit_rows, mixture_mean, weigh_terms
from doublewell.inference.posterior import Posterior, quantile_interval
from doublewell.inference.ridge import ALPHAS, RidgeChoice

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

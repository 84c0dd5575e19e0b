"""Inference: from evidence to coefficients, their posterior and the bands that follow."""

from doublewell.inference.degrees import (
    DEGREE_PRIOR,
    Component,
    DegreeAverage,
    DegreeFit,
    DegreePrior,
    FittedRows,
    WeighedTerm,
    average_degrees,
    fit_degree,
    fit_rows,
    mixture_mean,
    weigh_terms,
)
from doublewell.inference.diffusion import check_motion, estimate_q
from doublewell.inference.estimate import (
    ALPHAS,
    Estimate,
    Floor,
    RidgeChoice,
    SupportFit,
    approximation_floor,
    estimate,
)
from doublewell.inference.posterior import Posterior, Quantity, Scalar, curve_band, quantile_interval, scalar_interval

__all__ = [
    "ALPHAS",
    "DEGREE_PRIOR",
    "Component",
    "DegreeAverage",
    "DegreeFit",
    "DegreePrior",
    "Estimate",
    "FittedRows",
    "Floor",
    "Posterior",
    "Quantity",
    "RidgeChoice",
    "Scalar",
    "SupportFit",
    "WeighedTerm",
    "approximation_floor",
    "average_degrees",
    "check_motion",
    "curve_band",
    "estimate",
    "estimate_q",
    "fit_degree",
    "fit_rows",
    "mixture_mean",
    "quantile_interval",
    "scalar_interval",
    "weigh_terms",
]

"""Inference: from evidence to coefficients, their posterior and the bands that follow."""

from doublewell.inference.degrees import DEGREE_PRIOR as DEGREE_PRIOR
from doublewell.inference.degrees import Component as Component
from doublewell.inference.degrees import DegreeAverage as DegreeAverage
from doublewell.inference.degrees import DegreeFit as DegreeFit
from doublewell.inference.degrees import DegreePrior as DegreePrior
from doublewell.inference.degrees import WeighedTerm as WeighedTerm
from doublewell.inference.degrees import average_degrees as average_degrees
from doublewell.inference.degrees import fit_degree as fit_degree
from doublewell.inference.degrees import fit_rows as fit_rows
from doublewell.inference.degrees import mixture_mean as mixture_mean
from doublewell.inference.degrees import weigh_terms as weigh_terms
from doublewell.inference.diffusion import check_motion as check_motion
from doublewell.inference.diffusion import estimate_q as estimate_q
from doublewell.inference.estimate import ALPHAS as ALPHAS
from doublewell.inference.estimate import Estimate as Estimate
from doublewell.inference.estimate import RidgeChoice as RidgeChoice
from doublewell.inference.estimate import SupportFit as SupportFit
from doublewell.inference.estimate import approximation_floor as approximation_floor
from doublewell.inference.estimate import estimate as estimate
from doublewell.inference.posterior import Posterior as Posterior
from doublewell.inference.posterior import Quantity as Quantity
from doublewell.inference.posterior import Scalar as Scalar
from doublewell.inference.posterior import curve_band as curve_band
from doublewell.inference.posterior import quantile_interval as quantile_interval
from doublewell.inference.posterior import scalar_interval as scalar_interval

"""Prediction: the errors that a planned record will leave, through the estimator that will read it.

Under the linearised likelihood the most likely coefficients of degree 8 are normal with a known covariance, so the
estimate of `identify` can be drawn many times without any record: each draw goes through the same average over
degrees, or the same fit of one degree, and is compared with the law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from doublewell.checks import not_negative, whole
from doublewell.hints import Array
from doublewell.inference import Constraint, check_constraint, fit_rows, mixture_mean, weigh_terms
from doublewell.inference.least_squares import check_rank, column_scale
from doublewell.law import MAX_DEGREE, Bernstein, Law
from doublewell.likelihood import Information, record_information
from doublewell.plan.experiment import Experiment

__all__ = ["DRAWS", "Analysis", "Prediction", "experiment_information", "predict"]

Degree = int | Literal["auto"]
DRAWS = 4000  # a predicted error then moves by 1 to 2 % from seed to seed; ratios by less, all share the draws
_SEED = 20_260_103
_TOP = Bernstein(MAX_DEGREE)
_PHASES = np.linspace(-1.0, 1.0, 401)
_SHOWN = np.linspace(0.0, 1.0, 11)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Analysis:
    """How the record will be read: the options of ``identify``, and the relative error of the surface tension."""

    degree: Degree = "auto"
    constraint: Constraint = "admissible"
    tension_error: float = 0.0

    def __post_init__(self) -> None:
        if self.degree != "auto":
            whole(self.degree, "degree", least=0, most=MAX_DEGREE, meaning="'auto', or the degree of the law")
        check_constraint(self.constraint)
        not_negative(self.tension_error, "tension_error", "the relative standard deviation of the surface tension")


@dataclass(frozen=True, eq=False)
class Prediction:
    """The errors to expect, as root mean squares over the noise; shares, not percent.

    ``force`` and ``potential`` are relative L2 errors of G and F over [-1, 1], ``epsilon`` that of epsilon;
    the last two are None where the law has no surface tension. ``bias`` is the part of ``force`` that no averaging
    over records removes. ``refused`` is the share of records whose law could not be calibrated; they are left out of
    ``potential`` and ``epsilon``. ``pointwise`` is the error of G at ``phases`` (and at their mirror images), in units
    of the largest |G|. ``bound`` is the Cramer-Rao bound of ``force`` for one fixed degree without a constraint, None
    for an average over degrees.
    """

    force: float
    potential: float | None
    epsilon: float | None
    bias: float
    refused: float
    phases: Array
    pointwise: Array
    bound: float | None


def experiment_information(experiment: Experiment, *, seen: int | None = None) -> Information:
    """Return what the planned movie, or its first `seen` frames, says about the coefficients of degree 8."""
    return record_information(experiment.movie, _TOP, experiment.force.projected(_TOP), seen=seen)


def predict(experiment: Experiment, information: Information, analysis: Analysis) -> Prediction:
    """Return the errors to expect from a record of the experiment that is read by the analysis.

    The noise is the experiment's; `information` is that of its movie for noise 1, so one serves every noise level.
    """
    triangle = information.triangle / experiment.noise
    check_rank(column_scale(triangle)[2])
    law, draws = experiment.force, _draws()
    most_likely = information.best + np.linalg.solve(triangle, draws[:, :-1].T).T
    found = _read(triangle, most_likely, analysis)
    force = law.force(_PHASES)
    gap = found @ _TOP.features(_PHASES) - force
    near = found @ _TOP.features(_SHOWN) - law.force(_SHOWN)
    size = float(np.linalg.norm(force))
    potential, epsilon, refused = _scaled_errors(law, found, analysis.tension_error * draws[:, -1])
    return Prediction(
        force=_rms(np.linalg.norm(gap, axis=1)) / size,
        potential=potential,
        epsilon=epsilon,
        bias=float(np.linalg.norm(np.mean(gap, axis=0))) / size,
        refused=refused,
        phases=_SHOWN,
        pointwise=np.sqrt(np.mean(near**2, axis=0)) / float(np.max(np.abs(force))),
        bound=None if analysis.degree == "auto" else _bound(triangle, analysis.degree) / size,
    )


def _read(triangle: Array, most_likely: Array, analysis: Analysis) -> Array:
    """Return the coefficients of degree 8 that the estimator makes of each draw."""
    targets = most_likely @ triangle.T
    if analysis.degree == "auto":
        return mixture_mean(weigh_terms(triangle, targets, _TOP, constraint=analysis.constraint), _TOP)
    family = Bernstein(analysis.degree)
    lift = family.elevation(_TOP)
    return fit_rows(triangle @ lift, targets, family, constraint=analysis.constraint).coefficients @ lift.T


def _scaled_errors(law: Law, found: Array, tension: Array) -> tuple[float | None, float | None, float]:
    """Return the errors of F and epsilon after calibration by a tension with these errors, and the refusals."""
    if law.lowest < 0.0 or law.tension_integral == 0.0:
        return None, None, 1.0
    heights = found @ _TOP.primitives(_NODES)
    kept = np.min(heights, axis=1) > 0.0
    if not np.any(kept):
        return None, None, 1.0
    integrals = np.sqrt(2.0 * heights[kept]) @ _WEIGHTS
    ratio = law.tension_integral * (1.0 + tension[kept]) / integrals  # epsilon_hat / epsilon, energy E
    true = law.primitive(_PHASES)
    gap = ratio[:, None] ** 2 * (found[kept] @ _TOP.primitives(_PHASES)) - true
    potential = _rms(np.linalg.norm(gap, axis=1)) / float(np.linalg.norm(true))
    return potential, _rms(ratio - 1.0), 1.0 - float(np.mean(kept))


def _bound(triangle: Array, degree: int) -> float:
    """Return the root of the summed variances of G at the phases, for an unbiased estimate of one degree."""
    lift = Bernstein(degree).elevation(_TOP)
    root = np.linalg.inv(np.linalg.qr(triangle @ lift, mode="r"))
    return float(np.linalg.norm(root.T @ (lift.T @ _TOP.features(_PHASES))))


@cache
def _draws() -> Array:
    """Return normal draws, one column for each coefficient and one for the tension.

    Their sample mean is made 0 and their sample covariance 1: errors that are linear in the noise are then exact, and
    only the nonlinear part of the estimator is left to chance.
    """
    draws = np.random.default_rng(_SEED).standard_normal((DRAWS, _TOP.size + 1))
    draws -= draws.mean(axis=0)
    root = np.linalg.cholesky(draws.T @ draws / DRAWS)
    draws = np.linalg.solve(root, draws.T).T
    draws.flags.writeable = False
    return draws


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))

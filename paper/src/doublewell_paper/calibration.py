"""Calibration: what an inexact surface tension does to the scale and the potential of stored estimates.

No record is read again: coefficients of the lines are calibrated anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.bounds import (
    coefficient_change,
    envelope,
    potential_bound,
    primitive_distance,
    scale_bound,
    scale_ratio,
)
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law import Bernstein, Law, named_law
from doublewell_paper.equilibrium import equilibrium_tension
from doublewell_paper.line import Line
from doublewell_paper.scores.scale import scale_errors

__all__ = ["BoundCheck", "Supplied", "bound_check", "errors_with_factor", "lognormal_errors", "supplied_tension"]

DRAWS = 200
_SEED = 25_000


@dataclass(frozen=True)
class Supplied:
    """Tension from an equilibrium on a mesh: its relative errors by law, and the errors it leaves, all in percent."""

    tension_errors: tuple[float, ...]
    e_eps: float
    e_F: float


def supplied_tension(lines: list[Line], spacing: float) -> Supplied | None:
    """Calibrate lines with the tension of an equilibrium on a mesh of `spacing` epsilon."""
    if not lines:
        return None
    exact = {law: named_law(law).surface_tension(epsilon=1.0) for law in sorted({line.spec.law for line in lines})}
    factors = {law: equilibrium_tension(named_law(law), spacing) / sigma for law, sigma in exact.items()}
    found = np.array([pair for line in lines if (pair := errors_with_factor(line, factors[line.spec.law])) is not None])
    wrong = tuple(100 * abs(factor - 1.0) for factor in factors.values())
    return Supplied(wrong, float(np.mean(np.abs(found[:, 0]))), float(np.mean(found[:, 1])))


def errors_with_factor(line: Line, factor: float) -> tuple[float, float] | None:
    """Return the signed error of epsilon and e_F for a tension times a factor; None where calibration fails."""
    law, spec = line.law, line.spec
    if law is None:
        return None
    reference = named_law(spec.law)
    tension = factor * reference.surface_tension(epsilon=1.0)
    try:
        return scale_errors(law, reference.effective(spec.epsilon), tension, epsilon=spec.epsilon, phases=spec.phases)
    except InputError:
        return None


def lognormal_errors(lines: list[Line], variation: float, *, draws: int = DRAWS) -> tuple[float, float] | None:
    """Return root mean square errors of epsilon and F over lognormal tension factors of mean one.

    For fixed H a factor s multiplies epsilon by s and F by s^2 exactly, so every draw is algebra on two numbers.
    """
    rng = np.random.default_rng(_SEED)
    width = np.sqrt(np.log1p(variation**2))
    squares = []
    for line in lines:
        if line.law is None:
            continue
        factors = np.exp(width * rng.standard_normal(draws) - 0.5 * width**2) if variation else np.ones(1)
        squares.append([np.mean(part**2) for part in _factor_errors(line, line.law, factors)])
    if not squares:
        return None
    scale, potential = np.sqrt(np.mean(squares, axis=0))
    return float(scale), float(potential)


def _factor_errors(line: Line, law: Law, factors: Array) -> tuple[Array, Array]:
    """Return the relative errors of epsilon and F in percent for each factor."""
    spec, reference = line.spec, named_law(line.spec.law)
    ratio = reference.effective(spec.epsilon).tension_integral / law.tension_integral
    u = np.linspace(-1.0, 1.0, spec.phases)
    truth, found = reference.primitive(u), law.potential(u, epsilon=spec.epsilon * ratio)
    a, b, c = found @ found, found @ truth, truth @ truth
    squared = (factors**4 * a - 2 * factors**2 * b + c) / c  # |s^2 F_hat - F|^2 / |F|^2
    return 100 * (factors * ratio - 1.0), 100 * np.sqrt(np.maximum(squared, 0.0))


@dataclass(frozen=True)
class BoundCheck:
    """The paper's finite bounds against what happened, over many lines.

    ``holds`` counts lines whose realised errors lie within all bounds; ``certified`` those with a finite bound of the
    scale; ``scale_slack`` and ``potential_slack`` are the median ratios of bound to realised error; ``informative``
    counts lines with relative coefficient changes below one.
    """

    total: int
    holds: int
    certified: int
    informative: int
    scale_slack: float
    potential_slack: float


def bound_check(lines: list[Line]) -> BoundCheck | None:
    """Compare the bounds of Theorem 1 and Eq. 6, from the realised change of H, with the realised errors."""
    checks = [_one_bound(line, line.law) for line in lines if line.law is not None and line.scores["e_eps"] is not None]
    if not checks:
        return None
    rows = np.array(checks)
    slack = [
        float(np.median(rows[np.isfinite(rows[:, k]), k])) if np.isfinite(rows[:, k]).any() else float("nan")
        for k in (3, 4)
    ]
    return BoundCheck(len(rows), *(int(rows[:, k].sum()) for k in (0, 1, 2)), *slack)


def _one_bound(line: Line, law: Law) -> tuple[float, float, float, float, float]:
    spec = line.spec
    reference = named_law(spec.law).effective(spec.epsilon)
    distance, ratio = primitive_distance(reference, law), scale_ratio(reference, law)
    scale = scale_bound(reference.tension_integral, distance)
    height = potential_bound(epsilon=spec.epsilon, ratio=ratio, distance=distance, height=reference.barrier)
    u = np.linspace(-1.0, 1.0, spec.phases)
    moved = float(
        np.max(np.abs(law.potential(u, epsilon=spec.epsilon * ratio) - reference.potential(u, epsilon=spec.epsilon)))
    )
    holds = scale.lower <= ratio <= scale.upper and moved <= height * (1 + 1e-9)
    change = _coefficient_change(reference, law)
    low, high = envelope(change).epsilon
    holds = holds and low <= ratio * (1 + 1e-12) and ratio <= high * (1 + 1e-12)
    error = abs(ratio - 1.0)
    return float(holds), float(scale.certified), float(change < 1.0), scale.deviation / error, height / moved


def _coefficient_change(reference: Law, law: Law) -> float:
    """Return eta at the higher of the two degrees; infinite where the reference is no Bernstein polynomial."""
    families = (reference.family, law.family)
    if not all(isinstance(family, Bernstein) for family in families):
        return float("inf")
    top = Bernstein(max(family.degree for family in families))
    lifted = [Law(top, _elevated(item, top)) for item in (reference, law)]
    return coefficient_change(*lifted)


def _elevated(law: Law, top: Bernstein) -> Array:
    return np.asarray(Bernstein(law.family.degree).elevation(top) @ law.coefficients)

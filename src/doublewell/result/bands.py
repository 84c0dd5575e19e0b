"""Bands and intervals: draws of the coefficients carried through to what is asked."""

from __future__ import annotations

from typing import Literal

import numpy as np

from doublewell.calibrate import WHY_NO_SCALE, Scale
from doublewell.errors import InputError
from doublewell.estimate import Posterior, quantile_interval
from doublewell.law.family import Array

__all__ = ["Quantity", "Scalar", "curve_band", "scalar_interval"]

Quantity = Literal["force", "primitive", "potential", "bulk_energy"]
Scalar = Literal["epsilon", "barrier", "width", "tension_integral", "kappa", "bulk_barrier", "q"]
_SEED = 20_260_102
_NODES = 64


def curve_band(posterior: Posterior, quantity: str, u: Array, level: float, scale: Scale | None) -> tuple[Array, Array]:
    """Return the pointwise band of a curve at u."""
    draws = posterior.draws
    if quantity == "force":
        values = draws @ posterior.family.features(u.ravel())
    elif quantity == "primitive":
        values = draws @ posterior.family.primitives(u.ravel())
    elif quantity == "potential":
        epsilon, kept = _epsilon_draws(posterior, scale)
        values = epsilon[:, None] ** 2 * (draws[kept] @ posterior.family.primitives(u.ravel()))
    elif quantity == "bulk_energy":
        kappa, kept = _kappa_draws(posterior, scale)
        values = kappa[:, None] * (draws[kept] @ posterior.family.primitives(u.ravel()))
    else:
        raise InputError(f"band of {quantity!r}: expected 'force', 'primitive', 'potential' or 'bulk_energy'")
    low, high = quantile_interval(values, level)
    return low.reshape(u.shape), high.reshape(u.shape)


def scalar_interval(posterior: Posterior, quantity: str, level: float, scale: Scale | None) -> tuple[float, float]:
    """Return the interval of a number that follows from the law."""
    if quantity in ("epsilon", "barrier"):
        epsilon, kept = _epsilon_draws(posterior, scale)
        height = posterior.draws[kept] @ posterior.family.primitives(np.zeros(1))[:, 0]
        values = epsilon if quantity == "epsilon" else epsilon**2 * height
    elif quantity in ("kappa", "bulk_barrier"):
        kappa, kept = _kappa_draws(posterior, scale)
        height = posterior.draws[kept] @ posterior.family.primitives(np.zeros(1))[:, 0]
        values = kappa if quantity == "kappa" else kappa * height
    elif quantity == "q":
        values = _diffusions(posterior)
    elif quantity == "tension_integral":
        values = _tension_integrals(posterior)[0]
    elif quantity == "width":
        values = _widths(posterior)
    else:
        raise InputError(
            f"interval of {quantity!r}: expected 'epsilon', 'barrier', 'width', 'tension_integral', 'kappa', "
            "'bulk_barrier' or 'q'"
        )
    low, high = quantile_interval(values, level)
    return float(low), float(high)


def _diffusions(posterior: Posterior) -> Array:
    draws = posterior.beside_draws("q")
    if draws is None:
        raise InputError("the posterior of this result does not hold q, so q has no interval: identify again")
    return draws


def _tension_integrals(posterior: Posterior) -> tuple[Array, Array]:
    """Return C_H of every draw whose H is positive inside, and which draws these are."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    heights = posterior.draws @ posterior.family.primitives(nodes)
    kept = np.min(heights, axis=1) > 0.0
    if np.mean(kept) < 0.5:
        raise InputError(
            "more than half of the laws that the data allow have no planar interface: no interval can be given; "
            "use constraint='admissible' or more data"
        )
    return np.sqrt(2.0 * heights[kept]) @ weights, kept


def _kappa_draws(posterior: Posterior, scale: Scale | None) -> tuple[Array, Array]:
    """Return sigma / C_H of every draw that has an interface, and which draws these are."""
    if scale is None:
        raise InputError(WHY_NO_SCALE)
    integrals, kept = _tension_integrals(posterior)
    tension = scale.tension
    noise = np.random.default_rng(_SEED).standard_normal(integrals.size)
    sigma = np.maximum(tension.value + (tension.sd or 0.0) * noise, 1e-12 * tension.value)
    return sigma / integrals, kept


def _epsilon_draws(posterior: Posterior, scale: Scale | None) -> tuple[Array, Array]:
    kappa, kept = _kappa_draws(posterior, scale)
    assert scale is not None
    return kappa if scale.tension.normalisation == "E" else np.sqrt(kappa), kept


def _widths(posterior: Posterior) -> Array:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    reach = np.arctanh(0.9)
    u = np.tanh(reach * nodes)
    heights = posterior.draws @ posterior.family.primitives(u)
    kept = np.min(heights, axis=1) > 0.0
    return np.asarray(reach * ((1.0 - u**2) / np.sqrt(2.0 * heights[kept])) @ weights)

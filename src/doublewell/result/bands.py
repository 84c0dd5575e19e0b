"""Bands and intervals: draws of the coefficients carried through to what is asked."""

from __future__ import annotations

from typing import Literal

import numpy as np

from doublewell.calibrate import WHY_NO_SCALE, Scale
from doublewell.errors import InputError
from doublewell.inference import Posterior, quantile_interval
from doublewell.law import EvenFamily, Family, Placed, Wells
from doublewell.law.family import Array

__all__ = ["Quantity", "Scalar", "curve_band", "scalar_interval"]

Quantity = Literal["force", "primitive", "potential", "bulk_energy"]
Scalar = Literal["epsilon", "barrier", "width", "tension_integral", "kappa", "bulk_barrier", "maximum", "tilt", "q"]
_SEED = 20_260_102
_NODES = 64
_GRID = 401  # points between the phases at which the maximum of a draw is sought


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
        values = epsilon if quantity == "epsilon" else epsilon**2 * _barriers(posterior, kept)
    elif quantity in ("kappa", "bulk_barrier"):
        kappa, kept = _kappa_draws(posterior, scale)
        values = kappa if quantity == "kappa" else kappa * _barriers(posterior, kept)
    elif quantity == "q":
        values = _diffusions(posterior)
    elif quantity == "tension_integral":
        values = _tension_integrals(posterior)[0]
    elif quantity == "width":
        values = _widths(posterior)
    elif quantity == "maximum":
        values = _maxima(posterior)
    elif quantity == "tilt":
        values = posterior.draws @ posterior.family.primitives(np.array(posterior.family.phases[1:]))[:, 0]
    else:
        raise InputError(
            f"interval of {quantity!r}: expected 'epsilon', 'barrier', 'width', 'tension_integral', 'kappa', "
            "'bulk_barrier', 'maximum', 'tilt' or 'q'"
        )
    low, high = quantile_interval(values, level)
    return float(low), float(high)


def _inner(family: Family) -> Family:
    return family.family if isinstance(family, Placed) else family


def _frame(posterior: Posterior) -> tuple[float, float]:
    """Return the middle of the phases and half their distance."""
    low, high = posterior.family.phases
    return 0.5 * (low + high), 0.5 * (high - low)


def _barriers(posterior: Posterior, kept: Array) -> Array:
    """Return the height of the maximum of every draw that is kept; the wells are equally deep."""
    middle, half = _frame(posterior)
    if isinstance(_inner(posterior.family), EvenFamily):
        return np.asarray(posterior.draws[kept] @ posterior.family.primitives(np.array([middle]))[:, 0])
    grid = middle + half * np.linspace(-1.0, 1.0, _GRID)
    return np.asarray(np.max(posterior.draws[kept] @ posterior.family.primitives(grid), axis=1))


def _maxima(posterior: Posterior) -> Array:
    """Return where the force of each draw falls through zero, the highest of H where it does so more than once."""
    middle, half = _frame(posterior)
    if isinstance(_inner(posterior.family), EvenFamily):
        return np.full(len(posterior.draws), middle)
    grid = middle + half * np.linspace(-1.0, 1.0, _GRID)
    top = np.argmax((posterior.draws @ posterior.family.primitives(grid))[:, 1:-1], axis=1) + 1
    force = posterior.draws @ posterior.family.features(grid)
    rows = np.arange(len(top))
    left = np.where(force[rows, top] > 0.0, top, top - 1)  # the zero lies after the place where the force is positive
    here, there = force[rows, left], force[rows, left + 1]
    share = np.clip(here / np.where(here > there, here - there, 1.0), 0.0, 1.0)
    return np.asarray(grid[left] + share * (grid[1] - grid[0]))


def _diffusions(posterior: Posterior) -> Array:
    draws = posterior.beside_draws("q")
    if draws is None:
        raise InputError("the posterior of this result does not hold q, so q has no interval: identify again")
    return draws


def _tension_integrals(posterior: Posterior) -> tuple[Array, Array]:
    """Return C_H of every draw whose H is positive inside, and which draws these are."""
    _check_depths(posterior)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    middle, half = _frame(posterior)
    heights = posterior.draws @ posterior.family.primitives(middle + half * nodes)
    kept = np.min(heights, axis=1) > 0.0
    if np.mean(kept) < 0.5:
        raise InputError(
            "more than half of the laws that the data allow have no planar interface: no interval can be given; "
            "use constraint='admissible' or more data"
        )
    return half * (np.sqrt(2.0 * heights[kept]) @ weights), kept


def _check_depths(posterior: Posterior) -> None:
    if isinstance(_inner(posterior.family), Wells):
        raise InputError(
            "the depths of the wells may differ in this fit, so no planar interface is at rest: it has no width, no "
            "planar tension and no interval of them; where the depths are known to be equal, use wells='equal'"
        )


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
    _check_depths(posterior)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    middle, half = _frame(posterior)
    reach = np.arctanh(0.9)
    s = np.tanh(reach * nodes)
    heights = posterior.draws @ posterior.family.primitives(middle + half * s)
    kept = np.min(heights, axis=1) > 0.0
    return np.asarray(reach * (half * (1.0 - s**2) / np.sqrt(2.0 * heights[kept])) @ weights)

"""Posterior: what the evidence leaves open, as a mixture over degrees, and the bands that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from doublewell.calibrate import WHY_NO_SCALE, Scale
from doublewell.errors import InputError
from doublewell.evidence import Beside
from doublewell.hints import Array
from doublewell.inference.degrees import Component, DegreeFit
from doublewell.law import Constraint, Family, gauss_legendre

Quantity = Literal["force", "primitive", "potential", "bulk_energy"]
Scalar = Literal["epsilon", "barrier", "width", "tension_integral", "kappa", "bulk_barrier", "maximum", "tilt", "q"]
DRAWS = 4000  # fixed seed; a band's edge then moves by about 2 % of its half-width from seed to seed
_SEED = 20_260_101
_NODES = 64


@dataclass(frozen=True, eq=False)
class Posterior:
    """A mixture of normal distributions over degrees, in the coefficients of one family.

    ``path`` is the table of degrees, ``components`` the mixture. ``drift`` holds shifts of the coefficients that a
    finer discretisation would bring, one a row; each is added as one more normal direction. A draw outside the
    class of the ``constraint`` is replaced by the nearest law inside, in the metric of its component: the spread is
    then that of the constrained estimate. ``beside`` is what was estimated along with the law, such as q,
    given the law.
    """

    family: Family
    path: tuple[DegreeFit, ...]
    components: tuple[Component, ...]
    drift: Array
    constraint: Constraint
    beside: Beside | None = None

    @property
    def mean(self) -> Array:
        """The mean of the unconstrained mixture."""
        return np.asarray(sum(item.weight * (self._lift(item) @ item.free) for item in self.components))

    @property
    def covariance(self) -> Array:
        """The covariance of the unconstrained mixture: within the components, between them, and the drift."""
        mean, total = self.mean, self.drift.T @ self.drift
        for item in self.components:
            lift = self._lift(item)
            gap = lift @ item.free - mean
            total = total + item.weight * (lift @ item.covariance @ lift.T + np.outer(gap, gap))
        return total

    @cached_property
    def free_draws(self) -> Array:
        """Draws of the coefficients without the constraint; shape (DRAWS, size)."""
        return self._all_draws("none")

    @cached_property
    def draws(self) -> Array:
        """Draws of the coefficients, constrained where the estimate is; shape (DRAWS, size)."""
        return self.free_draws if self.constraint == "none" else self._all_draws(self.constraint)

    def beside_draws(self, name: str) -> Array | None:
        """Return draws of what was estimated beside the law, one for each draw of the law; None where it was not."""
        if self.beside is None or name not in self.beside.names:
            return None
        drawn = self.beside.draw(self.draws, np.random.default_rng(_SEED - 1))
        return np.asarray(drawn[:, self.beside.names.index(name)])

    def _all_draws(self, constraint: Constraint) -> Array:
        """Split the draws over the components by their weights, not at random."""
        edges = np.round(np.cumsum([item.weight for item in self.components]) * DRAWS).astype(int)
        counts = np.diff(edges, prepend=0)
        shares = zip(self.components, counts, strict=True)
        return np.vstack([self._draw(item, int(n), _SEED + k, constraint) for k, (item, n) in enumerate(shares) if n])

    def _draw(self, item: Component, count: int, seed: int, constraint: Constraint) -> Array:
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(item.covariance)
        g = item.free + rng.standard_normal((count, item.free.size)) @ root.T
        metric, own = np.linalg.inv(root), self.family.at(item.degree)
        roots = np.broadcast_to(metric, (count, *metric.shape))
        g = own.hold(constraint, roots, g @ metric.T, g, near=item.coefficients).coefficients
        return g @ self._lift(item).T + rng.standard_normal((count, len(self.drift))) @ self.drift

    def _lift(self, item: Component) -> Array:
        return self.family.at(item.degree).elevation(self.family)


def quantile_interval(values: Array, level: float) -> tuple[Array, Array]:
    """Return the central interval of draws along the first axis."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}: expected a number between 0 and 1, such as 0.95")
    low, high = np.quantile(values, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return low, high


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
        values = epsilon if quantity == "epsilon" else epsilon**2 * posterior.family.barriers(posterior.draws[kept])
    elif quantity in ("kappa", "bulk_barrier"):
        kappa, kept = _kappa_draws(posterior, scale)
        values = kappa if quantity == "kappa" else kappa * posterior.family.barriers(posterior.draws[kept])
    elif quantity == "q":
        values = _diffusions(posterior)
    elif quantity == "tension_integral":
        values = _tension_integrals(posterior)[0]
    elif quantity == "width":
        values = _widths(posterior)
    elif quantity == "maximum":
        values = posterior.family.maxima(posterior.draws)
    elif quantity == "tilt":
        values = posterior.draws @ posterior.family.primitives(np.array(posterior.family.phases[1:]))[:, 0]
    else:
        raise InputError(
            f"interval of {quantity!r}: expected 'epsilon', 'barrier', 'width', 'tension_integral', 'kappa', "
            "'bulk_barrier', 'maximum', 'tilt' or 'q'"
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
    _check_depths(posterior)
    nodes, weights = gauss_legendre(_NODES)
    middle, half = posterior.family.middle, posterior.family.half
    heights = posterior.draws @ posterior.family.primitives(middle + half * nodes)
    kept = np.min(heights, axis=1) > 0.0
    if np.mean(kept) < 0.5:
        raise InputError(
            "more than half of the laws that the data allow have no planar interface: no interval can be given; "
            "use constraint='admissible' or more data"
        )
    return half * (np.sqrt(2.0 * heights[kept]) @ weights), kept


def _check_depths(posterior: Posterior) -> None:
    if not posterior.family.equal_depths:
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
    noise = np.random.default_rng(_SEED + 1).standard_normal(integrals.size)
    sigma = np.maximum(tension.value + (tension.sd or 0.0) * noise, 1e-12 * tension.value)
    return sigma / integrals, kept


def _epsilon_draws(posterior: Posterior, scale: Scale | None) -> tuple[Array, Array]:
    kappa, kept = _kappa_draws(posterior, scale)
    assert scale is not None
    return kappa if scale.tension.normalisation == "E" else np.sqrt(kappa), kept


def _widths(posterior: Posterior) -> Array:
    _check_depths(posterior)
    nodes, weights = gauss_legendre(_NODES)
    middle, half = posterior.family.middle, posterior.family.half
    reach = np.arctanh(0.9)
    s = np.tanh(reach * nodes)
    heights = posterior.draws @ posterior.family.primitives(middle + half * s)
    kept = np.min(heights, axis=1) > 0.0
    return np.asarray(reach * (half * (1.0 - s**2) / np.sqrt(2.0 * heights[kept])) @ weights)

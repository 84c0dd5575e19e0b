"""Posterior: what the evidence leaves open, as a mixture over degrees, and the bands that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doublewell.errors import InputError
from doublewell.estimate.degrees import DegreeFit
from doublewell.estimate.least_squares import Array, solve_positive
from doublewell.law import Bernstein

__all__ = ["DRAWS", "Posterior", "quantile_interval"]

DRAWS = 4000  # fixed seed; a band's edge then moves by about 2 % of its half-width from seed to seed
_SEED = 20_260_101


@dataclass(frozen=True, eq=False)
class Posterior:
    """A mixture of normal distributions, one for each degree of the path, in the coefficients of one family.

    ``drift`` holds shifts of the coefficients that a finer discretisation would bring, one a row; each is added as one
    more normal direction. With ``positive`` a draw outside the positive cone is replaced by the nearest law inside, in
    the metric of its own degree: the spread is then that of the constrained estimate.
    """

    family: Bernstein
    path: tuple[DegreeFit, ...]
    drift: Array
    positive: bool

    @property
    def mean(self) -> Array:
        """The mean of the unconstrained mixture."""
        return np.asarray(sum(fit.weight * (self._lift(fit) @ fit.free) for fit in self.path))

    @property
    def covariance(self) -> Array:
        """The covariance of the unconstrained mixture: within the degrees, between them, and the drift."""
        total = self.drift.T @ self.drift
        for fit in self.path:
            lift = self._lift(fit)
            gap = lift @ fit.free - self.mean
            total = total + fit.weight * (lift @ fit.covariance @ lift.T + np.outer(gap, gap))
        return total

    @cached_property
    def free_draws(self) -> Array:
        """Draws of the coefficients without the constraint; shape (DRAWS, size)."""
        return np.vstack([self._draw(fit, count, seed, positive=False) for fit, count, seed in self._shares()])

    @cached_property
    def draws(self) -> Array:
        """Draws of the coefficients, constrained where the estimate is; shape (DRAWS, size)."""
        if not self.positive:
            return self.free_draws
        return np.vstack([self._draw(fit, count, seed, positive=True) for fit, count, seed in self._shares()])

    def _shares(self) -> list[tuple[DegreeFit, int, int]]:
        """Split the draws over the degrees by their weights, without chance."""
        edges = np.round(np.cumsum([fit.weight for fit in self.path]) * DRAWS).astype(int)
        counts = np.diff(edges, prepend=0)
        return [(fit, int(n), _SEED + fit.degree) for fit, n in zip(self.path, counts, strict=True) if n]

    def _draw(self, fit: DegreeFit, count: int, seed: int, *, positive: bool) -> Array:
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(fit.covariance)
        g = fit.free + rng.standard_normal((count, fit.degree + 1)) @ root.T
        if positive:
            g = _into_cone(g, np.linalg.inv(root), 1e-10 * float(np.max(np.abs(fit.free))))
        return g @ self._lift(fit).T + rng.standard_normal((count, len(self.drift))) @ self.drift

    def _lift(self, fit: DegreeFit) -> Array:
        return Bernstein(fit.degree).elevation(self.family)


def quantile_interval(values: Array, level: float) -> tuple[Array, Array]:
    """Return the central interval of draws along the first axis."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}: expected a number between 0 and 1, such as 0.95")
    low, high = np.quantile(values, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return low, high


def _into_cone(draws: Array, metric: Array, bound: float) -> Array:
    """Replace draws with a coefficient below the bound by their projection; `metric` is R of the degree."""
    out = draws.copy()
    for i in np.flatnonzero(np.any(draws < bound, axis=1)):
        out[i] = solve_positive(metric, metric @ draws[i], bound).coefficients
    return out

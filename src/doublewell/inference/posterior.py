"""Posterior: what the evidence leaves open, as a mixture over degrees, and the bands that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence import Beside
from doublewell.hints import Array
from doublewell.inference.constraint import Constraint, hold
from doublewell.inference.degrees import Component, DegreeFit
from doublewell.inference.wells import into_wells
from doublewell.law import Bernstein, Law, LinearFamily, Placed

__all__ = ["DRAWS", "Posterior", "quantile_interval"]

DRAWS = 4000  # fixed seed; a band's edge then moves by about 2 % of its half-width from seed to seed
_SEED = 20_260_101


@dataclass(frozen=True, eq=False)
class Posterior:
    """A mixture of normal distributions over degrees, in the coefficients of one family.

    ``path`` is the table of degrees, ``components`` the mixture. ``drift`` holds shifts of the coefficients that a
    finer discretisation would bring, one a row; each is added as one more normal direction. A draw outside the
    class of the ``constraint`` is replaced by the nearest law inside, in the metric of its component: the spread is
    then that of the constrained estimate. ``beside`` is what was estimated along with the law, such as q,
    given the law.
    """

    family: LinearFamily
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
        """Split the draws over the components by their weights, without chance."""
        edges = np.round(np.cumsum([item.weight for item in self.components]) * DRAWS).astype(int)
        counts = np.diff(edges, prepend=0)
        shares = zip(self.components, counts, strict=True)
        return np.vstack([self._draw(item, int(n), _SEED + k, constraint) for k, (item, n) in enumerate(shares) if n])

    def _draw(self, item: Component, count: int, seed: int, constraint: Constraint) -> Array:
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(item.covariance)
        g = item.free + rng.standard_normal((count, item.free.size)) @ root.T
        g = self._held(item, constraint, np.linalg.inv(root), g)
        return g @ self._lift(item).T + rng.standard_normal((count, len(self.drift))) @ self.drift

    def _held(self, item: Component, constraint: Constraint, metric: Array, g: Array) -> Array:
        """Move draws of one component to the nearest laws that obey the constraint."""
        own = self.family.at(item.degree)
        own = own.linear if isinstance(own, Placed) else own
        if isinstance(own, Bernstein):
            return hold(constraint, np.broadcast_to(metric, (len(g), *metric.shape)), g @ metric.T, g).coefficients
        if constraint == "none":
            return g
        return into_wells(metric, g @ metric.T, own, g, Law(own, item.coefficients).maximum)

    def _lift(self, item: Component) -> Array:
        return self.family.at(item.degree).elevation(self.family)


def quantile_interval(values: Array, level: float) -> tuple[Array, Array]:
    """Return the central interval of draws along the first axis."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}: expected a number between 0 and 1, such as 0.95")
    low, high = np.quantile(values, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return low, high

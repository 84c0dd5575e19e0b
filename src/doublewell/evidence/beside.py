"""Beside: what a record says of q or a blur once the law is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.hints import Array

__all__ = ["Beside"]


@dataclass(frozen=True, eq=False)
class Beside:
    """What a record says of q or a blur, given the law: normal with mean best + slope (g - g_best) and a covariance.

    ``root`` is the triangle of that covariance's inverse. Empty where nothing is estimated beside the law.
    """

    names: tuple[str, ...]
    best: Array
    slope: Array
    root: Array
    g_best: Array

    def mean(self, coefficients: Array) -> Array:
        """Return the most likely values for laws coefficients[..., k]."""
        return np.asarray(self.best + (coefficients - self.g_best) @ self.slope.T)

    def scaled(self, factors: Array) -> Beside:
        """Return the same in other units: values times factors."""
        return Beside(
            self.names, self.best * factors, self.slope * factors[:, None], self.root / factors[None, :], self.g_best
        )

    def draw(self, coefficients: Array, rng: np.random.Generator) -> Array:
        """Return one draw for each law."""
        z = rng.standard_normal((*coefficients.shape[:-1], len(self.names)))
        return np.asarray(self.mean(coefficients) + np.linalg.solve(self.root, z[..., None])[..., 0])

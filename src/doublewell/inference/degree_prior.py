"""Degree prior: what is believed of a law before the record is seen.

The bracket is written in Legendre polynomials of z on [0, 1], p = sum_k a_k P_k(2z - 1). A term of the prior is a
degree m, a ratio rho and a size s: a_0 is free, a_k ~ N(0, (s a_0 rho^k)^2) for k = 1..m, and higher terms vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import comb, log

import numpy as np

from doublewell.hints import Array
from doublewell.law import Bernstein

__all__ = ["DEGREE_PRIOR", "DegreePrior", "PriorTerm", "legendre_to_bernstein"]


@dataclass(frozen=True)
class PriorTerm:
    """One normal distribution of the prior, and the log of its weight."""

    degree: int
    ratio: float
    size: float
    log_weight: float

    @property
    def spreads(self) -> Array:
        """The standard deviations of a_1 .. a_m over a_0."""
        return np.asarray(self.size * self.ratio ** np.arange(1, self.degree + 1))


@dataclass(frozen=True)
class DegreePrior:
    """Every degree with every pair of a ratio and a size; a further degree is less likely by ``odds``."""

    ratios: tuple[float, ...]
    sizes: tuple[float, ...]
    odds: float

    def terms(self, highest: int) -> tuple[PriorTerm, ...]:
        """Return the terms up to the highest degree. At degree 0 nothing decays: one term.

        >>> [(term.degree, term.ratio) for term in DegreePrior((0.3, 0.6), (1.0,), 0.9).terms(1)]
        [(0, 0.3), (1, 0.3), (1, 0.6)]
        """
        pairs = list(product(self.ratios, self.sizes))
        return tuple(
            PriorTerm(degree, ratio, size, degree * log(self.odds) - log(len(kept)))
            for degree in range(highest + 1)
            for kept in (pairs if degree else pairs[:1],)
            for ratio, size in kept
        )


# Chosen by benchmarks/degree_rules.py on random laws that are not among those reported.
DEGREE_PRIOR = DegreePrior(ratios=(0.3, 0.6, 1.2), sizes=(0.3, 1.0, 3.0), odds=0.9)


@cache
def legendre_to_bernstein(degree: int) -> Array:
    """Return the matrix from Legendre to Bernstein coefficients of one degree on [0, 1].

    P_k(2z - 1) has the Bernstein coefficients (-1)^(k + j) C(k, j) at its own degree.

    >>> legendre_to_bernstein(1).tolist()
    [[1.0, -1.0], [1.0, 1.0]]
    """
    family = Bernstein(degree)
    columns = [
        Bernstein(k).elevation(family) @ np.array([(-1.0) ** (k + j) * comb(k, j) for j in range(k + 1)])
        for k in range(degree + 1)
    ]
    matrix = np.stack(columns, axis=1)
    matrix.flags.writeable = False
    return matrix

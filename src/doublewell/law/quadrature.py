"""Gauss-Legendre quadrature on [-1, 1], kept between calls."""

from __future__ import annotations

from functools import cache

import numpy as np

from doublewell.hints import Array

__all__ = ["TENSION_NODES", "gauss_legendre"]

TENSION_NODES = 64  # the paper's quadrature for C_H


@cache
def gauss_legendre(count: int) -> tuple[Array, Array]:
    """Return nodes and weights, read-only; kept, because finding them costs more than a law does."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights

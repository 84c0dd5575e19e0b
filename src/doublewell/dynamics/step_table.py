"""Step tables: the weights of an exponential step as a smooth function of its length.

The weights depend on step length and diffusion through tau = q h alone. For frames at uneven times, or a q that is
estimated, they are interpolated between Chebyshev nodes in log tau: exact to round-off, and cheap to differentiate,
where tracing their contour sums would take half a minute of compilation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from doublewell.dynamics.etdrk4 import Weights, etd_weights
from doublewell.hints import Array
from doublewell.law.family import namespace

__all__ = ["StepTable", "frame_shares", "step_table"]

_NEAR = 1e-10  # error of the interpolated weights, relative to the largest of their kind
_LEAST, _MOST = 6, 40  # nodes


class StepTable(NamedTuple):
    """Weights at nodes; a pytree. ``nodes`` are values of log tau, ``weights`` have a leading axis of nodes."""

    nodes: Any
    weights: Weights

    def shares(self, tau: Any) -> Any:
        """Return the share of each node in the weights at tau; shape (*tau.shape, nodes). May be traced by JAX."""
        if len(self.nodes) == 1:
            return namespace(tau).ones((*tau.shape, 1))
        # Lagrange polynomials on Chebyshev nodes, as products: no division by zero at a node
        x = namespace(tau).log(tau)[..., None]
        parts = []
        for j, node in enumerate(self.nodes):
            product = 1.0
            for k, other in enumerate(self.nodes):
                if k != j:
                    product = product * (x[..., 0] - other) / (node - other)
            parts.append(product)
        return namespace(tau).stack(parts, axis=-1)


def step_table(symbol: Array, low: float, high: float) -> StepTable:
    """Return a table for steps with tau = q h from `low` to `high`; one node where they are equal."""
    if low == high:
        return StepTable(np.array([np.log(low)]), _stacked(symbol, np.array([low])))
    for count in range(_LEAST, _MOST + 1, 2):
        angles = (np.arange(count) + 0.5) * np.pi / count
        middle, half = 0.5 * (np.log(high) + np.log(low)), 0.5 * (np.log(high) - np.log(low))
        nodes = middle + half * np.cos(angles)
        table = StepTable(nodes, _stacked(symbol, np.exp(nodes)))
        if _error(table, symbol, np.exp(middle + half * np.linspace(-1.0, 1.0, 7))) < _NEAR:
            break
    return table


def frame_shares(table: StepTable, weights_per_frame: Any) -> Weights:
    """Return the weights of one frame from its shares of the nodes."""
    xp = namespace(weights_per_frame)
    return Weights(*(xp.tensordot(weights_per_frame, xp.asarray(part), axes=1) for part in table.weights))


def _stacked(symbol: Array, taus: Array) -> Weights:
    each = [etd_weights(symbol, step=1.0, q=float(tau)) for tau in taus]
    return Weights(*(np.stack(parts) for parts in zip(*each, strict=True)))


def _error(table: StepTable, symbol: Array, taus: Array) -> float:
    found = [frame_shares(table, share) for share in table.shares(taus)]
    exact = [etd_weights(symbol, step=1.0, q=float(tau)) for tau in taus]
    return max(
        float(np.max(np.abs(a - b)) / np.max(np.abs(b)))
        for one, other in zip(found, exact, strict=True)
        for a, b in zip(one, other, strict=True)
    )

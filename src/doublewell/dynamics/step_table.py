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
_WIDER = 1.05  # the ends of the range lie inside, where the series can be differentiated


class StepTable(NamedTuple):
    """Weights at Chebyshev nodes of log tau; a pytree. ``weights`` have a leading axis of nodes.

    ``middle`` and ``half`` are the centre and the half-length of the range of log tau.
    """

    middle: Any
    half: Any
    weights: Weights

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.weights.whole.shape[0])

    def shares(self, tau: Any) -> Any:
        """Return the share of each node in the weights at tau; shape (*tau.shape, nodes). May be traced by JAX.

        The Chebyshev series through the nodes: T_k(x) = cos(k arccos x), by their discrete orthogonality.
        """
        xp, count = namespace(tau), self.nodes
        if count == 1:
            return xp.ones((*tau.shape, 1))
        k = np.arange(count)
        at_nodes = np.where(k == 0, 1.0, 2.0)[:, None] / count * np.cos(k[:, None] * _angles(count))
        angle = xp.arccos((xp.log(tau) - self.middle) / self.half)
        return xp.cos(angle[..., None] * k) @ at_nodes


def step_table(symbol: Array, low: float, high: float) -> StepTable:
    """Return a table for steps with tau = q h from `low` to `high`; one node where they are equal."""
    if low == high:
        return StepTable(np.log(low), 1.0, _stacked(symbol, np.array([low])))
    middle, half = 0.5 * np.log(low * high), _WIDER * 0.5 * np.log(high / low)
    for count in range(_LEAST, _MOST + 1, 2):
        table = StepTable(middle, half, _stacked(symbol, np.exp(middle + half * np.cos(_angles(count)))))
        if _error(table, symbol, np.exp(middle + half * np.linspace(-0.97, 0.97, 7))) < _NEAR:
            break
    return table


def _angles(count: int) -> Array:
    return (np.arange(count) + 0.5) * np.pi / count


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

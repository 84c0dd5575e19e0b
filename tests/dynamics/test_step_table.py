"""Step tables: interpolated weights are the weights, and so are their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.dynamics import ALLEN_CAHN, Grid, symbols
from doublewell.dynamics.etdrk4 import step_table, step_weights
from doublewell.runtime import double_precision

SYMBOLS = symbols(ALLEN_CAHN, Grid((12, 10), 0.02, "periodic").waves)


@pytest.mark.parametrize(("low", "high"), [(1e-5, 3e-5), (1e-4, 1.1e-4), (1e-5, 1e-3)])
def test_interpolated_weights_are_the_weights(low, high) -> None:
    table = step_table(SYMBOLS, low, high)
    assert 6 <= len(table.weights.whole) <= 40
    for tau in np.geomspace(low, high, 11):
        found = table.weigh(table.fractions(np.array(tau)))
        exact = step_weights(SYMBOLS, tau)
        for one, other in zip(found, exact, strict=True):
            assert np.abs(one - other).max() <= 1e-9 * np.abs(other).max()


def test_one_node_where_all_steps_are_equal() -> None:
    table = step_table(SYMBOLS, 2e-5, 2e-5)
    assert len(table.weights.whole) == 1
    shares = table.fractions(np.full(4, 2e-5))
    assert np.array_equal(shares, np.ones((4, 1)))
    for one, other in zip(table.weigh(shares[0]), step_weights(SYMBOLS, 2e-5), strict=True):
        assert np.allclose(one, other, rtol=1e-14, atol=0.0)


def test_shares_sum_to_one_and_pick_out_a_node() -> None:
    table = step_table(SYMBOLS, 1e-5, 1e-4)
    assert np.allclose(table.fractions(np.geomspace(1e-5, 1e-4, 7)).sum(axis=-1), 1.0, atol=1e-12)
    places = table.middle + table.half * np.cos(
        (np.arange(len(table.weights.whole)) + 0.5) * np.pi / len(table.weights.whole)
    )
    assert np.allclose(table.fractions(np.exp(places)), np.eye(len(table.weights.whole)), atol=1e-10)


def test_the_derivative_by_tau_is_that_of_the_weights() -> None:
    import jax

    table, tau, step = step_table(SYMBOLS, 1e-5, 1e-4), 3.3e-5, 1e-8
    with double_precision():
        slopes = jax.jacfwd(lambda t: table.weigh(table.fractions(t)))(jax.numpy.asarray(tau))
        slopes = [np.asarray(part) for part in slopes]
    up, down = (step_weights(SYMBOLS, tau + h) for h in (step, -step))
    for slope, high, low in zip(slopes, up, down, strict=True):
        exact = (high - low) / (2 * step)
        assert np.abs(slope - exact).max() < 1e-5 * np.abs(exact).max()

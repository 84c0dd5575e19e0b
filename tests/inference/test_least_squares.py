"""The small problem: optimality, and the paper's Lemma S1 as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.inference.estimate import column_scale, solve_free, solve_positive

seeds = st.integers(0, 10_000)


def problem(seed: int, columns: int = 4, rows: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-3, 3, columns)
    return rng.standard_normal((rows, columns)) * scale, rng.standard_normal(rows)


@given(seeds)
def test_free_equals_lstsq(seed: int) -> None:
    matrix, target = problem(seed)
    fit = solve_free(matrix, target)
    assert np.allclose(fit.coefficients, np.linalg.lstsq(matrix, target, rcond=None)[0], rtol=1e-9)
    assert fit.kkt < 1e-12
    assert not fit.active.any()
    assert fit.residual == pytest.approx(np.linalg.norm(matrix @ fit.coefficients - target))


@given(seeds)
def test_positive_is_optimal(seed: int) -> None:
    matrix, target = problem(seed)
    fit = solve_positive(matrix, target, 1e-6)
    assert np.all(fit.coefficients >= 1e-6)
    assert fit.kkt < 1e-10


@given(seeds)
def test_feasible_solution_is_returned_unchanged(seed: int) -> None:
    matrix, _ = problem(seed)
    truth = np.random.default_rng(seed + 1).uniform(1.0, 2.0, 4)
    free = solve_free(matrix, matrix @ truth)
    assert np.array_equal(solve_positive(matrix, matrix @ truth, 1e-10).coefficients, free.coefficients)


@given(seeds)
def test_lemma_projection_in_the_q_metric(seed: int) -> None:
    """(g_free - g)' Q (h - g) <= 0 for every feasible h: g is the Q-metric projection of g_free."""
    matrix, target = problem(seed)
    free, fit = solve_free(matrix, target), solve_positive(matrix, target, 1e-8)
    feasible = 1e-8 + np.random.default_rng(seed + 2).exponential(1.0, (20, 4)) * np.abs(free.coefficients)
    left = matrix @ (free.coefficients - fit.coefficients)
    right = (feasible - fit.coefficients) @ matrix.T
    size = np.linalg.norm(left) * np.linalg.norm(right, axis=1)
    assert np.all(right @ left <= 1e-10 * size + 1e-14)


@given(seeds)
def test_lemma_residual_no_larger_than_any_feasible_point(seed: int) -> None:
    matrix, target = problem(seed)
    fit = solve_positive(matrix, target, 1e-8)
    scale = np.abs(solve_free(matrix, target).coefficients)
    for h in 1e-8 + np.random.default_rng(seed + 3).exponential(1.0, (20, 4)) * scale:
        assert fit.residual <= np.linalg.norm(matrix @ h - target) * (1 + 1e-12)


@given(seeds)
def test_lemma_lipschitz_in_the_data(seed: int) -> None:
    matrix, target = problem(seed)
    other = target + np.random.default_rng(seed + 4).standard_normal(target.size)
    gap = solve_positive(matrix, target, 1e-8).coefficients - solve_positive(matrix, other, 1e-8).coefficients
    smallest = np.linalg.svd(matrix, compute_uv=False)[-1]
    assert np.linalg.norm(gap) <= np.linalg.norm(other - target) / smallest * (1 + 1e-8)


@given(seeds, st.floats(1e-6, 1e2))
def test_ridge_solves_the_shifted_normal_equations(seed: int, ridge: float) -> None:
    matrix, target = problem(seed)
    fit = solve_free(matrix, target, ridge)
    assert fit.kkt < 1e-10
    bounded = solve_positive(matrix, target, 1e-8, ridge)
    assert bounded.kkt < 1e-9
    cost = [np.sum((matrix @ g - target) ** 2) + ridge * np.sum(g**2) for g in (fit.coefficients, bounded.coefficients)]
    assert cost[0] <= cost[1] * (1 + 1e-12)


def test_columns_of_any_size() -> None:
    matrix, target = problem(3)
    fit = solve_positive(matrix, target, 0.0)
    scaled = solve_positive(matrix * [1e8, 1e-8, 1.0, 1e4], target, 0.0)
    assert np.allclose(scaled.coefficients * [1e8, 1e-8, 1.0, 1e4], fit.coefficients, rtol=1e-9)


def test_rank_is_checked() -> None:
    matrix, target = problem(5)
    matrix[:, 3] = matrix[:, 0] + matrix[:, 1] * (1 + 1e-13)
    with pytest.raises(InputError, match="does not determine 4 coefficients.*lower the degree or record a wider range"):
        solve_free(matrix, target)
    matrix[:, 3] = 0.0
    with pytest.raises(InputError, match="does not determine coefficient 3"):
        solve_free(matrix, target)


def test_rank_threshold_is_the_papers() -> None:
    """A scaled singular-value ratio a little above 1e-10 passes, a little below is refused."""
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 2)))
    for gap, passes in ((8e-10, True), (0.8e-10, False)):
        matrix = np.column_stack([q[:, 0], q[:, 0] + gap * q[:, 1]])
        if passes:
            solve_free(matrix, q[:, 0])
        else:
            with pytest.raises(InputError, match="singular-value ratio"):
                solve_free(matrix, q[:, 0])


def test_values_that_are_not_finite_are_named() -> None:
    with pytest.raises(InputError, match="the evidence has values that are not finite"):
        column_scale(np.array([[1.0, np.nan], [0.0, 1.0]]))

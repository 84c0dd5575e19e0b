from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.inference.estimate import _judged, solve_free, solve_positive
from doublewell.law import Bernstein, Law, named_law, squares
from doublewell.law.squares import nearest_bracket

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(60)
ROOT = np.sqrt(WEIGHTS)


def design(degree):
    return (ROOT * Bernstein(degree).features(POINTS)).T


def solve_squares(matrix, wanted, ridge=0.0):
    """The nearest double well; one that is one already is returned unchanged."""
    size, family = matrix.shape[1], Bernstein(matrix.shape[1] - 1)
    free = solve_free(matrix, wanted, ridge)
    if Law(family, free.coefficients).structure.ok:
        return free
    basis, root = np.linalg.qr(np.vstack([matrix, np.sqrt(ridge) * np.eye(size)]))
    g, bound = nearest_bracket(root, basis.T @ np.concatenate([wanted, np.zeros(size)]))
    return _judged(matrix, wanted, ridge, g, bound, family)


def target(law):
    return ROOT * law.force(POINTS)


@pytest.mark.parametrize("degree", range(2, 9))
def test_a_law_outside_the_positive_cone_is_reached(degree):
    wanted = target(named_law("outside_cone"))
    found = solve_squares(design(degree), wanted)
    assert found.residual < 1e-12 * np.linalg.norm(wanted)
    assert np.min(solve_free(design(2), wanted).coefficients) < 0.0


@pytest.mark.parametrize("degree", range(9))
@given(values=st.lists(st.floats(-1, 1), min_size=9, max_size=9), scale=st.sampled_from([1e-3, 1.0, 1e6]))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_the_answer_is_a_certified_minimum_in_the_exact_class(degree, values, scale):
    """Primal and dual feasibility with right angles prove a minimum of a convex problem."""
    g = scale * (np.array(values[: degree + 1]) + 0.05)
    matrix, wanted = design(degree), design(degree) @ g
    if np.linalg.norm(wanted) < 1e-6 * scale:
        return
    found = solve_squares(matrix, wanted)
    assert Law(Bernstein(degree), found.coefficients).structure.ok
    assert found.kkt < 1e-7
    inside = solve_positive(matrix, wanted, 1e-10 * scale)
    assert found.residual <= inside.residual + 1e-5 * np.linalg.norm(wanted)


def test_a_bracket_that_dips_below_zero_is_lifted_to_touch_it():
    """(z - 1/2)^2 - 0.01 is negative around z = 1/2; the nearest well touches zero there and is not flat."""
    law = Law.from_force(lambda u: -u * (1 - u**2) * ((u**2 - 0.5) ** 2 - 0.01), name="dips")
    found = solve_squares(design(2), target(law))
    bracket = Bernstein(2).bracket(found.coefficients, np.linspace(0, 1, 2001))
    assert 0.0 < np.min(bracket) < 1e-4
    assert 0.4 < np.argmin(bracket) / 2000 < 0.6
    assert np.max(bracket) > 0.2


def test_the_ridge_is_that_of_the_free_problem():
    matrix, wanted = design(3), target(named_law("sixth"))
    free = solve_free(matrix, wanted, 0.3)
    np.testing.assert_allclose(solve_squares(matrix, wanted, 0.3).coefficients, free.coefficients)
    turned = design(3) @ np.array([3.0, -8.0, 4.0, 1.0])
    held = solve_squares(matrix, turned, 0.3)
    cost = held.residual**2 + 0.3 * np.sum(held.coefficients**2)
    inside = solve_positive(matrix, turned, 1e-10, 0.3)
    assert cost <= inside.residual**2 + 0.3 * np.sum(inside.coefficients**2) + 1e-6


def test_data_that_ask_for_the_opposite_give_an_almost_flat_law():
    found = solve_squares(design(2), -target(named_law("sixth")))
    assert Law(Bernstein(2), found.coefficients).structure.ok
    assert np.max(np.abs(found.coefficients)) < 1e-4


def test_a_solver_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(squares, "sum_of_squares", lambda rows, right, margin: (-np.ones(3), 0.0))
    with pytest.raises(InputError, match="no double well of degree 2 was found near the data"):
        solve_squares(design(2), -target(named_law("sixth")))
    monkeypatch.undo()
    failed = SimpleNamespace(status="NumericalError", x=[])
    monkeypatch.setattr("clarabel.DefaultSolver", lambda *_: SimpleNamespace(solve=lambda: failed))
    with pytest.raises(InputError, match="search for the nearest double well ended as NumericalError"):
        solve_squares(design(2), -target(named_law("sixth")))

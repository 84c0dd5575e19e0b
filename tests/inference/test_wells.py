"""The exact class of unlike wells: optimal, certified, and an average over degrees that knows symmetric laws."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from doublewell.errors import InputError
from doublewell.inference import DEGREE_PRIOR
from doublewell.inference.least_squares import solve_free
from doublewell.inference.wells import are_wells, into_wells, solve_wells
from doublewell.inference.wells_degrees import average_wells, fit_wells, series_matrix
from doublewell.law import Bernstein, EqualWells, Law, Wells, embedding, named_law

S = np.linspace(-1.0, 1.0, 301)


def problem(family, force, noise: float = 0.0, seed: int = 0):
    """Rows that observe the force at many phase values."""
    rng = np.random.default_rng(seed)
    matrix = family.features(S[1:-1]).T
    return matrix, force(S[1:-1]) + noise * rng.standard_normal(S.size - 2)


def three_wells(s):
    """A force with an extra pair of stationary points."""
    return -(1.0 - s**2) * (s - 0.2) * ((s + 0.4) ** 2 - 0.01)


@pytest.mark.parametrize("family", [Wells(1), Wells(3), EqualWells(2)], ids=str)
def test_a_double_well_is_returned_unchanged(family) -> None:
    law = named_law("sixth") if isinstance(family, EqualWells) else named_law("sixth").tilted(0.3)
    matrix, target = problem(family, law.force)
    free = solve_free(matrix, target)
    assert solve_wells(matrix, target, family, free=free) is free


@pytest.mark.parametrize("family", [Wells(1), Wells(2), EqualWells(2)], ids=str)
def test_another_law_moves_to_the_best_double_well(family) -> None:
    matrix, target = problem(family, three_wells)
    found = solve_wells(matrix, target, family)
    law = Law(family, found.coefficients)
    assert law.structure.ok
    assert found.kkt < 1e-6
    if isinstance(family, EqualWells):
        assert law.tilt == 0.0
        return
    assert found.residual <= (1.0 + 1e-4) * _by_brute_force(matrix, target, family)


def _by_brute_force(matrix, target, family) -> float:
    """Minimise over p at many points and c together, from several starts."""
    from doublewell.inference.wells import _products

    size = 2 * family.degree + 1
    grid = np.linspace(0.0, 1.0, 1001)
    basis = np.stack([Bernstein(size - 1).bracket(row, grid) for row in np.eye(size)], axis=1)

    def residual(x):
        return float(np.sum((matrix @ (_products(family, x[-1])[0] @ x[:-1]) - target) ** 2))

    best = np.inf
    for c in (-0.6, -0.2, 0.2, 0.6):
        start = np.append(np.full(size, 0.1), c)
        limits = [{"type": "ineq", "fun": lambda x: basis @ x[:-1]}]
        bounds = [(None, None)] * size + [(-0.98, 0.98)]
        best = min(best, minimize(residual, start, method="SLSQP", constraints=limits, bounds=bounds).fun)
    return float(np.sqrt(best))


def test_a_ridge_shrinks_and_keeps_the_class() -> None:
    matrix, target = problem(Wells(2), three_wells)
    plain, shrunk = (solve_wells(matrix, target, Wells(2), ridge) for ridge in (0.0, 10.0))
    assert np.linalg.norm(shrunk.coefficients) < np.linalg.norm(plain.coefficients)
    assert Law(Wells(2), shrunk.coefficients).structure.ok


def test_data_that_ask_for_the_opposite_give_the_smallest_double_well(monkeypatch) -> None:
    family = EqualWells(0)
    matrix, target = problem(family, lambda s: s * (1.0 - s**2))  # a hill where the wells should be
    found = solve_wells(matrix, target, family)
    assert 0.0 < found.coefficients[0] < 1e-5
    monkeypatch.setattr(sys.modules["doublewell.inference.wells"], "_MARGINS", ())
    with pytest.raises(InputError, match="no law of degree 0 with two stable phases and one maximum between"):
        solve_wells(matrix, target, family)


def test_many_laws_are_looked_at_and_moved_together() -> None:
    family = Wells(2)
    good = embedding(Bernstein(1), family) @ named_law("sixth").coefficients
    bad = solve_free(*problem(family, three_wells)).coefficients
    rows = np.stack([good, bad, -good])
    assert are_wells(family, rows).tolist() == [True, False, False]
    moved = into_wells(np.eye(family.size), rows, family, rows, 0.2)
    assert np.array_equal(moved[0], good)
    assert Law(family, moved[1]).structure.ok
    assert abs(Law(family, moved[1]).maximum - 0.2) < 0.02


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_series_has_an_odd_and_an_even_part(degree: int) -> None:
    for family in (Wells(degree), EqualWells(degree)):
        turn = series_matrix(family)
        assert turn.shape == (family.size, family.size)
        forces = turn.T @ family.features(S)
        np.testing.assert_allclose(forces[: degree + 1], -forces[: degree + 1, ::-1], atol=1e-12)
        np.testing.assert_allclose(forces[degree + 1 :], forces[degree + 1 :, ::-1], atol=1e-12)
        np.testing.assert_allclose(forces[0], -S * (1.0 - S**2), atol=1e-12)
    assert all(abs(Law(EqualWells(degree), column).tilt) == 0.0 for column in turn.T)


def test_the_average_finds_a_tilted_law_and_its_degree() -> None:
    truth = named_law("sixth").tilted(0.2)
    family = Wells(4)
    matrix, target = problem(family, truth.force, noise=3e-3, seed=4)
    average = average_wells(matrix / 3e-3, target / 3e-3, family, constrained=True, prior=DEGREE_PRIOR)
    found = Law(family, average.coefficients)
    assert found.structure.ok
    np.testing.assert_allclose(found.force(S), truth.force(S), atol=5e-3)
    assert average.path[1].weight > 0.5
    assert average.path[0].chi2 > 100.0
    assert sum(item.weight for item in average.components) == pytest.approx(1.0)


def test_where_noise_hides_the_wells_the_average_is_still_a_double_well() -> None:
    family = Wells(3)
    matrix, target = problem(family, named_law("sixth").tilted(0.2).force, noise=2.0, seed=5)
    free, held = (
        average_wells(matrix / 2.0, target / 2.0, family, constrained=constrained, prior=DEGREE_PRIOR)
        for constrained in (False, True)
    )
    assert np.array_equal(free.coefficients, free.free)
    assert Law(family, held.coefficients).structure.ok
    assert all(Law(family.at(fit.degree), fit.coefficients).structure.ok for fit in held.path)


def test_one_degree_has_one_component() -> None:
    fit = fit_wells(*problem(Wells(2), three_wells), Wells(2), constrained=True)
    assert len(fit.components) == 1
    assert Law(Wells(2), fit.coefficients).structure.ok
    assert not Law(Wells(2), fit.free).structure.ok

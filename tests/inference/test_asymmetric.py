"""The exact class of asymmetric wells: optimal, certified, and an average over degrees that knows symmetric laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact
from doublewell.inference import average_degrees, fit_degree
from doublewell.inference.estimate import solve, solve_free
from doublewell.law import Bernstein, EqualWells, Law, Wells, asymmetric, named_law

S = np.linspace(-1.0, 1.0, 301)


def problem(family, force, noise: float = 0.0, seed: int = 0):
    """Rows that observe the force at many phase values."""
    rng = np.random.default_rng(seed)
    matrix = family.features(S[1:-1]).T
    return matrix, force(S[1:-1]) + noise * rng.standard_normal(S.size - 2)


def evidence(matrix, target, family):
    """The same rows as the likelihood of a trajectory."""
    rows = np.column_stack([matrix, np.zeros(len(matrix)), target])
    return Evidence(family, (Block(Key("r", "trajectory", "all"), compact(rows), len(rows)),), whitened=True)


def three_wells(s):
    """A force with an extra pair of stationary points."""
    return -(1.0 - s**2) * (s - 0.2) * ((s + 0.4) ** 2 - 0.01)


@pytest.mark.parametrize("family", [Wells(1), Wells(3), EqualWells(2)], ids=str)
def test_a_double_well_is_returned_unchanged(family) -> None:
    law = named_law("sixth") if isinstance(family, EqualWells) else named_law("sixth").tilted(0.3)
    matrix, target = problem(family, law.force)
    free = solve_free(matrix, target)
    assert solve(matrix, target, family, constraint="admissible", unbounded=free)[0] is free


@pytest.mark.parametrize("family", [Wells(1), Wells(2), EqualWells(2)], ids=str)
def test_another_law_moves_to_the_best_double_well(family) -> None:
    matrix, target = problem(family, three_wells)
    found, _ = solve(matrix, target, family, constraint="admissible")
    law = Law(family, found.coefficients)
    assert law.structure.ok
    assert found.kkt < 1e-6
    if isinstance(family, EqualWells):
        assert law.tilt == 0.0
        return
    assert found.residual <= (1.0 + 1e-4) * _by_brute_force(matrix, target, family)


def _by_brute_force(matrix, target, family) -> float:
    """Minimise over p at many points and c together, from several starts."""
    size = 2 * family.degree + 1
    grid = np.linspace(0.0, 1.0, 1001)
    basis = np.stack([Bernstein(size - 1).bracket(row, grid) for row in np.eye(size)], axis=1)

    def residual(x):
        return float(np.sum((matrix @ (family.products(x[-1])[0] @ x[:-1]) - target) ** 2))

    best = np.inf
    for c in (-0.6, -0.2, 0.2, 0.6):
        start = np.append(np.full(size, 0.1), c)
        limits = [{"type": "ineq", "fun": lambda x: basis @ x[:-1]}]
        bounds = [(None, None)] * size + [(-0.98, 0.98)]
        best = min(best, minimize(residual, start, method="SLSQP", constraints=limits, bounds=bounds).fun)
    return float(np.sqrt(best))


def test_a_ridge_shrinks_and_keeps_the_class() -> None:
    matrix, target = problem(Wells(2), three_wells)
    plain, shrunk = (solve(matrix, target, Wells(2), constraint="admissible", ridge=ridge)[0] for ridge in (0.0, 10.0))
    assert np.linalg.norm(shrunk.coefficients) < np.linalg.norm(plain.coefficients)
    assert Law(Wells(2), shrunk.coefficients).structure.ok


def test_data_that_ask_for_the_opposite_give_the_smallest_double_well(monkeypatch) -> None:
    family = EqualWells(0)
    matrix, target = problem(family, lambda s: s * (1.0 - s**2))  # a hill where the wells should be
    found, _ = solve(matrix, target, family, constraint="admissible")
    assert 0.0 < found.coefficients[0] < 1e-5
    monkeypatch.setattr(asymmetric, "MARGINS", ())
    with pytest.raises(InputError, match="no law of degree 0 with two stable phases and one maximum between"):
        solve(matrix, target, family, constraint="admissible")


def test_many_laws_are_looked_at_and_moved_together() -> None:
    family = Wells(2)
    good = Bernstein(1).elevation(family) @ named_law("sixth").coefficients
    bad = solve_free(*problem(family, three_wells)).coefficients
    rows = np.stack([good, bad, -good])
    assert family.single_barrier(rows).tolist() == [True, False, False]
    near = Bernstein(0).elevation(family)[:, 0] - 0.2  # r = s - 0.2
    roots = np.broadcast_to(np.eye(family.size), (3, family.size, family.size))
    held = family.hold("admissible", roots, rows, rows, near=near)
    assert held.moved.tolist() == [False, True, True]
    moved = held.coefficients
    assert np.array_equal(moved[0], good)
    assert Law(family, moved[1]).structure.ok
    assert abs(Law(family, moved[1]).maximum - 0.2) < 0.02


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_series_has_an_odd_and_an_even_part(degree: int) -> None:
    for family in (Wells(degree), EqualWells(degree)):
        turn, orders = family.series()
        assert turn.shape == (family.size, family.size)
        assert orders[0] == 0
        forces = turn.T @ family.features(S)
        np.testing.assert_allclose(forces[: degree + 1], -forces[: degree + 1, ::-1], atol=1e-12)
        np.testing.assert_allclose(forces[degree + 1 :], forces[degree + 1 :, ::-1], atol=1e-12)
        np.testing.assert_allclose(forces[0], -S * (1.0 - S**2), atol=1e-12)
    assert all(abs(Law(EqualWells(degree), column).tilt) == 0.0 for column in turn.T)


def test_the_average_finds_a_tilted_law_and_its_degree() -> None:
    truth = named_law("sixth").tilted(0.2)
    family = Wells(4)
    matrix, target = problem(family, truth.force, noise=3e-3, seed=4)
    average = average_degrees(evidence(matrix / 3e-3, target / 3e-3, family), 1.0, constraint="admissible")
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
        average_degrees(evidence(matrix / 2.0, target / 2.0, family), 1.0, constraint=constraint)
        for constraint in ("none", "admissible")
    )
    assert np.array_equal(free.coefficients, free.free)
    assert Law(family, held.coefficients).structure.ok
    assert all(Law(family.at(fit.degree), fit.coefficients).structure.ok for fit in held.path)


def test_one_degree_has_one_component() -> None:
    fit = fit_degree(evidence(*problem(Wells(2), three_wells), Wells(2)), 1.0, constraint="admissible")
    assert len(fit.components) == 1
    assert Law(Wells(2), fit.coefficients).structure.ok
    assert not Law(Wells(2), fit.free).structure.ok

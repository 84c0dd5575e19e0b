"""The exact class of double wells: nearest laws in batches, against sums of squares and against what is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, lower, system
from doublewell.inference import (
    Posterior,
    approximation_floor,
    average_degrees,
    estimate,
    fit_degree,
    mixture_mean,
    quantile_interval,
    weigh_terms,
)
from doublewell.inference.estimate import solve, solve_free
from doublewell.law import Bernstein, Law, named_law
from doublewell.law import bernstein as constraint
from doublewell.law.bernstein import into_class, into_cone, lowest, positive_rows
from doublewell.law.squares import nearest_bracket

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(60)
ROOT = np.sqrt(WEIGHTS)
TOP = Bernstein(8)


def design(degree, high=1.0):
    return (ROOT * Bernstein(degree).features(0.5 * high * (POINTS + 1.0))).T


def problems(degree, law, size, *, count=60, seed=0, high=1.0):
    """Draws of |root g - right| around a law: roots, right sides, free solutions."""
    root = np.linalg.qr(design(degree, high), mode="r")
    right = root @ law + size * np.random.default_rng(seed).standard_normal((count, degree + 1))
    return np.broadcast_to(root, (count, *root.shape)), right, np.linalg.solve(root, right.T).T


def solve_admissible(matrix, target, free=None, ridge=0.0):
    return solve(matrix, target, Bernstein(matrix.shape[1] - 1), constraint="admissible", ridge=ridge, unbounded=free)


def solve_squares(matrix, target, ridge=0.0):
    """The same by sums of squares."""
    size = matrix.shape[1]
    basis, root = np.linalg.qr(np.vstack([matrix, np.sqrt(ridge) * np.eye(size)]))
    free = solve_free(matrix, target, ridge).coefficients
    if Law(Bernstein(size - 1), free).structure.ok:
        return free
    return nearest_bracket(root, basis.T @ np.concatenate([target, np.zeros(size)]))[0]


def evidence(law, noise, seed=0):
    """Trajectory evidence of degree 8 for a law, in units of the noise."""
    matrix = design(8) / noise
    target = matrix @ law + np.random.default_rng(seed).standard_normal(60)
    rows = np.column_stack([matrix, np.zeros(60), target])
    return Evidence(TOP, (Block(Key("r", "trajectory", "all"), compact(rows), 60),), whitened=True)


@pytest.mark.parametrize("degree", range(9))
@given(values=st.lists(st.floats(-1, 1), min_size=9, max_size=9), scale=st.sampled_from([1e-3, 1.0, 1e6]))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_the_nearest_law_is_that_of_sums_of_squares(degree, values, scale):
    g = scale * np.array(values[: degree + 1])
    matrix, target = design(degree), design(degree) @ g
    if np.linalg.norm(target) < 1e-6 * scale:
        return
    found, bound = solve_admissible(matrix, target, solve_free(matrix, target))
    assert Law(Bernstein(degree), found.coefficients).structure.ok
    assert found.kkt < 1e-7
    other = np.linalg.norm(matrix @ solve_squares(matrix, target) - target)
    assert found.residual <= other + 3.0 * bound * np.linalg.norm(np.sum(matrix, axis=1))


@pytest.mark.parametrize("degree", [1, 2, 5, 8])
def test_every_row_of_a_batch_is_a_double_well_and_those_that_were_are_unchanged(degree):
    law = Bernstein(0).elevation(Bernstein(degree))[:, 0]
    roots, right, free = problems(degree, law, 0.3 / degree)
    held = into_class(roots, right, free)
    inside = np.array([Law(Bernstein(degree), g).structure.ok for g in free])
    assert 0 < np.sum(inside) < len(inside)
    assert np.array_equal(held.coefficients[inside], free[inside])
    assert np.all(held.rise[inside] == 0.0)
    assert np.array_equal(held.moved, ~inside)
    assert all(Law(Bernstein(degree), g).structure.ok for g in held.coefficients)
    assert np.all(held.rise <= into_cone(roots, right, free).rise + 1e-6)


def test_a_row_does_not_depend_on_its_batch():
    roots, right, free = problems(6, np.full(7, 1.0), 0.1, count=300)
    whole = into_class(roots, right, free)
    one = into_class(roots[290:291], right[290:291], free[290:291])
    np.testing.assert_allclose(one.coefficients[0], whole.coefficients[290], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("degree", "high"), [(5, 0.25), (8, 0.6)])
def test_a_record_that_leaves_phases_open_still_gives_double_wells(degree, high):
    """Free brackets are then larger than the seen part by many decades, and rounding is felt."""
    roots, right, free = problems(degree, np.ones(degree + 1), 1e-3, count=25, high=high)
    assert np.max(np.abs(free)) > 1e3
    held = into_class(roots, right, free)
    assert all(Law(Bernstein(degree), g).structure.ok for g in held.coefficients)
    assert np.all(held.rise <= 1.001 * into_cone(roots, right, free).rise + 1e-6 * np.sum(right**2, axis=1))


def test_a_contact_is_where_the_bracket_was_negative():
    """(z - 1/2)^2 - 0.01 dips around z = 1/2."""
    wanted = Law.from_force(lambda u: -u * (1 - u**2) * ((u**2 - 0.5) ** 2 - 0.01), name="dips")
    floor = approximation_floor(wanted, 2)
    matrix, target = design(2), ROOT * wanted.force(0.5 * (POINTS + 1.0))
    found, bound = solve_admissible(matrix, target, solve_free(matrix, target))
    assert len(found.contacts) == 1
    assert found.contacts[0] == pytest.approx(np.sqrt(0.5), abs=0.1)
    assert bound <= lowest(found.coefficients[None])[0] <= 1.1 * bound
    assert 0.0 < floor.error < 0.2


def test_contacts_at_the_ends_and_of_a_flat_law():
    assert Bernstein(2).contacts(np.array([1e-6, 1.0, 1e-6]), 1e-6) == (0.0, 1.0)
    assert Bernstein(2).contacts(np.array([1e-6, 1.0, 2.0]), 1e-6) == (0.0,)
    assert Bernstein(2).contacts(np.full(3, 1e-6), 1e-6) == (0.0, 1.0)
    assert Bernstein(2).contacts(np.array([1.0, -0.9, 1.0]), -np.inf) == ()


def test_the_cheap_test_agrees_with_the_exact_one():
    rng = np.random.default_rng(4)
    rows = np.vstack([rng.standard_normal((300, 7)) + 0.6, [(1, 0, 0, 0, 0, 0, 1)], [(1, 1, 1, 1, 1, 1, 0)]])
    exact = [Law(Bernstein(6), g).structure.ok for g in rows]
    assert positive_rows(rows).tolist() == exact
    assert np.all(rows[:-2] > 0, axis=1).sum() < sum(exact) < len(exact)


@pytest.mark.parametrize("touch", [0.0, 1e-17, -1e-17])
def test_a_bracket_that_touches_zero_is_left_to_the_exact_test(touch):
    """(z - 1/2)^2 has the coefficients 1/4, -1/4, 1/4: binary fractions, so the touch is exact."""
    g = np.array([0.25, -0.25, 0.25]) + touch
    assert positive_rows(g[None])[0] == Law(Bernstein(2), g).structure.ok


def test_averages_and_elevations_of_double_wells_are_double_wells():
    roots, right, free = problems(4, np.array([1.0, -2.0, 1.0, -2.0, 1.0]), 0.05, count=40)
    held = into_class(roots, right, free).coefficients
    weights = np.random.default_rng(1).dirichlet(np.ones(40), size=20)
    assert np.min(held) < 0.0
    for g in weights @ held:
        assert Law(Bernstein(4), g).structure.ok
        assert Law(TOP, Bernstein(4).elevation(TOP) @ g).structure.ok


def test_the_average_over_degrees_and_its_draws_are_double_wells():
    low = named_law("outside_cone")
    law = low.family.elevation(TOP) @ low.coefficients
    found = average_degrees(evidence(law, 0.1), 1.0, constraint="admissible")
    assert Law(TOP, found.coefficients).structure.ok
    assert all(Law(Bernstein(fit.degree), fit.coefficients).structure.ok for fit in found.path)
    held, cone, free = (
        Posterior(TOP, found.path, found.components, np.zeros((0, 9)), c) for c in ("admissible", "bernstein", "none")
    )
    assert np.all(positive_rows(held.draws))
    assert not np.all(positive_rows(free.draws))
    u = np.linspace(0.05, 0.95, 19)
    truth = low.force(u)
    cover = [np.mean((a <= truth) & (truth <= b)) for a, b in (_band(p, u) for p in (held, cone))]
    assert cover[0] > cover[1]


def _band(posterior, u):
    return quantile_interval(posterior.draws @ TOP.features(u), 0.95)


def test_negligible_terms_have_no_weight_and_change_nothing():
    low = named_law("bernstein3")
    seen = evidence(low.family.elevation(TOP) @ low.coefficients, 0.01)
    short = average_degrees(seen, 1.0, constraint="admissible")
    assert sum(item.weight == 0.0 for item in short.components) > 5
    assert all(Law(Bernstein(item.degree), item.coefficients).structure.ok for item in short.components)
    matrix, target = system(seen, 1.0)
    full = weigh_terms(matrix, target[None], TOP, constraint="admissible", negligible=0.0)
    np.testing.assert_allclose(short.coefficients, mixture_mean(full, TOP)[0], rtol=1e-7)


def test_one_degree_says_where_it_touches():
    dips = Bernstein(2).elevation(TOP) @ np.array([1.0, -1.5, 1.0])
    found = fit_degree(lower(evidence(dips, 0.05), 2), 1.0, constraint="admissible").path[0]
    assert found.active == ()
    assert len(found.contacts) == 1
    assert found.contacts[0] == pytest.approx(np.sqrt(0.5), abs=0.1)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_double_well_is_returned_bit_for_bit(ridge):
    matrix, target = design(4), ROOT * named_law("outside_cone").force(0.5 * (POINTS + 1.0))
    free = solve_free(matrix, target, ridge)
    assert np.array_equal(solve_admissible(matrix, target, ridge=ridge)[0].coefficients, free.coefficients)


def test_a_ridge_is_kept_where_the_law_must_be_moved():
    matrix, target = design(3), design(3) @ np.array([3.0, -8.0, 4.0, 1.0])
    found, _ = solve_admissible(matrix, target, ridge=0.3)
    np.testing.assert_allclose(found.coefficients, solve_squares(matrix, target, 0.3), atol=1e-4)
    assert found.kkt < 1e-7


def test_the_default_of_an_estimate_is_the_exact_class():
    law = named_law("outside_cone")
    seen = evidence(law.family.elevation(TOP) @ law.coefficients, 1e-6)
    plain, cone, free = (
        estimate(lower(seen, 2), 1.0, **c) for c in ({}, {"constraint": "bernstein"}, {"constraint": "none"})
    )
    assert np.array_equal(plain.coefficients, free.coefficients)
    assert np.min(plain.coefficients) < 0.0 < np.min(cone.coefficients)


def test_data_that_ask_for_nothing_or_the_opposite():
    matrix = design(2)
    nothing = solve_free(matrix, np.zeros(60))
    assert solve_admissible(matrix, np.zeros(60), nothing)[0] is nothing
    target = -ROOT * named_law("sixth").force(0.5 * (POINTS + 1.0))
    found, bound = solve_admissible(matrix, target, solve_free(matrix, target))
    assert np.max(found.coefficients) <= 1.1 * bound
    assert found.contacts == (0.0, 1.0)


def test_what_the_contacts_do_not_find_is_found_by_other_means(monkeypatch):
    roots, right, free = problems(3, np.array([1.0, -2.0, -2.0, 1.0]), 0.01, count=3)
    wanted = into_class(roots, right, free).rise
    np.testing.assert_allclose(into_class(roots, right, free, rounds=0).rise, wanted, rtol=1e-3)

    def fails(*_):
        raise InputError("no")

    monkeypatch.setattr(constraint, "nearest_bracket", fails)
    np.testing.assert_allclose(into_class(roots, right, free, rounds=0).rise, into_cone(roots, right, free).rise)


def test_a_small_problem_that_does_not_end_is_given_up(monkeypatch):
    def fails(*_):
        raise RuntimeError("Maximum number of iterations reached.")

    roots, right, _ = problems(3, np.array([1.0, -2.0, -2.0, 1.0]), 0.01, count=1)
    places = np.array([0.4])
    monkeypatch.setattr("scipy.optimize.nnls", fails)
    push, kept = constraint._push(np.linalg.inv(roots[0]), right[0], places)
    assert np.all(push == 0.0)
    assert kept is places

import itertools

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, lower
from doublewell.identify.conclude import perhaps_sharp
from doublewell.inference import (
    DEGREE_PRIOR,
    DegreePrior,
    average_degrees,
    fit_degree,
    fit_rows,
    mixture_mean,
    weigh_terms,
)
from doublewell.inference.degrees import mix, unseen
from doublewell.law import Bernstein, Law, legendre_to_bernstein, named_law
from doublewell.options import DoubleWell, Observation, Trajectory
from doublewell.problem import Problem

TOP = Bernstein(8)
RNG = np.random.default_rng(5)
# Unit columns with nearby directions, as the features of a record have them, and a strong noise.
TRIANGLE = 0.02 * np.linalg.qr(
    Bernstein(8).features(np.linspace(0, 1, 60)).T + 0.02 * RNG.standard_normal((60, 9)), mode="r"
)


def evidence(triangle, best, rows=6912):
    """The evidence of one record, written as the reader writes it."""
    stacked = np.zeros((10, 11))
    stacked[:9, :9] = triangle
    stacked[:9, -1] = triangle @ best
    stacked[9, -1] = np.sqrt(rows)
    return Evidence(TOP, (Block(Key("r", "trajectory", "all"), compact(stacked), rows),), whitened=True)


@pytest.fixture(scope="module", params=["sixth", "bernstein3"])
def rows(request):
    """Most likely coefficients of records that differ by their noise."""
    law = named_law(request.param).effective(0.1)
    noise = np.random.default_rng(3).standard_normal((12, 9))
    return law.family.elevation(TOP) @ law.coefficients + np.linalg.solve(TRIANGLE, noise.T).T


@pytest.mark.parametrize("constraint", ["admissible", "bernstein", "none"])
def test_many_rows_are_the_rows_one_by_one(rows, constraint):
    terms = weigh_terms(TRIANGLE, rows @ TRIANGLE.T, TOP, DEGREE_PRIOR, constraint=constraint)
    each = [average_degrees(evidence(TRIANGLE, g), 1.0, constraint=constraint).coefficients for g in rows]
    np.testing.assert_allclose(mixture_mean(terms, TOP), each, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sum(item.weights for item in terms), 1.0)


@pytest.mark.parametrize("constraint", ["admissible", "bernstein", "none"])
@pytest.mark.parametrize("degree", [0, 3, 8])
def test_one_degree_is_that_of_the_evidence(rows, degree, constraint):
    lift = Bernstein(degree).elevation(TOP)
    each = [fit_degree(lower(evidence(TRIANGLE, g), degree), 1.0, constraint=constraint) for g in rows]
    found = fit_rows(TRIANGLE @ lift, rows @ TRIANGLE.T, Bernstein(degree), constraint=constraint).coefficients
    np.testing.assert_allclose(found, [one.coefficients for one in each], atol=1e-6 * np.max(np.abs(found)))


def test_the_constraint_was_needed_somewhere(rows):
    targets = rows @ TRIANGLE.T
    free, held = (fit_rows(TRIANGLE, targets, TOP, constraint=c) for c in ("none", "bernstein"))
    assert np.min(free.coefficients) < 0.0
    assert np.min(held.coefficients) > 0.0
    assert all(Law(TOP, g).structure.ok for g in held.coefficients)
    assert np.all(held.cost >= free.cost)
    assert np.any(held.active)
    assert not np.any(free.active)


def test_the_weights_are_marginal_likelihoods(rows):
    """Against the density of the data under each term: covariance I + X S X', a_0 integrated with a flat prior."""
    prior = DegreePrior(ratios=(0.3, 0.8), sizes=(0.5, 2.0), odds=0.7)
    targets = rows[:1] @ TRIANGLE.T
    terms = weigh_terms(TRIANGLE, targets, TOP, prior, constraint="none")
    low = TRIANGLE @ Bernstein(2).elevation(TOP) @ legendre_to_bernstein(2)
    unit = abs(np.linalg.lstsq(low, targets[0], rcond=None)[0][0])
    logs = []
    for item in terms:
        m = item.term.degree
        design = TRIANGLE @ Bernstein(m).elevation(TOP) @ legendre_to_bernstein(m)
        spreads = unit * item.term.size * item.term.ratio ** np.arange(1, m + 1)
        spread = np.eye(9) + (design[:, 1:] * spreads**2) @ design[:, 1:].T
        inverse = np.linalg.inv(spread)
        first = design[:, 0]
        gain = first @ inverse @ first
        cost = targets[0] @ inverse @ targets[0] - (first @ inverse @ targets[0]) ** 2 / gain
        choices = 4 if m else 1
        log = -0.5 * (cost + np.log(gain) + np.linalg.slogdet(spread)[1]) + m * np.log(0.7) - np.log(choices)
        logs.append(log)
    weights = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose([item.weights[0] for item in terms], weights / weights.sum(), rtol=1e-6, atol=1e-12)


def test_rough_laws_have_their_share_and_end_slowly():
    prior = DegreePrior(ratios=(0.3,), sizes=(0.5, 2.0), odds=0.7, knees=(2, 9), tail=0.1, fraction=0.2)
    terms = prior.terms(TOP)
    weights = np.exp([term.log_weight for term in terms])
    assert np.sum(weights[-2:]) == pytest.approx(0.2 * np.sum(weights))
    np.testing.assert_allclose(terms[-2].spreads(np.arange(1, 5)), [0.5, 0.5, 0.05, 0.005])
    np.testing.assert_allclose(terms[-1].spreads(np.arange(1, 9)), 0.5)
    assert [term.degree for term in terms[-2:]] == [8, 8]


def test_a_rough_law_counts_for_the_degree_of_its_knee(rows):
    only = DegreePrior(ratios=(0.3,), sizes=(0.3,), odds=1e-9, knees=(4,), fraction=1.0 - 1e-12)
    found = average_degrees(evidence(TRIANGLE, rows[0]), 1.0, constraint="none", prior=only)
    assert max(found.path, key=lambda fit: fit.weight).degree == 4


def test_what_a_record_cannot_resolve_of_a_rough_law(rows):
    """A row is what the data and a prior twice as wide miss of a term of one order."""
    found = average_degrees(evidence(TRIANGLE, rows[0]), 1.0, constraint="none")
    turn, size = legendre_to_bernstein(8), DEGREE_PRIOR.doubt
    unit = abs(np.linalg.solve(turn, found.free)[0])
    precision = np.diag([0.0, *[(2 * size * unit) ** -2] * 8])
    seen = TRIANGLE @ turn
    resolved = np.linalg.solve(seen.T @ seen + precision, seen.T @ seen)
    missing = size * unit * (turn @ (np.eye(9) - resolved)[:, 1:]).T
    np.testing.assert_allclose(found.unseen, missing, rtol=1e-5, atol=1e-9)


def test_what_is_unresolved_falls_with_the_square_of_the_noise(rows):
    one, half = (unseen(TRIANGLE * sharper, rows[0], TOP, 0.35) for sharper in (1e3, 2e3))
    np.testing.assert_allclose(half, one / 4, rtol=1e-2, atol=1e-4 * np.max(np.abs(one)))
    assert unseen(TRIANGLE, rows[0], TOP, 0.0).shape == (0, 9)


def test_a_mixture_of_averages_has_their_mean_and_all_their_parts(rows):
    one, other = (average_degrees(evidence(TRIANGLE, row), 1.0, constraint="none") for row in rows[:2])
    both = mix([(0.25, one), (0.75, other)], TOP)
    np.testing.assert_allclose(both.coefficients, 0.25 * one.coefficients + 0.75 * other.coefficients, rtol=1e-12)
    assert sum(item.weight for item in both.components) == pytest.approx(1.0)
    assert len(both.components) == len(one.components) + len(other.components)
    assert sum(fit.weight for fit in both.path) == pytest.approx(1.0)
    assert [fit.chi2 for fit in both.path] == [fit.chi2 for fit in other.path]


@pytest.mark.parametrize(("blur", "least", "most"), [(0.0, 0.5, 0.95), (0.3, 0.0, 0.01)])
def test_pictures_are_sharp_unless_the_data_show_a_blur(rows, blur, least, most):
    """The column of the blur comes first: known to 0.03 here, and a law off by its slope times the blur."""
    problem, rest = Problem(DoubleWell(), Trajectory(), Observation(blur="some")), np.zeros((11, 11))
    slope = RNG.standard_normal(9)
    rest[0, :2], rest[0, -1] = (1 / 0.03, 0.0), blur / 0.03
    rest[0, 1:-1] = slope / 0.03 / 1e3 / np.abs(rows[0]).max()
    rest[1:10, 1:-1], rest[1:10, -1] = TRIANGLE, TRIANGLE @ rows[0]
    rest[0, -1] += rest[0, 1:-1] @ rows[0]
    block = Block(Key("r", "trajectory", "all"), compact(rest), 6912)
    total = Evidence(TOP, (block,), whitened=True, columns=("blur", "force", "target"))
    blurred = average_degrees(total, 1.0, constraint="admissible")
    found = perhaps_sharp(problem, total, blurred)
    weight = sum(item.weight for item in found.components[: len(found.components) // 4])
    assert least <= weight <= most


def test_the_mean_and_covariance_of_a_term_are_those_of_bayes(rows):
    targets = rows[:1] @ TRIANGLE.T
    item = weigh_terms(TRIANGLE, targets, TOP, DegreePrior((0.5,), (1.0,), 1.0), constraint="none")[3]
    turn = legendre_to_bernstein(3)
    design = TRIANGLE @ Bernstein(3).elevation(TOP)
    low = TRIANGLE @ Bernstein(2).elevation(TOP) @ legendre_to_bernstein(2)
    unit = abs(np.linalg.lstsq(low, targets[0], rcond=None)[0][0])
    back = np.linalg.inv(turn)
    precision = design.T @ design + back.T @ np.diag([0, *(unit * 0.5 ** np.arange(1, 4)) ** -2.0]) @ back
    np.testing.assert_allclose(item.covariances[0], np.linalg.inv(precision), rtol=1e-6)
    np.testing.assert_allclose(item.free[0], np.linalg.solve(precision, design.T @ targets[0]), rtol=1e-6)


def test_a_term_that_leans_on_negative_coefficients_loses_weight(rows):
    targets = rows @ TRIANGLE.T
    free = weigh_terms(TRIANGLE, targets, TOP, DEGREE_PRIOR, constraint="none")
    held = weigh_terms(TRIANGLE, targets, TOP, DEGREE_PRIOR, constraint="bernstein")
    outside = [np.any(item.free < 0, axis=1) for item in free]
    before = sum(np.sum(item.weights[out]) for item, out in zip(free, outside, strict=True))
    after = sum(np.sum(item.weights[out]) for item, out in zip(held, outside, strict=True))
    assert 0.0 < after < before


def test_a_matrix_that_does_not_determine_the_law_is_refused():
    flat = np.repeat(TRIANGLE[:, :1], 9, axis=1)
    with pytest.raises(InputError, match="does not determine 9 coefficients"):
        weigh_terms(flat, np.ones((1, 9)), TOP, DEGREE_PRIOR, constraint="none")
    with pytest.raises(InputError, match="does not determine 9 coefficients"):
        fit_rows(flat, np.ones((1, 9)), TOP, constraint="none")


def test_the_bound_does_not_follow_coefficients_that_the_record_leaves_open() -> None:
    """A record of small phase values: at degree 8 the unbounded fit is huge, and the constrained path still falls."""
    family = Bernstein(8)
    u = np.linspace(0.01, 0.25, 400)
    matrix = 10.0 * family.features(u).T
    target = matrix @ np.full(9, 100.0) + np.random.default_rng(3).standard_normal(400)
    root = np.linalg.qr(np.column_stack([matrix, np.zeros(400), target]), mode="r")
    evidence = Evidence(family, (Block(Key("r", "trajectory", "all"), root, 400),), whitened=True)
    path = average_degrees(evidence, 1.0, constraint="bernstein").path
    assert np.max(np.abs(path[-1].free)) > 1e11
    chi2 = [fit.chi2 for fit in path]
    assert all(later <= earlier + 1e-6 * (1 + earlier) for earlier, later in itertools.pairwise(chi2))

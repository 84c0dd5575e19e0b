import numpy as np
import pytest

from doublewell.estimate import average_degrees, fit_degree
from doublewell.evidence import Block, Evidence, Key, compact, lower
from doublewell.law import Bernstein, Law, named_law
from doublewell.plan.estimator import average_many, fit_many

TOP = Bernstein(8)


def evidence(triangle, best, rows=6912):
    """The evidence of one record, written as the reader writes it."""
    stacked = np.zeros((10, 11))
    stacked[:9, :9] = triangle
    stacked[:9, -1] = triangle @ best
    stacked[9, -1] = np.sqrt(rows)
    return Evidence(TOP, (Block(Key("r", "trajectory", "all"), compact(stacked), rows),), reading="trajectory")


@pytest.fixture(scope="module", params=["sixth", "bernstein3"])
def draws(request, known):
    """R for a strong noise, where the constraint matters, and draws around a law."""
    law = named_law(request.param).effective(0.1)
    triangle = known.triangle / 0.05
    noise = np.random.default_rng(3).standard_normal((12, 9))
    return triangle, law.family.elevation(TOP) @ law.coefficients + np.linalg.solve(triangle, noise.T).T


@pytest.mark.parametrize("positive", [True, False])
def test_the_average_is_that_of_identify(draws, positive):
    triangle, rows = draws
    one_by_one = [average_degrees(evidence(triangle, g), 1.0, positive=positive).coefficients for g in rows]
    np.testing.assert_allclose(average_many(triangle, rows, positive=positive), one_by_one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("degree", [0, 3, 8])
def test_one_degree_is_that_of_identify(draws, degree, positive):
    triangle, rows = draws
    lift = Bernstein(degree).elevation(TOP)
    each = [fit_degree(lower(evidence(triangle, g), degree), 1.0, positive=positive) for g in rows]
    found = fit_many(triangle, rows, degree, positive=positive)
    size = np.max(np.abs(found))
    np.testing.assert_allclose(found, [lift @ one.coefficients for one in each], atol=1e-6 * size)


def test_the_constraint_was_needed_somewhere(draws):
    triangle, rows = draws
    free, held = (fit_many(triangle, rows, 8, positive=positive) for positive in (False, True))
    assert np.min(free) < 0.0
    assert np.min(held) > 0.0
    assert all(Law(TOP, g).structure.ok for g in held)

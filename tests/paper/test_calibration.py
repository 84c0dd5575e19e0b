from dataclasses import replace

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.law import Law, named_law
from doublewell_paper.calibration import (
    FINE,
    UNDER_RESOLVED,
    bound_check,
    equilibrium_tension,
    errors_with_factor,
    lognormal_errors,
    supplied_tension,
)
from doublewell_paper.cases import LAWS
from doublewell_paper.records import Spec
from doublewell_paper.results import Line
from doublewell_paper.table import paper_numbers


def line(law: Law, name: str = "sixth") -> Line:
    spec = Spec(name, "circle", noise=0.01, seed=1)
    scores = {"e_eps": 0.1}
    return Line("c", spec.record, "m", "f", spec, "fitted", tuple(law.coefficients), 0, 0.1, 1.0, 1, scores, {})


def perturbed(seed: int) -> Line:
    rng = np.random.default_rng(seed)
    g = named_law("sixth").effective(0.03).coefficients
    return line(Law.bernstein(g * (1 + 0.05 * rng.standard_normal(2))))


@pytest.mark.parametrize("name", LAWS)
def test_the_equilibrium_converges_to_the_integral_with_order_two(name):
    law = named_law(name)
    exact = law.surface_tension(epsilon=1.0)
    meshes = np.array([0.2, 0.1, 0.05])
    errors = [abs(equilibrium_tension(law, h) / exact - 1) for h in meshes]
    assert np.polyfit(np.log(meshes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05)


def test_the_meshes_give_the_papers_tension_errors():
    told = paper_numbers()["calibration"]
    for spacing, (low, high) in (
        (FINE, told["tension from a 1-D equilibrium, finest mesh, relative error"]),
        (UNDER_RESOLVED, told["under-resolved tension"]["tension error"]),
    ):
        exact = {name: named_law(name).surface_tension(epsilon=1.0) for name in LAWS}
        errors = [100 * abs(equilibrium_tension(named_law(n), spacing) / sigma - 1) for n, sigma in exact.items()]
        assert min(errors) == pytest.approx(low, rel=0.05)
        assert max(errors) == pytest.approx(high, rel=0.25)


def test_what_does_not_converge_is_refused():
    with pytest.raises(InputError, match="did not converge: expected a double well.*use a finer mesh"):
        equilibrium_tension(Law.bernstein([-300.0, 5.0]), 0.6)


def test_lognormal_draws_agree_with_calibrating_each():
    lines = [perturbed(seed) for seed in range(4)]
    rng = np.random.default_rng(25_000)
    width = np.sqrt(np.log1p(0.1**2))
    errors = []
    for item in lines:
        factors = np.exp(width * rng.standard_normal(200) - 0.5 * width**2)
        errors += [errors_with_factor(item, float(factor)) for factor in factors]
    told = np.sqrt(np.mean(np.square(errors), axis=0))
    np.testing.assert_allclose(lognormal_errors(lines, 0.1), told, rtol=1e-9)


def test_tension_noise_dominates_an_accurate_law():
    exact = [line(named_law("sixth").effective(0.03))]
    assert lognormal_errors(exact, 0.0) == pytest.approx((0.0, 0.0), abs=1e-6)
    scale, potential = lognormal_errors(exact, 0.1, draws=20_000)
    assert scale == pytest.approx(10.0, rel=0.03)
    assert potential == pytest.approx(20.8, rel=0.05)
    assert lognormal_errors([], 0.1) is None


def test_a_supplied_tension_moves_epsilon_by_its_own_error():
    exact = [line(named_law(name).effective(0.03), name) for name in ("sixth",)]
    found = supplied_tension(exact, UNDER_RESOLVED)
    assert found.e_eps == pytest.approx(found.tension_errors[0], rel=1e-9)
    assert supplied_tension([], FINE) is None


def test_bounds_hold_and_are_counted():
    lines = [perturbed(seed) for seed in range(10)]
    found = bound_check(lines)
    assert (found.total, found.holds, found.informative) == (10, 10, 10)
    assert found.scale_slack > 1.0
    assert found.potential_slack >= 1.0
    assert bound_check([]) is None
    assert bound_check([replace(lines[0], coefficients=None)]) is None


def test_a_law_outside_polynomials_has_no_coefficient_change():
    g = [1700.0, 2200.0, 2900.0]
    found = bound_check([line(Law.bernstein(g), "exponential")])
    assert (found.holds, found.informative) == (1, 0)

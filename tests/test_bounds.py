"""The paper's bounds hold for random perturbations, and are attained where the paper says so."""

from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import nnls

from doublewell.bounds import (
    ScaleBound,
    coefficient_change,
    coefficient_radius,
    condition_bound,
    envelope,
    first_order_scale_change,
    observed_bound,
    potential_bound,
    primitive_distance,
    primitive_supremum,
    scale_bound,
    scale_ratio,
    tension_integral_bound,
    tension_integral_change,
)
from doublewell.errors import InputError
from doublewell.law import MAX_DEGREE, Bernstein, Law, named_law

PHASES = np.linspace(-1.0, 1.0, 4001)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
WELL = ((1 - NODES) * (1 + NODES)) ** 2
ROUND = 1e-12  # relative room for round-off

many = settings(derandomize=True, deadline=None, max_examples=60)
seeds = st.integers(0, 2**32 - 1)
degrees = st.integers(0, MAX_DEGREE)
sizes = st.floats(-6, 0.5).map(lambda exponent: 10.0**exponent)
tension_changes = st.floats(-0.9, 2.0)


def integral(primitive):
    return float(WEIGHTS @ np.sqrt(2 * primitive))


def random_law(rng, degree):
    return Law.bernstein(10.0 ** rng.uniform(-2, 1, degree + 1))


def moved_law(rng, law, size):
    """A law with nonnegative coefficients near another one."""
    g = law.coefficients * (1 + size * rng.uniform(-1, 1, law.coefficients.size))
    return Law.bernstein(np.maximum(g, 1e-3 * law.coefficients))


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


@many
@given(seeds, sizes)
def test_tension_integral_bound_for_any_nonnegative_primitives(seed, size):
    rng = np.random.default_rng(seed)
    h = 10.0 ** rng.uniform(-8, 0, NODES.size) * rng.integers(0, 2, NODES.size)  # half of the values vanish
    moved = np.maximum(h + size * rng.uniform(-1, 1, NODES.size), 0)
    bound = tension_integral_bound(np.max(np.abs(moved - h)))
    assert abs(integral(moved) - integral(h)) <= bound * (1 + ROUND)


@many
@given(st.floats(-12, 1), st.floats(-12, 1), tension_changes)
def test_bounds_hold_where_only_the_reference_vanishes_at_the_wells(depth, lift, delta):
    h = 10.0**depth * WELL
    moved = h + 10.0**lift  # does not vanish at the wells: the ratio to h is unbounded there
    c, c_moved, distance = integral(h), integral(moved), 10.0**lift
    assert abs(c_moved - c) <= tension_integral_bound(distance) * (1 + ROUND)
    bound, ratio = scale_bound(c, distance, tension_change=delta), (1 + delta) * c / c_moved
    assert bound.lower * (1 - ROUND) <= ratio <= bound.upper * (1 + ROUND)
    assert abs(ratio - 1) <= bound.deviation + ROUND
    assert bound.certified == (tension_integral_bound(distance) < c)


@pytest.mark.parametrize("lift", [1e-8, 1e-4, 1.0])
def test_tension_integral_bound_is_attained_as_the_reference_vanishes(lift):
    # H = 0, H~ = c: C moves by exactly 2 sqrt(2 c); a small H leaves the bound nearly attained.
    assert integral(np.full_like(NODES, lift)) == pytest.approx(tension_integral_bound(lift), rel=1e-14)
    small = 1e-8 * lift * WELL
    moved = integral(small + lift) - integral(small)
    assert 0.999 < moved / tension_integral_bound(lift) < 1


@many
@given(seeds, degrees, sizes, tension_changes, st.floats(0.01, 1.0))
def test_theorem_for_random_laws(seed, degree, size, delta, epsilon):
    rng = np.random.default_rng(seed)
    law = random_law(rng, degree)
    moved = moved_law(rng, law, size)
    distance = primitive_distance(law, moved)
    change = abs(moved.tension_integral - law.tension_integral)
    assert change <= tension_integral_bound(distance) * (1 + ROUND)
    ratio = scale_ratio(law, moved, tension_change=delta)
    bound = scale_bound(law.tension_integral, distance, tension_change=delta)
    assert bound.lower * (1 - ROUND) <= ratio <= bound.upper * (1 + ROUND)
    assert abs(ratio - 1) <= bound.deviation + ROUND
    limit = potential_bound(epsilon=epsilon, ratio=ratio, distance=distance, height=law.barrier)
    before, after = (one.potential(PHASES, epsilon=e) for one, e in ((law, epsilon), (moved, ratio * epsilon)))
    assert np.max(np.abs(after - before)) <= limit * (1 + ROUND)


@many
@given(seeds, degrees, tension_changes)
def test_scale_ratio_is_the_ratio_of_the_calibrated_epsilons(seed, degree, delta):
    rng = np.random.default_rng(seed)
    law, moved = random_law(rng, degree), random_law(rng, degree)
    sigma = rng.uniform(0.1, 10)
    ratio = ((1 + delta) * sigma / moved.tension_integral) / (sigma / law.tension_integral)
    assert scale_ratio(law, moved, tension_change=delta) == pytest.approx(ratio, rel=1e-14)


def test_scale_bound_where_rho_reaches_one_is_a_status():
    bound = scale_bound(1.0, 0.125, tension_change=0.5)  # rho is exactly 1
    assert bound == ScaleBound(1.0, 0.75, inf, inf)
    assert not bound.certified
    assert str(bound) == "no finite bound on epsilon: rho = 1, needs less than 1"
    assert scale_bound(1.0, inf) == ScaleBound(inf, 0.0, inf, inf)


def test_scale_bound_values():
    bound = scale_bound(2.0, 0.02, tension_change=-0.1)  # rho = 0.2
    assert bound.relative_change == pytest.approx(0.2)
    assert (bound.lower, bound.upper) == pytest.approx((0.9 / 1.2, 0.9 / 0.8))
    assert bound.deviation == pytest.approx(0.3 / 0.8)
    assert str(bound) == "epsilon ratio between 0.75 and 1.125"


def test_potential_bound_is_attained_when_only_the_tension_moves():
    law, epsilon, delta = named_law("bernstein3"), 0.05, 0.2
    ratio = scale_ratio(law, law, tension_change=delta)
    assert ratio == pytest.approx(1 + delta, rel=1e-15)
    moved = law.potential(PHASES, epsilon=ratio * epsilon) - law.potential(PHASES, epsilon=epsilon)
    limit = potential_bound(epsilon=epsilon, ratio=ratio, distance=0.0, height=law.barrier)
    assert np.max(np.abs(moved)) == pytest.approx(limit, rel=1e-13)


@many
@given(seeds, degrees, degrees)
def test_primitive_distance_is_the_maximum(seed, degree, other):
    rng = np.random.default_rng(seed)
    law = Law.bernstein(rng.uniform(-2, 2, degree + 1))
    moved = Law.bernstein(rng.uniform(-2, 2, other + 1))
    sampled = np.max(np.abs(law.primitive(PHASES) - moved.primitive(PHASES)))
    found = primitive_distance(law, moved)
    assert sampled - 1e-15 <= found <= sampled + 1e-4  # a sample lies within 2.5e-4 of the maximum


def test_primitive_distance_between_families():
    proxy = Law.from_force(named_law("sixth").force)
    assert primitive_distance(named_law("sixth"), proxy) < 1e-15
    assert primitive_distance(named_law("quartic"), named_law("sixth")) == pytest.approx(1 / 54, rel=1e-14)


@many
@given(seeds, degrees, st.floats(0.0, 0.999), tension_changes)
def test_envelope_holds(seed, degree, size, delta):
    rng = np.random.default_rng(seed)
    law = random_law(rng, degree)
    moved = Law.bernstein(law.coefficients * (1 + size * rng.uniform(-1, 1, degree + 1)))
    eta = coefficient_change(law, moved)
    assert eta <= size * (1 + ROUND)
    found = envelope(eta, tension_change=delta)
    ratio = scale_ratio(law, moved, tension_change=delta)
    assert found.epsilon[0] * (1 - ROUND) <= ratio <= found.epsilon[1] * (1 + ROUND)
    inside = PHASES[1:-1]
    potentials = ratio**2 * moved.primitive(inside) / law.primitive(inside)
    assert np.min(potentials) >= found.potential[0] * (1 - ROUND)
    assert np.max(potentials) <= found.potential[1] * (1 + ROUND)


@pytest.mark.parametrize("eta", [0.5, -0.5])
def test_envelope_is_attained_by_a_common_factor_which_leaves_the_potential(eta):
    law = named_law("bernstein3")
    moved = law.scaled(1 + eta)
    found, ratio = envelope(coefficient_change(law, moved)), scale_ratio(law, moved)
    assert ratio == pytest.approx(found.epsilon[0 if eta > 0 else 1], rel=1e-14)
    np.testing.assert_allclose(moved.potential(PHASES, epsilon=ratio), law.potential(PHASES, epsilon=1), atol=1e-15)


def test_envelope_values_and_where_it_says_nothing():
    found = envelope(0.36, tension_change=0.1)
    assert found.epsilon == pytest.approx((1.1 / sqrt(1.36), 1.1 / 0.8))
    assert found.potential == pytest.approx((1.21 * 0.64 / 1.36, 1.21 * 1.36 / 0.64))
    assert envelope(1.0).epsilon == (1 / sqrt(2), inf)
    assert envelope(inf).epsilon == (0.0, inf)
    assert envelope(3.0).potential == (0.0, inf)
    assert coefficient_change(Law.bernstein([0.0, 1.0]), Law.bernstein([0.1, 1.0])) == inf


@many
@given(seeds, degrees, tension_changes)
def test_first_order_change_is_the_derivative(seed, degree, delta):
    rng = np.random.default_rng(seed)
    law = random_law(rng, degree)
    direction = Law.bernstein(law.coefficients * rng.uniform(-1, 1, degree + 1))
    expected = first_order_scale_change(law, direction, tension_change=delta)
    steps = np.array([1e-2, 5e-3, 2.5e-3])
    moved = [Law.bernstein(law.coefficients + s * direction.coefficients) for s in steps]
    ratios = np.array([scale_ratio(law, m, tension_change=s * delta) for m, s in zip(moved, steps, strict=True)])
    errors = np.abs(ratios - 1 - steps * expected)
    assert np.all(errors <= 10 * (1 + abs(delta)) * steps**2)


@pytest.mark.parametrize("degree", range(MAX_DEGREE + 1))
def test_first_order_error_falls_with_second_order(degree):
    rng = np.random.default_rng(degree)
    law = random_law(rng, degree)
    direction = Law.bernstein(law.coefficients * rng.uniform(0.2, 1, degree + 1))
    steps = 2.0 ** -np.arange(3, 9)
    ratios = [scale_ratio(law, Law.bernstein(law.coefficients + s * direction.coefficients)) for s in steps]
    errors = np.abs(np.array(ratios) - 1 - steps * first_order_scale_change(law, direction))
    assert 1.9 < slope(steps, errors) < 2.1


@pytest.mark.parametrize("degree", range(MAX_DEGREE + 1))
def test_tension_integral_change_agrees_with_central_differences(degree):
    rng = np.random.default_rng(degree)
    law = random_law(rng, degree)
    direction = Law.bernstein(rng.uniform(-1, 1, degree + 1) * np.min(law.coefficients))
    steps = 2.0 ** -np.arange(2, 7)
    integrals = [
        [Law.bernstein(law.coefficients + sign * s * direction.coefficients).tension_integral for sign in (1, -1)]
        for s in steps
    ]
    differences = np.array([(up - down) / (2 * s) for (up, down), s in zip(integrals, steps, strict=True)])
    errors = np.abs(differences - tension_integral_change(law, direction))
    assert errors[-1] < 1e-4 * abs(tension_integral_change(law, law))
    assert slope(steps, errors) > 1.9


@pytest.mark.parametrize(("law", "direction"), [("sixth", "exponential"), ("rational", "bernstein3")])
def test_tension_integral_change_is_the_integral_of_the_paper(law, direction):
    law, direction = named_law(law), named_law(direction)
    wanted, _ = quad(
        lambda u: direction.primitive(u) / np.sqrt(2 * law.primitive(u)), -1 + 1e-9, 1 - 1e-9, epsabs=1e-13
    )
    assert tension_integral_change(law, direction) == pytest.approx(wanted, rel=1e-10)


def test_tension_integral_change_along_the_law_itself_is_half_the_integral():
    law = named_law("exponential")
    assert tension_integral_change(law, law) == pytest.approx(law.tension_integral / 2, rel=1e-14)


@pytest.mark.parametrize("coefficients", [[1.0, 0.0], [1.0, -0.5], [0.0, 0.0]])
def test_tension_integral_change_needs_curved_wells_and_a_positive_primitive(coefficients):
    with pytest.raises(InputError, match=r"no first-order change.*expected H > 0.*curved wells; use scale_bound"):
        tension_integral_change(Law.bernstein(coefficients), named_law("quartic"))


@many
@given(seeds, st.integers(1, 9), st.floats(0.0, 0.9), sizes)
def test_coefficient_radius_bounds_least_squares_with_and_without_the_constraint(seed, columns, part, size):
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(40, columns))
    g = rng.uniform(0.0, 1.0, columns)
    smallest = np.linalg.svd(design, compute_uv=False)[-1]
    change = rng.normal(size=design.shape)
    change *= part * smallest / np.linalg.norm(change, 2)
    residuals = [size * rng.normal(size=40) for _ in range(3)]
    data = design @ g + sum(residuals)
    radius = coefficient_radius(
        smallest_singular_value=smallest,
        reference_norm=np.linalg.norm(g),
        design_error=np.linalg.norm(change, 2),
        approximation=np.linalg.norm(residuals[0]),
        discretisation=np.linalg.norm(residuals[1]),
        data_error=np.linalg.norm(residuals[2]),
    )
    free = np.linalg.lstsq(design + change, data)[0]
    bounded = nnls(design + change, data)[0]
    for estimate in (free, bounded):
        assert np.linalg.norm(estimate - g) <= radius * (1 + 1e-9) + 1e-12


def test_coefficient_radius_is_attained_along_the_smallest_singular_vector():
    design = np.random.default_rng(0).normal(size=(20, 4))
    left, values, _ = np.linalg.svd(design, full_matrices=False)
    g = np.ones(4)
    estimate = np.linalg.lstsq(design, design @ g + 0.3 * left[:, -1])[0]
    radius = coefficient_radius(smallest_singular_value=values[-1], reference_norm=2.0, data_error=0.3)
    assert np.linalg.norm(estimate - g) == pytest.approx(radius, rel=1e-12)


@pytest.mark.parametrize("smallest", [0.1, 0.05, 0.0])
def test_coefficient_radius_is_infinite_where_the_design_error_reaches_the_singular_value(smallest):
    assert coefficient_radius(smallest_singular_value=smallest, reference_norm=1.0, design_error=0.1) == inf


@pytest.mark.parametrize("degree", range(MAX_DEGREE + 1))
def test_primitive_supremum(degree):
    m, found = degree, primitive_supremum(Bernstein(degree))
    exact = sqrt((m + 1) * (m + 2) * (2 * m + 3) / 6) / (2 * (m + 1) * (m + 2))
    assert found == pytest.approx(exact, rel=1e-15)
    sampled = np.linalg.norm(Bernstein(degree).primitives(PHASES), axis=0)
    assert np.max(sampled) <= found * (1 + ROUND)


@many
@given(seeds, degrees)
def test_primitive_moves_at_most_by_supremum_times_radius(seed, degree):
    rng = np.random.default_rng(seed)
    law, change = random_law(rng, degree), rng.normal(size=degree + 1)
    moved = Law.bernstein(law.coefficients + change)
    limit = primitive_supremum(law.family) * np.linalg.norm(change)
    assert primitive_distance(law, moved) <= limit * (1 + ROUND)


@pytest.mark.parametrize("degree", range(MAX_DEGREE + 1))
def test_primitive_moves_most_along_its_values_at_the_centre(degree):
    family = Bernstein(degree)
    change = 0.1 * family.primitives(0.0)
    distance = primitive_distance(Law(family, np.ones(degree + 1)), Law(family, 1 + change))
    assert distance == pytest.approx(primitive_supremum(family) * np.linalg.norm(change), rel=1e-12)


@many
@given(seeds, degrees, sizes, tension_changes)
def test_observed_bound_covers_every_estimate_within_the_radius(seed, degree, size, delta):
    rng = np.random.default_rng(seed)
    law = random_law(rng, degree)
    moved = moved_law(rng, law, size)
    radius = np.linalg.norm(moved.coefficients - law.coefficients)
    bound = observed_bound(law, radius, tension_change=delta)
    assert primitive_distance(law, moved) <= bound.primitive_distance * (1 + ROUND)
    assert coefficient_change(law, moved) <= bound.envelope.change * (1 + ROUND)
    ratio = scale_ratio(law, moved, tension_change=delta)
    assert bound.scale.lower * (1 - ROUND) <= ratio <= bound.scale.upper * (1 + ROUND)
    assert bound.envelope.epsilon[0] * (1 - ROUND) <= ratio <= bound.envelope.epsilon[1] * (1 + ROUND)


def test_observed_bound_certifies_up_to_the_paper_s_radius():
    law = named_law("sixth")
    edge = law.tension_integral**2 / (8 * primitive_supremum(law.family))
    below, above = observed_bound(law, 0.999 * edge), observed_bound(law, 1.001 * edge)
    assert below.scale.certified
    assert below.scale.upper > 100
    assert not above.scale.certified
    assert above.scale.upper == inf
    assert below.envelope.change == pytest.approx(0.999 * edge / 0.75)


def test_observed_bound_of_an_infinite_radius_says_nothing():
    bound = observed_bound(named_law("sixth"), inf)
    assert bound.scale == ScaleBound(inf, 0.0, inf, inf)
    assert bound.envelope.potential == (0.0, inf)
    outside = observed_bound(named_law("outside_cone"), 1e-6)  # a negative coefficient: no envelope, but a scale
    assert outside.envelope.epsilon == (0.0, inf)
    assert outside.scale.certified


@many
@given(seeds, st.integers(1, 9))
def test_condition_bound_holds(seed, columns):
    rng = np.random.default_rng(seed)
    found = condition_bound(rng.normal(size=(20, columns)), rng.normal(size=(columns, columns)))
    assert found.value <= found.bound * (1 + 1e-9)


def test_condition_bound_is_attained_by_a_rotation():
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    found = condition_bound(rng.normal(size=(30, 5)), rotation)
    assert found.value == pytest.approx(found.bound, rel=1e-12)

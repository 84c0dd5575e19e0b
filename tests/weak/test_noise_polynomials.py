"""The correction of noisy polynomials: exact means, exact covariances, exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

from doublewell.law import Bernstein, Mixture, Wells
from doublewell.weak.noise import corrected_features, exact_nodes, noise_covariance

NODES, WEIGHTS = hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
FAMILIES = st.sampled_from([Bernstein, Wells, Mixture])


@given(FAMILIES, st.integers(0, 8), st.floats(-1.0, 1.0), st.floats(0.0, 0.15))
def test_corrected_features_have_the_means_of_the_clean_ones(kind, degree: int, u: float, noise: float) -> None:
    family = kind(degree)
    seen = corrected_features(family, u + noise * NODES, noise**2)
    assert seen @ WEIGHTS == pytest.approx(family.features(np.array(u)), abs=1e-11)


@pytest.mark.parametrize("degree", [0, 2, 5, 8])
def test_without_noise_they_are_the_features(degree: int) -> None:
    u = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    found = corrected_features(Bernstein(degree), u, 0.0)
    assert found.shape == (degree + 1, 3, 4)
    np.testing.assert_allclose(found, Bernstein(degree).features(u), atol=1e-13)
    np.testing.assert_allclose(noise_covariance(Bernstein(degree), u.ravel(), 0.0), 0.0, atol=1e-13)


@given(FAMILIES, st.integers(0, 5), st.floats(-1.0, 1.0), st.floats(0.005, 0.15))
def test_the_estimated_covariance_has_the_mean_of_the_true_one(kind, degree: int, u: float, noise: float) -> None:
    family, v = kind(degree), u + noise * NODES
    columns = np.vstack([corrected_features(family, v, noise**2), v])
    mean = columns @ WEIGHTS
    true = (columns * WEIGHTS) @ columns.T - np.outer(mean, mean)
    found = np.einsum("nab,n->ab", noise_covariance(family, v, noise**2), WEIGHTS)
    np.testing.assert_allclose(found, true, atol=1e-9 * max(1.0, np.abs(true).max()))
    assert found[-1, -1] == pytest.approx(noise**2)


def test_a_sum_over_pixels_is_one_over_nodes() -> None:
    rng = np.random.default_rng(3)
    u, weights = rng.normal(0.0, 0.7, (40, 50)), rng.normal(1.0, 1.0, (40, 50))
    points, shares = exact_nodes(u, weights, 27)
    assert points.size == 27
    for power in (0, 1, 7, 26):
        exact = float(np.sum(weights * u**power))
        assert shares @ points**power == pytest.approx(exact, rel=1e-9, abs=1e-9 * np.abs(u).max() ** power)

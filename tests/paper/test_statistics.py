import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from doublewell.errors import InputError
from doublewell_paper.results import contrast

SAMPLES = {
    "ten": np.random.default_rng(1).normal(-1.0, 2.0, 10),
    "skewed": np.random.default_rng(2).lognormal(0.0, 1.0, 12),
    "large": np.random.default_rng(3).normal(5.0, 1.0, 200),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_intervals_are_those_of_scipy(name, method):
    values = SAMPLES[name]
    found = contrast(values, seed=9)
    told = stats.bootstrap((values,), np.mean, n_resamples=10_000, method=method, rng=np.random.default_rng(9))
    ours = found.percentile if method == "percentile" else found.bca
    np.testing.assert_allclose(ours, told.confidence_interval, rtol=1e-9)


@pytest.mark.parametrize("name", SAMPLES)
def test_students_interval_is_that_of_scipy(name):
    values = SAMPLES[name]
    told = stats.ttest_1samp(values, 0.0).confidence_interval()
    np.testing.assert_allclose(contrast(values).student, told, rtol=1e-12)


def test_bca_differs_from_percentile_where_values_are_skewed():
    found = contrast(SAMPLES["skewed"])
    assert found.bca[0] > found.percentile[0]
    assert found.bca[1] > found.percentile[1]


def test_one_seed_gives_one_answer():
    values = SAMPLES["ten"]
    assert contrast(values) == contrast(values)
    assert contrast(values).percentile != contrast(values, seed=6).percentile


def test_equal_clusters_have_no_spread():
    found = contrast(np.full(10, 0.5))
    assert found.percentile == found.bca == found.student == (0.5, 0.5)
    assert found.agrees


def test_disagreement_about_zero_is_seen():
    found = contrast(np.array([-1.4, -1.2, -0.9, -0.7, 0.3]))
    assert found.percentile[1] < 0.0
    assert found.student[1] > 0.0
    assert not found.agrees


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12), st.floats(-50, 50), st.floats(0.1, 10))
def test_intervals_move_and_stretch_with_the_values(values, shift, factor):
    plain, moved = (contrast(np.array(v), resamples=200) for v in (values, [factor * x + shift for x in values]))
    for name in ("percentile", "student"):
        wanted = factor * np.array(getattr(plain, name)) + shift
        np.testing.assert_allclose(getattr(moved, name), wanted, atol=1e-9 * (1 + 1000 * factor))


@pytest.mark.parametrize("values", [[1.0], [], [1.0, float("nan")], [[1.0, 2.0]]])
def test_too_little_is_refused(values):
    with pytest.raises(InputError, match="expected at least two finite values, one per cluster"):
        contrast(np.array(values))

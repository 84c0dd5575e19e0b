"""The methods on one small noisy record, against the library's own road and against identities."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from doublewell.dynamics import ALLEN_CAHN
from doublewell.evidence import compact, lower, system
from doublewell.identify import identify
from doublewell.law import Bernstein, Law
from doublewell.options import DoubleWell, Weak
from doublewell.weak.noise import Smoother
from doublewell_paper.methods import (
    METHODS,
    Choice,
    Outcome,
    choose,
    held_out_residual,
    hermite_matrix,
    monomial_matrix,
)
from doublewell_paper.records import ODD_POWERS, Sample, Spec, evolve, tiny
from doublewell_paper.scores import SCORES, scores_of


@pytest.fixture(scope="module")
def clean(sample):
    return Sample(replace(sample.spec, noise=0.0, seed=None))


@pytest.mark.parametrize("degree", [2, 5])
@pytest.mark.parametrize(("name", "constraint"), [("weak LS", "none"), ("STAC", "bernstein")])
def test_weak_branches_are_the_librarys(sample, degree, name, constraint):
    found = METHODS[f"{name} m={degree}"].fit(sample)
    told = identify(
        sample.record,
        law=DoubleWell(degree=degree, constraint=constraint),
        method=Weak(supports=list(sample.spec.supports)),
    )
    np.testing.assert_allclose(found.law.coefficients, told.coefficients, rtol=1e-8, atol=1e-6)
    assert found.rows == told.diagnostics.rows
    assert found.condition == pytest.approx(told.diagnostics.scaled_condition)
    assert (found.active is None) == (constraint == "none")


def test_ridge_chooses_an_alpha_of_the_grid(sample):
    assert METHODS["ridge STAC m=5"].fit(sample).extra["alpha"] in (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)


def test_normal_equations_give_least_squares(sample):
    found, told = METHODS["normal m=2"].fit(sample), METHODS["weak LS m=2"].fit(sample)
    np.testing.assert_allclose(found.law.coefficients, told.law.coefficients, rtol=1e-8)
    matrix, _ = system(lower(sample.weak[0], 2), 1.0)
    assert found.extra["gram_condition"] == pytest.approx(np.linalg.cond(matrix) ** 2, rel=1e-6)


def test_the_chosen_candidate_has_the_smallest_held_out_residual(sample):
    evidence, _ = sample.weak
    best = choose(evidence, evidence)
    least = held_out_residual(best, evidence, evidence)
    first, second = evidence.supports
    for degree in range(1, 6):
        for supports in ((first,), (second,), (first, second)):
            assert held_out_residual(Choice(degree, supports), evidence, evidence) >= least
    found = METHODS["selected STAC"].fit(sample)
    assert found.extra["degree"] == best.degree == found.law.family.degree


def test_selected_branches_share_their_moments(sample):
    bound, free = METHODS["selected STAC"].fit(sample), METHODS["selected weak LS"].fit(sample)
    assert (bound.rows, bound.extra) == (free.rows, free.extra)


def test_rows_are_those_of_the_reader(sample):
    evidence, _ = sample.weak
    u, family = sample.record.slab(), evidence.family
    for support, name in zip(sample.spec.supports, evidence.supports, strict=True):
        smoother = Smoother.of(sample.record, support)
        keep = np.abs(smoother.temporal_mean(u)) < 0.98
        columns = [
            *(smoother.value(field)[keep] for field in family.features(u)),
            *(smoother.column(column, u)[keep] for column in ALLEN_CAHN.weak_form[1:]),
        ]
        told = compact(np.vstack([b.triangle for b in evidence.blocks if b.key.support == name]))
        np.testing.assert_allclose(compact(np.stack(columns, axis=1)), told, atol=1e-9 * np.abs(told).max())
        assert np.count_nonzero(keep) == sum(b.rows for b in evidence.blocks if b.key.support == name)


def test_features_are_sums_of_powers():
    u = np.linspace(-1.0, 1.0, 51)
    powers = np.stack([u**k for k in ODD_POWERS], axis=1)
    np.testing.assert_allclose((powers @ monomial_matrix(Bernstein(5))).T, Bernstein(5).features(u), atol=1e-12)


@pytest.mark.parametrize("noise", [0.03, 0.3])
def test_corrected_powers_have_the_means_of_the_clean_ones(noise):
    nodes, weights = hermegauss(30)
    weights = weights / weights.sum()
    for u in (-1.1, -0.3, 0.0, 0.7):
        seen = np.stack([(u + noise * nodes) ** k for k in ODD_POWERS], axis=1)
        means = weights @ seen @ hermite_matrix(len(ODD_POWERS), noise**2)
        np.testing.assert_allclose(means, [u**k for k in ODD_POWERS], atol=1e-10)


def test_without_noise_the_correction_changes_nothing():
    np.testing.assert_array_equal(hermite_matrix(len(ODD_POWERS), 0.0), np.eye(len(ODD_POWERS)))


def test_the_correction_lowers_the_bias_of_epsilon(sample):

    errors = [abs(SCORES["e_eps"](sample, METHODS[f"{name} m=2"].fit(sample).law)) for name in ("unmasked", "Hermite")]
    assert errors[1] < errors[0]


def test_a_clean_record_has_no_noise_ratio(clean, sample):
    assert METHODS["design m=5"].fit(clean).extra["noise_ratio"] == 0.0
    noisy = METHODS["design m=5"].fit(sample)
    assert noisy.extra["noise_ratio"] > 0.1
    assert noisy.condition == METHODS["weak LS m=5"].fit(sample).condition


def test_direct_differences_recover_a_clean_law_and_smoothing_a_noisy_one(clean, sample):

    direct, smoothed = (METHODS[f"{name} FD4 m=2"] for name in ("direct", "smoothed"))
    assert SCORES["e_G"](clean, direct.fit(clean).law) < 1.0
    found = smoothed.fit(sample)
    assert found.extra["width"] > 0.0
    assert SCORES["e_G"](sample, found.law) < SCORES["e_G"](sample, direct.fit(sample).law)


def test_observation_takes_every_second_frame_and_pixel():
    spec = replace(Spec("sixth", "circle"), cells=32, frames=9, stride=2, coarsen=2, epsilon=0.1, dt=5e-4)
    sample = Sample(spec)
    np.testing.assert_array_equal(sample.clean.slab(), sample.movie.slab()[::2, ::2, ::2])
    assert sample.clean.dt == pytest.approx(1e-3)
    assert sample.clean.dx == (1 / 16, 1 / 16)
    assert spec.movie_frames == 17


def test_the_true_law_has_no_errors(sample):

    found = scores_of(sample, Outcome(sample.truth))
    assert found.pop("in_cone") == 1.0
    assert set(found) == {"e_G", "e_G_seen", "e_F", "e_eps", "e_u", "violation"}
    assert list(found.values()) == pytest.approx([0.0] * 6, abs=1e-10)
    assert set(scores_of(sample, Outcome(None)).values()) == {None}


def test_scores_of_a_law_ten_percent_too_strong(sample):

    strong = Law(sample.truth.family, 1.1 * sample.truth.coefficients)
    assert SCORES["e_G"](sample, strong) == pytest.approx(10.0)
    assert SCORES["e_G_seen"](sample, strong) == pytest.approx(10.0)
    assert SCORES["e_eps"](sample, strong) == pytest.approx(100 * (1.1**-0.5 - 1))
    assert SCORES["e_F"](sample, strong) == pytest.approx(0.0, abs=1e-9)
    assert SCORES["e_u"](sample, strong) > 0.01


def test_a_law_below_its_wells_has_no_scale(sample):

    wrong = Law.bernstein([-30.0, 10.0, 10.0])
    assert SCORES["e_eps"](sample, wrong) is SCORES["e_F"](sample, wrong) is None
    assert SCORES["violation"](sample, wrong) == 1.0
    assert SCORES["in_cone"](sample, wrong) == 0.0


def test_the_horizon_runs_to_the_movies_end(sample):
    _, last = sample.spec.horizon
    gap = np.abs(evolve(sample.truth, sample) - sample.movie.slab(last, last + 1)[0]).max()
    assert gap < 1e-3  # ETDRK4 against CNAB2
    with pytest.raises(ValueError, match="no horizon"):
        evolve(sample.truth, Sample(replace(sample.spec, horizon=None)))


def test_a_tiny_record_keeps_the_cells_of_its_interface():
    spec = Spec("sixth", "circle", horizon=(61, 100))
    small = tiny(spec, 32)
    assert small.epsilon * small.cells == pytest.approx(spec.epsilon * spec.cells)
    assert small.dt / small.epsilon**2 == pytest.approx(spec.dt / spec.epsilon**2)

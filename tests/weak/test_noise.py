"""Corrected moments: squares without the noise's part, on rows that the noise did not choose."""

from __future__ import annotations

import numpy as np
import pytest

import doublewell.weak.noise as corrected
from doublewell.dynamics import ALLEN_CAHN, CAHN_HILLIARD, MASS_CONSERVING
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, restrict
from doublewell.inference import estimate
from doublewell.law import Bernstein, EqualWells, Mixture, Wells
from doublewell.record import Record
from doublewell.simulate import add_noise
from doublewell.weak.assembly import weak_evidence
from doublewell.weak.noise import NoisyMoments, Smoother, noise_fractions, noisy_moments, rate_noise, without_noise
from doublewell.weak.weights import Support

SUPPORT = Support(3, 0.1)


def wave(shape: tuple[int, ...] = (13, 14, 15), size: float = 0.8) -> Record:
    """A smooth field without bulk, so that every centre counts whatever the noise."""
    axes = np.meshgrid(*(np.arange(n) / n for n in shape), indexing="ij")
    u = size * np.cos(2 * np.pi * (sum(axes[1:]) + 0.2 * axes[0]))
    return Record(u, dx=0.03, dt=0.1, q=1.0)


def squares(seen: NoisyMoments) -> np.ndarray:
    return seen.triangle.T @ seen.triangle


@pytest.mark.parametrize(
    ("shape", "family", "dynamics"),
    [
        ((13, 40), Bernstein(2), ALLEN_CAHN),
        ((13, 14, 15), Bernstein(2), ALLEN_CAHN),
        ((13, 13, 12, 12), Bernstein(2), ALLEN_CAHN),
        ((13, 14, 15), Wells(1), ALLEN_CAHN),
        ((13, 18, 19), Mixture(1), CAHN_HILLIARD),
        ((13, 14), Mixture(0), MASS_CONSERVING),  # few cells: their mean has much of the noise
    ],
)
def test_squares_less_noise_are_the_clean_squares_on_average(shape, family, dynamics) -> None:
    """Over noise draws the mean of R^T R - N is the clean R^T R, within four standard errors and far below N."""
    clean, noise = wave(shape, 0.2).replace(boundary="periodic"), 0.2
    support, form = Support(2, 0.08), dynamics.weak_form
    seen = [noisy_moments(add_noise(clean, noise, seed=k), family, support, noise, form=form) for k in range(60)]
    told = noisy_moments(clean, family, support, 0.0, form=form)
    assert {one.rows for one in seen} == {told.rows}
    gaps = np.stack([squares(one) - one.noise - squares(told) for one in seen])
    error = gaps.std(axis=0) / np.sqrt(len(gaps))
    assert np.all(np.abs(gaps.mean(axis=0)) < 4.5 * error)
    raw = np.stack([squares(one) - squares(told) for one in seen]).mean(axis=0)
    plain = np.abs(raw) > 4.5 * error  # without the correction
    assert np.count_nonzero(np.triu(plain)) >= 4


def test_without_noise_nothing_is_taken_off_and_the_law_is_that_of_the_rows() -> None:
    record, family = wave(), Bernstein(2)
    seen = noisy_moments(record, family, SUPPORT, 0.0)
    assert np.abs(seen.noise).max() < 1e-12 * np.abs(squares(seen)).max()
    plain, other = (estimate(Evidence(family, (block,)), 1.0, constraint="none") for block in _both(seen))
    np.testing.assert_allclose(other.coefficients, plain.coefficients, rtol=1e-7)
    np.testing.assert_allclose(
        plain.coefficients,
        estimate(weak_evidence(record, family, [SUPPORT]), 1.0, constraint="none").coefficients,
        rtol=1e-7,
    )
    assert noise_fractions(seen) == pytest.approx(np.zeros(3), abs=1e-10)


def _both(seen: NoisyMoments) -> tuple[Block, Block]:
    return Block(seen.key, seen.triangle, seen.rows), without_noise(seen, Bernstein(2))


def test_equal_depths_are_a_restriction_of_moments_and_noise() -> None:
    record = add_noise(wave(), 0.05, seed=1)
    wells = noisy_moments(record, Wells(1), SUPPORT, 0.05)
    (seen,) = restrict(Evidence(Wells(1), (wells,)), EqualWells(1)).blocks
    lift = np.eye(wells.noise.shape[0])
    lift = np.hstack([lift[:, : Wells(1).size] @ EqualWells(1).elevation(Wells(1)), lift[:, -2:]])
    np.testing.assert_allclose(squares(seen), lift.T @ squares(wells) @ lift, atol=1e-9 * np.abs(squares(wells)).max())
    np.testing.assert_allclose(seen.noise, lift.T @ wells.noise @ lift)


def test_windows_do_not_matter(noisy: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = noisy_moments(noisy, Bernstein(3), Support(4, 0.1), 0.02)
    done = []
    monkeypatch.setattr(corrected, "_VALUES", 3 * 64 * 64)
    parts = noisy_moments(noisy, Bernstein(3), Support(4, 0.1), 0.02, progress=lambda k, n: done.append((k, n)))
    assert parts.rows == whole.rows
    np.testing.assert_allclose(parts.triangle, whole.triangle, rtol=1e-8, atol=1e-8 * np.abs(whole.triangle).max())
    np.testing.assert_allclose(parts.noise, whole.noise, rtol=1e-8, atol=1e-10 * np.abs(whole.noise).max())
    assert len(done) > 2
    assert done[-1] == (25, 31)


def test_the_noise_in_a_row_does_not_choose_the_row(movie: Record) -> None:
    """Other values in the frames of the only support that uses them change none of its rows."""
    u = np.array(movie.slab())
    support = Support(3, 0.1)
    smoother = Smoother.of(movie, (3, 0.1))
    before = corrected.chosen_centres(u, range(15, 16), smoother)
    u[10:21] += 0.5 * np.random.default_rng(0).standard_normal(u[10:21].shape)  # 15 +- 5 is the support with margin
    assert smoother.axes[0].half == 5
    np.testing.assert_array_equal(corrected.chosen_centres(u, range(15, 16), smoother), before)
    assert 0.02 < before.mean() < 0.9
    assert noisy_moments(movie, Bernstein(1), support, 0.0).rows < 31 * 64 * 64


def test_a_support_as_long_as_the_record_takes_all_centres() -> None:
    record = Record(np.ones((9, 12, 12)) - 1e-3 * np.arange(12), dx=0.03, dt=0.1, q=1.0)
    assert noisy_moments(record, Bernstein(0), Support(2, 0.08), 0.0).rows == 1 * 2 * 2


@pytest.mark.parametrize("degree", [2, 5, 8])
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_nothing_blows_up(movie: Record, degree: int, noise: float) -> None:
    """However much is noise, the corrected law is at most a few times the plain one, without any constraint."""
    record, family = add_noise(movie, noise, seed=2), Bernstein(degree)
    blocks = [noisy_moments(record, family, support, noise) for support in (Support(5, 0.08), Support(8, 0.15))]
    found = estimate(Evidence(family, tuple(without_noise(one, family) for one in blocks)), 1.0, constraint="none")
    u = np.linspace(-1.0, 1.0, 201)
    size = np.abs(found.law.force(u)).max()
    assert np.isfinite(size)
    assert size < 5.0 * 0.385 * 1.5 / 0.05**2  # of the sixth law's largest force


def test_empty_rows_stay_empty() -> None:
    record = Record(np.ones((15, 14, 14)), dx=0.03, dt=0.1, q=1.0)
    seen = noisy_moments(record, Bernstein(1), Support(2, 0.08), 0.01)
    assert seen.rows == 0
    assert without_noise(seen, Bernstein(1)).rows == 0
    assert noise_fractions(seen).size == 0


def test_wrong_noise_is_refused(movie: Record) -> None:
    with pytest.raises(InputError, match="noise is -0.1"):
        noisy_moments(movie, Bernstein(1), SUPPORT, -0.1)


def test_rate_noise_at_uneven_times_is_that_of_the_rows() -> None:
    """Of all centres together; wider and narrower intervals have more and less of it."""
    rng = np.random.default_rng(5)
    times = 0.1 * (np.arange(61) + rng.uniform(-0.3, 0.3, 61))
    record = Record(0.1 * rng.standard_normal((61, 40, 40)), dx=0.03, times=times, q=1.0)
    found = rate_noise(record, SUPPORT, 0.1)
    block = weak_evidence(record, Bernstein(0), [SUPPORT]).blocks[0]
    error = np.sqrt(2.0 * found.overlap / block.rows)
    assert np.sum(block.triangle[:, 1] ** 2) / block.rows == pytest.approx(found.variance, rel=4.0 * error)
    assert error < 0.05
    even = rate_noise(Record(record.values, dx=0.03, dt=0.1, q=1.0), SUPPORT, 0.1)
    nearly = Record(record.values, dx=0.03, times=0.1 * np.arange(61) * (1.0 + 0.002 * np.arange(61) / 61), q=1.0)
    assert not nearly.uniform
    assert rate_noise(nearly, SUPPORT, 0.1).variance == pytest.approx(even.variance, rel=0.01)
    assert found.overlap == pytest.approx(even.overlap, rel=1e-3)


@pytest.mark.parametrize("derivative", ["discrete", "analytic"])
def test_rate_noise_is_that_of_the_rows(derivative) -> None:
    rng = np.random.default_rng(4)
    record = Record(0.1 * rng.standard_normal((41, 50, 60)), dx=0.03, dt=0.1, q=1.0)
    found = rate_noise(record, SUPPORT, 0.1, derivative)
    rates = Smoother.of(record, (3, 0.1), derivative).column(ALLEN_CAHN.weak_form[1], record.slab())
    error = np.sqrt(2.0 * found.overlap / rates.size)
    assert np.mean(rates**2) == pytest.approx(found.variance, rel=4.0 * error)
    assert error < 0.05

"""Conserved fields that show one phase: fluctuations around u = 0.9 that decay determine the diffusion q G', and q."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell import Record, add_noise, facts, findings, identify, named_law, simulate
from doublewell.dynamics import CAHN_HILLIARD
from doublewell.errors import InputError
from doublewell.identify.parts import look_at
from doublewell.identify.start import diffusion_start
from doublewell.problem import ask

CELLS, EPSILON, LAW = 32, 2.0, named_law("quartic")
SURE = 0.9999


def movie(mean: float, *, rough: float = 1.0, dt: float = 2.0, noise: float = 2e-3, q: float | None = None) -> Record:
    """Waves of about `rough` cells and standard deviation 0.05 around a mean."""
    waves = 2 * np.pi * np.hypot(*np.meshgrid(*[np.fft.fftfreq(CELLS)] * 2, indexing="ij"))
    white = np.random.default_rng(3).standard_normal((CELLS, CELLS))
    start = np.fft.ifft2(np.fft.fft2(white) * np.exp(-0.5 * (rough * waves) ** 2)).real
    start = mean + 0.05 * (start - start.mean()) / start.std()
    clean = simulate(
        LAW, start, dx=1.0, dt=dt, frames=21, epsilon=EPSILON, dynamics="cahn-hilliard", substeps=100
    )  # fmt: skip
    return add_noise(clean, noise, seed=1).replace(q=q)


def true_diffusion(u: np.ndarray) -> np.ndarray:
    return (3.0 * u**2 - 1.0) / EPSILON**2


@pytest.fixture(scope="module")
def result():
    return identify(movie(0.9), dynamics="cahn-hilliard", check=False)


def test_the_diffusion_and_q_lie_in_their_bands(result) -> None:
    u = np.linspace(0.86, 0.94, 5)
    low, high = result.band("diffusion", u, level=SURE)
    assert np.all((low < true_diffusion(u)) & (true_diffusion(u) < high))
    low, high = result.interval("q", level=SURE)
    assert low < 1.0 < high
    assert high - low < 0.2
    fact = facts(result)["diffusion"]
    assert fact.interval[1] - fact.interval[0] < 0.05 * fact.value


def test_diffusion_is_q_times_the_slope(result) -> None:
    u, h = np.linspace(0.8, 0.99, 7), 1e-5
    slope = (result.force(u + h) - result.force(u - h)) / (2 * h)
    np.testing.assert_allclose(result.diffusion(u), result.q * slope, rtol=1e-7)
    np.testing.assert_allclose(LAW.slope(u), 3 * u**2 - 1, rtol=1e-7)


def test_one_phase_is_stated_and_nothing_of_two(result) -> None:
    codes = {item.code: item for item in findings(result)}
    assert "nothing of a second phase" in str(codes["one-phase"])
    assert not {"phases-undetermined", "not-a-double-well", "phase-range-not-covered"} & set(codes)
    assert not [item for item in codes.values() if item.severity == "fail"]
    assert result.law.one_phase
    assert "q G' at u = 0.88" in str(result)
    assert "one phase" in repr(result)
    assert "nan" not in str(result)


def test_waves_that_grow_or_a_better_law_are_left_to_the_usual_start() -> None:
    problem = ask([movie(0.0, q=1.0)], dynamics="cahn-hilliard")
    growing, decaying = movie(0.0, q=1.0), movie(0.9, q=1.0)
    assert diffusion_start(growing, look_at(growing, (-0.2, 0.2)), problem, None) is None
    start = diffusion_start(decaying, look_at(decaying, (0.7, 1.1)), problem, None)
    assert diffusion_start(decaying, look_at(decaying, (0.7, 1.1)), problem, start) is None


def test_the_decay_of_waves_gives_q_and_the_slope() -> None:
    record = movie(0.9, noise=1e-5).replace(movie(0.9, noise=1e-5).slab() - 0.9)
    start = diffusion_start(record, look_at(record, (-0.2, 0.2)), ask([record], dynamics="cahn-hilliard"), None)
    family = ask([record], dynamics="cahn-hilliard").fitted
    assert start.q == pytest.approx(1.0, rel=0.05)
    assert start.q * family.slopes(np.zeros(1))[:, 0] @ start.coefficients == pytest.approx(
        true_diffusion(0.9), rel=0.05
    )


def test_without_short_waves_q_must_be_given() -> None:
    with pytest.raises(InputError, match=r"one phase, .* none is short enough to tell q: .*; pass q="):
        identify(movie(0.9, rough=3.0, dt=10.0, noise=0.02), dynamics=CAHN_HILLIARD)


def test_the_weak_form_is_refused() -> None:
    with pytest.raises(InputError, match="shows one phase, .* use method='trajectory'"):
        identify(movie(0.9, q=1.0), dynamics=CAHN_HILLIARD, method="weak")

"""q from the record: recovered, scaled with time, refused where nothing moves, and said wherever q is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from found import warned

from doublewell.errors import InputError
from doublewell.evidence import JointParameters
from doublewell.identify import identify, repeat
from doublewell.identify.weak_fit import fit_weak
from doublewell.inference import Component, Posterior, scalar_interval
from doublewell.io import load_result, save
from doublewell.law import Bernstein, named_law
from doublewell.observation import survey
from doublewell.options import DoubleWell
from doublewell.problem import ask
from doublewell.record import Record
from doublewell.report import inspect_record
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import validate

PHASES = np.linspace(-1.0, 1.0, 401)
METHODS = ("weak", "weak-corrected")


def unknown(record: Record, **changes) -> Record:
    return Record(record.values, **({"dx": record.dx, "times": record.times} | changes))


def error(result) -> float:
    truth = named_law("sixth").effective(0.05).force(PHASES)
    return float(np.linalg.norm(result.force(PHASES) - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("noise", "most"), [(0.0, 5e-4), (0.02, 3e-3), (0.05, 1e-2)])
def test_q_is_recovered_and_the_law_is_as_good_as_with_q(movie, method, noise, most) -> None:
    record = add_noise(movie, noise, seed=7) if noise else movie
    result, known = identify(unknown(record), method=method), identify(record, method=method)
    assert result.q == pytest.approx(1.0, abs=most)
    assert result.q_estimated
    assert not known.q_estimated
    assert known.q == 1.0
    assert error(result) < 1.1 * error(known) + 1e-4


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constraint", ["bernstein", "none"])
def test_the_law_is_that_of_the_estimated_q(noisy, method, constraint) -> None:
    result = identify(unknown(noisy), law=DoubleWell(degree=4, constraint=constraint), method=method)
    told = identify(unknown(noisy, q=result.q), law=DoubleWell(degree=4, constraint=constraint), method=method)
    np.testing.assert_array_equal(told.coefficients, result.coefficients)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [7.0, 1e-6])
def test_time_in_other_units_scales_q_and_nothing_else(noisy, method, factor) -> None:
    one = identify(unknown(noisy), method=method)
    other = identify(unknown(noisy, times=noisy.times / factor), method=method)
    assert other.q == pytest.approx(factor * one.q, rel=1e-8)
    np.testing.assert_allclose(other.coefficients, one.coefficients, rtol=1e-7)


@pytest.mark.parametrize("spread", ["jittered", "growing"])
def test_q_is_recovered_at_uneven_times(spread) -> None:
    """Rates at uneven times have their own noise; q and the law are those of even times."""
    start = initial_field("nonconvex", (48, 48), 1 / 48, epsilon=0.06)
    fine = simulate(named_law("sixth"), start, dx=1 / 48, dt=3e-5, frames=151, epsilon=0.06)
    jitter = np.concatenate([[0], np.random.default_rng(3).integers(-2, 3, 29), [0]])
    growing = np.round(150 * np.expm1(np.linspace(0, np.log(3), 31)) / 2).astype(int)
    kept = growing if spread == "growing" else np.arange(0, 151, 5) + jitter
    record = add_noise(fine.replace(fine.values[kept], times=fine.times[kept]), 0.02, seed=8)
    result, known = identify(unknown(record), method="weak"), identify(record, method="weak")
    assert not record.uniform
    assert result.q == pytest.approx(1.0, abs=6e-3)
    np.testing.assert_allclose(result.force(PHASES), known.force(PHASES), atol=0.01 * np.abs(known.force(PHASES)).max())


def still(noise: float, seed: int = 0) -> Record:
    x = (np.arange(48) + 0.5) / 48
    u = np.broadcast_to(np.tanh((x - 0.5) / (np.sqrt(2) * 0.06)), (25, 48, 48))
    return Record(u + noise * np.random.default_rng(seed).standard_normal(u.shape), dx=1 / 48, dt=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("noise", "words"),
    [(0.0, "stands still"), (0.01, "no motion"), (0.05, "no motion can be distinguished")],
)
def test_a_still_interface_does_not_determine_q(method, noise, words) -> None:
    with pytest.raises(InputError, match=words) as raised:
        identify(still(noise), method=method)
    assert ", record longer, or a shape that moves" in str(raised.value)
    identify(unknown(still(noise), q=1.0), method=method)  # with q the law is there


def test_a_movie_that_runs_backwards_is_refused(movie) -> None:
    with pytest.raises(InputError, match="moves against its own Laplacian"):
        identify(unknown(movie.replace(np.array(movie.slab())[::-1].copy())), method="weak")


def test_little_motion_is_said(noisy) -> None:
    free = unknown(noisy)
    fit = fit_weak(free, survey(free), ask([free], law=DoubleWell(2, "none"), method="weak"))
    assert fit.motion is not None
    assert fit.motion > 0.9
    result = identify(unknown(noisy), method="weak")
    assert "q-little-motion" not in warned(result)
    slow = replace(result, diagnostics=replace(result.diagnostics, motion=0.25))
    assert warned(slow)["q-little-motion"].numbers == {"motion": 0.25}


def test_the_report_says_that_q_was_estimated_and_has_no_interval(noisy) -> None:
    result = identify(unknown(noisy), method="weak")
    assert f"q = {result.q:.6g} (estimated +- " in str(result)
    with pytest.raises(InputError, match="no noise model, so it gives no intervals: use method='trajectory'"):
        result.interval("q")
    with pytest.raises(InputError, match="q = 1 was given and not estimated, so it has no interval"):
        identify(noisy, method="weak").interval("q")


def test_an_interval_comes_from_the_draws_of_q() -> None:
    component = Component(0, None, None, 1.0, np.ones(1), np.ones(1), np.full((1, 1), 1e-6))
    joint = JointParameters(("q",), np.array([1.0]), np.zeros((1, 1)), np.array([[20.0]]), np.ones(1))
    law = Posterior(Bernstein(0), (), (component,), np.zeros((0, 1)), "none", joint)
    assert scalar_interval(law, "q", 0.95, None) == pytest.approx((0.902, 1.098), abs=0.004)
    with pytest.raises(InputError, match="q was not estimated by this fit"):
        scalar_interval(replace(law, joint=None), "q", 0.95, None)


def test_saved_repeated_and_evolved(noisy, tmp_path) -> None:
    record = unknown(noisy, boundary="periodic")
    result = identify(record, method="weak-corrected")
    save(result, tmp_path / "result.json")
    loaded = load_result(tmp_path / "result.json")
    assert loaded.q == result.q
    assert loaded.q_estimated
    again = repeat(loaded, record)
    assert again.comparison.same
    assert again.again.q_estimated
    assert validate(result, record).error[-1] < 0.1
    with pytest.raises(InputError, match="no diffusion coefficient"):
        validate(identify(noisy, method="weak"), record)


def test_inspect_says_who_needs_q(movie) -> None:
    assert "q: not given, a fit estimates it (the movie must show motion)" in str(inspect_record(unknown(movie)))

"""Unlike wells and other phases with what a record may lack: values, a boundary, q, the company of other records."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from grouping import grouped

import doublewell as dw
from doublewell.errors import InputError
from doublewell.identify.phases import plateaus
from doublewell.law import Wells
from doublewell.result import Result

EPSILON = 0.1
U = np.linspace(-1.0, 1.0, 201)
TILTED = dw.named_law("sixth").tilted(0.2)


@cache
def movie(noise: float = 0.005, seed: int = 7) -> dw.Record:
    start = dw.initial_field("nonconvex", (24, 24), 1 / 24, epsilon=EPSILON)
    clean = dw.simulate(TILTED, start, dx=1 / 24, dt=5e-4, frames=13, epsilon=EPSILON)
    return dw.add_noise(clean, noise, seed=seed)


def zero_to_one(record: dw.Record) -> dw.Record:
    return record.replace(0.5 + 0.5 * record.values)


def fit(record: dw.Record | list[dw.Record], **options: object) -> Result:
    return dw.identify(record, **grouped(wells="unequal", degree=1, check=False, **options))


def error(result: Result) -> float:
    true = TILTED.effective(EPSILON).force(U)
    return float(np.linalg.norm(result.force(U) - true) / np.linalg.norm(true))


def holes() -> dw.Record:
    """The movie with a tenth of its values lost, what lies there being no number."""
    seen = np.random.default_rng(3).random(movie().shape) > 0.1
    return movie().replace(np.where(seen, movie().values, np.nan), mask=seen)


def test_missing_values_and_other_phases_go_together() -> None:
    here, there = fit(holes()), fit(zero_to_one(holes()), phases=(0, 1))
    assert error(here) < 0.05
    np.testing.assert_allclose(there.coefficients, here.coefficients, rtol=1e-6)


def test_plateaus_are_those_of_what_was_seen() -> None:
    lost, whole = (plateaus(one.replace(2.5 + 0.5 * one.values)) for one in (holes(), movie()))
    assert lost[0] == pytest.approx(whole[0], abs=0.01)  # values that were lost are read as 0, far below both phases


def test_the_initial_field_has_the_phases_of_the_record() -> None:
    likelihood = fit(zero_to_one(movie()), phases=(0, 1)).diagnostics.likelihood
    assert likelihood is not None
    assert likelihood.initial is not None
    np.testing.assert_allclose(likelihood.initial, zero_to_one(movie()).values[0], atol=0.02)
    assert not likelihood.initial.flags.writeable


def test_a_window_shows_a_tilted_law() -> None:
    inside = dw.Record(movie().values[:, 4:-4, 4:-4], dx=movie().dx, times=movie().times, q=movie().q)
    result = fit(inside)
    assert error(result) < 0.1
    assert result.resolved.boundary == "open"


@pytest.mark.parametrize("method", ["trajectory", "weak"])
def test_q_is_found_beside_unlike_wells(method: str) -> None:
    record = movie(noise=0.001)
    result = fit(dw.Record(record.values, dx=record.dx, times=record.times, boundary=record.boundary), method=method)
    assert result.q_estimated
    assert result.q == pytest.approx(1.0, rel=0.03 if method == "trajectory" else 0.3)


def test_several_records_share_one_tilted_law() -> None:
    result = fit([zero_to_one(movie()), zero_to_one(movie(seed=8))], phases=(0, 1))
    assert result.law.placed((-1.0, 1.0)).family == Wells(1)
    assert result.law.phases == (0.0, 1.0)
    assert all(one.agrees for one in result.agreements)
    alone = fit(zero_to_one(movie()), phases=(0, 1))
    assert result.posterior is not None
    assert alone.posterior is not None
    shares = np.diag(result.posterior.covariance) / np.diag(alone.posterior.covariance)
    assert np.all((shares > 0.3) & (shares < 0.8))


def test_unlike_wells_have_one_class_and_its_name_is_kept() -> None:
    asked = [fit(movie(), constraint=name) for name in ("bernstein", "admissible")]
    assert [one.problem.law.constraint for one in asked] == ["admissible", "admissible"]
    np.testing.assert_array_equal(asked[0].coefficients, asked[1].coefficients)
    assert fit(movie(), constraint="none").problem.law.constraint == "none"


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="phases='estimated' is for one record"):
        fit([movie(), movie(seed=8)], phases="estimated")


def test_unlike_wells_are_corrected_for_noise() -> None:
    start = dw.initial_field("nonconvex", (48, 48), 1 / 48, epsilon=EPSILON)
    clean = dw.simulate(TILTED, start, dx=1 / 48, dt=2.5e-4, frames=31, epsilon=EPSILON)
    records = [dw.add_noise(clean, 0.08, seed=seed) for seed in range(3)]
    plain, corrected = (
        np.mean([error(fit(record, method=method)) for record in records]) for method in ("weak", "weak-corrected")
    )
    assert corrected < 0.7 * plain

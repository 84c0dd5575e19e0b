"""Asymmetric wells through the whole pipeline: both fits, other phases, calibration, files, figures."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from found import warned
from grouping import grouped

import doublewell as dw
from doublewell.errors import InputError
from doublewell.identify.phases import plateaus
from doublewell.law import Bernstein, EqualWells, Law, Wells
from doublewell.result import Result

EPSILON = 0.1
FINE = 0.06  # of the movies that weak moments are read from: the interface has to be resolved
U = np.linspace(-1.0, 1.0, 401)
TILTED = dw.named_law("sixth").tilted(0.2)


@cache
def movie(law: str = "tilted", noise: float = 0.0) -> dw.Record:
    """A small movie for the trajectory fit."""
    start = dw.initial_field("nonconvex", (24, 24), 1 / 24, epsilon=EPSILON)
    clean = dw.simulate(_laws()[law], start, dx=1 / 24, dt=5e-4, frames=15, epsilon=EPSILON)
    return dw.add_noise(clean, noise, seed=7)


@cache
def fine(law: str = "tilted") -> dw.Record:
    """A clean movie for weak moments."""
    start = dw.initial_field("nonconvex", (64, 64), 1 / 64, epsilon=FINE)
    return dw.simulate(_laws()[law], start, dx=1 / 64, dt=2e-4, frames=31, epsilon=FINE)


def _laws() -> dict[str, Law]:
    return {"tilted": TILTED, "unlike": _unlike(), "sixth": dw.named_law("sixth")}


def _unlike() -> Law:
    """Two wells of equal depth, one steeper than the other."""
    return Law(EqualWells(1), np.array([0.8, 1.0, 1.6]))


def moved(record: dw.Record, low: float, high: float) -> dw.Record:
    return record.replace(0.5 * (low + high) + 0.5 * (high - low) * record.values)


def error(result: Result, law: Law, epsilon: float = FINE) -> float:
    u = U
    true = law.effective(epsilon).force(u)
    return float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true))


def weak(record: dw.Record, **options: object) -> Result:
    return dw.identify(record, **grouped(method="weak", degree=1, **options))


@pytest.fixture(scope="module")
def fitted() -> Result:
    return dw.identify(movie(noise=0.02), law=dw.DoubleWell(degree=1, wells="unequal"), check=False)


def test_weak_moments_find_a_tilted_law_that_symmetric_wells_cannot_have() -> None:
    result = weak(fine(), wells="unequal")
    assert error(result, TILTED) < 2e-3
    assert error(weak(fine()), TILTED) > 0.05
    assert result.law.maximum == pytest.approx(TILTED.maximum, abs=1e-3)
    assert result.law.tilt > 0.0
    text = str(result)
    assert "no planar interface is at rest" in text.replace("\n    ", " ")
    assert "two stable phases and one maximum between, exactly" in text


def test_equal_depth_is_kept_and_calibrated() -> None:
    law = _unlike()
    sigma = law.surface_tension(epsilon=1.0)
    result = weak(fine("unlike"), wells="equal", surface_tension=sigma)
    assert error(result, law) < 3e-3
    assert result.law.tilt == 0.0
    assert result.epsilon == pytest.approx(FINE, rel=2e-3)
    assert float(result.potential(result.law.maximum)) == pytest.approx(law.barrier, rel=5e-3)


def test_unequal_depth_has_no_scale_and_says_why() -> None:
    result = weak(fine(), wells="unequal", surface_tension=1.0)
    assert result.scale is None
    assert "calibration refused: the wells are not equally deep" in result.refusal
    with pytest.raises(InputError, match="no planar tension"):
        _ = result.epsilon


def test_symmetric_wells_are_found_by_all_three() -> None:
    plain, equal, unequal = (weak(fine("sixth"), wells=wells) for wells in ("symmetric", "equal", "unequal"))
    for other in (equal, unequal):
        np.testing.assert_allclose(other.force(U), plain.force(U), atol=1e-3 * np.max(plain.force(U)))


def test_other_phase_values_change_nothing_but_the_values() -> None:
    here = weak(fine(), wells="unequal")
    there = weak(moved(fine(), 0.0, 1.0), wells="unequal", phases=(0, 1))
    np.testing.assert_allclose(there.coefficients, here.coefficients, rtol=1e-9)
    np.testing.assert_allclose(there.force(0.5 * (1.0 + U)), 0.5 * here.force(U), rtol=1e-9, atol=1e-9)
    assert there.law.phases == (0.0, 1.0)
    assert there.resolved.phases == (0.0, 1.0)
    symmetric = weak(moved(fine("sixth"), 0.0, 1.0), phases=(0, 1))
    assert symmetric.law.maximum == 0.5
    assert symmetric.law.family == Bernstein(symmetric.degree, (0.0, 1.0))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.1, 0.8)])
def test_phases_are_estimated(low: float, high: float) -> None:
    result = weak(moved(fine(), low, high), wells="unequal", phases="estimated")
    np.testing.assert_allclose(result.resolved.phases, (low, high), atol=2e-3 * (high - low))
    u = 0.5 * (low + high) + 0.5 * (high - low) * U
    true = TILTED.effective(FINE).placed((low, high)).force(u)
    assert np.linalg.norm(result.force(u) - true) < 1e-2 * np.linalg.norm(true)


def test_phases_that_do_not_show_are_refused() -> None:
    one = dw.Record(np.full((20, 8, 8), 0.3) + 1e-9 * np.arange(20)[:, None, None], dx=0.1, dt=0.1, q=1.0)
    spike = one.values.copy()
    spike[:, 0, 0] = 5.0
    with pytest.raises(InputError, match="do not pile up at two phases"):
        plateaus(one.replace(spike))


def test_a_record_on_disk_is_rescaled_as_it_is_read(tmp_path) -> None:
    record = moved(fine(), 0.0, 1.0)
    dw.save(record, tmp_path / "movie.zarr")
    stored = dw.open_record(tmp_path / "movie.zarr")
    direct, lazy = (weak(one, wells="unequal", phases=(0, 1)) for one in (record, stored))
    np.testing.assert_allclose(lazy.coefficients, direct.coefficients, rtol=1e-12)


def test_the_trajectory_reading_finds_maximum_and_tilt_with_intervals(fitted: Result) -> None:
    truth = TILTED.effective(EPSILON)
    assert error(fitted, TILTED, EPSILON) < 0.03
    for name, value in (("maximum", truth.maximum), ("tilt", truth.tilt)):
        low, high = fitted.interval(name)
        assert low < value < high
        assert high - low < 0.5 * abs(value)
    low, high = fitted.band("force", U)
    assert np.mean((low <= truth.force(U)) & (truth.force(U) <= high)) > 0.8
    for name in ("width", "tension_integral"):
        with pytest.raises(InputError, match="the depths of the wells may differ in this fit"):
            fitted.interval(name)


def test_a_result_comes_back_from_its_file_and_is_repeated(fitted: Result, tmp_path) -> None:
    dw.save(fitted, tmp_path / "result.json")
    again = dw.load_result(tmp_path / "result.json")
    assert again.law.family == fitted.law.family
    assert np.array_equal(again.band("force", U), fitted.band("force", U))
    assert str(again) == str(fitted)


def test_the_symmetric_fit_of_a_tilted_law_is_flagged() -> None:
    found = dw.identify(movie(noise=0.02), law=1)
    assert found.adequacy.verdict == "not adequate"
    assert "wells='unequal'" in warned(found)["force-tilted"].advice


def test_an_average_over_degrees_with_equal_depth_at_other_phases() -> None:
    law = _unlike()
    record = moved(movie("unlike", noise=0.02), 0.0, 1.0)
    result = dw.identify(
        record,
        law.placed((0, 1)).surface_tension(epsilon=1.0),
        law=dw.DoubleWell(wells="equal"),
        observation=dw.Observation(phases=(0, 1)),
        check=False,
    )
    truth = law.effective(EPSILON).placed((0, 1))
    u = 0.5 * (1.0 + U)
    assert np.linalg.norm(result.force(u) - truth.force(u)) < 0.05 * np.linalg.norm(truth.force(u))
    assert len(result.posterior.path) == 6
    for name, value in (("epsilon", EPSILON), ("maximum", truth.maximum), ("width", truth.interface_width())):
        low, high = result.interval(name)
        assert low < value < high
    assert result.interval("tilt") == pytest.approx((0.0, 0.0), abs=1e-12)
    assert result.diagnostics.likelihood.noise == pytest.approx(0.01, rel=0.1)
    low, high = result.interval("barrier")
    assert low < law.placed((0, 1)).barrier < high


def test_wrong_choices_are_named() -> None:
    with pytest.raises(InputError, match="wells is 'deep': expected 'symmetric', .*'found' or 'ideal'"):
        weak(fine(), wells="deep")
    with pytest.raises(InputError, match="phases is 'both': expected a pair such as"):
        weak(fine(), phases="both")
    with pytest.raises(InputError, match="expected the lower one first"):
        weak(fine(), phases=(1, -1))


def test_validated_ridge_and_bounds() -> None:
    result = weak(fine(), wells="unequal", ridge="validated", supports=[(3, 0.15)])
    assert result.diagnostics.ridge.alpha in (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
    assert weak(fine(), wells="unequal", ridge=1e-6).law.structure.ok
    assert weak(fine(), wells="unequal", constraint="none").problem.law.constraint == "none"


def test_a_figure_and_a_page_are_made(fitted: Result, tmp_path) -> None:
    page = dw.write_page(fitted, movie(noise=0.02), tmp_path / "page.html").read_text()
    assert "is deeper by" in page


def test_many_records_share_the_choice() -> None:
    results = dw.identify_many(
        [moved(fine(), 0.0, 1.0)] * 2,
        law=dw.DoubleWell(degree=1, wells="unequal"),
        method="weak",
        observation=dw.Observation(phases=(0, 1)),
        compute=dw.Compute(workers=1),
    )
    assert {result.law.phases for result in results} == {(0.0, 1.0)}
    assert results[0].law.family == Wells(1, (0.0, 1.0))


def test_one_side_of_the_phases_alone_is_said() -> None:
    from dataclasses import replace

    from doublewell.observation import survey
    from doublewell.record_findings import one_sided_findings

    seen = survey(fine())
    assert list(one_sided_findings(seen, (-1.0, 1.0))) == []
    shares = list(seen.histogram)
    shares[4], shares[15] = 0.0, shares[4] + shares[15]
    (item,) = one_sided_findings(replace(seen, histogram=tuple(shares)), (-1.0, 1.0))
    assert item.numbers == pytest.approx({"low": -0.6, "high": -0.5})

"""Contrast and offset as parameters of the trajectory fit."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.baselines import compare
from doublewell.errors import InputError
from doublewell.evidence import contract, joint_given_law, system
from doublewell.findings import findings
from doublewell.identify import identify
from doublewell.io.result_file import load_result, result_bytes
from doublewell.law import named_law
from doublewell.observation import View
from doublewell.options import Observation
from doublewell.problem import ask
from doublewell.record import Record
from doublewell.result import Result
from doublewell.simulate import initial_field, simulate
from doublewell.validate import validate

LAW, CELLS, EPSILON = named_law("sixth"), 32, 0.08
SIGMA = LAW.surface_tension(epsilon=1.0)
U = np.linspace(-1.0, 1.0, 201)
FORCE = LAW.force(U) / EPSILON**2


def movie(seed: int = 0, noise: float = 0.02, geometry: str = "nonconvex", frames: int = 25) -> Record:
    start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON, seed=seed)
    clean = simulate(LAW, start, dx=1 / CELLS, dt=4e-4, frames=frames, epsilon=EPSILON)
    return clean.replace(clean.slab() + noise * np.random.default_rng(seed).standard_normal(clean.shape))


def seen(record: Record, gain: float, offset: float) -> Record:
    return record.replace(gain * record.slab() + offset, origin=None)


def error(result: Result) -> float:
    return float(np.linalg.norm(result.force(U) - FORCE) / np.linalg.norm(FORCE))


@pytest.fixture(scope="module")
def exact() -> Result:
    return identify(movie(), SIGMA, check=False)


@pytest.fixture(scope="module")
def estimated() -> Result:
    return identify(seen(movie(), 0.9, 0.05), SIGMA, check=False)


def test_exact_values_have_no_contrast(exact: Result) -> None:
    assert exact.contrast is None
    assert exact.posterior is not None
    assert exact.posterior.joint is None
    with pytest.raises(InputError, match="gain was not estimated"):
        exact.interval("gain")


def test_wrong_contrast_costs_next_to_nothing(exact: Result, estimated: Result) -> None:
    assert error(estimated) < 1.5 * error(exact) + 1e-3
    assert abs(estimated.epsilon / EPSILON - 1.0) < 0.01
    contrast = estimated.contrast
    assert contrast is not None
    for name, true in (("gain", 0.9), ("offset", 0.05)):
        low, high = estimated.interval(name, level=0.9999)
        assert low < true < high
        assert low < getattr(contrast, name) < high
    assert contrast.plateaus == pytest.approx((-0.85, 0.95), abs=0.01)
    assert contrast.cost >= 1.0


def test_taken_for_exact_it_is_wrong(estimated: Result) -> None:
    wrong = identify(seen(movie(), 0.9, 0.05), observation="contrast=exact", check=False)
    assert error(wrong) > 0.2
    assert estimated.contrast is not None
    assert estimated.contrast.change > 0.2


@pytest.mark.parametrize(("gain", "offset"), [(1.15, -0.1), (0.85, 0.1)])
def test_answer_does_not_depend_on_units(estimated: Result, gain: float, offset: float) -> None:
    moved = identify(seen(movie(), gain, offset), SIGMA, check=False)
    features = estimated.posterior.family.features(U)
    spread = np.sqrt(np.maximum(np.sum(features * (estimated.covariance @ features), axis=0), 0.0))
    # the prior of gain and offset is all that distinguishes the two
    assert np.all(np.abs(moved.force(U) - estimated.force(U)) <= 0.05 * spread + 1e-6)
    assert moved.contrast.gain / gain == pytest.approx(estimated.contrast.gain / 0.9, rel=1e-4)


def test_phases_that_are_estimated_are_the_plateaus() -> None:
    record = movie()
    result = identify(record.replace(5.0 + 2.0 * record.slab()), observation="phases=estimated", check=False)
    assert result.law.phases == pytest.approx((3.0, 7.0), abs=0.03)
    assert result.contrast is not None
    assert result.contrast.gain == pytest.approx(1.0, abs=1e-9)
    assert result.law.phases == result.contrast.plateaus
    force = 2.0 * FORCE
    assert np.linalg.norm(result.force(5.0 + 2.0 * U) - force) < 0.03 * np.linalg.norm(force)


def test_drift_of_the_contrast_is_estimated_where_it_is_asked_for() -> None:
    record = movie()
    clock = np.linspace(0.0, 1.0, record.frames)[:, None, None]
    fading = record.replace(record.slab() * (1.0 - 0.1 * clock) + 0.05 * clock, origin=None)
    result = identify(fading, SIGMA, observation="contrast=drifting", check=False)
    assert error(result) < 0.03
    for name, true in (("gain drift", -0.1), ("offset drift", 0.05)):
        low, high = result.interval(name, level=0.9999)
        assert low < true < high


def test_each_record_has_its_own_contrast() -> None:
    pair = [seen(movie(1), 0.9, 0.05), seen(movie(2), 1.1, -0.05)]
    fit = identify(pair, SIGMA, check=False).diagnostics.likelihood
    assert fit is not None
    assert fit.contrast.gain == pytest.approx(0.9, abs=0.01)
    assert fit.others[0].contrast.gain == pytest.approx(1.1, abs=0.01)


def test_window_of_an_unknown_contrast() -> None:
    start = initial_field("circle", (48, 48), 1 / 48, epsilon=0.06)
    clean = simulate(LAW, start, dx=1 / 48, dt=2e-4, frames=21, epsilon=0.06)
    noisy = clean.slab() + 0.01 * np.random.default_rng(3).standard_normal(clean.shape)
    cut = clean.replace(0.9 * noisy[:, 4:36, 4:36] + 0.05, origin=None, boundary=None)
    result = identify(cut, SIGMA, check=False)
    assert result.epsilon == pytest.approx(0.06, rel=0.03)
    assert result.contrast.gain == pytest.approx(0.9, abs=0.01)


def test_pattern_without_plateaus_states_that_its_contrast_is_not_determined() -> None:
    early = movie(4, geometry="spinodal", noise=0.01)
    result = identify(early.replace(origin=None), SIGMA, check=False)
    assert "contrast-undetermined" in {item.code for item in findings(result)}
    low, high = result.interval("gain")
    assert high - low > 0.02


def test_law_is_evolved_in_the_values_of_the_record(estimated: Result, exact: Result) -> None:
    own = validate(estimated, seen(movie(), 0.9, 0.05))
    known = validate(exact, movie())
    assert own.error[-1] < 1.1 * known.error[-1]


def test_result_file_keeps_the_contrast(estimated: Result, tmp_path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(result_bytes(estimated))
    loaded = load_result(path)
    assert loaded.contrast == estimated.contrast
    assert loaded.interval("gain") == estimated.interval("gain")


def test_report_states_gain_and_offset(estimated: Result, exact: Result) -> None:
    assert "values = gain u + offset, estimated: gain = 0." in str(estimated)
    assert "its contrast and offset exact" in str(exact)
    assert "its contrast and offset exact" not in str(estimated)


def test_record_of_unknown_origin_is_not_taken_for_exact() -> None:
    record = movie()
    for origin, contrast in (("simulation", False), ("camera", True), (None, True)):
        problem = ask([record.replace(origin=origin)])
        assert problem.view(record.replace(origin=origin)).contrast is contrast
    assert View(Observation(contrast="estimated")).free == ("gain", "offset")


def test_weak_form_fit_refuses_an_estimated_contrast() -> None:
    with pytest.raises(InputError, match="contrast"):
        identify(movie(), method="weak", observation="contrast=estimated")


def test_known_joint_parameters_go_into_the_target(estimated: Result) -> None:
    record = seen(movie(), 0.9, 0.05)
    from doublewell.identify.parts import Records, begin
    from doublewell.inference.joint import Plan, fit_parts, run_loops

    problem = ask([record], check=False)
    part = begin(record, problem, None)
    (joint,) = run_loops([fit_parts(Plan(((0,),), True, (0,), check=False))], Records(problem, [part]))
    evidence = joint.fits[0].evidence
    best = joint_given_law(evidence)
    known = contract(evidence, dict(zip(best.names, best.best.tolist(), strict=True)))
    assert known.joint == ()
    matrix, target = system(known)
    law = np.linalg.lstsq(matrix, target, rcond=None)[0]
    assert law == pytest.approx(best.g_best, rel=1e-6)  # at the most likely values the law is the most likely one
    free = np.linalg.eigvalsh(system(evidence)[0].T @ system(evidence)[0])
    assert np.all(np.linalg.eigvalsh(matrix.T @ matrix) >= 0.999 * free)  # and more closely known


def test_other_methods_read_corrected_values(estimated: Result) -> None:
    compared = compare(seen(movie(), 0.9, 0.05), methods=["STAC"], result=estimated)
    ours, stac = compared.rows
    assert ours.residual == pytest.approx(1.0, abs=0.1)
    assert stac.distance < 0.2

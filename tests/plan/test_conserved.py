"""Plans of conserved fields: information, predicted and realised errors, coexisting phases, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from doublewell.dynamics import dynamics_of
from doublewell.errors import InputError
from doublewell.inference import fit_degree
from doublewell.law import Law, Mixture, named_law
from doublewell.likelihood import Batch
from doublewell.plan import Analysis, Experiment, experiment_information, plan, predict
from doublewell.plan.experiment import record_information
from doublewell.record.arrays import PhaseScale
from doublewell.simulate import add_noise, simulate

RECORDS, FALSE_ALARMS = 48, 1e-4
TIMES = {"cahn-hilliard": 6.0, "mass-conserving": 0.8}
U = np.linspace(-1.0, 1.0, 401)


def line(name: str) -> Experiment:
    """One axis of 32 cells, nine frames of a pattern between its phases."""
    x = 2.0 * np.pi * np.arange(32) / 32
    start = np.tanh(1.6 * np.cos(x) + 0.8 * np.cos(2.0 * x + 1.0))
    return Experiment(
        named_law("quartic"), start, dx=1.0, dt=TIMES[name], frames=9, noise=0.01, epsilon=2.0, dynamics=name
    )


@pytest.fixture(scope="module", params=TIMES)
def planned(request):
    return line(request.param)


@pytest.fixture(scope="module")
def known(planned):
    return experiment_information(planned)


def centred(curves: np.ndarray) -> np.ndarray:
    return curves - curves.mean(axis=-1, keepdims=True)


def slopes(function, point: np.ndarray, size: float) -> np.ndarray:
    steps = size * np.eye(point.size)
    return np.stack([(function(point + s) - function(point - s)) / (2 * size) for s in steps], axis=1)


def test_information_is_that_of_dense_finite_differences(planned) -> None:
    """Of CNAB2 with many steps, another solver than the fit's; in values of the record, not of its range."""
    family = Mixture(0, (-2.1, 1.9))
    g = family.fitted(planned.force.force)

    def movie(start: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        law, times = Law(family, coefficients), {"dx": 1.0, "dt": planned.dt, "frames": planned.frames}
        return simulate(law, start, **times, dynamics=planned.dynamics, substeps=120).slab().ravel()

    by_field = slopes(lambda u: movie(u, g), planned.initial, 1e-5)
    by_law = slopes(lambda c: movie(planned.initial, c), g, 1e-4)
    projected = by_law - by_field @ np.linalg.lstsq(by_field, by_law, rcond=None)[0]
    found = record_information(planned.movie, family, g, dynamics=dynamics_of(planned.dynamics))
    gains = np.linalg.svd(found.triangle @ np.linalg.inv(np.linalg.qr(projected, mode="r")), compute_uv=False) ** 2
    np.testing.assert_allclose(gains, 1.0, atol=0.02)


def test_a_fixed_degree_has_the_predicted_error(planned, known) -> None:
    family = known.family.at(1)
    scale, plain = PhaseScale(*family.phases), Mixture(1)
    records = [add_noise(planned.movie, planned.noise, seed=7000 + k) for k in range(RECORDS)]
    records = [record.replace(scale(record.slab())) for record in records]
    starts = np.tile(family.fitted(planned.force.force), (RECORDS, 1))
    fits = Batch(records, dynamics_of(planned.dynamics)).fit(starts, family=plain, fitted=plain)
    assert all(fit.status.converged for fit in fits)
    rows = np.stack([fit_degree(fit.evidence, 1.0, constraint="none").free for fit in fits])
    true = planned.force.force(U)
    found = np.mean(np.sum((centred(rows @ family.features(U)) - true) ** 2, axis=1)) / np.sum(true**2)
    expected = predict(planned, known, Analysis(1, "none"))
    lift = family.elevation(known.family)
    root = np.linalg.inv(np.linalg.qr(known.triangle @ lift, mode="r")).T @ family.features(U)
    shares = np.linalg.svd(centred(root), compute_uv=False) ** 2
    freedom = RECORDS * np.sum(shares) ** 2 / np.sum(shares**2)
    low, high = chi2.ppf([FALSE_ALARMS / 2, 1 - FALSE_ALARMS / 2], freedom) / freedom
    assert low < found / expected.force**2 < high
    lines = family.tangents(rows)
    realised = [np.mean((lines.low + 1.0) ** 2), np.mean((lines.high - 1.0) ** 2)]
    low, high = chi2.ppf([FALSE_ALARMS / 4, 1 - FALSE_ALARMS / 4], RECORDS) / RECORDS
    for error, predicted in zip(realised, expected.wells, strict=True):
        assert low < error / predicted**2 < high


def test_noise_scales_everything(planned, known) -> None:
    loud, quiet = (
        predict(each, known, Analysis(0, "none")) for each in (planned, replace(planned, noise=0.5 * planned.noise))
    )
    assert loud.force == pytest.approx(loud.bound, rel=0.02)  # unbiased: the law is of degree 0
    assert quiet.force == pytest.approx(0.5 * loud.force, rel=0.02)
    assert quiet.wells == pytest.approx(0.5 * np.array(loud.wells), rel=0.05)
    assert (loud.phases[0], loud.phases[-1]) == (-1.0, 1.0)


def test_a_plan_names_the_equation_and_the_phases() -> None:
    found = plan(line("cahn-hilliard"), degree=0, constraint="none")
    text = " ".join(str(found).split())
    assert "periodic, cahn-hilliard" in text
    assert "coexisting phases: low +- " in text
    ratios = {option.name: option.prediction.force / found.prediction.force for option in found.options}
    assert ratios["half the noise"] == pytest.approx(0.5, rel=0.02)
    assert all(option.experiment.dynamics is found.experiment.dynamics for option in found.options)


def test_what_cannot_be_planned_is_refused(planned, known) -> None:
    with pytest.raises(InputError, match="wells of unequal depth, and .* only up to a constant"):
        replace(planned, law=named_law("sixth").tilted(0.2))
    with pytest.raises(InputError, match="degree is 6: expected at most 5 for a plan of a conserved field"):
        predict(planned, known, Analysis(6))

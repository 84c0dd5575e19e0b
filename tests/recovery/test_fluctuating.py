"""Movies with thermal noise: theta, the tension in kT and the force. Data by ETDRK2, the fits step with ETDRK4.

Tolerances are 4 standard errors of the fit (false alarms below 1e-4).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import doublewell as dw
from doublewell.calibrate import NoScale

CELLS, FRAMES, WIDTH, FAR = 32, 17, 3.0, 4.0
TRUTH = dw.named_law("quartic").effective(WIDTH)
U = np.linspace(-0.95, 0.95, 38)


@lru_cache
def movie(theta=3e-3, camera=0.01, equation="allen-cahn", seed=1):
    """Frames after some that let short waves reach equilibrium."""
    dt, first = (1.0, 12.0)[equation == "cahn-hilliard"], dw.initial_field("circle", (CELLS, CELLS), 1.0, epsilon=WIDTH)
    made = dw.simulate(
        dw.named_law("quartic"), first, dx=1.0, dt=dt, frames=FRAMES + 6, epsilon=WIDTH, substeps=25,
        dynamics=equation, theta=theta, seed=seed,
    )  # fmt: skip
    record = made.replace(made.slab()[6:], times=made.times[6:])
    return dw.add_noise(record, camera, seed=seed + 1) if camera else record


def read(record, law=1, **options):
    return dw.identify(record, temperature=1.0, law=law, **options)


def near(result, theta, integral=TRUTH.tension_integral):
    """Whether theta and the tension lie within their errors."""
    low, high = result.interval("theta", level=1.0 - 6e-5)
    below, above = result.interval("tension", level=1.0 - 6e-5)
    return low < theta < high and below < integral / theta < above


@lru_cache
def plain():
    return read(movie())


def test_theta_tension_and_force_of_a_noisy_movie():
    result = plain()
    assert near(result, 3e-3)
    assert result.diagnostics.likelihood.noise == pytest.approx(0.01, rel=0.15)
    assert result.adequacy.verdict == "adequate", str(result.adequacy)
    low, high = result.band("force", U, level=1.0 - 6e-5)
    assert np.all((low < TRUTH.force(U)) & (TRUTH.force(U) < high))
    assert result.kappa == pytest.approx(1.0 / result.theta, rel=1e-9)
    assert result.tension == pytest.approx(result.kappa * result.law.tension_integral, rel=1e-9)
    width = np.diff(result.interval("theta"))[0] / 3.92 / result.theta
    assert 0.005 < width < 0.1


def test_exact_frames_tell_theta_as_well_as_their_number_allows():
    """One step likelihood: the variance of log theta is 2 over the number of values."""
    result = read(movie(camera=0.0), observation={"noise": "none"})
    assert near(result, 3e-3)
    error = np.diff(result.interval("theta"))[0] / 3.92 / result.theta
    assert error == pytest.approx(np.sqrt(2.0 / ((FRAMES - 1) * CELLS**2)), rel=0.2)


def test_the_tension_does_not_depend_on_gain_and_offset():
    """Grey values of an unknown scale: u, its force and theta are those of the phases, which the fit finds."""
    record = movie()
    grey = record.replace(0.9 * record.slab() + 0.05, origin=None)
    result, exact = read(grey), plain()
    assert near(result, 3e-3)
    low, high = result.interval("tension")
    assert low < exact.tension < high
    assert np.diff(result.interval("tension"))[0] < 3.0 * np.diff(exact.interval("tension"))[0]
    below, above = result.interval("gain", level=1.0 - 6e-5)
    assert below < 0.9 < above


def test_a_wrong_q_breaks_the_balance_and_gives_no_tension():
    result = read(movie().replace(q=1.6))
    assert result.adequacy.verdict == "not adequate"
    assert result._refused.kind == NoScale.UNBALANCED
    assert "fluctuation and dissipation" in result.refusal
    with pytest.raises(dw.InputError, match="do not belong together"):
        _ = result.tension


def test_an_unknown_q_is_found_with_the_rest():
    result = read(movie(seed=3).replace(q=None), check=False)
    low, high = result.interval("q", level=1.0 - 6e-5)
    assert low < 1.0 < high
    assert near(result, 3e-3)


def test_blur_takes_noise_away_unless_it_is_declared():
    sharp = movie(camera=0.0)
    blurred = sharp.replace(gaussian_filter(sharp.slab(), (0, 0.7, 0.7), mode="wrap"))
    record = dw.add_noise(blurred, 0.003, seed=5)
    told = read(record, observation={"blur": 0.7}, check=False)
    assert near(told, 3e-3)
    wrong = read(record)
    assert wrong.theta < 0.7 * 3e-3
    assert wrong._refused.kind == NoScale.UNBALANCED
    with pytest.raises(dw.InputError, match="average over a pixel"):
        read(record, observation={"noise": "none", "pixel": True})
    camera = read(record.replace(origin="camera"), observation={"contrast": "exact", "pixel": False}, check=False)
    assert camera._refused.kind == NoScale.UNKNOWN_OPTICS


def test_a_movie_without_thermal_noise_bounds_theta_and_keeps_its_law():
    first = dw.initial_field("circle", (CELLS, CELLS), 1.0, epsilon=WIDTH)
    still = dw.simulate(dw.named_law("quartic"), first, dx=1.0, dt=1.0, frames=FRAMES, epsilon=WIDTH, substeps=40)
    record = dw.add_noise(still, 0.02, seed=8)
    warm, cold = read(record), dw.identify(record, law=1)
    assert warm._refused.kind == NoScale.UNSEEN_NOISE
    assert "the tension is above" in warm.refusal
    assert warm.interval("theta")[1] < 1e-3
    low, high = cold.band("force", U, level=1.0 - 6e-5)
    assert np.all((low < warm.force(U)) & (warm.force(U) < high))
    assert cold.adequacy.verdict == "adequate"


def test_thermal_noise_in_a_deterministic_fit_is_named():
    result = dw.identify(movie(), law=1)
    assert result.adequacy.verdict != "adequate"
    assert any("temperature=" in (item.advice or "") for item in dw.findings(result))


def test_a_conserved_field():
    record = movie(theta=1e-3, equation="cahn-hilliard", seed=4)
    result = read(record, law=0, dynamics="cahn-hilliard", check=False)
    assert near(result, 1e-3)


def test_a_window_of_which_the_outside_is_not_known():
    result = read(movie(seed=6).replace(boundary=None), check=False)
    assert near(result, 3e-3)


def test_missing_values_count_nothing():
    record = movie(seed=6)
    part = record.slab().copy()
    part[4:6, 10:14, 10:14] = np.nan
    holes = dw.Record(part, dx=1.0, times=record.times, q=1.0, mask="finite", origin="simulation", boundary="periodic")
    assert near(read(holes, check=False), 3e-3)
    with pytest.raises(dw.InputError, match="window with missing values"):
        read(holes.replace(boundary=None))


def test_units_make_energies_of_kelvin():
    """kappa = kT / theta of a film: J without its thickness, J/m with it."""
    record = movie().replace(length_unit="um", time_unit="s")
    kt = 1.380649e-23 * 300.0
    result = dw.identify(record, temperature="300 K", law=1, check=False)
    assert result.scale.tension.unit == "J/m"
    assert result.tension == pytest.approx(kt / result.theta * result.law.tension_integral / 1e-6, rel=1e-9)
    film = dw.identify(record, temperature="300 K +- 3 K, 50 nm", law=1, check=False)
    assert film.scale.tension.unit == "J/m^2"
    assert film.tension == pytest.approx(result.tension / 50e-9, rel=1e-9)
    assert film.scale.tension.sd == pytest.approx(0.01 * film.tension, rel=1e-9)


def test_save_load_and_repeat(tmp_path):
    result = plain()
    path = tmp_path / "result.json"
    dw.save(result, path)
    again = dw.load_result(path)
    assert again.theta == result.theta
    assert again.tension == result.tension
    assert again.interval("tension") == result.interval("tension")
    assert again.problem == result.problem
    from doublewell.identify.again import repeat

    assert repeat(again, movie()).comparison.same

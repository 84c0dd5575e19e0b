"""Movies with thermal noise: theta, the tension in kT and the force. Data by ETDRK2, the fits step with ETDRK4.

Tolerances are 4 standard errors of the fit (false alarms below 1e-4).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import doublewell as dw
from doublewell.adequacy.fluctuating import UNBALANCED
from doublewell.calibrate import NoScale
from doublewell.difference import compare
from doublewell.identify.identify import _waves

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


@lru_cache
def layer(theta=0.01, width=2.0):
    """A flat interface between walls, in equilibrium, and its law."""
    flat = np.tanh((np.arange(24) - 11.5) / (np.sqrt(2) * width)) * np.ones((CELLS, 1))
    made = dw.simulate(
        dw.named_law("quartic"), flat, dx=1.0, dt=4.0, frames=90, epsilon=width, substeps=40, boundary="neumann",
        theta=theta, seed=1,
    )  # fmt: skip
    return dw.add_noise(made.clip(65, 90), 0.01, seed=2), dw.named_law("quartic").effective(width)


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


def test_strong_camera_noise_does_not_break_the_balance():
    """What a fit leaves is not linear in the noise: in a linear theory q is off by 5 standard errors here."""
    first = dw.initial_field("nonconvex", (48, 48), 1.0, epsilon=WIDTH)
    made = dw.simulate(
        dw.named_law("sixth"), first, dx=1.0, dt=1.0, frames=41, epsilon=WIDTH, substeps=20, theta=1e-3, seed=11
    )
    result = dw.identify(dw.add_noise(made.clip(8, 41), 0.03, seed=12), temperature=1.0)
    tests = {test.name: test for test in result.adequacy.tests}
    assert set(UNBALANCED) <= set(tests)
    assert all(test.p > 1e-4 for test in tests.values())
    assert near(result, 1e-3, dw.named_law("sixth").effective(WIDTH).tension_integral)


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
    camera = read(record.replace(origin="camera"), observation={"contrast": "exact", "pixel": False}, check=False)
    assert camera._refused.kind == NoScale.UNKNOWN_OPTICS


@lru_cache
def exposed(part, camera=0.01, seed=31):
    """Frames that are means over a part of the interval after them, of 40 fields an interval (trapezoidal rule)."""
    steps, first = 40, dw.initial_field("circle", (CELLS, CELLS), 1.0, epsilon=WIDTH)
    made = dw.simulate(
        dw.named_law("quartic"), first, dx=1.0, dt=1.0 / steps, frames=(FRAMES + 6) * steps + 1, epsilon=WIDTH,
        substeps=1, theta=3e-3, seed=seed,
    ).slab()  # fmt: skip
    count = round(part * steps)
    weights = np.r_[0.5, np.ones(count - 1), 0.5] / count
    means = [np.tensordot(weights, made[k * steps : k * steps + count + 1], axes=1) for k in range(6, FRAMES + 6)]
    record = dw.Record(np.array(means), dx=1.0, dt=1.0, q=1.0, boundary="periodic")
    return dw.add_noise(record, camera, seed=seed + 1)


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_an_exposure_takes_noise_away_unless_it_is_declared(part):
    record = exposed(part)
    declared = read(record, observation={"exposure": part, "contrast": "exact"})
    assert near(declared, 3e-3)
    assert declared.adequacy.verdict == "adequate", str(declared.adequacy)
    wrong = read(record, observation={"contrast": "exact"})
    assert wrong.theta < 0.9 * 3e-3
    assert wrong._refused.kind == NoScale.UNBALANCED


def test_a_wrong_q_tilts_the_spectrum_of_long_exposures():
    result = read(exposed(0.5).replace(q=1.6), observation={"exposure": 0.5, "contrast": "exact"})
    assert result._refused.kind == NoScale.UNBALANCED


def test_pictures_of_a_camera_need_blur_and_exposure():
    camera = movie().replace(origin="camera")
    seen = {"contrast": "exact", "pixel": False}
    for known, missing in (({"blur": 0.0}, "exposure of"), ({"exposure": 0.0}, "blur of"), ({}, "blur and exposure")):
        result = read(camera, observation=seen | known, check=False)
        assert result._refused.kind == NoScale.UNKNOWN_OPTICS
        assert missing in result.refusal
    assert read(camera, observation=seen | {"blur": 0.0, "exposure": 0.0}, check=False).scale is not None


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({}, {"observation": {"drift": "estimated"}}, "at rest: expected no response, drift and refine"),
        ({"q": None}, {"observation": {"exposure": 0.5}}, "long exposures where q is known"),
        ({}, {"observation": {"exposure": 0.5}, "dynamics": "driven"}, "long exposures under a driving force"),
        ({}, {"method": "weak"}, "trajectory fit of whole records"),
    ],
)
def test_what_thermal_noise_does_not_go_with_is_refused(changes, options, words):
    if options.get("dynamics") == "driven":
        options = options | {"dynamics": dw.AllenCahn(driving=dw.Driving([0.0, 50.0], [0.1, 0.1]))}
    with pytest.raises(dw.InputError, match=words):
        read(movie().replace(**changes), **options)


def test_several_records_have_one_theta():
    """Its error falls with the root of their number; each has a camera noise of its own."""
    records = [movie(seed=41), movie(camera=0.02, seed=51)]
    both, alone = read(records, check=False), [read(record, check=False) for record in records]
    assert near(both, 3e-3)
    weights = [1.0 / np.diff(result.interval("theta"))[0] ** 2 for result in alone]
    wanted = np.average([result.theta for result in alone], weights=weights)
    width = np.diff(both.interval("theta"))[0]
    assert both.theta == pytest.approx(wanted, abs=0.1 * width)
    assert width == pytest.approx(sum(weights) ** -0.5, rel=0.1)


@pytest.mark.parametrize("camera", [0.0, 0.01])
def test_means_of_cells_show_waves_shorter_than_a_pixel(camera):
    """Averages over 3 x 3 cells: what short waves leave in them is not the camera's, and tells of theta too."""
    first = dw.initial_field("circle", (3 * CELLS, 3 * CELLS), 1.0 / 3.0, epsilon=WIDTH)
    made = dw.simulate(
        dw.named_law("quartic"), first, dx=1.0 / 3.0, dt=1.0, frames=FRAMES + 6, epsilon=WIDTH, substeps=50,
        theta=3e-3, seed=21,
    )  # fmt: skip
    means = made.slab()[6:].reshape(FRAMES, CELLS, 3, CELLS, 3).mean(axis=(2, 4))
    record = dw.Record(means, dx=1.0, dt=1.0, q=1.0, boundary="periodic")
    seen = {"pixel": 3, "contrast": "exact"} | ({} if camera else {"noise": "none"})
    record = dw.add_noise(record, camera, seed=22) if camera else record
    result = read(record, observation=seen)
    assert near(result, 3e-3)
    assert result.adequacy.verdict == "adequate"


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


def test_auto_names_thermal_noise_and_does_not_trust_its_choice():
    """Of a layer in equilibrium Cahn-Hilliard follows the noise of Allen-Cahn more closely."""
    items = {item.code: item for item in dw.findings(dw.identify(layer()[0], dynamics="auto", law=1))}
    assert "temperature=" in items["thermal-noise"].advice
    assert "temperature=" in items["equation-undecided"].advice
    with pytest.raises(dw.InputError, match="dynamics='auto' compares mean paths"):
        dw.identify(layer()[0], dynamics="auto", temperature=1.0)


def test_a_layer_has_two_tensions_and_that_given_agrees(tmp_path):
    """kT C_H / theta of the pixels, and that of its capillary waves; grey values have the same waves."""
    record, law = layer()
    metre, kt = 1e-6, 1.380649e-23 * 300.0
    true = kt / (metre * 50e-9) * law.tension_integral / 0.01
    film = record.replace(length_unit="um", time_unit="s")
    given = dw.SurfaceTension(true, 0.02 * true, unit="J/m^2")
    result = dw.identify(film, given, temperature="300 K, 50 nm", law=1, check=False)
    table, waves = dw.facts(result), dw.capillary(record)
    assert result.scale.tension == given
    low, high = table["thermal_tension"].interval
    assert table["thermal_tension"].unit == table["capillary"].unit == "J/m^2"
    assert low < true < high
    assert table["capillary"].value == pytest.approx(kt / (metre * 50e-9) * waves.tension, rel=1e-9)
    assert table["capillary"].interval == pytest.approx(
        [kt / (metre * 50e-9) * end for end in waves.interval()], rel=1e-9
    )
    assert (table["pixel"].value, table["pixel"].unit) == (1.0, "um")
    assert "tensions-agree" in [item.code for item in dw.findings(result)]
    dw.save(result, tmp_path / "result.json")
    again = dw.load_result(tmp_path / "result.json")
    assert compare(again, result).same
    assert dw.facts(again)["capillary"] == table["capillary"]
    grey = _waves(record.replace(30.0 * record.slab() + 100.0), (71.0, 129.0))
    assert grey == pytest.approx((waves.tension, *waves.interval()), rel=1e-6)


def test_a_drop_has_no_capillary_tension():
    assert plain().diagnostics.capillary is None
    assert "capillary" not in dw.facts(plain()).numbers


@pytest.mark.parametrize(("tension", "temperature"), [("0.3 J/m^2", 1.0), (0.3, "300 K"), ("0.3 J/m^2", "300 K")])
def test_tensions_that_cannot_be_compared_are_refused(tension, temperature):
    record = movie().replace(length_unit="um", time_unit="s")
    with pytest.raises(dw.InputError, match="cannot be compared: expected both with units, of a film"):
        dw.identify(record, tension, temperature=temperature)


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

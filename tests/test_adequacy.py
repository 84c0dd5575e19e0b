"""Adequacy: calibrated under the model, and each fault is seen and named. Data from CNAB2, 21 frames of 32 x 32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, norm

from doublewell.adequacy import DIRECTIONS, Adequacy, Fit, ScoreTest, check_adequacy, score_test
from doublewell.adequacy.check import holm
from doublewell.adequacy.directions import _slope
from doublewell.adequacy.words import verdict
from doublewell.dynamics import Etdrk4, Grid
from doublewell.errors import InputError
from doublewell.evidence.likelihood import read_trajectory
from doublewell.evidence.likelihood.score import score
from doublewell.files.codec import codec_of
from doublewell.law import Law, named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON, NOISE, DT = 0.1, 0.03, 5e-4
START = np.array([120.0, 140.0, 160.0])
SEEDS = 16
RARE = 1e-4  # false-alarm rate of a statistical test


def drop(*, boundary="periodic", moved=False):
    start = initial_field("nonconvex", (32, 32), 1 / 32, epsilon=EPSILON)
    start = np.roll(start, (12, 11), axis=(0, 1)) if moved else start
    return simulate(named_law("sixth"), start, dx=1 / 32, dt=DT, frames=21, epsilon=EPSILON, boundary=boundary)


def asked(record):
    found = read_trajectory(record, START)
    assert found.converged
    return check_adequacy(record, found)


def named(answer):
    return {test.name: test for test in answer.tests}


@pytest.fixture(scope="module")
def clean():
    return drop()


@pytest.fixture(scope="module")
def noisy(clean):
    return add_noise(clean, NOISE, seed=3)


@pytest.fixture(scope="module")
def fit(noisy):
    return Fit(noisy, read_trajectory(noisy, START))


@pytest.fixture(scope="module")
def answers(clean):
    return [asked(add_noise(clean, NOISE, seed=100 + seed)) for seed in range(SEEDS)]


def forward(fit, *, q=1.0, law=None):
    law = Law(fit.family, fit.found.coefficients) if law is None else law
    stepper = Etdrk4(fit.grid, fit.record.dt, q, fit.found.substeps)
    later = list(stepper.run(law, fit.found.initial, intervals=fit.record.frames - 1))
    return np.stack([fit.found.initial, *later])


# ---- directions


def test_q_direction_matches_finite_differences(fit):
    step = 1e-4
    difference = (forward(fit, q=1 + step) - forward(fit, q=1 - step)) / (2 * step)
    (direction,) = DIRECTIONS["q"](fit)
    np.testing.assert_allclose(direction, difference, atol=1e-6 * np.abs(difference).max())


def test_tilt_direction_solves_the_tilted_equation(fit):
    """A constant force c shifts a field without interface by -q c (1 - exp(-q G'(1) t)) / G'(1) in all cells."""
    flat = replace(fit.found, initial=np.ones((32, 32)), residual=fit.record.slab() - 1.0)
    (direction,) = DIRECTIONS["tilt"](Fit(fit.record, flat))
    slope = 2.0 * fit.found.coefficients[-1]  # G'(1) = 2 p(1)
    exact = -(1.0 - np.exp(-slope * fit.record.times)) / slope
    np.testing.assert_allclose(direction, np.broadcast_to(exact[:, None, None], direction.shape), rtol=1e-5)


def test_advection_direction_is_the_change_of_a_shifted_record(fit):
    speed = 1e-3
    difference = (shifted(fit.predicted, speed) - shifted(fit.predicted, -speed)) / (2 * speed)
    direction = DIRECTIONS["advection"](fit)[1]
    np.testing.assert_allclose(direction, difference, atol=1e-5 * np.abs(difference).max())


def test_boundary_and_gain_directions_begin_with_the_same_field(fit):
    for name in ("boundary", "gain drift"):
        (direction,) = DIRECTIONS[name](fit)
        np.testing.assert_allclose(direction[0], 0.0, atol=1e-12)
        assert np.abs(direction[-1]).max() > 1e-3
    np.testing.assert_allclose(DIRECTIONS["gain drift"](fit)[0][-1], fit.predicted[-1])


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
@pytest.mark.parametrize("cells", [15, 16])
def test_slope_is_exact_for_modes(boundary, cells):
    grid = Grid((4, cells), (0.25, 2.0 / cells), boundary)
    wave = 2 * np.pi * (3 if boundary == "periodic" else 2.5) / 2.0
    x = grid.points[1]
    u = np.broadcast_to(np.cos(wave * x), (2, 4, cells))
    np.testing.assert_allclose(_slope(u, 1, grid), np.broadcast_to(-wave * np.sin(wave * x), u.shape), atol=1e-12)
    np.testing.assert_allclose(_slope(u, 0, grid), 0.0, atol=1e-12)


def test_projection_takes_out_what_the_fit_can_imitate(fit):
    """A change of the initial field and of the coefficients disappears; theta moves back by that change."""
    rng = np.random.default_rng(4)
    change, bump = np.array([1.0, -2.0, 1.5]), 1e-4 * rng.standard_normal((32, 32))
    ends = [
        forward(
            Fit(fit.record, replace(fit.found, initial=fit.found.initial + h * bump)),
            law=Law(fit.family, fit.found.coefficients + h * change),
        )
        for h in (-1e-2, 1e-2)
    ]
    imitated = (ends[1] - ends[0]) / 2e-2
    left, shift = fit.projector.project(imitated)
    assert np.linalg.norm(left) < 1e-3 * np.linalg.norm(imitated)
    scale = fit.found.noise * fit.found.evidence.blocks[0].triangle[:3, :3]
    assert np.linalg.norm(scale @ (shift + change)) < 1e-2 * np.linalg.norm(scale @ change)


def test_projection_of_a_projection_changes_nothing(fit):
    left, shift = fit.projector.project(DIRECTIONS["q"](fit)[0])
    again, second = fit.projector.project(left)
    np.testing.assert_allclose(again, left, atol=2e-3 * np.abs(left).max())
    assert np.linalg.norm(second) < 0.01 * np.linalg.norm(shift)


def test_score_recovers_a_known_amount_and_takes_correlation_into_account():
    rng = np.random.default_rng(1)
    fields = rng.standard_normal((2, 5, 6, 7))
    fields[1] += fields[0]
    seen = score(list(fields), 2.0 * fields[0] - 3.0 * fields[1], 0.1)
    np.testing.assert_allclose(seen.values, [2.0, -3.0])
    single = score([fields[0]], fields[0], 0.1)
    np.testing.assert_allclose(single.chi2, np.sum(fields[0] ** 2) / 0.01)
    np.testing.assert_allclose(single.covariance, 0.01 / np.sum(fields[0] ** 2))


def test_a_direction_that_holds_nothing_has_infinite_error(fit):
    test = score_test(fit, "nothing", [np.zeros(fit.record.shape)])
    assert (test.statistic, test.p, test.error) == (0.0, 1.0, (np.inf,))
    assert test.words == "nothing is 0 +- inf"


# ---- under the model


def test_statistics_are_standard_normal_under_the_model(answers):
    names = [name for name in named(answers[0]) if name not in ("advection", "outliers")]
    rare = RARE / (2 * len(names))
    for name in names:
        z = np.array([named(answer)[name].statistic for answer in answers])
        assert abs(z.mean()) * np.sqrt(SEEDS) < norm.isf(rare / 2), name
        assert chi2.ppf(rare / 2, SEEDS) < np.sum(z**2) < chi2.isf(rare / 2, SEEDS), name
    drift = sum(named(answer)["advection"].statistic for answer in answers)
    assert chi2.ppf(rare / 2, 2 * SEEDS) < drift < chi2.isf(rare / 2, 2 * SEEDS)


def test_false_alarms_are_rare(answers):
    alarms = sum(answer.verdict != "adequate" for answer in answers)
    assert alarms <= 5  # 5 of 16 at a rate of 5 % has the chance 1e-3, of 6 1e-4
    good = next(answer for answer in answers if answer.verdict == "adequate")
    assert good.words == ("none of 10 tests is significant after correction for their number",)
    assert str(good).startswith("model: adequate\n  none of 10 tests")


# ---- faults


def test_q_off_by_5_percent_is_seen_and_named(noisy):
    wrong = Record(noisy.slab(), dx=noisy.dx, dt=DT, q=1 / 1.05, boundary="periodic")
    answer = asked(wrong)
    test = named(answer)["q"]
    assert abs(test.estimate[0] - 0.05) < 4 * test.error[0]
    assert test.statistic > 10
    assert answer.verdict == "not adequate"
    assert answer.words[0].startswith("q is 5 +- 0.3 % larger than declared (1")
    assert answer.words[0].endswith("check q, and dx and dt, which scale with it")


def test_shift_predicts_what_the_right_q_would_change(noisy):
    wrong = Record(noisy.slab(), dx=noisy.dx, dt=DT, q=1 / 1.05, boundary="periodic")
    found, right = (read_trajectory(record, START) for record in (wrong, noisy))
    test = named(check_adequacy(wrong, found))["q"]
    moved = found.evidence.blocks[0].triangle[:3, :3] @ (right.coefficients - found.coefficients)
    assert test.shift == pytest.approx(np.linalg.norm(moved), rel=0.3)


def shifted(u, speed):
    """Shift each frame by speed t along x through its Fourier modes."""
    waves = 2j * np.pi * np.fft.rfftfreq(u.shape[-1], 1 / 32)
    modes = np.fft.rfft(u, axis=-1) * np.exp(-waves * speed * DT * np.arange(len(u))[:, None])[:, None, :]
    return np.fft.irfft(modes, n=u.shape[-1], axis=-1)


def test_advection_is_seen_and_named(clean):
    answer = asked(add_noise(clean.replace(shifted(clean.slab(), 0.5)), NOISE, seed=5))
    test = named(answer)["advection"]
    assert abs(test.estimate[1] - 0.5) < 4 * test.error[1]
    assert abs(test.estimate[0]) < 4 * test.error[0]
    assert test.degrees == 2
    assert answer.verdict == "not adequate"
    assert answer.words[0].startswith("the pattern drifts with the velocity")
    assert "along y, " in answer.words[0]


def test_wrong_boundary_is_seen_and_named():
    movie = add_noise(drop(boundary="neumann", moved=True), NOISE, seed=6)
    answer = asked(Record(movie.slab(), dx=movie.dx, dt=DT, q=1.0, boundary="periodic"))
    assert named(answer)["boundary"].estimate[0] > 0.5
    assert answer.verdict == "not adequate"
    assert answer.words[0].startswith("share of the way from the periodic border (0) to the neumann one (1)")
    assert "declare the other boundary" in answer.words[0]


def test_tilt_is_seen_and_named(clean):
    """A tilted law from the odd one: G + b is simulated by CNAB2 as a family with a constant."""
    tilt = 1.0
    answer = asked(add_noise(tilted_movie(clean, tilt), NOISE, seed=7))
    test = named(answer)["tilt"]
    assert abs(test.estimate[0] - tilt) < 4 * test.error[0] + 0.1
    assert answer.verdict == "not adequate"
    assert answer.words[0].startswith("the force lacks a constant of ")
    assert "unequal depth" in answer.words[0]


def tilted_movie(clean, tilt):
    from doublewell.dynamics import Cnab2
    from doublewell.simulate.rollout import rollout

    law = named_law("sixth").effective(EPSILON)

    class Tilted:
        def force(self, u):
            return law.force(u) + tilt

    stepper = Cnab2(Grid((32, 32), 1 / 32, "periodic"), DT, 1.0, 24)
    return clean.replace(rollout(stepper, Tilted(), clean.slab()[0], frames=21))


@pytest.mark.parametrize(("drift", "word"), [(0.03, "grows"), (-0.03, "falls")])
def test_gain_drift_is_seen_and_named(noisy, drift, word):
    gain = 1.0 + drift * np.linspace(0.0, 1.0, 21)
    answer = asked(noisy.replace(noisy.slab() * gain[:, None, None]))
    test = named(answer)["gain drift"]
    assert test.statistic * np.sign(drift) > 10
    assert answer.verdict == "not adequate"
    assert answer.words[0].startswith(f"the contrast {word} by ")
    assert "rescale each frame" in answer.words[0]


def test_correlated_noise_is_named_before_the_scores_it_raises(clean):
    answer = asked(add_noise(clean, NOISE, seed=8, correlation=0.5))
    assert answer.verdict == "not adequate"
    assert answer.words[0].startswith("neighbours along ")
    assert "the intervals are too narrow" in answer.words[0]


def test_outliers_ask_for_a_look_only(noisy):
    values = noisy.slab().copy()
    values[10, [3, 9, 20], [4, 25, 30]] += 0.3
    answer = asked(noisy.replace(values))
    assert answer.verdict == "look"
    assert named(answer)["outliers"].estimate == (3.0,)
    assert any("dead pixels" in line or "outliers" in line for line in answer.words)


def line(*, boundary, moved):
    start = initial_field("circle", (64,), 1 / 64, epsilon=EPSILON)
    movie = simulate(
        named_law("quartic"), np.roll(start, moved), dx=1 / 64, dt=DT, frames=21, epsilon=EPSILON, boundary=boundary
    )  # fmt: skip
    noisy = add_noise(movie, 0.01, seed=2)
    return Record(noisy.slab(), dx=1 / 64, dt=DT, q=1.0, boundary="neumann")


def test_one_axis_with_walls():
    record = line(boundary="neumann", moved=0)
    answer = check_adequacy(record, read_trajectory(record, np.array([90.0])))
    assert answer.verdict == "adequate"
    assert [t.name for t in answer.tests if t.name.startswith("white")] == ["white in t", "white in x"]
    assert named(answer)["advection"].degrees == 1


def test_walls_declared_where_there_are_none():
    record = line(boundary="periodic", moved=20)
    answer = check_adequacy(record, read_trajectory(record, np.array([90.0])))
    assert answer.verdict == "not adequate"
    assert answer.words[0].startswith("share of the way from the neumann border (0) to the periodic one (1)")


# ---- words and values


def quiet(name, p, statistic=0.0, shift=None):
    return ScoreTest(name, statistic, 1, p, p, (0.0,), (1.0,), shift, f"{name} words")


def test_holm_multiplies_by_the_number_of_tests_left():
    adjusted = [t.adjusted for t in holm([quiet("a", 0.01), quiet("b", 0.04), quiet("c", 0.03)])]
    np.testing.assert_allclose(adjusted, [0.03, 0.06, 0.06])


def test_verdict_grows_with_the_evidence_and_keeps_tails_gentle():
    assert verdict([quiet("q", 0.2, shift=0.0)])[0] == "adequate"
    assert verdict([quiet("q", 0.01, 2.6, shift=0.0)])[0] == "look"
    assert verdict([quiet("q", 1e-5, 4.4, shift=0.0)])[0] == "not adequate"
    assert verdict([quiet("tails", 1e-9, 6.1)])[0] == "look"


def test_named_cause_goes_before_its_traces():
    said, words = verdict(
        [quiet("white in t", 0.0, 200.0), quiet("tails", 0.0, 900.0), quiet("boundary", 0.0, 150.0, shift=2.0)]
    )
    assert said == "not adequate"
    assert words[0].startswith("boundary words (150.0 sigma); fitting it would move the law by 2.0 standard errors")
    assert words[1] == (
        "also significant, perhaps from the same cause: white in t (200.0 sigma), tails (900.0 sigma); "
        "cure the first and check again"
    )


def test_a_quiet_border_says_so(fit):
    test = score_test(fit, "boundary", [1e-4 * direction for direction in DIRECTIONS["boundary"](fit)])
    assert test.words == "the border is too quiet to tell periodic from neumann"


def test_record_of_another_shape_is_refused(fit):
    with pytest.raises(InputError, match="expected the record that was fitted"):
        check_adequacy(fit.record.clip(0, 10), fit.found)


def test_adequacy_survives_the_codec(answers):
    codec = codec_of(Adequacy)
    assert codec.decode(codec.encode(answers[0], "adequacy"), "adequacy") == answers[0]

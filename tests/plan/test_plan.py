from dataclasses import replace

import numpy as np
import pytest

from doublewell.dynamics import Grid
from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.plan import Analysis, Experiment, Plan, experiment_information, plan, planning, predict
from doublewell.plan import experiment as experiments
from doublewell.plan.experiment import CHANGES
from doublewell.plan.planning import reach
from doublewell.simulate import initial_field

QUICK = Analysis(2, "none")


@pytest.fixture(scope="module")
def made(small):
    said = []
    found = plan(
        small,
        degree=2,
        constraint="none",
        target=0.015,
        progress=lambda words, *_: said.append(words.removeprefix("predicting: ")),
    )
    return found, said


def fake(known, rate):
    """Information that grows as a given function of the frames, at no cost."""

    def information(film, *, frames=None):
        frames = film.frames if frames is None else frames
        return replace(known, triangle=known.triangle * np.sqrt(rate(frames) / rate(13)))

    return information


def search(small, known, target, **options):
    base = predict(small, known, QUICK)
    settings = {"base": base, "target": target, "quantity": "force", "show": lambda _: None} | options
    return reach(small, known, QUICK, **settings)


def test_changes_come_best_first_and_half_the_noise_halves_the_error(made, small, known):
    found, said = made
    errors = [option.prediction.force for option in found.options]
    assert errors == sorted(errors)
    names = {"half the noise", "twice as long", "twice as often", "twice the pixels", "same frames, twice the time"}
    assert {option.name for option in found.options} == names
    assert names < set(said)
    assert said[0] == "as planned"
    ratios = {option.name: option.prediction.force / found.prediction.force for option in found.options}
    assert ratios["half the noise"] == pytest.approx(0.5, rel=2e-3)
    assert 0.6 < ratios["twice as often"] < 0.8  # twice the data: about 1/sqrt(2)
    assert 0.6 < ratios["twice the pixels"] < 0.8
    assert found.prediction.force == predict(small, known, QUICK).force
    assert found.best is found.options[0]


def test_the_target_is_met_by_the_frames_found_and_not_by_fewer(made, small):
    found = made[0].goal
    assert made[0].prediction.force > 0.015
    assert small.frames < found.frames <= 25
    assert found.status == "reached"
    film = replace(small, frames=25)
    for frames, holds in ((found.frames, True), (round(0.9 * found.frames), False)):
        there = predict(film, experiment_information(film, frames=frames), QUICK)
        assert (there.force <= 0.015) is holds
    assert [k for k, _ in found.tried] == sorted(k for k, _ in found.tried)


def test_less_noise_meets_the_target_too(made, small, known):
    noise = made[0].goal.noise
    assert noise < small.noise
    there = predict(replace(small, noise=noise), known, QUICK)
    assert there.force == pytest.approx(0.015, rel=0.03)


@pytest.mark.parametrize("factor", [0.3, 0.9, 1.1, 1.7])
def test_frames_follow_the_inverse_square_of_the_target(small, known, monkeypatch, factor):
    monkeypatch.setattr(planning, "experiment_information", fake(known, lambda frames: frames))
    base = predict(small, known, QUICK).force
    found = search(small, known, factor * base)
    exact = max(13.0, 13 / factor**2)  # a search ends there
    assert exact * 0.999 <= found.frames <= max(exact * 1.07, exact + 1)
    assert found.prediction.force <= factor * base
    assert (found.noise is None) is (factor > 1)


def test_a_movie_that_ends_in_one_phase_sets_a_limit(small, known, monkeypatch):
    monkeypatch.setattr(planning, "experiment_information", fake(known, lambda frames: min(frames, 30)))
    found = search(small, known, 1e-3)
    assert (found.frames, found.prediction) == (None, None)
    assert found.status == "recording longer does not help: 97 frames leave 100% of the error"
    assert found.noise == pytest.approx(0.03 * 1e-3 / predict(small, known, QUICK).force, rel=0.05)
    whole = Plan(small, QUICK, predict(small, known, QUICK), (), found, ())
    assert "error of G 0.1 %: no length that was tried reaches it; recording longer does not help" in str(whole)
    assert "No change could be computed." in str(whole)


def test_a_movie_that_is_too_large_is_not_tried(small, known, monkeypatch):
    monkeypatch.setattr(planning, "experiment_information", fake(known, lambda frames: frames))
    base = predict(small, known, QUICK).force
    monkeypatch.setattr(planning, "_MOST_VALUES", 52 * 24 * 24)
    assert search(small, known, 0.51 * base).frames == pytest.approx(51, abs=1)
    found = search(small, known, 0.1 * base)
    assert found.frames is None
    assert found.status == "more than 52 frames are too large to try; at the last rate it would take about 1.3e+03"
    monkeypatch.setattr(planning, "_MOST_VALUES", 1)
    assert search(small, known, 0.1 * base).status == "more than 13 frames are too large to try"


def test_other_errors_can_be_asked_for(small, known, monkeypatch):
    monkeypatch.setattr(planning, "experiment_information", fake(known, lambda frames: frames))
    base = predict(small, known, QUICK)
    found = search(small, known, 0.5 * base.epsilon, quantity="epsilon")
    assert found.frames == pytest.approx(53, rel=0.06)
    assert found.prediction.epsilon <= 0.5 * base.epsilon
    with pytest.raises(InputError, match="the error of epsilon is not defined: the law, or what is recovered of it"):
        search(small, known, 0.01, quantity="epsilon", base=replace(base, epsilon=None))


def test_bias_is_named_where_nothing_helps(experiment, monkeypatch):
    planned = experiment("bernstein3", noise=1e-3)
    known = experiment_information(planned)
    monkeypatch.setattr(planning, "experiment_information", fake(known, lambda frames: frames))
    found = plan(planned, degree=1, constraint="none", target=0.01)
    assert found.goal.frames is None
    assert found.goal.noise is None
    assert "no noise does either" in str(found)
    assert "None of these changes lowers the error of G." in found.advice
    assert "degree 1 cannot follow this law; use degree='auto'" in found.advice


def test_the_report_holds_the_numbers(made):
    text = str(made[0])
    assert text.startswith("Plan: sixth law, 13 frames of 24 x 24, dt = 0.0005 (to t = 0.006), noise 0.03, epsilon")
    assert "fit: degree 2, no constraint" in " ".join(text.split())
    assert "Cramer-Rao bound of G at this degree" in text
    assert "half the noise (0.015)" in text
    assert "x 0.50" in text
    assert f"error of G 1.5 %: {made[0].goal.frames} frames" in text
    assert "What helps most is half the noise (0.015): the error of G times 0.50." in made[0].advice
    assert "With the noise as it is, " in made[0].advice
    assert "F and epsilon take the surface tension as exact" in text
    assert max(map(len, text.splitlines())) <= 102


def test_the_average_over_degrees_is_the_default(small, known, monkeypatch):
    monkeypatch.setattr(experiments, "DRAWS", 40)
    monkeypatch.setattr(planning, "experiment_information", fake(known, lambda frames: frames))
    experiments._draws.cache_clear()
    found = plan(small, tension_error=0.02)
    experiments._draws.cache_clear()
    assert found.prediction.bound is None
    assert found.prediction.epsilon == pytest.approx(0.02, rel=0.1)
    assert "fit: averaged over degrees, double wells with a single barrier" in " ".join(str(found).split())
    assert "the surface tension's own error of 2 % is in F and epsilon" in str(found)
    assert found.goal is None


def test_a_change_that_cannot_be_computed_says_why(small, known, monkeypatch):
    def refuse(film, *, frames=None):
        if film.frames > 13:
            raise InputError("the solution blows up")
        return replace(known, solve=0.2)

    monkeypatch.setattr(planning, "experiment_information", refuse)
    found = plan(replace(small, noise=0.2), degree=2)
    assert [option.name for option in found.options[-2:]] == ["twice as long", "twice as often"]
    assert "twice as long: not possible (the solution blows up)" in str(found)
    assert any("the errors are too small: the solves behind them reached only 0.2" in note for note in found.notes)
    assert any("the noise is strong (0.2" in note for note in found.notes)


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_a_finer_mesh_keeps_the_domain_and_the_field(boundary):
    def wave(grid):
        y, x = np.meshgrid(*grid.points, indexing="ij")
        return 0.5 * np.cos(2 * np.pi * x) + 0.3 * np.cos(4 * np.pi * y) * np.cos(2 * np.pi * x) + 0.1

    grid = Grid((10, 13), (0.1, 1 / 13), boundary)
    film = Experiment(named_law("sixth"), wave(grid), dx=grid.dx, dt=1e-3, frames=3, noise=0.1, boundary=boundary)
    fine = CHANGES["twice the pixels"][0](film)
    assert fine.initial.shape == (14, 18)
    mesh = Grid(fine.initial.shape, fine.dx, boundary)
    np.testing.assert_allclose(mesh.extent, grid.extent)
    np.testing.assert_allclose(fine.initial, wave(mesh), atol=1e-12)


def test_the_highest_mode_of_an_even_mesh_keeps_its_size():
    field = (-1.0) ** np.arange(8)
    film = Experiment(named_law("sixth"), field, dx=1 / 8, dt=1e-3, frames=3, noise=0.1)
    fine = CHANGES["twice the pixels"][0](film).initial
    assert fine.shape == (16,)
    np.testing.assert_allclose(fine, np.cos(np.pi * np.arange(16) / 2), atol=1e-12)


def test_changes_of_an_experiment(small):
    longer, faster = CHANGES["twice as long"][0](small), CHANGES["twice as often"][0](small)
    sparser = CHANGES["same frames, twice the time"][0](small)
    assert (longer.frames, longer.dt) == (25, small.dt)
    assert faster.duration == pytest.approx(small.duration)
    assert sparser.duration == pytest.approx(2 * small.duration)
    assert (sparser.frames, CHANGES["half the noise"][0](small).noise) == (13, 0.015)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": "sixth"}, r"law is 'sixth': expected a Law; pass named_law\('sixth'\)"),
        ({"initial": np.zeros(())}, "the mesh is"),
        ({"dx": -1.0}, "dx is -1: expected the mesh spacing"),
        ({"dt": 0.0}, "dt is 0: expected the frame interval, a positive number"),
        ({"frames": 1}, "frames is 1: expected an integer from 2"),
        ({"noise": 0.0}, "noise is 0: expected the standard deviation of the noise of one pixel, a positive number"),
        ({"epsilon": -1}, "epsilon is -1: expected the interface scale"),
        ({"q": 0}, "q is 0: expected the diffusion coefficient"),
        ({"boundary": "wall"}, "boundary"),
    ],
)
def test_wrong_experiments_are_refused(small, change, message):
    with pytest.raises(InputError, match=message):
        replace(small, **change)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 1.5}, "target is 1.5: expected a relative error below 1, such as 0.01 for 1 %"),
        ({"target": 0.0}, "target is 0: expected a relative error"),
        ({"target": 0.1, "target_of": "width"}, "target_of is 'width': expected 'force', 'potential' or 'epsilon'"),
        ({"degree": "best"}, "degree is 'best'"),
    ],
)
def test_wrong_questions_are_refused_before_any_work(small, options, message):
    with pytest.raises(InputError, match=message):
        plan(small, **options)


def test_what_identify_would_refuse_is_refused(small, monkeypatch):
    monkeypatch.setattr(planning, "experiment_information", lambda *_: pytest.fail("work was begun"))
    with pytest.raises(InputError, match="identify could not fit this movie: no interface is detected"):
        plan(replace(small, initial=np.full((24, 24), 0.9) + 1e-6 * np.eye(24)))


def test_a_target_that_is_met_is_said_to_be_met(small, known, monkeypatch):
    monkeypatch.setattr(planning, "experiment_information", fake(known, lambda frames: frames))
    film = replace(small, frames=61)
    base = predict(film, known, QUICK)
    options = {"base": base, "quantity": "force", "show": lambda _: None}
    found = reach(film, known, QUICK, target=1.001 * base.force, **options)
    assert "target already met, the planned 61 frames reach " in str(Plan(film, QUICK, base, (), found, ()))
    easy = search(small, known, 0.5)
    text = str(Plan(small, QUICK, predict(small, known, QUICK), (), easy, ()))
    assert "error of G 50 %: target already met, the planned 13 frames reach 1.9 %" in text
    assert "would do" not in text
    shorter = replace(easy, frames=13, tried=((13, 0.02), (61, 0.01)), target=0.03)
    text = str(Plan(film, QUICK, base, (), shorter, ()))
    assert "error of G 3 %: target already met, the planned 61 frames reach 1 %" in text
    assert "  13 frames would do, until t = 0.006" in text


def test_the_note_of_the_weak_reading_is_no_note_of_a_plan(small, known, monkeypatch):
    monkeypatch.setattr(planning, "experiment_information", lambda *_: known)
    coarse = replace(small, initial=initial_field("nonconvex", (24, 24), 1 / 24, epsilon=0.05), epsilon=0.05)
    notes = plan(coarse, degree=2).notes
    assert any("pixels; 9 or more are better" in note for note in notes)
    assert not any("ten percent" in note for note in notes)


def test_something_else_is_no_experiment():
    with pytest.raises(InputError, match=r"expected an Experiment\(law, initial, dx=, dt=, ...\)"):
        plan("sixth")

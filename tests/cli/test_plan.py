import numpy as np
import pytest

from doublewell.cli.experiments import _law
from doublewell.cli.options import _PATIENT as PATIENT
from doublewell.cli.options import parse_fraction
from doublewell.identify import identify
from doublewell.io import save
from doublewell.law import named_law
from doublewell.plan import Analysis, Experiment, experiment_information, predict
from doublewell.simulate import initial_field

SMALL = ["--mesh", "24x24", "--dt", "5e-4", "--frames", "13", "--geometry", "nonconvex", "--degree", "2"]


def direct(law, epsilon, **options):
    start = initial_field("nonconvex", (24, 24), 1 / 24, epsilon=epsilon)
    made = Experiment(law, start, dx=1 / 24, dt=5e-4, frames=13, noise=0.03, epsilon=epsilon)
    return predict(made, experiment_information(made), Analysis(2, **options))


def test_numbers_are_those_of_the_library(run_json):
    words = ["--epsilon", "0.1", "--tension-error", "1%", "--target", "5%", "--noise", "3%"]
    found = run_json("plan", *SMALL, *words)
    expected = direct(named_law("sixth"), 0.1, tension_error=0.01)
    assert found["prediction"]["force"] == pytest.approx(expected.force, rel=1e-9)
    assert found["prediction"]["potential"] == pytest.approx(expected.potential, rel=1e-9)
    assert found["prediction"]["epsilon"] == pytest.approx(expected.epsilon, rel=1e-9)
    assert found["experiment"]["mesh"] == [24, 24]
    assert found["changes"][0]["ratio"] < 1
    assert found["target"]["frames"] == 13
    assert found["experiment"]["noise"] == 0.03
    assert found["target"]["noise_instead"] is None
    assert found["advice"].startswith("What helps most is")


def test_a_conserved_field_is_planned(run_json):
    words = ["--mesh", "32", "--dx", "1", "--dt", "6", "--frames", "9", "--epsilon", "2", "--geometry", "inclusion"]
    more = ["--dynamics", "cahn-hilliard", "--law", "quartic", "--degree", "0", "--noise", "0.01"]
    found = run_json("plan", *words, *more)
    start = initial_field("inclusion", (32,), 1.0, epsilon=2.0)
    times = {"dx": 1.0, "dt": 6.0, "frames": 9, "noise": 0.01, "epsilon": 2.0}
    made = Experiment(named_law("quartic"), start, **times, dynamics="cahn-hilliard")
    expected = predict(made, experiment_information(made), Analysis(0))
    assert found["experiment"]["dynamics"] == "cahn-hilliard"
    assert found["prediction"]["force"] == pytest.approx(expected.force, rel=1e-9)
    assert found["prediction"]["wells"] == pytest.approx(list(expected.wells), rel=1e-9)


def test_words(run):
    code, out, err = run("plan", *SMALL, "--epsilon", "0.1")
    assert code == 0
    assert err == "doublewell: " + PATIENT + "\n"
    assert out.startswith("Plan: sixth law, 13 frames of 24 x 24")
    assert "Effect of a change" in out
    assert "Target" not in out


@pytest.mark.parametrize("tension", [None, 0.9])
def test_the_next_movie_of_a_recovered_law(noisy, tmp_path, tension):
    result = identify(noisy, tension, method="weak")
    save(result, tmp_path / "result.json")
    law, scale = _law(str(tmp_path / "result.json"), None)
    np.testing.assert_allclose(law.effective(scale).coefficients, result.coefficients, rtol=1e-12)
    if tension is None:
        start = initial_field("circle", (512,), 1 / 512, epsilon=scale)
        drawn = np.count_nonzero(np.abs(start[:256]) < 0.9) / 512  # the left interface
        assert drawn == pytest.approx(result.law.interface_width(), abs=2 / 512)
    else:
        assert scale == result.scale.epsilon


def test_fractions():
    assert parse_fraction(" 2.5 % ", "--target") == 0.025
    assert parse_fraction("0", "--tension-error") == 0.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "1"], "--target is '1': expected a fraction below 1, such as 1% or 0.01"),
        (["--target", "small"], "--target is 'small': expected a fraction"),
        (["--target", "0"], "target is 0: expected a relative error"),
        (["--tension-error=-1%"], "--tension-error is '-1%': expected a fraction"),
        (["--law", "cubic"], "no law is named 'cubic'"),
        (["--law", "nowhere.json"], "nowhere.json"),
        (["--law", "nowhere.json", "--epsilon", "0.1"], "--epsilon belongs to a named law"),
        (["--geometry", "cube"], "no geometry is named 'cube'"),
        (["--geometry", "spinodal"], "a spinodal start needs --seed"),
        (["--degree", "9"], "--degree is 9"),
        (["--mesh", "big"], "--mesh is 'big'"),
        (["--noise", "0"], "noise is 0: expected the standard deviation of the noise of one pixel, a positive number"),
        (["--noise", "loud"], "--noise is 'loud': expected a fraction below 1, such as 1% or 0.01"),
        (["--frames", "1"], "frames is 1"),
        (["--dt", "-1"], "dt is -1"),
        (["--dx", "a"], "--dx is 'a'"),
        (["--target-of", "width"], "--target-of"),
    ],
)
def test_wrong_use_is_one_line(refused, words, message):
    assert message in refused("plan", *words)

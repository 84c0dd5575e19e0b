"""Verdicts and advice follow the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from doublewell.adequacy import Adequacy
from doublewell.calibrate import SurfaceTension, calibrate
from doublewell.law import Law
from doublewell.report.page.advice import advice, plan_command
from doublewell.report.page.scale import scale_parts
from doublewell.report.page.summary import equation_block, sentences, verdict_box, wells_table
from doublewell.report.page.verdicts import findings, overall


def with_fit(result, **changes):
    fit = replace(result.diagnostics.likelihood, **changes)
    return replace(result, diagnostics=replace(result.diagnostics, likelihood=fit))


def with_survey(result, **changes):
    seen = replace(result.diagnostics.survey, **changes)
    return replace(result, diagnostics=replace(result.diagnostics, survey=seen))


def with_tension(result, sd=None, normalisation="E"):
    tension = SurfaceTension(result.scale.tension.value, sd, normalisation)
    return replace(result, scale=calibrate(result.law, tension), settings=replace(result.settings, tension=tension))


def verdict(result, start):
    (found,) = [item for item in findings(result) if item.question.startswith(start)]
    return found.verdict, found.words


@pytest.fixture(scope="module")
def sure(banded):
    """A result that nothing speaks against."""
    return with_tension(banded, sd=0.01)


def test_a_good_result_is_good(sure):
    assert {item.verdict for item in findings(sure)} == {"good"}
    assert overall(findings(sure)) == "good"
    assert "✔" in verdict_box(findings(sure))
    assert "Nothing speaks against" in verdict_box(findings(sure))


def test_a_fit_that_did_not_converge_is_not_to_be_used(sure):
    poor = with_fit(sure, converged=False, status="20 steps")
    assert verdict(poor, "Did the fit") == ("do not use", "the fit did not converge (20 steps): do not use its errors")
    assert overall(findings(poor)) == "do not use"


@pytest.mark.parametrize(("answer", "expected"), [("look", "look"), ("not adequate", "do not use")])
def test_a_model_that_its_tests_refuse(sure, answer, expected):
    words = ("the contrast grows by 1 +- 0.1 % over the record: rescale each frame", "also significant: tilt")
    found = with_fit(sure, adequacy=Adequacy(sure.adequacy.tests, answer, words))
    numbers = replace(found.diagnostics, warnings=tuple(f"model {answer}: {line}" for line in words))
    found = replace(found, diagnostics=numbers)
    kind, said = verdict(found, "Does the movie")
    assert kind == expected
    assert "The contrast grows by 1 ± 0.1 %" in said
    assert not [item for item in findings(found) if item.question.startswith("What else")]  # said once
    assert "First mend what the tests found" in advice(found)[0]
    assert verdict(found, "How sure")[0] == ("good" if answer == "look" else "do not use")
    assert ("Less noise" in " ".join(advice(found))) is (answer == "look")
    if answer == "look":
        assert "is significant. The contrast" in sentences(found)
        assert "95\N{NO-BREAK SPACE}%: " in sentences(found)
    else:
        assert "Not sure at all: its 95\N{NO-BREAK SPACE}% bands do not hold" in sentences(found)
        assert "95 %: " not in sentences(found)
        assert "The intervals do not hold" in wells_table(found)


def test_an_unasked_model_is_looked_at(sure):
    blind = with_fit(sure, adequacy=None)
    assert verdict(blind, "Does the movie")[0] == "look"
    assert "which was not tested" in sentences(blind)


def test_wide_bands_and_coarse_steps(sure, monkeypatch):
    for size, kind in ((0.04, "good"), (0.2, "look"), (0.7, "do not use")):
        monkeypatch.setattr("doublewell.report.page.verdicts.band_size", lambda _, size=size: size)
        assert verdict(sure, "How sure")[0] == kind
    assert verdict(with_fit(sure, time_size=0.5), "Are steps")[0] == "look"
    words = "a finer mesh would move the estimate by 3.0 standard errors: ..."
    coarse = replace(sure, diagnostics=replace(sure.diagnostics, warnings=(words,)))
    assert verdict(coarse, "Are steps") == ("look", words)


def test_other_warnings_are_passed_on(sure):
    said = ("the constraint raises chi2 by 20: ...", "something new")
    found = replace(sure, diagnostics=replace(sure.diagnostics, warnings=said))
    assert verdict(found, "Does the constraint") == ("look", said[0])
    assert verdict(found, "What else") == ("look", "something new")


def test_wells(sure):
    assert verdict(with_fit(sure, extra_structure=0.3), "Is it a double well")[0] == "look"
    odd = replace(sure, law=Law.bernstein([1.0, -3.0, 4.0]))
    assert verdict(odd, "Is it a double well")[0] == "look"
    assert "is no plain double well" in sentences(odd)
    assert "maximum of the energy" in wells_table(odd)
    flat = replace(sure, law=Law.bernstein([1.0, -1.0]), scale=None)
    assert "not both pure phases are stable" in wells_table(flat)


def test_a_poor_movie(sure):
    poor = with_survey(sure, noise=0.2, cells=5.0, histogram=(0.5, *([0.0] * 8), 0.1, 0.1, *([0.0] * 8), 0.3))
    said = [item for item in findings(poor) if item.question == "Is the movie good enough?"]
    assert len(said) == 4  # interface, phases, noise, movement
    assert {item.verdict for item in said} == {"look"}
    told = " ".join(advice(poor))
    assert "phase values −0.9 to −0.1 and 0.1 to 0.9 too" in told
    assert "an interface spans 5.0 of them, and 9 or more are better" in told
    assert "The noise is strong (0.2" in told


def test_the_parts_of_epsilon(sure, banded):
    parts = scale_parts(sure)
    assert parts.tension_sd == pytest.approx(sure.epsilon * 0.01 / sure.scale.tension.value)
    low, high = sure.interval("epsilon")
    total = np.hypot(parts.movie_sd, parts.tension_sd)
    assert high - low == pytest.approx(3.92 * total, rel=0.05)  # 4000 draws
    assert parts.share == pytest.approx((parts.tension_sd / total) ** 2)
    assert scale_parts(banded).share == 0.0
    other = scale_parts(with_tension(sure, sd=0.01, normalisation="eE"))
    assert other.movie_sd / with_tension(sure, normalisation="eE").epsilon == pytest.approx(
        0.5 * parts.movie_sd / sure.epsilon
    )


def test_the_scale(sure, banded, result, bare):
    assert verdict(sure, "Are ε")[1].endswith("of the variance of ε comes from the surface tension")
    assert "A better surface tension:" in " ".join(advice(sure))
    assert verdict(banded, "Are ε")[0] == "look"
    assert "Pass the standard deviation of the surface tension" in " ".join(advice(banded))
    assert verdict(result, "Are ε") == ("good", "yes, by the surface tension that was given")
    assert not [item for item in findings(bare) if item.question.startswith("Are ε")]
    no = replace(result, scale=None, refusal="calibration refused: H < 0")
    assert verdict(no, "Are ε") == ("do not use", "calibration refused: H < 0")
    assert "Calibration refused: H &lt; 0" in wells_table(no)
    assert not [text for text in advice(no) if "surface tension" in text]


def test_weak_results(result):
    assert verdict(result, "How sure")[0] == "look"
    assert verdict(result, "Do the weak moments")[0] == "good"
    words = "the supports disagree: one alone changes the force by 30 %; lower the degree or choose supports"
    poor = replace(result, diagnostics=replace(result.diagnostics, warnings=(words,)))
    assert verdict(poor, "Do the weak moments") == ("look", words)
    assert plan_command(result) is None
    tension = replace(result, scale=replace(result.scale, epsilon_sd=0.01))
    assert "from the surface tension alone" in wells_table(tension)


def test_one_degree_has_one_equation(single, banded):
    assert equation_block(single).count("G(u) = ") == 1
    assert equation_block(banded).count("G(u) = ") == 2

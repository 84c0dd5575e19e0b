from dataclasses import replace

import numpy as np
import pytest
from grouping import changed

from doublewell.adequacy import Adequacy, Verdict
from doublewell.calibrate import SurfaceTension, calibrate
from doublewell.facts import band_size, facts
from doublewell.units import percent


def with_numbers(result, **numbers):
    return replace(result, diagnostics=replace(result.diagnostics, **numbers))


def with_fit(result, **numbers):
    return with_numbers(result, likelihood=replace(result.diagnostics.likelihood, **numbers))


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.000123, "0.012 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (0.98, "98 %"), (1.0, "100 %")],
)
def test_percent_has_two_digits_and_no_exponent(share, text):
    assert percent(share) == text


def test_the_weak_report_has_its_sections_and_no_others(result):
    text = str(result)
    assert "by the weak-form fit" in text
    assert "supports (5 frames" in text
    assert " moments, residual " in text
    for words in ("95 %:", "Gauss-Newton", "Degrees", "correlation", "extra structure", " +- "):
        assert words not in text
    assert "residual 98 %" in str(with_numbers(result, residual=0.98))
    assert not any(fact.interval for fact in facts(result).numbers.values())


def test_the_trajectory_report_has_its_sections_and_no_others(banded):
    text, fit = str(banded), banded.diagnostics.likelihood
    for name in ("epsilon", "barrier", "width"):
        low, high = banded.interval(name)
        assert f"(95 %: {low:.6g} to {high:.6g})" in text
    assert f"noise {fit.noise:.4g} per pixel" in text
    assert f"Gauss-Newton {fit.status.text}; {len(fit.steps)} steps" in " ".join(text.split())
    assert f"half the time step would move the estimate by {fit.time_size:.2g} standard errors" in text
    assert f"95 % band of G: +- {percent(band_size(banded))} of G" in text
    assert "probability of extra structure, from the data without the constraint: " in text
    for words in ("supports", "moments", "correlation ", "optimality"):
        assert words not in text
    assert max(map(len, text.splitlines())) <= 110
    assert text.isascii()


def test_the_degree_table_is_the_path(banded):
    lines = str(banded).splitlines()
    first = lines.index("Degrees") + 2
    best = max(banded.posterior.path, key=lambda fit: fit.weight)
    for line, fit in zip(lines[first:], banded.posterior.path, strict=False):
        degree, chi2, weight, *_ = line.split()
        assert int(degree) == fit.degree
        assert float(chi2) == pytest.approx(fit.chi2, abs=0.051)
        assert (0.0 if weight == "-" else float(weight)) == pytest.approx(100 * fit.weight, abs=0.051)
        assert line.endswith(", ".join(f"{u:.3g}" for u in fit.contacts) or "none")
    assert lines[first + 9] == ""
    assert f"(degree {best.degree} has the weight {percent(best.weight)})" in lines[0]


def test_one_degree_has_standard_errors_and_correlations(single):
    text = str(single)
    for g, sd in zip(single.coefficients, np.sqrt(np.diag(single.covariance)), strict=True):
        assert f" = {g:.6g} +- {sd:.2g}" in text
    spread = np.sqrt(np.diag(single.covariance))
    table = single.covariance / np.outer(spread, spread)
    rows = [line.split() for line in text.splitlines() if line.strip().startswith(("g_1 ", "g_2 ")) and "=" not in line]
    assert rows == [["g_1", f"{table[1, 0]:.3f}"], ["g_2", f"{table[2, 0]:.3f}", f"{table[2, 1]:.3f}"]]
    assert "Degrees" not in text
    assert "law of degree 2 by the trajectory fit" in text


def test_what_the_intervals_mean_is_said(banded, single):
    assert "take the surface tension as exact" in str(banded)
    known = calibrate(banded.law, SurfaceTension(banded.scale.tension.value, 0.01))
    assert "take the surface tension as exact" not in str(replace(banded, scale=known))
    bound = " ".join(str(with_fit(with_numbers(single, active=(1,)), constraint_rise=3.21)).split())
    assert "chi2 rises by 3.2; at the bound: g_1 of degree 2, so the intervals show the spread of the" in bound
    exact = changed(single, constraint="admissible")
    assert "  double wells with a single barrier: chi2 rises by 3.2\n" in str(with_fit(exact, constraint_rise=3.21))
    touching = " ".join(str(with_fit(with_numbers(exact, contacts=(0.0, 0.7071)), constraint_rise=3.21)).split())
    assert "rises by 3.2; the bracket touches zero at |u| = 0, 0.707, so the intervals show the spread" in touching
    free = changed(single, constraint="none")
    assert "  no constraint\n" in str(free)
    ridge = changed(single, ridge=0.5)
    assert "ridge alpha = 0.5; the intervals are those without it" in str(ridge)


def model_section(result):
    return str(result).split("\nModel\n")[1].split("\n\nWarnings\n")[0]


def test_the_model_section_has_the_verdict_and_no_list_of_what_is_not_wrong(banded):
    words = "  adequate: none of 23 tests is significant after correction for their number"
    assert model_section(banded).rstrip() == words


def test_a_fault_is_told_once_and_referred_to(banded):
    q, *others = banded.adequacy.tests
    worst = replace(q, statistic=-23456.7, p=0.0, adjusted=0.0, drop=1e6)
    tilt = replace(others[2], statistic=8.0, p=1e-12, adjusted=1e-11)
    answer = Adequacy((worst, *others[:2], tilt, *others[3:]), Verdict.NOT_ADEQUATE, 0.04)
    wrong = with_fit(banded, adequacy=answer)
    text, section = str(wrong), model_section(wrong)
    assert section.startswith("  not adequate: q is")
    assert section.splitlines()[1].startswith("    ")  # a long sentence goes on there
    assert " q z -2.3e+04 < 1e-99 q is " in " ".join(section.split())
    warnings = text.split("Warnings\n")[1]
    assert "the bands do not hold: see Model" in " ".join(warnings.split())
    assert text.count("also significant") == 1
    gentle = replace(answer, tests=(replace(q, p=0.001, adjusted=0.01), *others), verdict=Verdict.CHECK)
    assert "- a test of the model is significant: see Model" in str(with_fit(banded, adequacy=gentle))
    assert max(map(len, text.splitlines())) <= 110


def test_a_model_that_was_not_asked_says_so(banded, result):
    assert model_section(with_fit(banded, adequacy=None)).startswith("  not tested: the tests were switched off")
    assert model_section(result).startswith("  adequate")


def test_segments_are_said_in_words(banded):
    assert "segments" not in str(banded)
    flat = " ".join(str(with_fit(banded, segments=7)).split())
    assert "the record amplifies its initial field: it was cut into 7 segments, and these were linked step by" in flat


def test_extra_structure_is_a_probability(banded):
    assert "constraint: less than 0.1 %" in str(with_fit(banded, extra_structure=0.0))
    assert "constraint: 23 %" in str(with_fit(banded, extra_structure=0.23))


def test_no_scale_no_interval_of_it(banded):
    bare = replace(changed(banded, tension=None), scale=None)
    known = {key for key, fact in facts(bare).numbers.items() if fact.interval}
    assert known == {"width", "tension_integral"}
    known = {key for key, fact in facts(banded).numbers.items() if fact.interval}
    assert known == {"width", "tension_integral", "epsilon", "barrier", "kappa"}
    assert "epsilon and F are not determined" in str(bare)


def test_long_warnings_are_indented_once(result):
    numbers = replace(result.diagnostics, moments=None)
    lines = str(replace(result, diagnostics=numbers)).split("Model\n")[1].splitlines()
    assert lines[0].startswith("  not tested: the moments")
    assert lines[1].startswith("    ")


def test_a_result_in_one_line(result, banded):
    assert repr(result).startswith("Result(law of degree 2 by the weak-form fit, epsilon = 0.0")
    assert "no scale, double well, 1 warning)" in repr(replace(changed(result, tension=None), scale=None))
    assert "1 warning)" in repr(banded)
    assert len(repr(banded)) < 160

"""What a conserved field is asked with: defaults, refusals, the choice of an equation; no trajectory is fitted here."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import doublewell as dw
from doublewell.dynamics import CAHN_HILLIARD, MASS_CONSERVING, dynamics_of
from doublewell.errors import InputError
from doublewell.facts import Fact
from doublewell.identify import identify_many
from doublewell.identify.choose import _still, _Tried, _variance, choose_dynamics
from doublewell.identify.phases import plateaus_or, visited
from doublewell.law import Ideal, Law, Mixture, named_law
from doublewell.model_findings import coexistence_findings, diffusion_findings, rival_findings
from doublewell.problem import ask
from doublewell.result import Rival
from doublewell.simulate import add_noise, simulate
from doublewell.weak.weights import default_supports

CELLS, EPSILON, LAW = 48, 2.5, named_law("sixth")


@pytest.fixture(scope="module")
def record():
    """Twenty-one frames of a drop with four lobes."""
    x, y = np.meshgrid(*[np.arange(CELLS) - CELLS / 2] * 2, indexing="ij")
    outline = 0.27 * CELLS * (1 + 0.3 * np.cos(4 * np.arctan2(y, x)))
    start = np.tanh((outline - np.hypot(x, y)) / (np.sqrt(2) * EPSILON))
    clean = simulate(
        LAW, start, dx=1.0, dt=11.7, frames=21, epsilon=EPSILON, dynamics="cahn-hilliard", substeps=100
    )  # fmt: skip
    return add_noise(clean, 0.01, seed=1)


def test_names_and_values_are_the_same() -> None:
    assert dynamics_of("cahn-hilliard") is CAHN_HILLIARD == dw.CahnHilliard()
    assert dynamics_of("mass-conserving") is MASS_CONSERVING == dw.MassConserving()


def test_the_default_law_is_a_mixture(record) -> None:
    problem = ask([record], dynamics="cahn-hilliard")
    assert (problem.law.wells, type(problem.family)) == ("found", Mixture)
    assert not problem.view(record).contrast
    assert ask([record]).law.wells == "symmetric"
    known = ask([record], dynamics="cahn-hilliard", law="wells=equal")
    assert not known.family.found


def test_pure_components_lie_where_the_phases_are_declared(record) -> None:
    problem = ask([record], dynamics="cahn-hilliard", law="wells=ideal", observation={"phases": (-1.5, 1.25)})
    family = replace(problem, values=(-1.0, 1.0)).family
    assert isinstance(family, Ideal)
    low, high = family.placed((-2.0, 2.0)).phases
    assert (low, high) == problem.range_of((-1.0, 1.0)) == (-2.0, 2.0)
    assert family.pure == (-0.75, 0.625)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"law": "wells=found"}, "is for conserved fields, whose force is known up to a constant"),
        ({"law": "wells=ideal"}, "is for conserved fields"),
        ({"dynamics": "cahn-hilliard", "observation": "contrast=estimated"}, "are a choice of units beside them"),
        ({"dynamics": "cahn-hilliard", "observation": {"phases": (0, 1)}}, "are found by the fit"),
        ({"dynamics": "cahn-hilliard", "observation": {"phases": "estimated"}}, "are found by the fit"),
        (
            {"dynamics": "cahn-hilliard", "observation": {"response": "estimated"}},
            "curve of a camera between two known",
        ),
        ({"dynamics": "cahn", "law": 1}, "dynamics is 'cahn'"),
    ],
)
def test_what_makes_no_sense_is_refused(record, options, words) -> None:
    with pytest.raises(InputError, match=words):
        ask([record], **options)


def test_analytic_weights_have_no_fourth_derivative(record) -> None:
    with pytest.raises(InputError, match="fourth derivatives in space, .*: expected 'discrete'"):
        dw.identify(record, dynamics="cahn-hilliard", method="weak(derivative=analytic)")


def test_many_records_have_one_equation(record) -> None:
    with pytest.raises(InputError, match="'auto' for a fit"):
        identify_many([record], dynamics="auto")


def test_supports_of_fourth_derivatives_are_long(record) -> None:
    short, _ = default_supports(record, 8.0)
    long, rule = default_supports(record, 8.0, order=4)
    assert [support.length for support in long] == [8.0, 8.0] > [support.length for support in short]
    assert rule.endswith("12 cut to 8, a sixth of the shortest side)")
    assert rule.startswith("one and one and a half interface widths, chosen from the record")


def test_a_mesh_without_room_for_fourth_derivatives() -> None:
    """Its weak moments are refused, and a trajectory fit starts without them."""
    x, y = np.meshgrid(*[np.arange(12) - 6.0] * 2, indexing="ij")
    start = np.tanh((3.6 - np.hypot(x, 0.7 * y)) / (np.sqrt(2) * 1.5))
    times = {"dx": 1.0, "dt": 2.0, "frames": 13}
    small = simulate(named_law("quartic"), start, **times, epsilon=1.5, dynamics="cahn-hilliard", substeps=60)
    small = add_noise(small, 0.01, seed=1)
    with pytest.raises(InputError, match=r"too small for a weak moment: expected at least \(13, 13\) cells"):
        ask([small], dynamics="cahn-hilliard", method="weak")
    result = dw.identify(small, dynamics="cahn-hilliard", law=0, check=False)
    assert result.law.phases == pytest.approx((-1.0, 1.0), abs=0.05)
    assert result.resolved.supports == ()


def test_the_weak_form_fit_gives_force_phases_and_q(record) -> None:
    result = dw.identify(record.replace(q=None), dynamics="cahn-hilliard", method="weak", law=2)
    u = np.linspace(-1.0, 1.0, 101)
    true = LAW.effective(EPSILON).force(u)
    assert np.linalg.norm(result.force(u) - true) < 0.02 * np.linalg.norm(true)
    assert result.law.phases == pytest.approx((-1.0, 1.0), abs=5e-3)
    assert result.q == pytest.approx(1.0, rel=0.02)
    assert result.dynamics is CAHN_HILLIARD
    table = dw.facts(result)
    assert {"low", "high", "spinodal_low", "spinodal_high"} <= set(table.numbers)
    assert table["q"].name == "q = M kappa"
    assert "coexisting phases: u = " in str(result)


def force_error(result) -> float:
    u = np.linspace(-0.95, 0.95, 191)
    true = LAW.effective(EPSILON).force(u)
    return float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true))


@pytest.mark.parametrize(("name", "interval"), [("mass-conserving", 0.6), ("cahn-hilliard", 6.0)])
def test_the_bias_of_noise_goes_from_weak_moments(name, interval) -> None:
    x, y = np.meshgrid(*[np.arange(48) - 24.0] * 2, indexing="ij")
    start = np.tanh((13.0 * (1 + 0.3 * np.cos(4 * np.arctan2(y, x))) - np.hypot(x, y)) / (np.sqrt(2) * EPSILON))
    clean = simulate(LAW, start, dx=1.0, dt=interval, frames=31, epsilon=EPSILON, dynamics=name, substeps=60)
    errors = {}
    for method in ("weak", "weak-corrected"):
        records = [add_noise(clean, 0.06, seed=seed) for seed in range(4)]
        errors[method] = np.mean([
            force_error(dw.identify(record, dynamics=name, method=method, law=2)) for record in records
        ])  # fmt: skip
    assert errors["weak-corrected"] < 0.03
    assert errors["weak-corrected"] < 0.7 * errors["weak"]


def test_corrected_moments_of_fourth_derivatives(record) -> None:
    result = dw.identify(record, dynamics="cahn-hilliard", method="weak-corrected", law=2)
    assert force_error(result) < 0.03
    assert result.law.phases == pytest.approx((-1.0, 1.0), abs=0.01)
    assert "correction-beyond-phases" not in {finding.code for finding in dw.findings(result)}


def test_values_that_are_visited(record) -> None:
    low, high = visited([record])
    assert (low, high) == pytest.approx((-1.0, 1.0), abs=0.05)
    wide = visited([record, record.replace(2.0 * record.slab())])
    assert wide[1] == pytest.approx(2.0 * high, abs=0.05)
    assert plateaus_or(record, (low, high)) == pytest.approx((-1.0, 1.0), abs=0.05)
    noise = record.replace(np.random.default_rng(1).standard_normal(record.shape))
    assert plateaus_or(noise, (-9.0, 9.0)) == (-9.0, 9.0)  # one heap in the middle has no plateaus
    with pytest.raises(InputError, match="no values that differ"):
        visited([record.replace(np.ones(record.shape))])


def test_phases_that_the_record_does_not_reach_are_named(record) -> None:
    family = Mixture(1, (-2.4, 2.4))
    law = Law(family, family.fitted(lambda u: u**3 - u))
    seen = dw.survey(record)
    assert list(coexistence_findings(law, seen)) == []
    short = seen.scaled(0.8, 0.0)
    (finding,) = coexistence_findings(law, short)
    assert (finding.code, str(finding.severity)) == ("phases-extrapolated", "check")
    for sign, code in ((1.0, "one-phase"), (-1.0, "phases-undetermined")):
        (finding,) = coexistence_findings(Law(family, family.fitted(lambda u, sign=sign: sign * u)), seen)
        assert (finding.code, str(finding.severity)) == (code, "check")


@pytest.mark.parametrize(
    ("chi2", "sd", "code"),
    [(1e4, 90.0, "equation-chosen"), (12.0, 0.0, "equation-undecided"), (300.0, 90.0, "equation-undecided")],
)
def test_how_clearly_an_equation_was_chosen(chi2, sd, code) -> None:
    other = Rival("allen-cahn", chi2, "", sd)
    rivals = (Rival("cahn-hilliard", 0.0, ""), other, Rival("mass-conserving", np.inf, ""))
    (finding,) = rival_findings(rivals)
    assert finding.code == code
    assert finding.numbers["chi2"] == chi2
    assert "inf" not in finding.sentence
    assert list(rival_findings(())) == []


def test_the_largest_sd_is_not_the_nearest_chi2() -> None:
    """What is least excluded is named, and that is not always what has the smallest chi-square."""
    still = Rival("a field that stands still", 250.0, "", 90.0)
    (finding,) = rival_findings((Rival("cahn-hilliard", 0.0, ""), Rival("allen-cahn", 200.0, "", 5.0), still))
    assert finding.numbers == {"chi2": 250.0, "sd": 90.0}
    assert (
        "does not distinguish cahn-hilliard from a field that stands still: chi2 differs by 250, at random by 90"
        in (finding.sentence)
    )


def test_the_variance_is_that_of_noise_along_two_courses(record) -> None:
    """Of a mode that stays, the mean over frames takes up noise; of one that dies at once, the first frame."""
    stays, dies = _Tried(None, 1.0, ""), _Tried(None, 1.0, "", lambda _: -1e3)
    noise = np.random.default_rng(3).standard_normal((400, record.frames, 300))
    taken = record.frames * np.mean(noise, axis=1) ** 2 - noise[:, 0] ** 2
    variance = np.var(np.sum(taken, axis=1)) / 300
    assert _variance(record, stays, dies) / CELLS**2 == pytest.approx(4.0 * (1.0 - 1.0 / record.frames), rel=1e-9)
    assert variance == pytest.approx(4.0 * (1.0 - 1.0 / record.frames), rel=0.3)  # of 400 sums: +-7 %
    assert _variance(record, stays, stays) == 0.0


def test_squares_of_a_still_record_are_those_of_its_noise(record) -> None:
    still = record.replace(np.tile(record.slab()[:1], (record.frames, 1, 1)))
    noisy = add_noise(still, 0.05, seed=1)
    assert _still(noisy) / noisy.slab().size == pytest.approx(0.05**2, rel=0.03)  # 46 000 values: +-0.7 %
    holes = np.random.default_rng(1).random(noisy.shape) < 0.3
    masked = noisy.replace(mask=~holes)
    assert _still(masked) / noisy.slab().size == pytest.approx(0.05**2, rel=0.04)


@pytest.mark.parametrize(
    ("interval", "code"), [((0.98, 1.02), "q-estimated"), ((0.3, 1.7), "q-undetermined"), (None, None)]
)
def test_a_loose_q_is_a_finding(interval, code) -> None:
    found = list(diffusion_findings(Fact("q", "q = M kappa", "q", 1.0, interval=interval)))
    assert [item.code for item in found] == ([code] if code else [])
    if code == "q-undetermined":
        assert found[0].severity == "check"
        assert found[0].sentence.startswith("q is not determined: q = 1 +- 36 % (standard error)")


def test_a_field_that_runs_away_is_no_candidate(monkeypatch, record) -> None:
    """The squares that it leaves are no number, and no number is the smallest."""

    def runs_away(part, problem, most):
        status = SimpleNamespace(converged=False, text="stopped")
        fit = SimpleNamespace(noise=np.nan, record=record, status=status, substeps=1)
        return fit, Law(problem.fitted, part.start.coefficients), 1.0

    monkeypatch.setattr(sys.modules[choose_dynamics.__module__], "_fit", runs_away)
    with pytest.raises(InputError, match="ran away"):
        choose_dynamics([record], {}, None)

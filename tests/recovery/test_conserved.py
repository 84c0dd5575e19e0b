"""Equations that conserve the mean: both are simulated and fitted, and everything that follows names them."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np
import pytest

from doublewell import export, facts, findings, identify, load_result, physical, save, validate, write_page
from doublewell.adequacy import check_adequacies
from doublewell.dynamics import CahnHilliard, Cnab2, Etdrk4, Grid, MassConserving, dynamics_of, fastest_rate
from doublewell.errors import InputError
from doublewell.evidence import system
from doublewell.identify import repeat
from doublewell.law import named_law
from doublewell.likelihood import Batch, measure_resolution
from doublewell.record import Record
from doublewell.simulate import add_noise, simulate

CELLS, EPSILON, LAW = 16, 0.12, named_law("sixth")
PHASES = np.linspace(-1.0, 1.0, 201)
TRUTH = LAW.effective(EPSILON).coefficients
EQUATIONS = {"cahn-hilliard": (CahnHilliard(), 2e-2, 4e-3), "mass-conserving": (MassConserving(), 1.0, 1e-3)}
MIXING = "600 K, 0.02 nm^3 +- 2 %"
RARE = 18.4  # chi-square of two degrees that is larger once in ten thousand


def movie(name: str, solver: str = "cnab2", substeps: int = 200) -> Record:
    """Eight frames of a drop that is not round, on a mesh of 16 x 16."""
    dynamics, q, dt = EQUATIONS[name]
    x, y = np.meshgrid(*[np.arange(CELLS) / CELLS - 0.5] * 2, indexing="ij")
    start = 0.8 * np.tanh((0.28 - np.hypot(x, 0.7 * y)) / 0.1)
    return simulate(
        LAW, start, dx=1 / CELLS, dt=dt, frames=8, epsilon=EPSILON, q=q, solver=solver, substeps=substeps,
        dynamics=dynamics,
    )  # fmt: skip


def longer(name: str) -> Record:
    """Seventeen frames of 24 x 24 with an interface that weak moments resolve."""
    dynamics, q, _ = EQUATIONS[name]
    x, y = np.meshgrid(*[np.arange(24) / 24 - 0.5] * 2, indexing="ij")
    start, dt = np.tanh((0.28 - np.hypot(x, 0.7 * y)) / 0.13), 2e-3 if name == "cahn-hilliard" else 6e-4
    return simulate(LAW, start, dx=1 / 24, dt=dt, frames=17, epsilon=EPSILON, q=q, dynamics=dynamics, substeps=100)


@pytest.fixture(scope="module", params=EQUATIONS)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def fit(name):
    record = add_noise(movie(name), 0.02, seed=1)
    return Batch([record], EQUATIONS[name][0]).fit(np.full((1, 2), 1.3 * TRUTH.mean()))[0]


def test_it_is_a_dynamics(name) -> None:
    dynamics = EQUATIONS[name][0]
    assert dynamics_of(dynamics) is dynamics
    assert hash(dynamics) == hash(type(dynamics)())


def test_both_steppers_agree_and_the_mean_is_kept(name) -> None:
    rough, fine = movie(name).slab(), movie(name, "etdrk4", 16).slab()
    assert np.abs(rough - fine).max() < 1e-5
    assert np.abs(fine[-1] - fine[0]).max() > 0.2
    assert np.ptp(fine.mean(axis=(1, 2))) < 1e-14


@pytest.mark.parametrize("stepper", [Cnab2, Etdrk4])
def test_a_small_wave_follows_its_linear_rate(name, stepper) -> None:
    """exp(q (L - D G'(0)) t), growing for Cahn-Hilliard where |k|^2 < -G'(0)."""
    dynamics, grid, law = EQUATIONS[name][0], Grid((CELLS,), 1 / CELLS), LAW.effective(EPSILON)
    k = 2 * np.pi
    rate = float(dynamics.linear([np.array(k)]) - dynamics.coupling([np.array(k)]) * law.centre_curvature)
    wave, time = 1e-7 * np.cos(k * grid.points[0]), 0.5 / abs(rate)
    (last,) = stepper(grid, time, 1.0, 64, dynamics).run(law, wave, intervals=1)
    assert np.allclose(last, np.exp(rate * time) * wave, atol=1e-4 * np.abs(wave).max())
    assert rate > 0.0


def test_the_fastest_rate_is_that_of_the_fastest_wave() -> None:
    """slope^2 / 4 for Cahn-Hilliard, at |k|^2 = slope / 2; slope less the longest wave's decay for the other."""
    grid = Grid((200,), 1 / 10)
    assert fastest_rate(CahnHilliard(), grid.waves, 30.0) == pytest.approx(30.0**2 / 4, rel=0.01)
    assert fastest_rate(MassConserving(), grid.waves, 30.0) == pytest.approx(30.0 - (2 * np.pi / 20) ** 2)


def test_a_noisy_movie_gives_its_law(fit) -> None:
    assert fit.status.converged
    assert fit.noise == pytest.approx(0.02, rel=0.06)
    matrix, target = system(fit.evidence, 1.0)
    best = np.linalg.lstsq(matrix, target, rcond=None)[0]
    assert np.sum((matrix @ (best - TRUTH)) ** 2) < RARE
    assert max(np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix))) / TRUTH) < 0.05
    assert max(step.iterations for step in fit.steps) <= 8  # the preconditioner knows the equation


def test_resolution_and_adequacy_need_nothing_more(fit) -> None:
    (resolution,) = measure_resolution([fit])
    assert max(resolution.time_size, resolution.mesh_size) < 0.1
    (answer,) = check_adequacies([fit])
    assert answer.verdict == "adequate"
    assert "tilt" not in [test.name for test in answer.tests]  # a constant of the force has no effect


def test_another_equation_is_seen(name, fit) -> None:
    """The Allen-Cahn equation does not explain the movie, whatever its law."""
    other = Batch([fit.record]).fit(np.full((1, 2), TRUTH.mean()), substeps=fit.substeps)[0]
    assert other.noise > 1.1 * fit.noise


def test_an_open_window_is_refused_where_the_mean_is_not_seen() -> None:
    record = movie("mass-conserving", substeps=20).replace(boundary="open")
    with pytest.raises(InputError, match=r"boundary is 'open': mass-conserving has no rate on an open window"):
        Batch([record], MassConserving())


# ---- the whole way, from a movie to a page


@pytest.fixture(scope="module")
def result(name):
    record = add_noise(longer(name), 0.01, seed=2)
    tension = LAW.surface_tension(epsilon=1.0)
    return identify(record, tension, dynamics=EQUATIONS[name][0], law=2, method="trajectory")


def error(result) -> float:
    exact = LAW.effective(EPSILON).force(PHASES)
    return float(np.linalg.norm(result.force(PHASES) - exact) / np.linalg.norm(exact))


def test_weak_moments_of_a_clean_movie_give_its_law() -> None:
    """Of Cahn-Hilliard they need a larger field: tests/test_conserved_options.py."""
    name = "mass-conserving"
    found = identify(longer(name), dynamics=name, law=2, method="weak")
    assert error(found) < 0.02
    wrong = identify(longer(name), law=2, method="weak")
    assert error(wrong) > 0.1


def test_a_trajectory_fit_gives_the_law_and_its_scale(result) -> None:
    assert error(result) < 0.02
    assert result.scale.epsilon == pytest.approx(EPSILON, rel=0.01)
    assert result.diagnostics.likelihood.status.converged
    assert result.adequacy.verdict == "adequate"


def test_texts_say_which_equation_it_is(name, result, tmp_path) -> None:
    equation = EQUATIONS[name][0].equation
    assert equation in str(result)
    assert facts(result).motion == equation
    page = write_page(result, longer(name), tmp_path / "page.html").read_text(encoding="utf-8")
    assert escape(equation) in page or equation in page
    assert "Allen-Cahn" not in page


def test_the_mobility_has_the_unit_of_the_equation(name, result) -> None:
    """E in J, lengths in m: q / kappa in m^(order - 1 + 2) / (J s) for a tension in J/m^2."""
    fitted = result.problem
    records = tuple(replace(record, length_unit="m", time_unit="s") for record in fitted.records)
    tension = replace(fitted.tension, unit="J/m^2")
    scaled = replace(result.scale, tension=tension)
    numbers = physical(replace(result, problem=replace(fitted, records=records, tension=tension), scale=scaled))
    power = {2: ("m^3", "m^2/s"), 4: ("m^5", "m^4/s")}[EQUATIONS[name][0].order]
    assert numbers.mobility.unit.startswith(power[0])
    assert numbers.diffusion.unit == power[1]


def test_a_law_is_validated_by_its_own_equation(name, result) -> None:
    movie = longer(name)
    assert validate(result, movie).error.max() < 0.02


# ---- what a conserved field has and others have not


def cnab2(force, start, *, cells, interval, frames, steps) -> Record:
    """A movie of any force."""

    class Truth:
        def force(self, u):
            return force(u)

    fields = Cnab2(Grid((cells, cells), 1.0), interval, 1.0, steps, CahnHilliard()).run(
        Truth(), start, intervals=frames - 1
    )
    return Record(np.stack([start, *fields]), dx=1.0, dt=interval, q=1.0, boundary="periodic", origin="simulation")


def drop(cells: int, width: float, half: float) -> np.ndarray:
    x, y = np.meshgrid(*[np.arange(cells) - cells / 2] * 2, indexing="ij")
    outline = 0.27 * cells * (1 + 0.3 * np.cos(4 * np.arctan2(y, x)))
    return half * np.tanh((outline - np.hypot(x, y)) / (np.sqrt(2) * width))


@pytest.fixture(scope="module")
def regular():
    """A regular solution with chi = 2.956, its phases at +-0.85, as a polynomial and with the entropy of mixing."""
    chi = 2.0 * np.arctanh(0.85) / 0.85
    start, times = drop(40, 2.0, 0.85), {"interval": 25.0, "frames": 15, "steps": 400}
    movie = cnab2(lambda u: (np.arctanh(u) - 0.5 * chi * u) / 4.0, start, cells=40, **times)
    record = add_noise(movie, 0.01, seed=7).replace(length_unit="nm", time_unit="s")
    return chi, record, identify(record, MIXING, dynamics="cahn-hilliard", law="wells=ideal", check=False)


def test_a_regular_solution_is_found_with_its_chi(regular) -> None:
    chi, _, result = regular
    u = np.linspace(-0.85, 0.85, 101)
    true = (np.arctanh(u) - 0.5 * chi * u) / 4.0
    assert np.linalg.norm(result.force(u) - true) < 0.01 * np.linalg.norm(true)
    low, high = result.band("force", u)
    assert np.max(np.abs(result.force(u) - true) / (high - low)) < 4.5 / 3.92  # standard errors: once in ten thousand
    assert facts(result)["chi"].value == pytest.approx(chi, rel=0.01)
    assert np.ptp(result.interval("chi")) < 0.05
    for key, value in {"low": -0.85, "high": 0.85}.items():
        ends = result.interval(key)
        assert ends[0] - 0.002 < value < ends[1] + 0.002
        assert ends[1] - ends[0] < 0.02


def test_it_is_kept_in_files_and_repeated(regular, tmp_path) -> None:
    _, record, result = regular
    save(result, tmp_path / "r.json")
    again = load_result(tmp_path / "r.json")
    assert again.law.phases == result.law.phases
    assert again.interval("spinodal_low") == result.interval("spinodal_low")
    assert str(again) == str(result)
    assert repeat(result, record).comparison.same


def test_temperature_and_site_volume_give_kappa(regular) -> None:
    """A made-up alloy, a_1 = a_2 = 1/8 per nm^2 and du = 2: kappa = 4 nm^2 k T / v; f, M and the tension follow."""
    chi, record, result = regular
    density = 1.380649e-23 * 600.0 / 2e-29  # J/m^3
    kappa, found = 4e-18 * density, physical(result)
    assert found.kappa.unit == "J/m"
    assert abs(found.kappa.value / kappa - 1.0) < 0.03
    assert found.kappa.low < kappa < found.kappa.high
    spread = (found.kappa.high - found.kappa.low) / (3.92 * kappa)
    assert 0.02 < spread < 0.03  # mostly that of the volume
    assert found.mobility.low < 1e-36 * record.q / kappa < found.mobility.high
    u = np.linspace(-0.85, 0.85, 20001)
    phi = 0.5 * (1 + u)
    energy = density * (phi * np.log(phi) + (1 - phi) * np.log(1 - phi) + chi * phi * (1 - phi))
    energy -= energy[0]
    low, high = (1e-9 * end for end in found.band(np.array([0.0])))  # pointwise, in units of 1e9 J/m^3
    assert low[0] < 1e-9 * energy[10000] < high[0]
    tension = np.sum(np.sqrt(2.0 * kappa * np.maximum(energy, 0.0))) * (u[1] - u[0])
    assert result.interval("tension")[0] < tension < result.interval("tension")[1]
    assert facts(result)["tension"].value == pytest.approx(tension, rel=0.03)
    assert "from temperature and site volume, through the entropy of ideal mixing" in str(result)
    assert "that of a planar interface of this law" not in str(result)
    assert "scale-fixed" in {item.code for item in findings(result)}
    assert "kappa = " in export(result, "python")


def test_its_logarithms_are_exported(regular) -> None:
    module: dict = {}
    exec(export(regular[2], "python"), module)
    u = np.linspace(-0.99, 0.99, 201)
    np.testing.assert_allclose(module["force"](u), regular[2].force(u), atol=1e-12)


@pytest.mark.parametrize("name", ["allen-cahn", *EQUATIONS])
def test_the_equation_is_chosen_by_the_data(name) -> None:
    equation = dynamics_of(name)
    interval = 12.0 if equation.order == 4 else 0.8
    movie = simulate(
        named_law("quartic"), drop(32, 2.0, 1.0), dx=1.0, dt=interval, frames=15, epsilon=2.0, dynamics=equation,
        substeps=200,
    )  # fmt: skip
    result = identify(add_noise(movie, 0.03, seed=3), dynamics="auto", check=False, law=0)
    assert result.dynamics is equation
    assert result.rivals[0].dynamics == name
    assert min(rival.chi2 for rival in result.rivals[1:]) > 100.0
    assert "equation-chosen" in [item.code for item in findings(result)]


def test_a_pattern_that_stands_still_tells_no_equation() -> None:
    """A stripe in equilibrium obeys every equation; of chi-square only chance differs."""
    x = np.tile(np.arange(32) - 15.5, (32, 1))
    law, grid = named_law("quartic").effective(2.0), Grid((32, 32), 1.0)
    (stripe,) = Cnab2(grid, 400.0, 1.0, 8000, MassConserving()).run(law, np.tanh((8.0 - np.abs(x)) / 2.8), intervals=1)
    record = Record(np.tile(stripe, (15, 1, 1)), dx=1.0, dt=0.8, q=1.0, boundary="periodic", origin="simulation")
    result = identify(add_noise(record, 0.03, seed=4), dynamics="auto", check=False, law=0)
    codes = [item.code for item in findings(result)]
    assert "equation-undecided" in codes
    assert "equation-chosen" not in codes
    assert len(result.rivals) == 4
    fitted = [rival for rival in result.rivals[1:] if np.isfinite(rival.chi2)]
    assert len(fitted) >= 2
    assert all(rival.chi2 < 4.0 * rival.sd + 30.0 for rival in fitted)


def test_two_records_have_one_law(regular) -> None:
    _, record, result = regular
    again = record.replace(record.slab()[:, ::-1] + 0.01 * np.random.default_rng(8).standard_normal(record.shape))
    both = identify([record, again], dynamics="cahn-hilliard", law="degree=0, wells=ideal", check=False)
    one = identify(record, dynamics="cahn-hilliard", law="degree=0, wells=ideal", check=False)
    u = np.linspace(-0.8, 0.8, 9)
    np.testing.assert_allclose(both.force(u), result.force(u), atol=2e-3)
    narrow, wide = (np.ptp(each.band("force", u), axis=0).mean() for each in (both, one))
    assert narrow == pytest.approx(wide * np.sqrt(2.0 / 3.0), rel=0.1)  # the second record has twice the variance


def test_a_movie_beyond_its_phases_is_made_by_the_polynomial() -> None:
    """Values up to 1.1 have no error of a law that is linear there: the residual is noise and the phases are right."""
    x, y = np.meshgrid(*[np.arange(32) - 16.0] * 2, indexing="ij")
    start = 1.1 * np.tanh((9.0 + 2.5 * np.cos(4 * np.arctan2(x, y)) - np.hypot(x, y)) / 2.8)
    clean = simulate(
        named_law("quartic"), start, dx=1.0, dt=8.0, frames=15, epsilon=2.0, dynamics="cahn-hilliard", substeps=100
    )
    result = identify(add_noise(clean, 1e-3, seed=1), dynamics="cahn-hilliard", law=0)
    assert result.diagnostics.likelihood.excess == 1.0
    assert "no-test-significant" in {finding.code for finding in findings(result)}
    np.testing.assert_allclose(result.law.phases, (-1.0, 1.0), atol=5e-4)

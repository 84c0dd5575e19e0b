"""Equations that conserve the mean: both are simulated and fitted, and everything that follows names them."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np
import pytest

from doublewell import facts, identify, physical, validate, write_page
from doublewell.adequacy import check_adequacies
from doublewell.dynamics import CahnHilliard, Cnab2, Etdrk4, Grid, MassConserving, dynamics_of, fastest_rate
from doublewell.errors import InputError
from doublewell.evidence import system
from doublewell.law import named_law
from doublewell.likelihood import Batch, measure_resolution
from doublewell.record import Record
from doublewell.simulate import add_noise, simulate

CELLS, EPSILON, LAW = 16, 0.12, named_law("sixth")
PHASES = np.linspace(-1.0, 1.0, 201)
TRUTH = LAW.effective(EPSILON).coefficients
EQUATIONS = {"cahn-hilliard": (CahnHilliard(), 2e-2, 4e-3), "mass-conserving": (MassConserving(), 1.0, 1e-3)}
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


def test_weak_moments_of_a_clean_movie_give_its_law(name) -> None:
    found = identify(longer(name), dynamics=EQUATIONS[name][0], law=2, method="weak")
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

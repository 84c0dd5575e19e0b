"""The trajectory reader: its derivatives, its steps, its evidence, and what repeated noise makes of its estimates."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from readings import read_trajectories, read_trajectory
from scipy import stats

from doublewell.dynamics import Grid
from doublewell.dynamics.grid import refinement
from doublewell.errors import InputError
from doublewell.evidence import lower, system
from doublewell.law import Bernstein, Law, named_law
from doublewell.likelihood import gauss_newton, measure_resolution, record_model
from doublewell.likelihood.iterate import Convergence, Rule, Step
from doublewell.likelihood.programs import compiled
from doublewell.record import Record
from doublewell.runtime import double_precision
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON, CELLS, FRAMES = 0.1, 24, 13
TRUTH = named_law("sixth").effective(EPSILON)
START = np.array([60.0, 90.0, 130.0])  # about 20 % off (75, 112.5, 150)


def movie(boundary: str = "periodic", axes: int = 2, frames: int = FRAMES) -> Record:
    start = initial_field("circle", (CELLS,) * axes, 1 / CELLS, epsilon=EPSILON, boundary=boundary)
    return simulate(named_law("sixth"), start, dx=1 / CELLS, dt=5e-4, frames=frames, epsilon=EPSILON, boundary=boundary)


@pytest.fixture(scope="module")
def clean() -> Record:
    return movie()


def pieces(boundary: str = "periodic"):
    import jax.numpy as jnp

    grid = Grid((6, 8), 1 / 8, boundary)
    blank = Record(np.zeros((5, *grid.cells)), dx=grid.dx, dt=5e-4, q=1.0, boundary=boundary)
    model, constants = record_model(blank, Bernstein(2), 2)
    rng = np.random.default_rng(0)
    u = 0.5 * rng.standard_normal((6, 8))
    return model, jnp.asarray(u), jnp.asarray(START), constants, rng


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_adjoint_is_the_transpose_of_the_tangent(boundary) -> None:
    import jax.numpy as jnp

    with double_precision():
        model, u, theta, constants, rng = pieces(boundary)
        push, pull = gauss_newton.maps_at(model, u, theta, constants)
        x, y = jnp.asarray(rng.standard_normal((6, 8))), jnp.asarray(rng.standard_normal((5, 6, 8)))
        left, right = float(np.vdot(push(x), y)), float(np.vdot(x, pull(y)))
        basis = compiled().tangents(model, u[None], theta[None], np.zeros((1, 5, 6, 8)), constants).basis
        columns = np.asarray(basis.rows)[0].T @ np.asarray(basis.triangle)[0]
        column = gauss_newton.column(model, u, theta, jnp.array([0.0, 1.0, 0.0]), constants)
    assert left == pytest.approx(right, rel=1e-13)
    assert np.allclose(columns[:, 1], np.ravel(column), atol=1e-13)


def test_tangents_match_finite_differences() -> None:
    with double_precision():
        model, u, theta, constants, rng = pieces()
        push, _ = gauss_newton.maps_at(model, u, theta, constants)
        x, step = rng.standard_normal((6, 8)), 1e-5
        predict = partial(model.predict, constants=constants)
        along_u = (predict(u + step * x, theta) - predict(u - step * x, theta)) / (2 * step)
        direction = np.array([1.0, -2.0, 0.5])
        along_g = (predict(u, theta + step * direction) - predict(u, theta - step * direction)) / (2 * step)
        assert np.allclose(push(x), along_u, atol=1e-8)
        assert np.allclose(gauss_newton.column(model, u, theta, direction, constants), along_g, atol=1e-8)


def test_conjugate_gradients_solve_what_they_say() -> None:
    rng = np.random.default_rng(1)
    matrix, right = rng.standard_normal((30, 20)), rng.standard_normal(30)
    best = np.linalg.lstsq(matrix, right)[0]
    with double_precision():
        maps = (lambda x: matrix @ x, lambda y: matrix.T @ y, right)
        solution, left, count, error = gauss_newton.solve_least(
            *maps, lambda x: x / np.sum(matrix**2, axis=0), tolerance=1e-10, most=200
        )
        _, _, short, open_end = gauss_newton.solve_least(*maps, lambda x: x, tolerance=1e-10, most=3)
        _, _, once, _ = gauss_newton.solve_least(
            *maps, lambda x: np.linalg.inv(matrix.T @ matrix) @ x, tolerance=1e-6, most=200
        )
    assert np.allclose(solution, best, atol=1e-9)
    assert np.allclose(left, right - matrix @ best, atol=1e-9)
    assert float(error) <= 1e-10
    assert int(count) <= 30
    assert int(short) == 3
    assert float(open_end) > 1e-10
    assert int(once) == 1  # the length of the first step tells that it was the last one


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
@pytest.mark.parametrize("axes", [1, 2])
def test_clean_record_gives_the_law(boundary, axes) -> None:
    """CNAB2's own error in time, about 1e-5 of the field, is all that is left."""
    record = movie(boundary, axes)
    found = read_trajectory(record, START)
    best = Law(Bernstein(2), found.coefficients)
    u = np.linspace(-1, 1, 401)
    assert np.linalg.norm(best.force(u) - TRUTH.force(u)) < 2e-3 * np.linalg.norm(TRUTH.force(u))
    assert found.status.converged
    assert found.noise < 1e-4


def test_three_dimensions() -> None:
    start = initial_field("circle", (12, 12, 12), 1 / 12, epsilon=0.15)
    ball = simulate(named_law("sixth"), start, dx=1 / 12, dt=1e-3, frames=7, epsilon=0.15)
    found = read_trajectory(add_noise(ball, 0.02, seed=1), np.array([30.0, 60.0]))
    assert found.status.converged
    assert np.allclose(found.coefficients, [0.75 / 0.15**2, 1.5 / 0.15**2], rtol=0.1)


def test_steps_end_with_a_reason_and_never_raise_the_cost(clean) -> None:
    seen = []
    found = read_trajectory(add_noise(clean, 0.05, seed=2), START, watch=seen.append)
    assert tuple(seen) == found.steps
    assert all(step.after <= step.before * (1 + 1e-10) for step in found.steps)
    assert found.status.text.startswith("converged: the next step would be")
    assert found.status.size <= 0.05 < found.steps[-1].size < 1.0
    assert found.noise == pytest.approx(0.05, rel=0.05)


def test_a_start_that_is_far_off_converges(clean) -> None:
    record = add_noise(clean, 0.05, seed=3)
    near = read_trajectory(record, START)
    far = read_trajectory(record, np.array([150.0, 30.0, 300.0]))
    triangle = near.evidence.blocks[0].triangle[:3, :3]
    assert far.status.converged
    assert np.linalg.norm(triangle @ (far.coefficients - near.coefficients)) < 0.1  # standard errors


def test_evidence_is_the_projected_information(clean) -> None:
    """R'R against the Schur complement of the full Jacobian by finite differences, on a tiny mesh."""
    start = initial_field("circle", (8, 8), 1 / 8, epsilon=0.2)
    tiny = simulate(named_law("sixth"), start, dx=1 / 8, dt=2e-3, frames=5, epsilon=0.2)
    record = add_noise(tiny, 0.02, seed=4)
    found = read_trajectory(record, np.array([20.0, 35.0]))
    model, constants = record_model(record, Bernstein(1), found.substeps)

    def predicted(x: np.ndarray) -> np.ndarray:
        with double_precision():
            return np.asarray(compiled().predict(model, x[None, :64].reshape(1, 8, 8), x[None, 64:], constants)).ravel()

    x = np.concatenate([found.nuisance.ravel(), found.coefficients])
    steps = np.concatenate([np.full(64, 1e-5), np.full(2, 1e-3)])
    jacobian = np.stack(
        [(predicted(x + h * e) - predicted(x - h * e)) / (2 * h) for h, e in zip(steps, np.eye(66), strict=True)],
        axis=1,
    )
    j_u, j_g = jacobian[:, :64], jacobian[:, 64:]
    projected = j_g - j_u @ np.linalg.lstsq(j_u, j_g, rcond=None)[0]
    information = projected.T @ projected / found.noise**2
    matrix, _ = system(found.evidence, 1.0)
    assert np.allclose(matrix.T @ matrix, information, rtol=2e-3)
    response = -np.linalg.lstsq(j_u, j_g, rcond=None)[0].T.reshape(2, 8, 8)
    assert np.allclose(found.response, response, atol=0.05 * np.abs(response).max())


def test_cost_and_row_count_of_the_evidence(clean) -> None:
    record = add_noise(clean, 0.03, seed=5)
    found = read_trajectory(record, START, family=Bernstein(4))
    block = found.evidence.blocks[0]
    assert block.rows == record.slab().size - CELLS**2
    assert np.sum(block.triangle[5:, -1] ** 2) == pytest.approx(block.rows - 5, rel=1e-12)
    assert found.evidence.columns == ("force", "target")  # no column for 1/q


def test_higher_degrees_by_linearisation_equal_direct_fits(clean) -> None:
    record = add_noise(clean, 0.02, seed=6)
    found = read_trajectory(record, START, family=Bernstein(4))
    for degree in (1, 2, 3):
        matrix, target = system(lower(found.evidence, degree), 1.0)
        projected = np.linalg.lstsq(matrix, target, rcond=None)[0]
        direct = read_trajectory(record, np.linspace(80.0, 140.0, degree + 1))
        own, _ = system(direct.evidence, 1.0)
        assert np.linalg.norm(own @ (projected - direct.coefficients)) < 0.2  # standard errors


def test_relinearising_moves_the_initial_field_along(clean) -> None:
    record = add_noise(clean, 0.02, seed=7)
    found = read_trajectory(record, START)
    (again,) = found.batch.relinearise([found], found.coefficients[None] * 1.002)
    here, there = (system(item.evidence, 1.0) for item in (found, again))
    best = [np.linalg.lstsq(*pair, rcond=None)[0] for pair in (here, there)]
    assert np.linalg.norm(here[0] @ (best[0] - best[1])) < 0.05
    assert not np.array_equal(again.nuisance, found.nuisance)


def test_a_batch_is_its_records(clean) -> None:
    records = [add_noise(clean, 0.03, seed=s) for s in (8, 9, 10)]
    starts = np.stack([START, 1.2 * START, 0.9 * START])
    together = read_trajectories(records, starts, family=Bernstein(3), substeps=1)
    for record, start, found in zip(records, starts, together, strict=True):
        alone = read_trajectory(record, start, family=Bernstein(3), substeps=1)
        assert np.allclose(found.coefficients, alone.coefficients, rtol=1e-6)
        assert (found.status.code, found.status.steps) == (alone.status.code, alone.status.steps)
        assert np.allclose(found.evidence.blocks[0].triangle, alone.evidence.blocks[0].triangle, rtol=1e-4, atol=1e-3)
    places = np.stack([found.coefficients for found in together])
    moved = together[0].batch.relinearise(together, places)
    assert np.allclose(moved[1].evidence.blocks[0].triangle, together[1].evidence.blocks[0].triangle, atol=1e-6)


def test_repeated_noise_has_the_predicted_spread(clean) -> None:
    """(g_hat - g)' I (g_hat - g) over 40 records is chi-square with 80 degrees of freedom; false alarms 1e-4."""
    truth = TRUTH.coefficients
    records = [add_noise(clean, 0.02, seed=1000 + k) for k in range(40)]
    found = read_trajectories(records, np.tile(truth, (40, 1)), family=Bernstein(1), substeps=1)
    total = 0.0
    for item in found:
        matrix, target = system(item.evidence, 1.0)
        total += float(np.sum((matrix @ (np.linalg.lstsq(matrix, target, rcond=None)[0] - truth)) ** 2))
    low, high = stats.chi2.ppf([5e-5, 1 - 5e-5], 80)
    assert low < total < high


def test_resolution_in_time_and_space(clean) -> None:
    record = add_noise(clean, 0.01, seed=11)
    coarse = read_trajectory(record, START, substeps=1)
    fine = read_trajectory(record, START, substeps=4)
    measured = [measure_resolution([found])[0] for found in (coarse, fine)]
    assert measured[1].time_size < measured[0].time_size / 50  # fourth order
    gap = system(fine.evidence, 1.0)[0] @ (fine.coefficients - coarse.coefficients)
    assert np.linalg.norm(gap) == pytest.approx(measured[0].time_size, abs=0.1)
    assert measured[0].mesh_size < 0.5


@pytest.mark.parametrize(("boundary", "factor"), [("periodic", 2), ("neumann", 3)])
@pytest.mark.parametrize("cells", [(8, 9), (10,)])
def test_refined_fields_hold_the_old_points(boundary, factor, cells) -> None:
    field = fine = np.random.default_rng(0).standard_normal(cells)
    for axis, n in enumerate(cells):
        fine = np.moveaxis(np.tensordot(refinement(n, factor, boundary), fine, axes=(1, axis)), 0, axis)
    pick = tuple(slice(0 if factor == 2 else 1, None, factor) for _ in cells)
    assert np.allclose(fine[pick], field, atol=1e-13)


def test_what_the_reading_needs(clean) -> None:
    bare = Record(clean.values, dx=clean.dx, dt=clean.dt, q=1.0)
    with pytest.raises(
        InputError,
        match="needs to know what happens at the border.*'open' for a field of view.*method='weak' needs none",
    ):
        read_trajectory(bare, START)
    unknown = Record(clean.values, dx=clean.dx, dt=clean.dt, boundary="periodic")
    with pytest.raises(InputError, match="has no diffusion coefficient"):
        read_trajectory(unknown, START)
    with pytest.raises(InputError, match="no records"):
        read_trajectories([], np.zeros((0, 3)), family=Bernstein(2), substeps=1)
    with pytest.raises(InputError, match="a batch needs records of one shape"):
        read_trajectories([clean, clean.clip(0, 9)], np.stack([START, START]), family=Bernstein(2), substeps=1)


def test_frames_too_far_apart_are_refused(clean) -> None:
    slow = Record(clean.values, dx=clean.dx, dt=10000 * clean.dt, q=1.0, boundary="periodic")
    with pytest.raises(
        InputError, match="the frames are too far apart: .* = 1.3e\\+03, expected at most 1000; check the units"
    ):
        read_trajectory(slow, START)


def _solves(preconditioner):
    """Return the CG iterations on a record with wells and interfaces, and the map that was used."""
    cells = 32
    start = initial_field("circle", (cells, cells), 1 / cells, epsilon=0.06)
    record = simulate(named_law("sixth"), start, dx=1 / cells, dt=2e-4, frames=21, epsilon=0.06, substeps=8)
    theta = np.full(3, 1.5 / 0.06**2)
    model, constants = record_model(record, Bernstein(2), 1)
    u = add_noise(record, 0.05, seed=3).slab()[0]
    with double_precision():
        push, pull = gauss_newton.maps_at(model, u, theta, constants)
        right = np.random.default_rng(4).standard_normal(u.shape)
        apply = preconditioner(model, u, theta, constants)
        _, _, count, _ = gauss_newton.solve_least(push, pull, push(right), apply, tolerance=1e-3, most=200)
        return int(count), apply


def test_the_preconditioner_knows_pure_phases_from_interfaces() -> None:
    """Diffusion alone takes a pure phase, where disturbances die, for an interface, where they last.

    What is solved on the coarse mesh is symmetric to the tolerance of that solve.
    """
    both, apply = _solves(lambda model, u, theta, constants: model.preconditioner(u, theta, constants))
    diffusion, _ = _solves(lambda model, u, theta, constants: model.preconditioner(u, 0.0 * theta, constants))
    assert both <= 5
    assert diffusion >= 2 * both
    rng = np.random.default_rng(5)
    with double_precision():
        x, y = rng.standard_normal((2, 32, 32))
        size = float(np.linalg.norm(x) * np.linalg.norm(apply(y)))
        assert float(np.vdot(x, apply(y))) == pytest.approx(float(np.vdot(apply(x), y)), abs=1e-2 * size)
        assert float(np.vdot(x, apply(x))) > 0.0


def test_a_step_too_small_to_lower_the_cost_is_the_last_one() -> None:
    def step(size: float, length: float) -> Step:
        return Step(1, 1.0, 1.0, size, length, 5, 1e-3)

    ends = Rule().ends
    assert ends([step(0.01, 0.0)]).code is Convergence.ROUND_OFF
    assert ends([step(20.0, 1.0), step(0.4, 1.0)]).code is Convergence.NEAR
    assert ends([step(0.8, 1.0), step(0.4, 1.0)]) is None
    assert ends([step(20.0, 0.5), step(0.4, 1.0)]) is None
    assert ends([step(0.01, 0.0)]).text.startswith("converged: the last step, of 0.01 standard errors")
    assert ends([step(0.2, 0.0)]).code is Convergence.NO_DECREASE
    assert not ends([step(float("nan"), 0.0)]).converged
    assert ends([step(0.2, 1.0)]) is None
    assert ends([step(0.2, 0.5)]) is None
    assert ends([step(0.2, 0.5)], patient=False).code is Convergence.SHORTENED
    assert ends(15 * [step(0.2, 1.0)]).text == "stopped: 15 steps, the last one 0.2 standard errors"

"""Records that amplify their initial field: a spinodal start, merging drops, a vanishing drop. Data from CNAB2."""

from __future__ import annotations

import numpy as np
import pytest
from readings import read_trajectories, read_trajectory

from doublewell.evidence import system
from doublewell.law import Bernstein, named_law
from doublewell.likelihood import gauss_newton, growth
from doublewell.likelihood.linked import LinkedModel, Links
from doublewell.likelihood.model import Constants, record_model
from doublewell.record import Record
from doublewell.runtime import double_precision
from doublewell.simulate import add_noise, simulate

EPSILON, CELLS, FRAMES = 0.1, 24, 25
TRUTH = named_law("sixth").effective(EPSILON)
QUARTIC = np.full(2, 1.0 / EPSILON**2)


def field(kind: str) -> np.ndarray:
    x = (np.arange(CELLS) + 0.5) / CELLS
    y, x = np.meshgrid(x, x, indexing="ij")

    def drop(cx: float, cy: float, radius: float) -> np.ndarray:
        return np.tanh((radius - np.hypot(x - cx, y - cy)) / (np.sqrt(2) * EPSILON))

    if kind == "merging":
        return np.maximum(drop(0.27, 0.5, 0.2), drop(0.73, 0.5, 0.2))
    if kind == "vanishing":
        return drop(0.5, 0.5, 0.25)
    waves = np.random.default_rng(1).standard_normal((2, 3, 3))
    rows = [
        waves[0, i, j] * np.cos(2 * np.pi * (i * x + j * y)) + waves[1, i, j] * np.sin(2 * np.pi * (i * x - j * y))
        for i in range(3)
        for j in range(3)
    ]
    z = np.sum(rows[1:], axis=0)
    return 0.01 * z / np.std(z)


def movie(kind: str, dt: float) -> Record:
    return simulate(named_law("sixth"), field(kind), dx=1 / CELLS, dt=dt, frames=FRAMES, epsilon=EPSILON)


@pytest.mark.parametrize(
    ("kind", "dt", "factor", "cut"),
    [("spinodal", 4e-3, 0.5, True), ("merging", 1e-2, 2.0, False), ("vanishing", 5e-3, 2.0, False)],
)
def test_hard_records_converge_from_rough_starts(kind, dt, factor, cut) -> None:
    """The estimate lies within 5 standard errors (false alarms below 1e-4) and leaves the noise that was put in."""
    record = add_noise(movie(kind, dt), 0.03, seed=21)
    found = read_trajectory(record, factor * QUARTIC)
    assert found.status.converged, found.status
    assert found.noise == pytest.approx(0.03, rel=0.05)
    matrix, target = system(found.evidence, 1.0)
    best = np.linalg.lstsq(matrix, target, rcond=None)[0]
    assert np.linalg.norm(matrix @ (best - TRUTH.coefficients)) < 5.0
    assert (found.segments > 1) == cut or not cut  # the spinodal start cannot do without


def test_segments_say_so_and_end_in_one_trajectory() -> None:
    record = add_noise(movie("spinodal", 4e-3), 0.03, seed=22)
    seen = []
    found = read_trajectory(record, 0.5 * QUARTIC, watch=seen.append)
    stages = list(dict.fromkeys(step.stage for step in seen))
    assert tuple(seen) == found.steps
    assert stages == ["whole record", *(f"segments, links {w}" for w in ("0.3", "1", "3", "10"))]
    assert seen[-1].stage == "whole record"
    assert "CG iterations" in str(seen[-1])
    assert np.linalg.norm(found.residual[0]) < 2 * 0.03 * CELLS  # the residual is that of one trajectory
    easy = read_trajectory(record, np.array(TRUTH.coefficients), substeps=found.substeps)
    gap = system(found.evidence, 1.0)[0] @ (found.coefficients - easy.coefficients)
    assert np.linalg.norm(gap) < 0.3  # standard errors


def test_a_batch_may_hold_hard_and_easy_records() -> None:
    records = [add_noise(movie(kind, 4e-3), 0.03, seed=23 + k) for k, kind in enumerate(("spinodal", "vanishing"))]
    hard, easy = read_trajectories(records, np.stack([0.5 * QUARTIC, TRUTH.coefficients]))
    assert hard.segments > 1
    assert easy.segments == 1
    assert hard.status.converged
    assert easy.status.converged
    assert easy.steps[0].stage == "whole record"


def test_a_record_that_is_no_trajectory_says_why() -> None:
    """Half of the record comes from another start: no law and no initial field explain the whole."""
    one, two = movie("spinodal", 4e-3), movie("vanishing", 4e-3)
    mixed = one.replace(np.concatenate([one.slab(0, 12), two.slab(12, FRAMES)]))
    found = read_trajectory(add_noise(mixed, 0.03, seed=25), 0.5 * QUARTIC)
    assert found.noise > 0.06
    if not found.status.converged:
        assert "segments the record leaves a noise of" in found.status.text


def cut(record: Record, family: Bernstein, length: int, weight: float) -> tuple[LinkedModel, Constants]:
    """The model of one record in segments, with links of a weight."""
    whole, constants = record_model(record, family, 1)
    links = Links._make([part if isinstance(part, tuple) else part[0] for part in Links.even(1, weight)])
    return LinkedModel.of(whole, length), constants._replace(links=links)


def test_segments_of_a_trajectory_have_no_gaps() -> None:
    u0 = np.random.default_rng(0).standard_normal((8, 8))
    record = Record(np.zeros((9, 8, 8)), dx=1 / 8, dt=1e-3, q=1.0, boundary="periodic")
    with double_precision():
        whole, of_whole = cut(record, Bernstein(1), 9, 1.0)
        run = np.asarray(whole.predict(u0[None], QUARTIC, of_whole))
        for length in (3, 4, 1):
            model, constants = cut(record, Bernstein(1), length, 2.0)
            pieces = np.asarray(model.predict(run[::length], QUARTIC, constants))
            assert model.count == len(run[::length]) == len(pieces) - 9 + 1
            assert np.allclose(pieces[:9], run, atol=1e-13)
            assert np.abs(pieces[9:]).max() < 1e-13
            white = np.asarray(model.whiten(np.ones_like(pieces), constants))
            assert np.all(white[:9] == 1.0)
            assert np.all(white[9:] == 2.0)


@pytest.mark.parametrize("length", [1, 3])
def test_the_preconditioner_of_segments_is_exact_for_diffusion(length) -> None:
    """Without reaction J'J is tridiagonal in time for each mode; conjugate gradients stop at once."""
    record = Record(np.zeros((9, 8, 8)), dx=1 / 8, dt=1e-3, q=1.0, boundary="periodic")
    model, constants = cut(record, Bernstein(0), length, 2.0)
    right = np.random.default_rng(0).standard_normal((model.count, 8, 8))
    with double_precision():
        push, pull = gauss_newton.maps_at(model, 0.0 * right, np.zeros(1), constants)
        _, _, count, _ = gauss_newton.solve_least(
            push, pull, push(right), model.preconditioner(right, np.zeros(1), constants), tolerance=1e-8, most=50
        )
    assert int(count) <= 2


def test_growth_is_the_logarithm_of_the_amplification() -> None:
    record = movie("vanishing", 5e-3)
    assert growth(record, 2.0 * QUARTIC[0]) == pytest.approx(100.0 * 5e-3 * (FRAMES - 1))


def test_a_start_that_is_wrong_by_its_own_size_converges_at_noise_030() -> None:
    record = add_noise(movie("vanishing", 2e-3), 0.30, seed=26)
    near = read_trajectory(record, TRUTH.coefficients)
    far = read_trajectory(record, 2.0 * TRUTH.coefficients[::-1])
    assert near.status.converged
    assert far.status.converged
    assert np.linalg.norm(system(near.evidence, 1.0)[0] @ (near.coefficients - far.coefficients)) < 0.3

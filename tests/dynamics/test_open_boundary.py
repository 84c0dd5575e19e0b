"""Windows: stencils, border curves, and predictions that reproduce a part of a larger simulation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.dynamics import ALLEN_CAHN, Cnab2, Grid, border_mask, symbols
from doublewell.dynamics.open_boundary import (
    BORDER,
    border_times,
    centred_differences,
    interpolation,
    predict_window,
    window_axes,
    window_nodes,
)
from doublewell.law import Bernstein, Law
from doublewell.runtime import double_precision

FORCE = np.array([30.0, 45.0])


def window_of(fields, times, dx, *, substeps, refine=1, coefficients=FORCE, q=1.0):
    """Predict fields[t, ...] from the first one and the border of all."""
    mesh = fields.shape[1:]
    axes, waves = window_axes(mesh, (dx,) * len(mesh), refine)
    taus = q * np.diff(times)
    of = symbols(ALLEN_CAHN, waves)
    with double_precision():
        return np.asarray(
            predict_window(
                fields[0], fields[1:][:, border_mask(mesh)], coefficients, taus, border_times(times, substeps),
                axes, of, family=Bernstein(len(coefficients) - 1), substeps=substeps, refine=refine,
            )
        )  # fmt: skip


@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_second_differences_are_exact_for_polynomials_of_their_order(order) -> None:
    cells, dx = 24, 0.3
    x = dx * (np.arange(cells) - 11.3)
    matrix = centred_differences(window_nodes(cells, 1), 2, order) / dx**2
    room = max(order // 2, BORDER)
    deep = slice(room, cells - room)  # where the whole stencil fits
    for power in range(order + 2):
        exact = power * (power - 1) * x ** max(power - 2, 0)
        found = np.full(cells, np.nan)
        found[BORDER:-BORDER] = matrix @ x**power
        scale = np.abs(x[0]) ** power / dx**2
        assert np.allclose(found[deep], exact[deep], atol=1e-12 * scale)
        if power <= min(order, 4) + 1:  # next to the border the order is four at most
            assert np.allclose(matrix @ x**power, exact[BORDER:-BORDER], atol=1e-12 * scale)
    wrong = matrix @ x ** (order + 2) - (order + 2) * (order + 1) * x[BORDER:-BORDER] ** order
    assert np.abs(wrong).max() > 1e-3


def test_second_differences_mirror_and_are_symmetric_inside() -> None:
    matrix = centred_differences(window_nodes(20, 1), 2)
    assert np.array_equal(matrix, matrix[::-1, ::-1])
    rows = matrix[2:-2]  # of full order
    for k, row in enumerate(rows):
        assert np.array_equal(row[k : k + 9], rows[0][:9])
    assert np.allclose(matrix.sum(axis=1), 0.0, atol=1e-14)
    square = rows[:, 4:-4]
    assert np.array_equal(square, square.T)


@given(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=8), st.integers(1, 4), st.integers(0, 1000))
def test_border_times_are_exact_for_cubics(steps, substeps, seed) -> None:
    times = np.concatenate([[0.4], 0.4 + np.cumsum(steps)])
    c = np.random.default_rng(seed).standard_normal(4)
    halves = [a + (b - a) * np.arange(2 * substeps) / (2 * substeps) for a, b in pairwise(times)]
    at = np.concatenate([*halves, times[-1:]])
    matrix = border_times(times, substeps)
    assert matrix.shape == (at.size, times.size)
    assert np.allclose(matrix @ np.polyval(c, times), np.polyval(c, at), atol=1e-8)
    assert np.array_equal(matrix[:: 2 * substeps], np.eye(times.size))  # frames as they are


def test_border_times_of_few_frames_have_the_degree_that_fits() -> None:
    two, three = np.array([0.0, 1.0]), np.array([0.0, 1.0, 3.0])
    assert np.allclose(border_times(two, 2) @ (2 * two + 1), 2 * np.linspace(0, 1, 5) + 1)
    at = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    assert np.allclose(border_times(three, 1) @ three**2, at**2)


def test_border_mask_is_two_cells_wide() -> None:
    mask = border_mask((6, 7))
    assert np.count_nonzero(~mask) == 2 * 3
    assert not mask[2:4, 2:5].any()
    assert np.count_nonzero(border_mask((9,), width=1)) == 2


@pytest.mark.parametrize("order", [4, 8])
def test_the_modes_of_a_window_are_real_and_nearly_orthogonal(order) -> None:
    (axis,), (waves,) = window_axes((40,), (0.1,), order=order)
    inner = axis.differences[:, BORDER:-BORDER]
    assert np.allclose(axis.back @ np.diag(-(waves**2)) @ axis.into, inner, atol=1e-10)
    assert np.isrealobj(waves)
    assert waves.min() > 0.0
    assert np.linalg.cond(axis.back) < 1.12


@pytest.mark.parametrize("refine", [2, 3, 5])
def test_a_finer_mesh_of_a_window(refine) -> None:
    """Its nodes are the border's cells and closer ones inside; the cells of the record are among them."""
    nodes = window_nodes(20, refine)
    assert [float(x) for x in nodes[:2] + nodes[-2:]] == [0, 1, 18, 19]
    assert {float(b - a) for a, b in pairwise(nodes[1:-1])} == {1 / refine}
    assert nodes[BORDER:-BORDER][refine - 1 :: refine] == list(range(2, 18))
    (axis,), (waves,) = window_axes((20,), (0.1,), refine)
    x = np.array([float(node) for node in nodes])
    for power in range(4):
        assert np.allclose(axis.finer @ np.arange(20.0) ** power, x**power, rtol=1e-12)
        exact = power * (power - 1) * x[2:-2] ** max(power - 2, 0) / 0.01
        assert np.allclose(axis.differences @ x**power, exact, rtol=1e-9, atol=1e-6)
        assert np.allclose(axis.slopes @ x**power, power * x[2:-2] ** max(power - 1, 0) / 0.1, rtol=1e-9, atol=1e-8)
    assert waves.min() > 0.0
    assert np.linalg.cond(axis.back) < 1.2
    wave = np.cos(0.9 * np.arange(20) + 0.3)
    error = np.abs(interpolation(20, nodes) @ wave - np.cos(0.9 * x + 0.3))
    assert error.max() < 3 / 128 * 0.9**4  # of a cubic, next to the border
    assert error[len(x) // 2 - 2 : len(x) // 2 + 2].max() < 1e-5


def test_a_thin_interface_needs_the_finer_mesh() -> None:
    """A front of four cells that another solver moves on a mesh three times finer, seen through a window."""
    cells, dx, epsilon, dt = 48, 1.0, 1.0, 0.25
    fine = Grid((3 * cells,), dx / 3, "neumann")
    x = fine.points[0]
    law = Law.bernstein(np.array([1.0, 1.6]) / epsilon**2)
    u = np.tanh((x - 17.3) / 1.4) - np.tanh((x - 30.1) / 1.4) - 1.0
    u = list(Cnab2(fine, dt=0.5, q=1.0, substeps=200).run(law, u, intervals=1))[-1]
    whole = np.stack([u, *Cnab2(fine, dt=dt, q=1.0, substeps=100).run(law, u, intervals=24)])
    part = whole[:, 1::3][:, 4:-4]
    times = dt * np.arange(len(part))
    errors = [
        np.sqrt(np.mean((window_of(part, times, dx, substeps=4, refine=n, coefficients=law.coefficients) - part) ** 2))
        for n in (1, 2, 3)
    ]
    assert errors[1] < 0.1 * errors[0], errors
    assert errors[2] < 0.1 * errors[0], errors


def test_a_window_converges_with_the_time_step() -> None:
    """Steps far beyond the limit of an explicit scheme; next to a border that moves order four is not reached."""
    wave, dx, times = 2 * np.pi, 1 / 48, 4e-3 * np.arange(6)
    x = dx * np.arange(40)
    fields = 0.8 * np.cos(wave * x + 40.0 * times[:, None])
    fine = window_of(fields, times, dx, substeps=64)
    steps = [2, 4, 8, 16]
    errors = [np.abs(window_of(fields, times, dx, substeps=n) - fine).max() for n in steps]
    assert fitted_order([1 / n for n in steps], errors) > 2.3, errors
    assert errors[0] < 2e-5, errors


def decaying(cells: int, dx: float, times: np.ndarray, wave: float) -> np.ndarray:
    """A wave under diffusion alone: an exact solution, cut anywhere."""
    x = dx * np.arange(cells)
    return np.exp(-(wave**2) * times)[:, None] * np.cos(wave * x + 0.7)


def fitted_order(sizes: list[float], errors: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def test_a_window_converges_with_the_mesh() -> None:
    """Order four in the two cells next to the border, where the stencil is shorter, and eight beyond."""
    wave, times = 4 * np.pi, 1e-4 * np.arange(9)
    sizes, errors = [1 / 16, 1 / 24, 1 / 36], []
    for dx in sizes:
        exact = decaying(round(1 / dx), dx, times, wave)
        errors.append(np.abs(window_of(exact, times, dx, substeps=4, coefficients=np.zeros(1)) - exact).max())
    assert 3.8 < fitted_order(sizes, errors) < 8.5, errors
    assert errors[-1] < 1e-5


def test_a_window_converges_with_the_frame_interval() -> None:
    """The border between the frames is a cubic: halving the interval divides its error by about sixteen."""
    wave, dx, span = 2 * np.pi, 1 / 64, 0.08
    intervals, errors = [8, 16, 32], []
    for count in intervals:
        times = span * np.linspace(0.0, 1.0, count + 1)
        exact = decaying(48, dx, times, wave)
        errors.append(np.abs(window_of(exact, times, dx, substeps=32, coefficients=np.zeros(1)) - exact).max())
    assert fitted_order([1 / n for n in intervals], errors) == pytest.approx(4.0, abs=0.5), errors


@pytest.mark.parametrize(("axes", "refine"), [(1, 1), (2, 1), (3, 1), (1, 3), (2, 2), (3, 2)])
def test_a_window_of_another_solvers_movie(axes, refine) -> None:
    """CNAB2 on the whole, the window on a part; unequal times in the second half."""
    cells, dt = (48, 32, 20)[axes - 1], 2.5e-4
    grid = Grid((cells,) * axes, 1 / cells, "neumann")
    x = (np.arange(cells) + 0.5) / cells
    u = 0.6 * np.cos(np.pi * x)
    for _ in range(axes - 1):
        u = u[..., None] * (0.7 + 0.3 * np.cos(np.pi * x))
    whole = np.stack([u, *Cnab2(grid, dt=dt, q=1.0, substeps=20).run(Law.bernstein(FORCE), u, intervals=12)])
    kept = np.array([0, 1, 2, 3, 4, 5, 6, 8, 9, 12])
    part = whole[kept][(slice(None), *(slice(2, 16 + k) for k in range(axes)))]
    found = window_of(part, dt * kept, 1 / cells, substeps=2, refine=refine)
    assert found.shape == part.shape
    assert np.array_equal(found[0], part[0])
    assert np.array_equal(found[:, border_mask(part.shape[1:])], part[:, border_mask(part.shape[1:])])
    assert np.abs(found - part).max() < 2e-5
    assert np.abs(part[-1] - part[0]).max() > 0.01

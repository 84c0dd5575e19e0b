"""Windows of the Cahn-Hilliard equation: the potential of a wide border, and parts of larger simulations."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.dynamics import CahnHilliard, Cnab2, Grid, border_mask, symbols
from doublewell.dynamics.open_boundary import BORDER, border_times, predict_window, spare, window_axes
from doublewell.law import Bernstein, Law
from doublewell.runtime import double_precision

WIDTH, FORCE = CahnHilliard().border, np.array([30.0, 45.0])


def window_of(fields, times, dx, *, substeps, refine=1, coefficients=FORCE, pull=None):
    """Predict fields[t, ...] from the first one and the border of all."""
    mesh = fields.shape[1:]
    axes, waves = window_axes(mesh, (dx,) * len(mesh), refine, width=WIDTH)
    taus, of = np.diff(times), symbols(CahnHilliard(), waves)
    with double_precision():
        return np.asarray(
            predict_window(
                fields[0], fields[1:][:, border_mask(mesh, WIDTH)], coefficients, taus, border_times(times, substeps),
                axes, of, family=Bernstein(len(coefficients) - 1), substeps=substeps, refine=refine, width=WIDTH,
                smooth=1.0 / of.coupling, pull=pull, known=(times[1:], None, None),
            )
        )  # fmt: skip


def order(sizes, errors) -> float:
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def decaying(cells, dx, times, wave):
    """A wave under L alone: an exact solution, cut anywhere."""
    return np.exp(-(wave**4) * times)[:, None] * np.cos(wave * dx * np.arange(cells) + 0.7)


def test_a_wide_border_differentiates_on_its_middle_cells() -> None:
    """Two cells at each end, by the six of that end; what is stepped begins behind them."""
    (axis,), _ = window_axes((30,), (0.5,), width=WIDTH)
    assert spare(BORDER) == 0
    assert spare(WIDTH) == 2
    assert axis.across.shape == (4, 12)
    assert axis.differences.shape == (30 - 8, 30 - 4)
    ends = 0.5 * np.r_[0:6, 24:30]
    for power in range(6):
        exact = power * (power - 1) * ends[[2, 3, 8, 9]] ** max(power - 2, 0)
        assert np.allclose(axis.across @ ends**power, exact, atol=1e-9 * 15.0**power)


def test_a_window_converges_with_the_mesh() -> None:
    """Order four, that of the stencils next to the border; of the other errors there is next to nothing here."""
    wave, times = 2 * np.pi, 2e-5 * np.arange(9)
    sizes, errors = [1 / 28, 1 / 40, 1 / 56], []
    for dx in sizes:
        exact = decaying(round(1 / dx), dx, times, wave)
        errors.append(np.abs(window_of(exact, times, dx, substeps=2, coefficients=np.zeros(1)) - exact).max())
    assert order(sizes, errors) == pytest.approx(4.0, abs=0.3), errors
    assert errors[-1] < 4e-7


def test_a_window_converges_with_the_time_step() -> None:
    """Steps as long as the force allows, 1e4 times those of an explicit scheme; next to a moving border order two."""
    dx, times = 1 / 48, 2e-5 * np.arange(9)
    fields = 0.8 * np.cos(2 * np.pi * dx * np.arange(44) + 1000.0 * times[:, None])
    fine, steps = window_of(fields, times, dx, substeps=64), [1, 2, 4, 8]
    errors = [np.abs(window_of(fields, times, dx, substeps=n) - fine).max() for n in steps]
    assert order([1 / n for n in steps], errors) > 1.5, errors
    assert errors[0] < 5e-5, errors


def test_long_steps_are_stable() -> None:
    """A rough start and many long steps: what is not forced dies out, at any mesh."""
    for cells in (24, 96):
        times = 0.3 * np.arange(40.0)
        fields = np.zeros((40, cells, cells))
        fields[0, 8:-8, 8:-8] = np.random.default_rng(0).standard_normal((cells - 16, cells - 16))
        found = window_of(fields, times, 1.0 / cells, substeps=1, coefficients=np.zeros(1))
        assert np.abs(found[1]).max() < 0.5
        assert np.abs(found[-1]).max() < 1e-12


@pytest.mark.parametrize(("axes", "refine"), [(1, 1), (2, 1), (3, 1), (1, 3), (2, 2)])
def test_a_window_of_another_solvers_movie(axes, refine) -> None:
    """CNAB2 on the whole, periodic domain, the window on a part; unequal times in the second half.

    The border between the frames is a cubic: the movie begins when the fastest waves of the first field have died.
    """
    cells, dt = (64, 40, 32)[axes - 1], 5e-5
    grid, x = Grid((cells,) * axes, 1 / cells), np.arange(cells) / cells
    u = 0.6 * np.cos(2 * np.pi * x + 0.4)
    for _ in range(axes - 1):
        u = u[..., None] * (0.7 + 0.3 * np.cos(2 * np.pi * x))
    solver = Cnab2(grid, dt=dt, q=1.0, substeps=40, dynamics=CahnHilliard())
    whole = np.stack([*solver.run(Law.bernstein(FORCE), u, intervals=16)])[3:]
    kept = np.array([0, 1, 2, 3, 4, 5, 6, 8, 9, 12])
    part = whole[kept][(slice(None), *(slice(2, 24 + k) for k in range(axes)))]
    found, edge = window_of(part, dt * kept, 1 / cells, substeps=4, refine=refine), border_mask(part.shape[1:], WIDTH)
    assert found.shape == part.shape
    assert np.array_equal(found[0], part[0])
    assert np.array_equal(found[:, edge], part[:, edge])
    assert np.abs(part[-1] - part[0])[~edge].max() > 0.02
    assert np.abs(found - part).max() < 2e-5


def test_a_term_acts_on_the_border_too() -> None:
    """Taking a part off the force is the same as a weaker law, inside and on the cells next to it."""
    dx, times = 1 / 32, 1e-4 * np.arange(4)
    fields = 0.8 * np.cos(2 * np.pi * dx * np.arange(32) + 300.0 * times[:, None])
    weaker = window_of(fields, times, dx, substeps=2, coefficients=0.9 * FORCE)
    found = window_of(fields, times, dx, substeps=2, pull=lambda u, curved, force, known, half: 0.9 * force)
    assert np.allclose(found, weaker, rtol=0.0, atol=1e-12)
    assert np.abs(weaker - window_of(fields, times, dx, substeps=2)).max() > 1e-3

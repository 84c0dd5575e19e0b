"""The grid's points, symbol and transforms, against the modes they stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.dynamics import Grid
from doublewell.dynamics.grid import jax_transforms, numpy_transforms
from doublewell.errors import InputError
from doublewell.runtime import double_precision

BOUNDARIES = ["periodic", "neumann"]


def mode(grid, numbers):
    """The eigenfunction of the Laplacian with these wave numbers, and its eigenvalue."""
    base = 2 * np.pi if grid.boundary == "periodic" else np.pi
    kappas = [base * k / length for k, length in zip(numbers, grid.extent, strict=True)]
    points = np.meshgrid(*grid.points, indexing="ij")
    return np.prod([np.cos(k * x) for k, x in zip(kappas, points, strict=True)], axis=0), -sum(k * k for k in kappas)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("cells", "dx"), [((9,), (0.2,)), ((8, 7), (0.3, 0.1)), ((6, 5, 8), (0.1, 0.2, 0.3))])
def test_symbol_is_the_eigenvalue_of_each_mode(cells, dx, boundary):
    grid = Grid(cells, dx, boundary)
    forward, backward = numpy_transforms(cells, boundary)
    for numbers in np.ndindex(*(3,) * len(cells)):
        u, eigenvalue = mode(grid, numbers)
        np.testing.assert_allclose(backward(grid.laplacian * forward(u)), eigenvalue * u, atol=1e-11 * (1 - eigenvalue))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("cells", [(2,), (7,), (10,), (6, 9), (5, 4), (3, 8, 5)])
def test_jax_transforms_equal_scipy_and_invert(cells, boundary):
    import jax

    u = np.random.default_rng(4).normal(size=cells)
    forward, _ = numpy_transforms(cells, boundary)
    with double_precision():
        to_modes, to_field = jax_transforms(cells, boundary)
        modes, back = jax.jit(lambda u: (to_modes(u), to_field(to_modes(u))))(u)
    assert modes.shape == Grid(cells, 1.0, boundary).laplacian.shape
    np.testing.assert_allclose(np.asarray(modes), forward(u), atol=1e-14 * np.sqrt(u.size) * 5)
    np.testing.assert_allclose(np.asarray(back), u, atol=1e-14)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(2, 9), min_size=1, max_size=3), st.sampled_from(BOUNDARIES), st.integers(0, 99))
def test_the_laplacian_is_symmetric_and_never_positive(cells, boundary, seed):
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(2, *cells))
    forward, backward = numpy_transforms(tuple(cells), boundary)
    grid = Grid(cells, rng.uniform(0.5, 2.0, size=len(cells)), boundary)
    of_u, of_v = (backward(grid.laplacian * forward(w)) for w in (u, v))
    scale = np.abs(grid.laplacian).max() * np.linalg.norm(u) * np.linalg.norm(v)
    assert abs(np.vdot(of_u, v) - np.vdot(u, of_v)) < 1e-13 * scale
    assert np.vdot(u, of_u) < 0
    assert abs(of_u.sum()) < 1e-12 * scale  # constants are in its kernel


def test_points_of_both_boundaries_and_extent():
    assert Grid((4,), 0.5, "periodic").points[0].tolist() == [0.0, 0.5, 1.0, 1.5]
    assert Grid((4,), 0.5, "neumann").points[0].tolist() == [0.25, 0.75, 1.25, 1.75]
    grid = Grid((4, 6), (0.5, 0.25), "periodic")
    assert grid.extent == (2.0, 1.5)


@pytest.mark.parametrize(("boundary", "first"), [("periodic", 0), ("neumann", 1)])
def test_a_three_times_finer_mesh_holds_the_points(boundary, first):
    coarse, fine = Grid((5,), 0.3, boundary), Grid((15,), 0.1, boundary)
    np.testing.assert_allclose(fine.points[0][first::3], coarse.points[0], rtol=1e-14, atol=1e-15)


def test_grids_compare_and_hash_by_value():
    assert Grid((4, 4), 0.5) == Grid([4, 4], (0.5, 0.5), "periodic")
    assert hash(Grid((4, 4), 0.5)) == hash(Grid([4, 4], (0.5, 0.5)))
    with pytest.raises(ValueError, match="read-only"):
        Grid((4,), 0.5).laplacian[0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((4, 4, 4, 4), 0.1), r"the mesh is \(4, 4, 4, 4\): expected one to three axes"),
        (((), 0.1), r"the mesh is \(\): expected one to three axes"),
        ((4, 0.1), r"the mesh is 4: expected one to three axes .*; for one axis pass \(4,\)"),
        (("44", 0.1), r"the mesh is '44': expected one to three axes"),
        (((True, 4), 0.1), r"the mesh is \(True, 4\)"),
        (((4,), 0.1, ["open"]), r"boundary is \['open'\]: expected 'periodic' or 'neumann'"),
        (((1, 4), 0.1), r"each of at least 2 cells"),
        (((4.0,), 0.1), r"the mesh is \(4.0,\)"),
        (((4, 4), (0.1, 0.1, 0.1)), r"dx has 3 entries: expected 1, or 2, one per space axis"),
        (((4,), "wide"), r"dx is 'wide': expected numbers"),
        (((4,), -0.1), r"dx is -0.1: expected the mesh spacing, a positive number"),
        (((4,), np.inf), r"dx is inf: expected the mesh spacing"),
        (((4,), 0.1, "open"), r"boundary is 'open': expected 'periodic' or 'neumann'"),
        (((4,), 0.1, None), r"boundary is None: expected 'periodic' or 'neumann'"),
    ],
)
def test_wrong_grids_say_what_was_expected(arguments, message):
    with pytest.raises(InputError, match=message):
        Grid(*arguments)

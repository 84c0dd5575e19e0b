"""Values on nodes that lie on the borders, as a record with zero slope there has them."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.record.borders import inside_borders
from doublewell.simulate import initial_field, simulate


def waves(x, y, t):
    return 0.3 + t * np.cos(np.pi * x) * np.cos(3 * np.pi * y) - np.cos(4 * np.pi * x)


def sampled(field, *axes, times=(0.0, 1.0, 2.5)):
    y, x = np.meshgrid(*axes, indexing="ij")
    return np.stack([field(x, y, t) for t in times])


def test_fields_without_slope_at_the_border_are_exact():
    nodes = sampled(waves, np.linspace(0, 1, 10), np.linspace(0, 1, 17))
    middles = sampled(waves, (np.arange(9) + 0.5) / 9, (np.arange(16) + 0.5) / 16)
    view = inside_borders(nodes, "neumann")
    assert (view.shape, view.dtype) == ((3, 9, 16), np.float64)
    np.testing.assert_allclose(np.asarray(view), middles, atol=1e-13)
    np.testing.assert_array_equal(view[1:3, 2:5, ::3], np.asarray(view)[1:3, 2:5, ::3])


def test_the_error_falls_as_the_mesh_resolves_an_interface():
    errors = []
    for cells in (16, 32, 64):
        step = np.arange(cells + 1) / cells
        nodes = np.tanh((step - 0.5) / 0.1)[None].astype(np.float32)
        errors.append(
            np.max(np.abs(inside_borders(nodes, "neumann")[:] - np.tanh(((step + 0.5 / cells)[:-1] - 0.5) / 0.1)))
        )
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] < 2e-4  # what is left is the slope of tanh at the border


def test_what_was_simulated_on_nodes_evolves_as_cells():
    """A domain with zero slope is the half of a periodic one, whose points lie on its borders: an outside truth."""
    cells, law = 32, named_law("sixth").effective(0.1)
    half = initial_field("circle", (2 * cells,), 1 / cells, epsilon=0.1)
    even = np.roll(half, -cells)  # even around its first point
    even = 0.5 * (even + np.roll(even[::-1], 1))
    whole = simulate(law, even, dx=1 / cells, dt=5e-4, frames=11)
    record = Record(
        inside_borders(whole.slab()[:, : cells + 1], "neumann"), dx=1 / cells, dt=5e-4, q=1.0, boundary="neumann"
    )
    own = simulate(law, record.slab(0, 1)[0], dx=1 / cells, dt=5e-4, frames=11, boundary="neumann")
    assert np.max(np.abs(own.slab() - record.slab())) < 1e-4


def test_nodes_that_are_not_finite_are_named():
    nodes = np.zeros((3, 5, 5))
    nodes[1, 2, 3] = np.nan
    view = inside_borders(nodes, "neumann", "run.e")
    assert np.all(view[0:1] == 0.0)
    with pytest.raises(InputError, match=r"run\.e has values on its nodes that are not finite: .*leave out boundary="):
        view[1:2]

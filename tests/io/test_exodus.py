"""Exodus: nodal variables of a regular mesh, in both kinds of netCDF and in the older layout."""

from __future__ import annotations

import numpy as np
import pytest
from movie_writers import MORE, WRITERS, _exodus, _nodes
from scipy.io import netcdf_file

from doublewell.errors import InputError
from doublewell.io import open_record
from doublewell.io.mesh import GridNodes, mesh_of

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture
def exodus(tmp_path):
    def write(arrays, sizes):
        with netcdf_file(tmp_path / "movie.e", "w", version=2) as file:
            for name, size in sizes.items():
                file.createDimension(name, size)
            for name, (dims, values) in arrays.items():
                file.createVariable(name, values.dtype.char if values.dtype.kind != "S" else "c", dims)[:] = values
        return tmp_path / "movie.e"

    return write


@pytest.mark.parametrize("writer", ["exodus3", "exodus4"])
def test_variables_are_listed(writer, tmp_path) -> None:
    path, _ = WRITERS[writer](tmp_path, MOVIE)
    with refused("holds several nodal variables: pass var= with one of c, eta"):
        open_record(path)
    with refused("has no variable 'phi': pass var= with one of c, eta"):
        open_record(path, var="phi")
    assert np.all(open_record(path, var="c").slab() == 0.0)
    assert open_record(path, var="eta", dt=2.0).dt == 2.0


def test_the_older_layout(exodus) -> None:
    sizes, arrays = _exodus(MOVIE)
    points, values = _nodes(MOVIE)
    old = {name: arrays[name] for name in ("time_whole", "name_nod_var")}
    old["coord"] = (("num_dim", "num_nodes"), points.T[:2].copy())
    old["vals_nod_var"] = (("time_step", "num_nod_var", "num_nodes"), np.stack([values, -values], axis=1))
    path = exodus(old, sizes | {"num_dim": 2})
    np.testing.assert_array_equal(open_record(path, var="eta").slab(1, 4), -MOVIE[1:4])


def test_a_periodic_domain(tmp_path) -> None:
    u = MOVIE.copy()
    u[:, -1], u[:, :, -1] = u[:, 0], u[:, :, 0]
    path, said = WRITERS["exodus4"](tmp_path, u)
    np.testing.assert_array_equal(open_record(path, boundary="periodic", **said).slab(2, 5), u[2:, :-1, :-1])
    assert open_record(path, boundary="neumann", **said).mesh == tuple(n - 1 for n in u.shape[1:])


def test_files_that_cannot_be_used(exodus) -> None:
    sizes, arrays = _exodus(MOVIE)
    for lost, words in (
        ("name_nod_var", "has no nodal and no element variables: expected the field; let MOOSE write it"),
        ("vals_nod_var2", "movie.e is damaged: it has no values vals_nod_var2"),
        ("time_whole", "has no frame interval: pass dt="),
    ):
        with refused(words):
            open_record(exodus({name: item for name, item in arrays.items() if name != lost}, sizes), var="eta")
    without = {name: item for name, item in arrays.items() if not name.startswith("coord")}
    with refused("has no coordinates of nodes"):
        open_record(exodus(without, sizes), var="eta")
    crooked = arrays["coordx"][1] + 0.1 * arrays["coordy"][1]
    with refused(r"movie.e: the mesh is not regular, and 24 nodes do not fill a box: expected the nodes of a box"):
        open_record(exodus(arrays | {"coordx": (("num_nodes",), crooked)}, sizes), var="eta")
    with refused("holds 1 times of 'eta': expected a movie; let MOOSE write each step"):
        first = {name: (d, v[:1] if d[0] == "time_step" else v) for name, (d, v) in arrays.items()}
        open_record(exodus(first, sizes | {"time_step": 1}), var="eta")


def test_nodes_in_any_order() -> None:
    rng = np.random.default_rng(0)
    z, y, x = np.meshgrid(0.5 * np.arange(3), 2.0 + 0.25 * np.arange(4), 0.1 * np.arange(5), indexing="ij")
    points = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
    order = rng.permutation(len(points))
    shared = np.concatenate([points[order], points[:7] + 1e-9])  # nodes that two parts of a mesh share
    grid = mesh_of(shared)
    assert isinstance(grid, GridNodes)
    assert (grid.mesh, [axis.name for axis in grid.axes]) == ((3, 4, 5), ["z", "y", "x"])
    assert [axis.step for axis in grid.axes] == pytest.approx([0.5, 0.25, 0.1])
    np.testing.assert_allclose(shared[grid.nodes], points, atol=1e-8)
    assert len(grid.twins) == 7
    for bad, words in (
        (points[order[:-1]], "59 nodes are too few to interpolate between them"),
        (np.zeros((4, 3)), "4 nodes do not fill a mesh"),
        (points * np.nan, "nodes are not finite"),
    ):
        with refused(words):
            mesh_of(bad)


def test_names_end_at_their_first_nul(exodus) -> None:
    sizes, arrays = _exodus(MOVIE)
    names = arrays["name_nod_var"][1].copy()
    names[1] = np.frombuffer(b"w\0B?@B".ljust(33, b"?"), "S1")
    path = exodus(arrays | {"name_nod_var": (arrays["name_nod_var"][0], names)}, sizes)
    with refused("pass var= with one of c, w$"):
        open_record(path)
    (note,) = open_record(path, var="w").notes
    assert (note.code, note.sentence) == ("field-chosen", "the field is the nodal variable 'w', and not 'c'")


def test_element_variables(tmp_path) -> None:
    path, _ = MORE["exodus_elements"](tmp_path, MOVIE)
    record = open_record(path, boundary="neumann")  # the middles of elements are those of cells
    np.testing.assert_array_equal(record.slab(), MOVIE)
    assert record.notes[0].sentence == "the field is the element variable 'c'"


def test_a_part_of_a_run(tmp_path) -> None:
    path, said = WRITERS["exodus3"](tmp_path, MOVIE)
    record = open_record(path.rename(tmp_path / "run.e-s004"), **said)
    assert [note.code for note in record.notes] == ["field-chosen", "part-of-run"]
    assert record.notes[1].sentence.startswith("part 4 of a run whose mesh changes")

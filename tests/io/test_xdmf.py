"""XDMF with HDF5: what FEniCS writes, in one file and with meshes of its own, and what is refused."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from movie_writers import DT, MORE

from doublewell.errors import InputError
from doublewell.io import open_record

MOVIE = np.random.default_rng(0).uniform(-1, 1, (4, 6, 7))


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture
def xdmf(tmp_path):
    return MORE["xdmf"](tmp_path, MOVIE)[0]


def change(path, old, new, count=-1):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def test_the_boundary_of_nodes(xdmf) -> None:
    assert open_record(xdmf, boundary="neumann").mesh == (5, 6)
    assert open_record(xdmf).notes[0].sentence == "the field is the field 'c'"


def test_grids_that_refer_to_the_first_one(xdmf) -> None:
    """DOLFINx writes the mesh first, and grids that include it by an XPointer."""
    text = xdmf.read_text()
    mesh = text[text.index("<Topology") : text.index("</Geometry>") + 11]
    text = text.replace(mesh, "").replace("<Domain>", f'<Domain><Grid Name="mesh" GridType="Uniform">{mesh}</Grid>')
    pointer = '<xi:include xpointer="xpointer(/Xdmf/Domain/Grid[1]/*[self::Topology or self::Geometry])"/>'
    text = text.replace("<Time", f"{pointer}<Time").replace(
        "<Xdmf ", '<Xdmf xmlns:xi="https://www.w3.org/2001/XInclude" '
    )
    xdmf.write_text(text)
    np.testing.assert_array_equal(open_record(xdmf).slab(), MOVIE)


def test_a_regular_mesh_and_numbers_in_the_file(tmp_path) -> None:
    grids = "".join(
        f'<Grid><Topology TopologyType="2DCoRectMesh" Dimensions="6 7"/><Geometry GeometryType="ORIGIN_DXDY">'
        '<DataItem Dimensions="2">0 0</DataItem><DataItem Dimensions="2">0.5 0.25</DataItem></Geometry>'
        f'<Time Value="{DT * k}"/><Attribute Name="u" Center="Node"><DataItem Dimensions="6 7">'
        f"{' '.join(map(repr, frame.ravel().tolist()))}</DataItem></Attribute></Grid>"
        for k, frame in enumerate(MOVIE)
    )
    (tmp_path / "run.xmf").write_text(f'<Xdmf><Domain><Grid GridType="Collection">{grids}</Grid></Domain></Xdmf>')
    record = open_record(tmp_path / "run.xmf")
    assert record.dx == (0.5, 0.25)
    np.testing.assert_array_equal(record.slab(), MOVIE)


def test_values_in_cells(tmp_path, xdmf) -> None:
    """Two triangles in each square have their middles nowhere on a lattice: interpolated, and said."""
    n = 9
    number = np.arange(n * n).reshape(n, n)
    a, b, c, d = (x.ravel() for x in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]))
    triangles = np.concatenate([np.stack([a, b, d], 1), np.stack([a, c, d], 1)])
    y, x = np.divmod(np.arange(n * n), n)
    points = np.stack([x, y], 1) / (n - 1)
    values = points[triangles].mean(axis=1) @ [1.0, 2.0]
    with h5py.File(tmp_path / "movie.h5", "r+") as file:
        for name, numbers in (("Mesh/topology", triangles), ("Mesh/geometry", points)):
            del file[name]
            file[name] = numbers
        for k in range(4):
            del file[f"VisualisationVector/{k}"]
            file[f"VisualisationVector/{k}"] = values + k
    for old, new in (("2 3", "128 3"), ("42 2", "81 2"), ("42 1", "128 1"), ('"Node"', '"Cell"')):
        change(xdmf, old, new)
    record = open_record(xdmf)
    assert [note.code for note in record.notes] == ["field-chosen", "interpolated"]
    steps = np.diff(record.slab(), axis=1) / record.dx[0], np.diff(record.slab(), axis=2) / record.dx[1]
    np.testing.assert_allclose(steps[0], 2.0, atol=1e-4)
    np.testing.assert_allclose(steps[1], 1.0, atol=1e-4)


def test_references_stay_in_the_folder(tmp_path, xdmf) -> None:
    (tmp_path / "in").mkdir()
    inner = xdmf.rename(tmp_path / "in" / "movie.xdmf")
    change(inner, "movie.h5:", "../movie.h5:")
    with refused("movie.xdmf names the file '../movie.h5', which lies outside its folder: expected files beside it"):
        open_record(inner)
    change(inner, "../movie.h5:", "movie.h5:")
    with refused("movie.xdmf names the file 'movie.h5', which does not exist"):
        open_record(inner)
    (tmp_path / "in" / "movie.h5").symlink_to(tmp_path / "movie.h5")
    with refused("which lies outside its folder"):
        open_record(inner)


@pytest.mark.parametrize("kind", ["link", "soft", "virtual", "storage"])
def test_hdf5_that_leads_to_other_files(kind, tmp_path, xdmf) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["u"] = np.zeros((42, 1))
    with h5py.File(tmp_path / "movie.h5", "r+") as file:
        name = "VisualisationVector/0"
        del file[name]
        if kind == "link":
            file[name] = h5py.ExternalLink("secret.h5", "u")
        elif kind == "soft":
            file["other"] = h5py.ExternalLink("secret.h5", "/")
            file[name] = h5py.SoftLink("/other/u")
        elif kind == "virtual":
            layout = h5py.VirtualLayout((42, 1), "f8")
            layout[:] = h5py.VirtualSource("secret.h5", "u", (42, 1))
            file.create_virtual_dataset(name, layout)
        else:
            file.create_dataset(name, (42, 1), "f8", external=[(str(tmp_path / "secret.h5"), 0, 8 * 42)])
    with refused("movie.h5 has no array '/VisualisationVector/0' of its own"):
        open_record(xdmf)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<!DOCTYPE Xdmf SYSTEM "Xdmf.dtd" []>', '<!DOCTYPE Xdmf [<!ENTITY a "b">]>', "defines XML entities"),
        ('AttributeType="Scalar"', 'AttributeType="Vector"', "has no scalar field at two times or more"),
        ('"42 1"', '"43 1"', "numbers in .*, and \\(43, 1\\) are announced"),
        ('"42 2"', '"-1 2"', "a DataItem has the Dimensions '-1 2'"),
        ('GeometryType="XY"', 'GeometryType="X_Y_Z"', "has a geometry 'X_Y_Z': expected XY or XYZ"),
        ('Format="HDF"', 'Format="Binary"', "numbers of the format 'Binary': expected HDF or XML"),
        ("<Xdmf ", "<Ymdf ", "damaged or not in the XDMF format"),
        ('Center="Node"', 'Center="Face"', "has no scalar field at two times"),
    ],
)
def test_what_is_refused(old, new, words, xdmf) -> None:
    change(xdmf, old, new)
    with refused(words):
        open_record(xdmf)


def test_several_meshes(xdmf) -> None:
    text = xdmf.read_text()
    mesh = text[text.index("<Topology") : text.index("</Geometry>") + 11]
    other = mesh.replace("Mesh/geometry", "Mesh/geometry2")
    head, _, tail = text.rpartition("<Time")
    xdmf.write_text(f"{head}{other}<Time{tail}")
    with refused("has 2 meshes: expected one for the whole series"):
        open_record(xdmf)

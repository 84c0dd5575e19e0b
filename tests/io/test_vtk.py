"""VTK: files of VTK 9.7 itself in data/, and by hand what it does not write."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from movie_writers import MORE, WRITERS

from doublewell.errors import InputError
from doublewell.io import open_record

DATA = Path(__file__).parent / "data"
MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


def change(path, old, new, count=1):
    text = path.read_bytes()
    assert old in text
    path.write_bytes(text.replace(old, new, count))


@pytest.mark.parametrize(
    "name", ["cell-appended-zlib-64-f8", "point-binary-none-32-f4", "vtu-appended64-lzma-32-f8", "vtu-ascii-none-32-f8"]
)
def test_files_of_vtk_itself(name) -> None:
    record = open_record(DATA / f"vtk-{name}")  # a folder of three frames; a vector beside the field is left out
    assert (record.dx, record.dt) == ((0.5, 0.25), 0.5)
    expected = np.load(DATA / "vtk-u.npy").astype(name[-2:])
    np.testing.assert_array_equal(record.slab(), expected)
    np.testing.assert_array_equal(open_record(DATA / f"vtk-{name}", var="phi", dt=2.0).slab(1, 3), expected[1:3])


def test_a_packer_that_the_standard_library_lacks() -> None:
    with refused(r"f0.vti: the arrays are packed by vtkLZ4DataCompressor: write them again with zlib or plain"):
        open_record(DATA / "vtk-cell-binary-lz4-32-f8", dt=1.0).slab()


def test_one_frame_is_no_movie(tmp_path) -> None:
    path, _ = WRITERS["vti_ascii"](tmp_path, MOVIE)
    with refused(
        r"out_0.vti is one frame: expected a movie; pass the folder of all frames, a pattern .*\*\.vti, or a \.pvd"
    ):
        open_record(path / "out_0.vti")


def test_times(tmp_path) -> None:
    path, _ = WRITERS["vti_ascii"](tmp_path, MOVIE)
    (path / "out_3.vti").write_bytes(re.sub(b"<FieldData>.*</FieldData>", b"", (path / "out_3.vti").read_bytes()))
    with refused("has no frame interval: pass dt="):
        open_record(path)
    assert open_record(path, dt=2.0).dt == 2.0


def test_lists_of_files(tmp_path) -> None:
    path, _ = WRITERS["vti_raw"](tmp_path, MOVIE)
    text = path.read_text()
    rows = re.findall("<DataSet.*?/>", text)
    path.write_text(text.replace("".join(rows), "".join(rows[::-1])))
    np.testing.assert_array_equal(open_record(path).slab(), MOVIE)  # in the order of time
    np.testing.assert_array_equal(open_record(tmp_path).slab(), MOVIE)  # a folder with one list
    path.write_text(text.replace(rows[1], rows[0]))
    with refused("lists several files for one time: expected one file per frame; join the parts"):
        open_record(path)
    path.write_text(text.replace("".join(rows), ""))
    with refused("lists no files: expected a .pvd file with a DataSet for each frame"):
        open_record(path)
    path.write_text(text)
    (tmp_path / "run" / "out_2.vti").unlink()
    with refused(r"out_2.vti does not exist: it is listed as a frame"):
        open_record(path).slab()


def test_fields_on_points_and_in_cells(tmp_path) -> None:
    path, _ = WRITERS["vti_ascii"](tmp_path, MOVIE)
    for file in path.iterdir():
        ones = " ".join(["1"] * 35)
        array = f'<DataArray type="Float32" Name="u" format="ascii">{ones}</DataArray>'
        change(file, b"<PointData></PointData>", f"<PointData>{array}</PointData>".encode())
    with refused(r"several arrays .*u \(cells\) \(5, 1, 4, 6\), u \(points\) \(5, 1, 5, 7\): pass var="):
        open_record(path)
    np.testing.assert_array_equal(open_record(path, var="u (cells)").slab(), MOVIE)
    assert open_record(path, var="u (points)").shape == (5, 5, 7)


def test_an_image_in_pieces(tmp_path) -> None:
    path, _ = WRITERS["vti_ascii"](tmp_path, MOVIE)
    for file, frame in zip(sorted(path.iterdir()), MOVIE, strict=True):
        parts = []
        for extent, part in (("0 2 0 4 0 0", frame[:, :2]), ("2 6 0 4 0 0", frame[:, 2:])):
            numbers = " ".join(map(repr, part.ravel().tolist()))
            array = f'<DataArray type="Float64" Name="u" format="ascii">{numbers}</DataArray>'
            parts.append(f'<Piece Extent="{extent}"><CellData>{array}</CellData></Piece>')
        file.write_bytes(re.sub(b"<Piece.*</Piece>", "".join(parts).encode(), file.read_bytes()))
    np.testing.assert_array_equal(open_record(path).slab(), MOVIE)
    change(path / "out_1.vti", b'Extent="2 6', b'Extent="3 7')
    with refused(r"out_1.vti: a piece with extent .*\(3, 7\)\) along z, y, x lies outside the whole extent"):
        open_record(path).slab()
    change(path / "out_1.vti", b'Extent="3 7', b'Extent="1 5')
    with refused("out_1.vti: the pieces do not fill the whole extent"):
        open_record(path).slab()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'Name="u"', b'Name="v"', "out_2.vti has no array 'u', which the first frame has"),
        (
            b'type="ImageData"',
            b'type="PolyData"',
            "out_2.vti: holds PolyData: expected ImageData, RectilinearGrid, StructuredGrid, UnstructuredGrid, or one",
        ),
        (b"<VTKFile", b"<!DOCTYPE a []><VTKFile", "out_2.vti defines XML entities, or is no plain XML"),
        (b"VTKFile", b"KMLFile", "out_2.vti is XML with the root 'KMLFile': expected a VTKFile"),
        (b'Spacing="', b'Spacing="1 ', "out_2.vti: Spacing is .*: expected 3 numbers"),
        (b"0 6 0 4 0 0", b"0 99999 0 99999 0 0", "out_2.vti: WholeExtent is .*, more than the file can hold"),
        (b"0 6 0 4 0 0", b"6 0 0 4 0 0", "out_2.vti: WholeExtent is .*: expected first and last point"),
        (b"0 6 0 4 0 0", b"0 6 0 3 0 0", "out_2.vti: array 'u' has 19 numbers: expected 18"),
        (b"</DataArray></CellData>", b" 1</DataArray></CellData>", "out_2.vti: array 'u' has 25 numbers: expected 24"),
        (b'format="ascii">-', b'format="ascii">x', "out_2.vti is damaged or not in the VTK format"),
    ],
)
def test_one_bad_frame(old, new, words, tmp_path) -> None:
    path, _ = WRITERS["vti_ascii"](tmp_path, MOVIE)
    change(path / "out_2.vti", old, new, 2 if b"6 0 " in old or b"KML" in new else 1)
    record = open_record(path, dt=1.0)
    record.slab(0, 2)
    with refused(words):
        record.slab()


def test_a_mesh_that_changes_or_is_not_regular(tmp_path) -> None:
    source = DATA / "vtk-vtu-ascii-none-32-f8"
    shutil.copytree(source, tmp_path / "run")
    text = (tmp_path / "run" / "f1.vtu").read_text()
    moved = re.sub(r"(<Points>.*?>\s*)0 0 0", r"\g<1>0.01 0 0", text, count=1, flags=re.DOTALL)
    assert moved != text
    (tmp_path / "run" / "f1.vtu").write_text(moved)
    with refused("f1.vtu has another mesh than the first frame: expected one mesh for the whole series"):
        open_record(tmp_path / "run").slab()
    (tmp_path / "run" / "f1.vtu").write_text(text.replace("1.25", "2.5").replace("0.75", "1.5"))
    with refused("f1.vtu"):
        open_record(tmp_path / "run").slab()


def test_the_boundary_of_nodes(tmp_path) -> None:
    u = MOVIE.copy()
    u[:, -1], u[:, :, -1] = u[:, 0], u[:, :, 0]
    path, said = WRITERS["vtu"](tmp_path, u)
    record = open_record(path, boundary="periodic", **said)
    np.testing.assert_array_equal(record.slab(), u[:, :-1, :-1])  # the border is one node seen twice
    assert open_record(path, **said).mesh == (4, 6)
    assert open_record(path, boundary="neumann", **said).mesh == (3, 5)
    shutil.rmtree(path)
    path, said = WRITERS["vtu"](tmp_path, MOVIE)
    with refused("boundary is 'periodic', and the first and the last layer of nodes along y are not the same"):
        open_record(path, boundary="periodic", **said)


def cells(u):
    """An ASCII mesh of quadrilaterals with values in its cells."""
    ny, nx = u.shape
    points = [(0.25 * i, 0.5 * j, 0.0) for j in range(ny + 1) for i in range(nx + 1)]
    corners = [(j * (nx + 1) + i, j * (nx + 1) + i + 1, (j + 1) * (nx + 1) + i + 1, (j + 1) * (nx + 1) + i)
               for j in range(ny) for i in range(nx)]  # fmt: skip

    def array(name, kind, rows, count=1):
        text = " ".join(str(number) for row in rows for number in np.atleast_1d(row).tolist())
        return f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{count}" format="ascii">{text}</DataArray>'

    return (
        f'<VTKFile type="UnstructuredGrid"><UnstructuredGrid><Piece NumberOfPoints="{len(points)}" '
        f'NumberOfCells="{len(corners)}"><Points>{array("Points", "Float64", points, 3)}</Points><Cells>'
        f"{array('connectivity', 'Int32', corners)}{array('offsets', 'Int32', 4 * np.arange(1, len(corners) + 1))}"
        f"</Cells><CellData>{array('u', 'Float64', u.ravel())}</CellData></Piece></UnstructuredGrid></VTKFile>"
    )


def test_values_in_the_cells_of_a_mesh(tmp_path) -> None:
    for number, frame in enumerate(MOVIE):
        (tmp_path / f"f{number}.vtu").write_text(cells(frame))
    record = open_record(tmp_path, dt=1.0, boundary="neumann")
    assert record.dx == (0.5, 0.25)
    np.testing.assert_array_equal(record.slab(), MOVIE)
    text = (tmp_path / "f1.vtu").read_text()
    for old, new, words in (
        ('format="ascii">0 1 8 7', 'format="ascii">0 99 8 7', "name points that it does not have"),
        ("4 8 12", "8 4 12", "the cells of the mesh are damaged"),
        ("<Points>", "<Dots>", "f1.vtu"),
    ):
        assert old in text
        (tmp_path / "f1.vtu").write_text(text.replace(old, new, 1))
        with refused(words):
            open_record(tmp_path, dt=1.0).slab()


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("vtk_ascii", b"STRUCTURED_POINTS", b"POLYDATA", "the data set is POLYDATA: expected one of STRUCTURED_POINTS"),
        ("vtk_ascii", b"DIMENSIONS 7 5 1", b"DIMENSIONS 9999999 9999999 1", "more than the file can hold|expected"),
        ("vtk_ascii", b"CELL_DATA 24", b"CELL_DATA 25", "numbers of 25 are there"),
        ("vtk_ascii", b"CELL_DATA 24", b"CELL_DATA 99999999999", "are announced, more than the file holds"),
        ("vtk_ascii", b"SCALARS u double 1", b"SCALARS u text 1", "numbers of the type 'text': expected one of float"),
        ("vtk_ascii", b"SCALARS", b"THINGS", "an array of the kind 'THINGS', which is not known"),
        ("vtk_binary", b"POINTS 24", b"POINTS 1000000", "are announced, more than the file holds"),
        ("vtk_binary", b"CELLS 2 10", b"CELLS 2 -1", "a count of -1"),
    ],
)
def test_legacy_files_that_are_damaged(name, old, new, words, tmp_path) -> None:
    path, _ = MORE[name](tmp_path, MOVIE)
    change(path / "out_0.vtk", old, new)
    with refused(words):
        open_record(path)


def test_parts_and_lists_stay_in_their_folder(tmp_path) -> None:
    path, said = MORE["pvtu"](tmp_path, MOVIE)
    change(path / "out_0.pvtu", b"out_0_1.vtu", b"../away.vtu")
    with refused(r"out_0.pvtu names the file '../away.vtu', which lies outside its folder"):
        open_record(path, **said)
    change(path / "out_0.pvtu", b"../away.vtu", b"out_0_1.vtu")
    (path / "out_0_1.vtu").rename(tmp_path / "away.vtu")
    (path / "out_0_1.vtu").symlink_to(tmp_path / "away.vtu")
    with refused("which lies outside its folder"):
        open_record(path, **said)
    shutil.rmtree(path)
    listed, _ = WRITERS["vti_raw"](tmp_path, MOVIE)
    change(listed, b"run/out_1.vti", b"/other/out_1.vti")
    with refused("movie.pvd names the file '/other/out_1.vti', which lies outside its folder"):
        open_record(listed)


def test_fields_of_the_newer_legacy_version(tmp_path) -> None:
    """Offsets and connectivity, a FIELD of several arrays, vectors between them, METADATA, as ParaView writes them."""
    for number in range(3):
        (tmp_path / f"f{number}.vtk").write_text(
            "# vtk DataFile Version 5.1\nvtk output\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 9 float\n"
            + " ".join(f"{x} {y} 0" for y in range(3) for x in range(3))
            + "\nMETADATA\nINFORMATION 0\n\nCELLS 5 16\nOFFSETS vtktypeint64\n0 4 8 12 16\nCONNECTIVITY vtktypeint64\n"
            "0 1 4 3 1 2 5 4 3 4 7 6 4 5 8 7\nCELL_TYPES 4\n9\n9\n9\n9\n\nPOINT_DATA 9\nVECTORS v float\n"
            + "0 " * 27
            + "\nFIELD FieldData 2\nphi 1 9 double\n"
            + " ".join(str(number + k) for k in range(9))
            + "\nMETADATA\nINFORMATION 0\n\nw 2 9 float\n"
            + "1 " * 18
            + f"\nCELL_DATA 4\nSCALARS c int\nLOOKUP_TABLE default\n{number} 2 3 4\n"
        )
    record = open_record(tmp_path, var="phi", dt=1.0)
    np.testing.assert_array_equal(record.slab(), np.add.outer(np.arange(3.0), np.arange(9.0).reshape(3, 3)))
    record = open_record(tmp_path, var="c", dt=1.0, levels=(-1, 1))
    assert (record.mesh, record.slab()[2, 0].tolist()) == ((2, 2), [2.0, 2.0])

"""Writers: one small movie in every format, by the libraries of others or by hand, never by the readers under test.

Each writer takes a folder and u[t, y, x], and returns the path with what has to be said when it is opened.
"""

from __future__ import annotations

import base64
import json
import warnings
import zlib
from pathlib import Path

import h5py
import numpy as np

DX, DT = (1 / 32, 1 / 64), 1 / 1024  # along y and x; binary fractions, which every format keeps to the last bit
MESH = {"dx": DX, "dt": DT}


def npy(folder, u):
    np.save(folder / "movie.npy", u)
    return folder / "movie.npy", MESH


def npz(folder, u):
    np.savez(folder / "movie.npz", phase=u, dx=DX, dt=DT)
    return folder / "movie.npz", {}


def npz_time_last(folder, u):
    np.savez_compressed(folder / "movie.npz", u=np.moveaxis(u, 0, -1))
    return folder / "movie.npz", MESH | {"axes": "yxt"}


def zarr_plain(folder, u):
    import zarr

    array = zarr.create_array(folder / "movie.zarr", shape=u.shape, chunks=(4, *u.shape[1:]), dtype=u.dtype)
    array[...] = u
    return folder / "movie.zarr", MESH


def _xarray(u):
    import xarray as xr

    places = {"time": DT * np.arange(len(u)), "y": DX[0] * np.arange(u.shape[1]), "x": DX[1] * np.arange(u.shape[2])}
    field = xr.DataArray(u, dims=("time", "y", "x"), coords=places, name="phase")
    for name, unit in (("time", "s"), ("y", "um"), ("x", "um")):
        field[name].attrs["units"] = unit
    return field.to_dataset()


def zarr_xarray(folder, u):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _xarray(u).transpose("x", "y", "time").to_zarr(folder / "movie.zarr", zarr_format=2)
    return folder / "movie.zarr", {}


def _ngff(folder, u, version):
    import zarr

    zarr_format = 2 if version == "0.4" else 3
    group = zarr.create_group(folder / "movie.zarr", zarr_format=zarr_format)
    array = group.create_array("0", shape=(len(u), 1, 1, *u.shape[1:]), chunks=(2, 1, 1, 16, 16), dtype=u.dtype)
    array[...] = u[:, None, None]
    units = {"t": ("time", "millisecond"), "c": ("channel", None), "z": ("space", "micrometer"),
             "y": ("space", "nanometer"), "x": ("space", "micrometer")}  # fmt: skip
    axes = [{"name": name, "type": kind} | ({"unit": unit} if unit else {}) for name, (kind, unit) in units.items()]
    scale = [1000 * DT, 1, 1, 1000 * DX[0], DX[1]]
    levels = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}]
    image = {"multiscales": [{"version": version, "axes": axes, "datasets": levels}]}
    group.attrs.update(image if version == "0.4" else {"ome": image | {"version": version}})
    return folder / "movie.zarr", {}


def ngff_04(folder, u):
    return _ngff(folder, u, "0.4")


def ngff_05(folder, u):
    return _ngff(folder, u, "0.5")


def hdf5(folder, u):
    with h5py.File(folder / "movie.h5", "w") as file:
        run = file.create_group("run")
        run.create_dataset("phase", data=u, chunks=(3, 4, 5), compression="gzip")
        run.attrs["dx"], run["dt"] = DX, DT
    return folder / "movie.h5", {}


def hdf5_time_last(folder, u):
    with h5py.File(folder / "movie.h5", "w") as file:
        file["u"] = np.moveaxis(u, 0, -1)
    return folder / "movie.h5", MESH | {"axes": "yxt"}


def netcdf4(folder, u):
    _xarray(u).to_netcdf(folder / "movie.nc", engine="h5netcdf")
    return folder / "movie.nc", {}


def netcdf3(folder, u):
    _xarray(u).transpose("y", "x", "time").to_netcdf(folder / "movie.nc", engine="scipy")
    return folder / "movie.nc", {}


def py_pde(folder, u):
    """The layout of py-pde 0.59, whose axes are x, y; a test compares it with what py-pde writes."""
    high = [DX[1] * u.shape[2], DX[0] * u.shape[1]]
    grid = {"bounds": [[0.0, high[0]], [0.0, high[1]]], "shape": [u.shape[2], u.shape[1]], "periodic": [False, True],
            "class": "CartesianGrid"}  # fmt: skip
    about = {"class": '"ScalarField"', "grid": json.dumps(grid), "label": '"phi"', "dtype": '"<f8"'}
    with h5py.File(folder / "movie.hdf5", "w") as file:
        file.create_dataset("data", data=u.swapaxes(1, 2), chunks=(1, *u.shape[:0:-1]), compression="gzip")
        file.create_dataset("times", data=DT * np.arange(len(u)), chunks=(1,), compression="gzip")
        file.attrs["field_attributes"], file.attrs["data_length"] = json.dumps(about), json.dumps(len(u))
    return folder / "movie.hdf5", {}


def mat5(folder, u):
    from scipy.io import savemat

    lines = {"t": DT * np.arange(len(u)), "x": DX[1] * np.arange(u.shape[2]), "y": DX[0] * np.arange(u.shape[1])}
    savemat(folder / "movie.mat", {"uu": np.moveaxis(u, 0, -1), **lines}, do_compression=True)
    return folder / "movie.mat", {}


def mat73(folder, u):
    """What MATLAB writes with -v7.3: HDF5 after a block of text, axes in the other order."""
    with h5py.File(folder / "movie.mat", "w", userblock_size=512) as file:
        for name, values in {"u": np.moveaxis(u, 0, -1), "dx": np.array([DX]), "dt": np.array([[DT]])}.items():
            file.create_dataset(name, data=values.T).attrs["MATLAB_class"] = np.bytes_("double")
    with (folder / "movie.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return folder / "movie.mat", {"axes": "yxt"}


def ome_tiff(folder, u):
    import tifffile

    about = {"axes": "TYX", "PhysicalSizeX": DX[1], "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 1000 * DX[0],
             "PhysicalSizeYUnit": "nm", "TimeIncrement": 1000 * DT, "TimeIncrementUnit": "ms"}  # fmt: skip
    tifffile.imwrite(folder / "movie.ome.tif", u, metadata=about)
    return folder / "movie.ome.tif", {}


def ome_tiff_packed(folder, u):
    import tifffile

    about = {"axes": "TYX", "PhysicalSizeX": DX[1], "PhysicalSizeY": DX[0], "TimeIncrement": DT}
    tifffile.imwrite(folder / "movie.ome.tif", u, metadata=about, compression="zlib", tile=(16, 16))
    return folder / "movie.ome.tif", {}


def imagej(folder, u):
    import tifffile

    about = {"axes": "TYX", "finterval": DT, "unit": "\\u00B5m"}
    tifffile.imwrite(
        folder / "movie.tif", u.astype("f4"), imagej=True, resolution=(1 / DX[1], 1 / DX[0]), metadata=about
    )
    return folder / "movie.tif", {}


def plain_tiff(folder, u):
    import tifffile

    tifffile.imwrite(folder / "movie.tif", u, photometric="minisblack", metadata=None, byteorder=">")
    return folder / "movie.tif", MESH


def packed_tiff(folder, u):
    import tifffile

    tifffile.imwrite(folder / "movie.tif", u, photometric="minisblack", metadata=None, compression="zlib")
    return folder / "movie.tif", MESH


def tiff_folder(folder, u):
    import tifffile

    (folder / "frames").mkdir()
    for number, frame in enumerate(u, start=5):
        tifffile.imwrite(folder / "frames" / f"frame{number}.tif", frame, photometric="minisblack", metadata=None)
    return folder / "frames", MESH


def _vtk(kind, body, appended=b"", compressor="", header="UInt32"):
    packed = f' compressor="{compressor}"' if compressor else ""
    start = f'<?xml version="1.0"?>\n<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" '
    return (start + f'header_type="{header}"{packed}>\n').encode() + body.encode() + appended + b"\n</VTKFile>\n"


def _image(u, array, time=None):
    ny, nx = u.shape
    extent = f"0 {nx} 0 {ny} 0 0"
    clock = "" if time is None else (
        f'<FieldData><DataArray Name="TimeValue" type="Float64" NumberOfTuples="1" format="ascii">{time!r}'
        "</DataArray></FieldData>"
    )  # fmt: skip
    return (
        f'<ImageData WholeExtent="{extent}" Origin="0 0 0" Spacing="{DX[1]!r} {DX[0]!r} 1">{clock}'
        f'<Piece Extent="{extent}"><PointData></PointData><CellData Scalars="u">{array}</CellData></Piece></ImageData>'
    )


def _each(folder, u, ending, content):
    (folder / "run").mkdir()
    for number, frame in enumerate(u):
        (folder / "run" / f"out_{number}{ending}").write_bytes(content(number, frame))
    return folder / "run"


def vti_ascii(folder, u):
    def content(number, frame):
        numbers = " ".join(map(repr, frame.astype("f8").ravel().tolist()))
        array = f'<DataArray type="Float64" Name="u" format="ascii">{numbers}</DataArray>'
        return _vtk("ImageData", _image(frame, array, DT * number))

    return _each(folder, u, ".vti", content), {}


def vti_base64(folder, u):
    def content(number, frame):
        raw = frame.astype("<f8").tobytes()
        text = base64.b64encode(np.uint32(len(raw)).tobytes() + raw).decode()
        array = f'<DataArray type="Float64" Name="u" format="binary">\n{text}\n</DataArray>'
        return _vtk("ImageData", _image(frame, array))

    return _each(folder, u, ".vti", content) / "out_*.vti", {"dt": DT}


def vti_raw(folder, u):
    """Raw packed blocks at the end of the file, as ParaView writes them, and a list with the times."""

    def content(number, frame):
        raw, size = frame.astype("<f8").tobytes(), 4096
        blocks = [zlib.compress(raw[start : start + size]) for start in range(0, len(raw), size)]
        last = len(raw) - size * (len(blocks) - 1)
        head = np.array([len(blocks), size, last if last < size else 0, *map(len, blocks)], "<u8").tobytes()
        array = '<DataArray type="Float64" Name="u" format="appended" offset="0"/>'
        tail = b'<AppendedData encoding="raw">\n_' + head + b"".join(blocks) + b"\n</AppendedData>"
        return _vtk("ImageData", _image(frame, array), tail, "vtkZLibDataCompressor", "UInt64")

    run = _each(folder, u, ".vti", content)
    rows = "".join(f'<DataSet timestep="{DT * i!r}" part="0" file="run/out_{i}.vti"/>' for i in range(len(u)))
    (folder / "movie.pvd").write_bytes(_vtk("Collection", f"<Collection>{rows}</Collection>"))
    assert run.is_dir()
    return folder / "movie.pvd", {}


def _nodes(u):
    """The nodes of the mesh in no order, and the values in the same."""
    ny, nx = u.shape[-2:]
    y, x = np.meshgrid(DX[0] * np.arange(ny), DX[1] * np.arange(nx), indexing="ij")
    order = np.random.default_rng(5).permutation(ny * nx)
    points = np.stack([x.ravel(), y.ravel(), np.zeros(ny * nx)], axis=1)[order]
    return points, u.reshape(*u.shape[:-2], -1)[..., order]


def vtu(folder, u):
    def content(number, frame):
        points, values = _nodes(frame.astype("<f8"))
        arrays, data = [], b""
        for numbers, name in ((points, 'Name="Points" NumberOfComponents="3"'), (values, 'Name="phi"')):
            arrays.append(f'<DataArray type="Float64" {name} format="appended" offset="{len(data)}"/>')
            data += base64.b64encode(np.uint32(numbers.nbytes).tobytes() + numbers.tobytes())
        body = (
            f'<UnstructuredGrid><Piece NumberOfPoints="{len(points)}" NumberOfCells="0">'
            f"<PointData>{arrays[1]}</PointData><Points>{arrays[0]}</Points></Piece></UnstructuredGrid>"
        )
        return _vtk("UnstructuredGrid", body, b'<AppendedData encoding="base64">\n_' + data + b"\n</AppendedData>")

    return _each(folder, u, ".vtu", content), {"dt": DT}


def _exodus(u):
    points, values = _nodes(u)
    names = np.frombuffer(b"".join(name.ljust(33, b"\0") for name in (b"c", b"eta")), "S1").reshape(2, 33)
    sizes = {"time_step": len(u), "num_nodes": len(points), "num_nod_var": 2, "len_name": 33}
    arrays = {
        "time_whole": (("time_step",), DT * np.arange(len(u))),
        "coordx": (("num_nodes",), points[:, 0]),
        "coordy": (("num_nodes",), points[:, 1]),
        "name_nod_var": (("num_nod_var", "len_name"), names),
        "vals_nod_var1": (("time_step", "num_nodes"), np.zeros_like(values)),
        "vals_nod_var2": (("time_step", "num_nodes"), values),
    }
    return sizes, arrays


def exodus3(folder, u):
    """An Exodus file as classic netCDF, with time the unlimited axis, as the Exodus library writes it."""
    from scipy.io import netcdf_file

    sizes, arrays = _exodus(u)
    with netcdf_file(folder / "movie.e", "w", version=2) as file:
        for name, size in sizes.items():
            file.createDimension(name, None if name == "time_step" else size)
        for name, (dims, values) in arrays.items():
            file.createVariable(name, values.dtype.char if values.dtype.kind != "S" else "c", dims)[:] = values
    return folder / "movie.e", {"var": "eta"}


def exodus4(folder, u):
    import h5netcdf

    sizes, arrays = _exodus(u)
    with h5netcdf.File(folder / "movie.exo", "w") as file:
        file.dimensions = sizes
        for name, (dims, values) in arrays.items():
            file.create_variable(name, dims, values.dtype)[...] = values
    return folder / "movie.exo", {"var": "eta"}


WRITERS = {
    writer.__name__: writer
    for writer in (
        npy, npz, npz_time_last, zarr_plain, zarr_xarray, ngff_04, ngff_05, hdf5, hdf5_time_last, netcdf4, netcdf3,
        py_pde, mat5, mat73, ome_tiff, ome_tiff_packed, imagej, plain_tiff, packed_tiff, tiff_folder, vti_ascii,
        vti_base64, vti_raw, vtu, exodus3, exodus4,
    )
}  # fmt: skip


def csv_folder(folder, u):
    def content(number, frame):
        return ("# frame\n" + "\n".join(",".join(map(repr, row)) for row in frame.tolist()) + "\n").encode()

    return _each(folder, u, ".csv", content), MESH


def hdf5_vectors(folder, u):
    """Vectors beside the field, and time last: their lengths tell."""
    with h5py.File(folder / "movie.h5", "w") as file:
        file["u"] = np.moveaxis(u, 0, -1)
        file["t"], file["y"], file["x"] = (
            DT * np.arange(len(u)),
            *(h * np.arange(n) for h, n in zip(DX, u.shape[1:], strict=True)),
        )
    return folder / "movie.h5", {}


def mat_cells(folder, u):
    """A picture in each cell, meshgrids of x and y, and an empty array."""
    from scipy.io import savemat

    cells = np.empty((1, len(u)), dtype=object)
    for k, frame in enumerate(u):
        cells[0, k] = frame
    savemat(folder / "movie.mat", {"U": cells, "none": np.zeros((0, 3)), "dx": np.array(DX), "dt": DT})
    return folder / "movie.mat", {}


def mat_grids(folder, u):
    from scipy.io import savemat

    y, x, t = np.meshgrid(
        *(h * np.arange(n) for h, n in zip((*DX, DT), (*u.shape[1:], len(u)), strict=True)), indexing="ij"
    )
    savemat(folder / "movie.mat", {"u": np.moveaxis(u, 0, -1) * (1 + 1e-13j), "X": x, "Y": y, "T": t})
    return folder / "movie.mat", {}


def _legacy(kind, mesh, frame, number, *, binary, cells=False):
    def numbers(values, dtype=">f8"):
        raw = np.asarray(values).astype(dtype)
        return raw.tobytes() + b"\n" if binary else (" ".join(map(repr, raw.ravel().tolist())) + "\n").encode()

    head = f"# vtk DataFile Version 3.0\nmovie\n{'BINARY' if binary else 'ASCII'}\nDATASET {kind}\n".encode()
    time = b"FIELD FieldData 1\nTIME 1 1 double\n" + numbers(DT * number)
    data = f"{'CELL' if cells else 'POINT'}_DATA {frame.size}\nSCALARS u double 1\nLOOKUP_TABLE default\n".encode()
    return head + time + mesh(numbers) + data + numbers(frame)


def vtk_ascii(folder, u):
    """Structured points, with the values in cells."""
    ny, nx = u.shape[1:]

    def mesh(numbers):
        return f"DIMENSIONS {nx + 1} {ny + 1} 1\nORIGIN 0 0 0\nSPACING {DX[1]!r} {DX[0]!r} 1\n".encode()

    return _each(folder, u, ".vtk", lambda k, v: _legacy("STRUCTURED_POINTS", mesh, v, k, binary=False, cells=True)), {}


def vtk_binary(folder, u):
    """An unstructured grid of quadrilaterals, whose nodes lie in no order."""
    points, values = _nodes(u)
    cells = np.array([[4, 0, 1, 2, 3]] * 2)

    def mesh(numbers):
        listed = f"CELLS {len(cells)} {cells.size}\n".encode() + numbers(cells, ">i4")
        kinds = f"CELL_TYPES {len(cells)}\n".encode() + numbers([9] * len(cells), ">i4")
        return f"POINTS {len(points)} double\n".encode() + numbers(points) + listed + kinds

    return _each(folder, values, ".vtk", lambda k, v: _legacy("UNSTRUCTURED_GRID", mesh, v, k, binary=True)), {}


def array(values, about='Name="u"'):
    text = " ".join(map(repr, np.asarray(values, dtype="f8").ravel().tolist()))
    return f'<DataArray type="Float64" {about} format="ascii">{text}</DataArray>'


def vectors(values):
    return array(values, 'NumberOfComponents="3"')


def vtr(folder, u):
    extent = f"0 {u.shape[2] - 1} 0 {u.shape[1] - 1} 0 0"
    lines = "".join(array(h * np.arange(n)) for h, n in zip((*DX[::-1], 1), (*u.shape[:0:-1], 1), strict=True))

    def content(number, frame):
        body = f"<PointData>{array(frame)}</PointData><Coordinates>{lines}</Coordinates>"
        grid = f'<RectilinearGrid WholeExtent="{extent}"><Piece Extent="{extent}">{body}</Piece></RectilinearGrid>'
        return _vtk("RectilinearGrid", grid)

    return _each(folder, u, ".vtr", content), {"dt": DT}


def vts(folder, u):
    """Cells of a structured mesh."""
    extent, (y, x) = (
        f"0 {u.shape[2]} 0 {u.shape[1]} 0 0",
        np.meshgrid(*(h * np.arange(n + 1) for h, n in zip(DX, u.shape[1:], strict=True)), indexing="ij"),
    )
    points = vectors(np.stack([x, y, np.zeros_like(x)], -1))

    def content(number, frame):
        body = f"<CellData>{array(frame)}</CellData><Points>{points}</Points>"
        grid = f'<StructuredGrid WholeExtent="{extent}"><Piece Extent="{extent}">{body}</Piece></StructuredGrid>'
        return _vtk("StructuredGrid", grid)

    return _each(folder, u, ".vts", content), {"dt": DT}


def pvtu(folder, u):
    """Two parts of each frame in files of their own."""
    points, values = _nodes(u)
    half = len(points) // 2
    run = folder / "run"
    run.mkdir()
    for number, frame in enumerate(values):
        for part, own in enumerate((slice(half), slice(half, None))):
            body = (
                f'<UnstructuredGrid><Piece NumberOfPoints="{len(points[own])}" NumberOfCells="0"><PointData>'
                f"{array(frame[own])}</PointData><Points>{vectors(points[own])}"
                "</Points></Piece></UnstructuredGrid>"
            )
            (run / f"out_{number}_{part}.vtu").write_bytes(_vtk("UnstructuredGrid", body))
        pieces = "".join(f'<Piece Source="out_{number}_{part}.vtu"/>' for part in (0, 1))
        content = _vtk("PUnstructuredGrid", f"<PUnstructuredGrid>{pieces}</PUnstructuredGrid>")
        (run / f"out_{number}.pvtu").write_bytes(content)
    return run, {"dt": DT}


def xdmf(folder, u):
    """What FEniCS writes: triangles on nodes in no order, one mesh, and a vector for each time."""
    points, values = _nodes(u)
    triangles = np.array([[0, 1, 2], [1, 2, 3]])
    with h5py.File(folder / "movie.h5", "w") as file:
        file["Mesh/topology"], file["Mesh/geometry"] = triangles, points[:, :2]
        for number, frame in enumerate(values):
            file[f"VisualisationVector/{number}"] = frame[:, None]

    def item(size, name):
        return f'<DataItem Dimensions="{size}" Format="HDF">movie.h5:/{name}</DataItem>'

    mesh = (
        f'<Topology NumberOfElements="2" TopologyType="Triangle">{item("2 3", "Mesh/topology")}</Topology>'
        f'<Geometry GeometryType="XY">{item(f"{len(points)} 2", "Mesh/geometry")}</Geometry>'
    )
    column = f"{len(points)} 1"
    grids = "".join(
        f'<Grid Name="g" GridType="Uniform">{mesh if number == 0 else ""}<Time Value="{DT * number!r}"/>'
        f'<Attribute Name="c" AttributeType="Scalar" Center="Node">{item(column, f"VisualisationVector/{number}")}'
        "</Attribute></Grid>"
        for number in range(len(u))
    )
    text = (
        '<?xml version="1.0"?>\n<!DOCTYPE Xdmf SYSTEM "Xdmf.dtd" []>\n<Xdmf Version="3.0"><Domain>'
        '<Grid Name="TimeSeries" '
        f'GridType="Collection" CollectionType="Temporal">{grids}</Grid></Domain></Xdmf>'
    )
    (folder / "movie.xdmf").write_text(text)
    return folder / "movie.xdmf", {}


def exodus_elements(folder, u):
    """Element variables in two blocks of quadrilaterals, the first row and the others."""
    from scipy.io import netcdf_file

    ny, nx = u.shape[1:]
    y, x = np.meshgrid(DX[0] * np.arange(ny + 1), DX[1] * np.arange(nx + 1), indexing="ij")
    first = np.arange(ny)[:, None] * (nx + 1) + np.arange(nx) + 1
    corners = np.stack([first, first + 1, first + nx + 2, first + nx + 1], axis=-1).reshape(-1, 4)
    values, name = u.reshape(len(u), -1), np.frombuffer(b"c\0".ljust(32, b"x") + b"\0", "S1")
    with netcdf_file(folder / "movie.e", "w", version=2) as file:
        sizes = {"time_step": None, "num_nodes": x.size, "num_elem_var": 1, "len_name": 33, "four": 4}
        for key, size in (sizes | {"el1": nx, "el2": (ny - 1) * nx}).items():
            file.createDimension(key, size)
        for key, dims, numbers in (
            ("time_whole", ("time_step",), DT * np.arange(len(u))),
            ("coordx", ("num_nodes",), x.ravel()), ("coordy", ("num_nodes",), y.ravel()),
            ("name_elem_var", ("num_elem_var", "len_name"), name[None]),
            ("connect1", ("el1", "four"), corners[:nx].astype("i4")),
            ("connect2", ("el2", "four"), corners[nx:].astype("i4")),
            ("vals_elem_var1eb1", ("time_step", "el1"), values[:, :nx]),
            ("vals_elem_var1eb2", ("time_step", "el2"), values[:, nx:]),
        ):  # fmt: skip
            file.createVariable(key, numbers.dtype.char if numbers.dtype.kind != "S" else "c", dims)[:] = numbers
    return folder / "movie.e", {}


def ome_tiff_files(folder, u):
    """A picture in each file, and in the first one the description of all, as Bruker's microscopes write it."""
    import tifffile

    names = [f"movie_{k:03}.ome.tif" for k in range(len(u))]
    rows = "".join(
        f'<TiffData FirstT="{k}" IFD="0" PlaneCount="1"><UUID FileName="{name}">urn:uuid:{k}</UUID></TiffData>'
        for k, name in enumerate(names)
    )
    about = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:0">'
        '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="double" '
        f'SizeX="{u.shape[2]}" SizeY="{u.shape[1]}" SizeC="1" SizeZ="1" SizeT="{len(u)}" PhysicalSizeX="{DX[1]!r}" '
        f'PhysicalSizeY="{DX[0]!r}" TimeIncrement="{DT!r}"><Channel ID="C:0"/>{rows}'
        '<TiffData FirstT="99" IFD="0" PlaneCount="1"/></Pixels></Image></OME>'
    )
    for k, (name, frame) in enumerate(zip(names, u, strict=True)):
        tifffile.imwrite(
            folder / name, frame, photometric="minisblack", metadata=None, description=about if k == 0 else None
        )
    return folder / names[0], {}


MORE = {
    writer.__name__: writer
    for writer in (
        csv_folder, hdf5_vectors, mat_cells, mat_grids, vtk_ascii, vtk_binary, vtr, vts, pvtu, xdmf, exodus_elements,
        ome_tiff_files,
    )
}  # fmt: skip


# --- formats that hold grey values, or nodes that are no lattice: not to the last bit --------------------------------

GREYS = {"levels": (0, 255)}


def grey(u):
    return np.rint(127.5 * (np.clip(u, -1, 1) + 1)).astype("u1")


def png_folder(folder, u):
    from PIL import Image

    (folder / "run").mkdir()
    for number, frame in enumerate(grey(u)):
        Image.fromarray(frame).save(folder / "run" / f"frame_{number}.png")
    return folder / "run", MESH | GREYS


def avi(folder, u, codec="ffv1", name="movie.avi", pixels="gray"):
    import av

    with av.open(str(folder / name), "w") as file:
        stream = file.add_stream(codec, rate=10)
        stream.height, stream.width, stream.pix_fmt = *u.shape[1:], pixels
        for frame in grey(u):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="gray")))
        file.mux(stream.encode())
    return folder / name, MESH | GREYS


def mp4(folder, u):
    even = np.pad(u, ((0, 0), (0, u.shape[1] % 2), (0, u.shape[2] % 2)), mode="edge")
    return avi(folder, even, "mpeg4", "movie.mp4", "yuv420p")


def vtu_scattered(folder, u):
    """Nodes inside the domain moved at random, linear interpolation of the movie there."""
    from scipy.interpolate import RegularGridInterpolator

    ny, nx = u.shape[1:]
    points, _ = _nodes(u)
    inner = np.all((points[:, :2] > 0) & (points[:, :2] < [DX[1] * (nx - 1), DX[0] * (ny - 1)]), axis=1)
    points[inner, :2] += 0.3 * np.random.default_rng(3).uniform(-1, 1, (inner.sum(), 2)) * DX[::-1]

    def content(number, frame):
        places = RegularGridInterpolator((DX[0] * np.arange(ny), DX[1] * np.arange(nx)), frame, method="cubic")
        body = (
            f'<UnstructuredGrid><Piece NumberOfPoints="{len(points)}" NumberOfCells="0"><PointData>'
            f"{array(places(points[:, 1::-1]))}</PointData><Points>"
            f"{vectors(points)}</Points></Piece></UnstructuredGrid>"
        )
        return _vtk("UnstructuredGrid", body)

    return _each(folder, u, ".vtu", content), {"dt": DT}


INEXACT = {writer.__name__: writer for writer in (png_folder, avi, mp4, vtu_scattered)}


def files_of(path: Path) -> list[Path]:
    """Return the files that were written, for damage to them."""
    several = "*" in path.name or path.suffix in (".pvd", ".xdmf") or path.name == "movie_000.ome.tif"
    top = path.parent if several else path
    return sorted(item for item in top.rglob("*") if item.is_file()) if top.is_dir() else [path]

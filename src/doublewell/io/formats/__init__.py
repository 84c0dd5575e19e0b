"""The table of formats; a module is imported when a file of its format is met. Other packages add rows (io/open.py)."""

from doublewell.io.format import Format

FORMATS = (
    Format("npz", (".npz",), "npz.read_npz", "npz.write_npz", contents=("zip",)),
    Format("npy", (".npy",), "npz.read_npy", contents=("npy",)),
    Format("zarr", (".zarr",), "zarr.read_zarr", "zarr.write_zarr"),
    Format("HDF5", (".h5", ".hdf5", ".hdf", ".he5"), "hdf5.read_hdf5", contents=("HDF5",)),
    Format(
        "netCDF", (".nc", ".nc4", ".cdf", ".netcdf"), "netcdf.read_netcdf", "netcdf.write_netcdf", ("HDF5", "netCDF 3")
    ),
    Format("MATLAB", (".mat",), "matlab.read_mat", contents=("MATLAB 5", "HDF5")),
    Format("TIFF", (".tif", ".tiff", ".btf", ".tf8"), "tiff.read_tiff", contents=("TIFF",), series=True),
    Format(
        "VTK",
        (".vti", ".vtu", ".vtr", ".vts", ".pvd", ".pvti", ".pvtu", ".pvtr", ".pvts", ".vtk"),
        "vtk.read_vtk",
        contents=("XML", "VTK"),
        series=True,
    ),
    Format("XDMF", (".xdmf", ".xmf"), "xdmf.read_xdmf", contents=("XML",)),
    Format("Exodus", (".e", ".exo", ".ex2", ".exii"), "exodus.read_exodus", contents=("HDF5", "netCDF 3")),
    Format("PNG", (".png",), "png.read_png", contents=("PNG",), series=True),
    Format("video", (".avi", ".mp4", ".mov", ".mkv"), "video.read_video"),
    Format(
        "microscope",
        (".nd2", ".czi", ".lif", ".dv", ".r3d", ".oib", ".oif", ".lsm", ".ims", ".vsi", ".sld"),
        "microscope.read_microscope",
    ),
    Format("table", (".csv", ".tsv", ".dat"), "table.read_table", series=True),
)

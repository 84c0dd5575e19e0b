"""The table of formats, one row per module; other packages add theirs by entry points (see io/open.py)."""

from doublewell.io.format import Format
from doublewell.io.formats.exodus import EXODUS
from doublewell.io.formats.hdf5 import HDF5
from doublewell.io.formats.matlab import MATLAB
from doublewell.io.formats.netcdf import NETCDF
from doublewell.io.formats.npz import NPY, NPZ
from doublewell.io.formats.tiff import TIFF
from doublewell.io.formats.vtk import VTK
from doublewell.io.formats.zarr import ZARR

FORMATS: tuple[Format, ...] = (NPZ, NPY, ZARR, HDF5, NETCDF, MATLAB, TIFF, VTK, EXODUS)

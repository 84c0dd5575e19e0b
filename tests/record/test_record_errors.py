"""What a record refuses, and what it says then: types, shapes, metadata."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from record_pieces import MOVIE, Stored, message, record

from doublewell.errors import InputError
from doublewell.record import Record

WHOLE = (
    "the field holds integers ({}): expected phase values as floats with the pure phases at -1 and +1; "
    "convert intensities i first, in floats: u = 2 (i - low)/(high - low) - 1"
)
COMPLEX = "the field is complex ({}): expected real phase values; pass its real part"
OTHER = "the field has type {}: expected floating-point phase values"


@pytest.mark.parametrize(
    ("dtype", "text"),
    [(d, WHOLE) for d in ("int64", "uint8", "int16", "uint64", "bool")]
    + [(d, COMPLEX) for d in ("complex64", "complex128")]
    + [("object", OTHER), ("datetime64[s]", OTHER)],
)
@pytest.mark.parametrize(
    "wrap", [np.asarray, lambda u: da.from_array(u, chunks=2), Stored], ids=["numpy", "dask", "stored"]
)
def test_types_that_are_no_phase_values(dtype, text, wrap):
    u = wrap(np.zeros((3, 4)).astype(dtype))
    assert message(lambda: record(u)) == text.format(np.dtype(dtype))


def test_intensities_converted_as_the_message_says_are_accepted():
    i = np.random.default_rng(0).integers(10, 200, size=(3, 4), dtype=np.uint8)
    low, high = 10, 200
    u = 2 * (i.astype(float) - low) / (high - low) - 1
    assert np.all(np.abs(record(u).slab()) <= 1)


def test_what_is_no_array():
    ragged = [[1.0, 2.0], [1.0]]
    assert message(lambda: record(ragged)).startswith("the field is not an array (list: ")
    assert message(lambda: record("movie.npy")) == OTHER.format("<U9")

    class Tensor:
        shape, ndim, dtype = (3, 4), 2, "torch.float32"

    text = message(lambda: record(Tensor()))
    assert text.startswith("the field is not an array (Tensor: ")
    assert text.endswith("expected u[t, (z, y,) x] as NumPy, dask, zarr or xarray; pass numpy.asarray(u)")


@pytest.mark.parametrize("wrap", [np.asarray, xr.DataArray], ids=["numpy", "xarray"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4, 5, 6)])
def test_shapes_that_are_no_movie(wrap, shape):
    way = "; a single frame is not a movie" if len(shape) == 1 else ""
    assert message(lambda: record(wrap(np.zeros(shape)))) == (
        f"the field has shape {shape}: expected u[t, x], u[t, y, x] or u[t, z, y, x]{way}"
    )


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 1, 8), (3, 8, 1), (0, 8), (3, 0)])
def test_too_small(shape):
    assert message(lambda: record(np.zeros(shape))) == (
        f"the field has shape {shape}: expected at least 2 frames and 2 cells along each axis"
    )


def test_a_single_cell_with_coordinates_is_too_small():
    field = xr.DataArray(MOVIE[:, :1], dims=("t", "y", "x"), coords={"y": [0.0], "x": np.arange(6.0)})
    assert message(lambda: Record(field, dt=1.0)).startswith("the field has shape (5, 1, 6): expected at least")


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"dx": None}, "the mesh spacing is missing: pass dx=, one number or one per space axis"),
        ({"dx": (1, 2, 3)}, "dx has 3 entries: expected 1, or 2, one per space axis of the field"),
        ({"dx": [[1.0]]}, "dx has shape (1, 1): expected 1, or 2, one per space axis of the field"),
        ({"dx": []}, "dx has 0 entries: expected 1, or 2, one per space axis of the field"),
        ({"dx": 0}, "dx is 0: expected the mesh spacing, a positive number"),
        ({"dx": (0.1, -1.0)}, "dx is -1: expected the mesh spacing, a positive number"),
        ({"dx": np.nan}, "dx is nan: expected the mesh spacing, a positive number"),
        ({"dx": "wide"}, "dx is 'wide': expected numbers"),
        ({"dt": None}, "expected dt= (one frame interval) or times= (one per frame), got neither"),
        ({"times": range(5)}, "expected dt= (one frame interval) or times= (one per frame), got both"),
        ({"dt": -0.1}, "dt is -0.1: expected the frame interval, a positive number"),
        ({"dt": np.inf}, "dt is inf: expected the frame interval, a positive number"),
        ({"dt": "fast"}, "dt is 'fast': expected the frame interval, a positive number"),
        ({"dt": None, "times": range(4)}, "times has shape (4,): expected one time for each of the 5 frames"),
        ({"dt": None, "times": 3.0}, "times has shape (): expected one time for each of the 5 frames"),
        (
            {"dt": None, "times": [0, 1, 1, 2, 3]},
            "times must be finite and increase from frame to frame; sort or drop repeated frames",
        ),
        (
            {"dt": None, "times": [0, 1, np.nan, 2, 3]},
            "times must be finite and increase from frame to frame; sort or drop repeated frames",
        ),
        (
            {"dt": None, "times": np.array(["2026", "NaT", "2027", "2028", "2029"], "M8[s]")},
            "times must be finite and increase from frame to frame; sort or drop repeated frames",
        ),
        ({"dx": 1j}, "dx is 1j: expected numbers"),
        ({"dt": True}, "dt is True: expected the frame interval, a positive number"),
        ({"dt": "0.1"}, "dt is '0.1': expected the frame interval, a positive number"),
        ({"dt": [0.1]}, "dt is [0.1]: expected the frame interval, a positive number"),
        (
            {"boundary": ["periodic"]},
            "boundary is ['periodic']: expected 'periodic', 'neumann', 'open' (cut out of something larger) or None "
            "(not known)",
        ),
        ({"q": 0.0}, "q is 0: expected the diffusion coefficient, a positive number"),
        ({"q": 1j}, "q is 1j: expected the diffusion coefficient, a positive number"),
        (
            {"boundary": "wall"},
            "boundary is 'wall': expected 'periodic', 'neumann', 'open' (cut out of something larger) or None "
            "(not known)",
        ),
    ],
)
def test_wrong_metadata(metadata, text):
    assert message(lambda: record(**metadata)) == text


def test_times_of_words():
    text = message(lambda: record(dt=None, times=["noon"] * 5))
    assert text.startswith("times is array(['noon',")
    assert text.endswith(": expected numbers")


def test_ragged_times_and_numbers_beyond_floats() -> None:
    u = np.zeros((3, 4))
    with pytest.raises(InputError, match="times is a ragged list: expected one number for each frame"):
        Record(u, dx=1.0, times=[0.0, [1.0, 2.0], 3.0])
    with pytest.raises(InputError, match="expected the diffusion coefficient, a positive number"):
        Record(u, dx=1.0, dt=1.0, q=10**400)

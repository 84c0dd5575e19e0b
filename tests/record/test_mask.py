"""A mask says which values of a record were observed; the others are never used."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from record_pieces import MOVIE, Stored, message, record

from doublewell.dynamics import Grid
from doublewell.law import named_law
from doublewell.record import checksum
from doublewell.simulate import simulate

WHOLE = np.random.default_rng(1).random(MOVIE.shape) < 0.7


def holes(seen):
    return np.where(seen, MOVIE, np.nan)


def test_without_a_mask_everything_is_seen():
    movie = record()
    assert movie.mask is None
    assert movie.observed(1, 3).shape == (2, 4, 6)
    assert movie.observed().all()


@pytest.mark.parametrize("shape", [(4, 6), (1, 4, 6), (5,), (5, 1, 1), (1, 4, 1), (5, 4, 1), (5, 4, 6)])
def test_every_shape_that_a_mask_can_have(shape):
    mask = np.random.default_rng(2).random(shape) < 0.6
    onto = mask[:, None, None] if shape == (5,) else mask
    whole = np.broadcast_to(onto, MOVIE.shape)
    movie = record(holes(whole), mask=mask)
    for start, stop in [(0, 5), (1, 3), (4, 5)]:
        seen, slab = movie.observed(start, stop), movie.slab(start, stop)
        np.testing.assert_array_equal(seen, whole[start:stop])
        np.testing.assert_array_equal(slab, np.where(whole, MOVIE, 0.0)[start:stop])
        assert seen.dtype == bool
        assert not seen.flags.writeable
        assert not slab.flags.writeable
    np.testing.assert_array_equal(movie.observed(), record(mask=whole).observed())
    np.testing.assert_array_equal(movie.clip(1, 4).clip(1, 3).observed(), whole[2:4])
    np.testing.assert_array_equal(movie.clip(1, 4).slab(), movie.slab(1, 4))


@pytest.mark.parametrize(
    "mask",
    [
        WHOLE.tolist(),
        da.from_array(WHOLE, chunks=(2, 4, 3)),
        zarr.array(WHOLE, chunks=(2, 4, 3)),
        xr.DataArray(WHOLE),
        xr.DataArray(da.from_array(WHOLE, chunks=(1, 4, 6))),
        Stored(WHOLE),
    ],
    ids=lambda mask: type(mask).__module__.split(".")[0],
)
def test_every_kind_of_mask_reads_the_same(mask):
    movie = record(holes(WHOLE), mask=mask)
    np.testing.assert_array_equal(movie.observed(1, 4), WHOLE[1:4])
    np.testing.assert_array_equal(movie.clip(1, 4).observed(1, 2), WHOLE[2:3])
    assert checksum(movie) == checksum(record(mask=WHOLE))


def test_a_stored_mask_is_read_when_a_slab_is():
    stored = Stored(WHOLE)
    movie = record(mask=stored)
    clipped = movie.clip(1, 4)
    assert repr(clipped).endswith("boundary = not declared, with a stored mask)")
    assert stored.read == []
    clipped.slab(1, 2)
    assert stored.read == [(2, 3)]


def test_a_value_that_is_missing_but_not_masked_raises():
    mask = WHOLE.copy()
    mask[3, 1, 4] = True
    u = holes(mask)
    u[3, 1, 4] = np.nan
    assert message(record(u, mask=mask).slab) == (
        "1 value in frames 0 to 4 is not finite, the first in frame 3 at cell (1, 4): expected finite phase values; "
        "pass mask='finite' where values are missing"
    )
    np.testing.assert_array_equal(record(u, mask=np.isfinite(u)).slab(), np.nan_to_num(u))


def test_the_mask_of_a_masked_array_is_taken():
    u = np.ma.MaskedArray(MOVIE, mask=np.zeros(MOVIE.shape, bool))
    assert record(u).mask is None
    u[1, 2, 3] = np.ma.masked
    movie = record(u)
    assert np.argwhere(~movie.observed()).tolist() == [[1, 2, 3]]
    assert movie.slab()[1, 2, 3] == 0.0
    assert type(movie.values) is np.ndarray
    assert message(lambda: record(u, mask=WHOLE)) == (
        "the field is a masked array and mask= is given too: expected one of them; pass u.data and "
        "mask=~np.ma.getmaskarray(u) & mask"
    )


def test_an_xarray_field_with_time_last():
    field = xr.DataArray(holes(WHOLE), dims=("time", "y", "x")).transpose("y", "x", "time")
    for mask in (np.isfinite(field), np.isfinite(field).transpose("x", "time", "y"), np.isfinite(field.values)):
        np.testing.assert_array_equal(record(field, mask=mask).observed(), WHOLE)
    rows = xr.DataArray([True, False, True, True], dims="y")
    assert record(field.fillna(0.0), mask=rows).observed()[:, 1].any() == np.False_
    assert record(field.fillna(0.0), mask=rows).observed()[:, [0, 2, 3]].all()
    np.testing.assert_array_equal(record(field.fillna(0.0), mask=WHOLE[0]).observed(2, 3)[0], WHOLE[0])
    other = xr.DataArray(np.ones((4, 6), bool), dims=("rows", "x"))
    assert message(lambda: record(field, mask=other)) == (
        "mask has an axis 'rows': expected axes of the field (y, x, time); rename it"
    )


def test_replacing_and_showing():
    movie = record(mask=WHOLE, q=1.0)
    np.testing.assert_array_equal(movie.replace(-MOVIE).observed(), WHOLE)
    np.testing.assert_array_equal(movie.replace(MOVIE[:2], times=[0.0, 1.0], mask=WHOLE[:2]).observed(), WHOLE[:2])
    share = 100 * (1 - WHOLE.mean())
    assert repr(movie).endswith(f"q = 1, boundary = not declared, {share:.3g} % missing)")
    with pytest.raises(ValueError, match="read-only"):
        movie.mask[0] = True


def test_the_checksum_is_of_what_was_observed():
    plain, masked = checksum(record()), checksum(record(holes(WHOLE), mask=WHOLE))
    assert checksum(record(mask=np.ones((4, 6), bool))) == plain
    assert checksum(record(MOVIE + 5.0 * ~WHOLE, mask=WHOLE)) == masked
    zeros = np.where(WHOLE, MOVIE, 0.0)
    assert len({plain, masked, checksum(record(zeros)), checksum(record(zeros, mask=WHOLE[0]))}) == 4


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(0, 3), st.integers(1, 5), st.integers(0, 99))
def test_slabs_of_a_mask_cover_the_record_once(start, size, seed):
    mask = np.random.default_rng(seed).random(MOVIE.shape) < 0.5
    movie = record(mask=mask).clip(start, 5)
    pieces = [movie.observed(k, min(k + size, movie.frames)) for k in range(0, movie.frames, size)]
    np.testing.assert_array_equal(np.concatenate(pieces), mask[start:])


EXPECTED = "expected (4, 6) (fixed in time), (5,) (dropped frames) or (5, 4, 6) (each value)"


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (np.ones((6, 4), bool), f"mask has shape (6, 4): {EXPECTED}; True where a value was observed"),
        (np.ones((4,), bool), f"mask has shape (4,): {EXPECTED}; True where a value was observed"),
        (np.ones((2, 4, 6), bool), f"mask has shape (2, 4, 6): {EXPECTED}; True where a value was observed"),
        (True, f"mask has shape (): {EXPECTED}; True where a value was observed"),
        ([[True], [True, False]], f"mask is a ragged list: {EXPECTED}"),
        (
            np.ones((4, 6), np.uint8),
            "mask has type uint8: expected booleans, True where a value was observed; convert it, and "
            "invert it where True marks what is missing",
        ),
        (
            np.zeros((4, 6), bool),
            "mask is False everywhere: expected True where a value was observed; invert it, or leave it out",
        ),
    ],
    ids=["mesh", "frames", "record", "one", "ragged", "numbers", "empty"],
)
def test_a_wrong_mask(mask, text):
    assert message(lambda: record(mask=mask)) == text


def test_as_many_frames_as_cells():
    square, mask = np.zeros((4, 4)), np.array([True, True, False, True])
    assert message(lambda: record(square, mask=mask)) == (
        "mask has shape (4,), and the record has as many frames as cells: expected the shape (4, 1) for dropped "
        "frames or (1, 4) for missing cells"
    )
    assert not record(square, mask=mask[:, None]).observed()[2].any()
    assert not record(square, mask=mask[None]).observed()[:, 2].any()


def test_an_open_boundary_is_kept_and_not_evolved():
    assert record(boundary="open").boundary == "open"
    text = "boundary is 'open': expected 'periodic' or 'neumann', because the outside must be known here"
    assert message(lambda: Grid((8, 8), 0.1, "open")) == text
    law = named_law("quartic")
    assert message(lambda: simulate(law, MOVIE[0], dx=0.1, dt=0.1, frames=3, epsilon=0.1, boundary="open")) == text

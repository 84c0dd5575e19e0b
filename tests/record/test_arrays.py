"""The lazy array: every view of it against NumPy, what it reads, and that it travels to other processes."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.record import LazyArray, Record
from doublewell.record import arrays as module
from doublewell.record.arrays import GreyScale, PhaseScale, lazy, ranges

VALUES = np.random.default_rng(0).normal(size=(7, 5, 4, 3))


class Watched:
    """An array that remembers which blocks were read of it."""

    def __init__(self, values, chunks=None):
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, values.ndim
        self.chunks, self.read = chunks, []

    def __getitem__(self, index):
        self.read.append(index)
        return self.values[index]


def shifted(frames, first):
    """Whole frames with the number of each added, their first row cut off."""
    numbers = first + np.arange(len(frames))
    return (frames + numbers.reshape(-1, *(1,) * (frames.ndim - 1)))[:, 1:]


def slices(n):
    return st.builds(
        lambda a, b, step: slice(min(a, b), max(a, b) + 1, step),
        st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, 3),
    )  # fmt: skip


VIEWS = {
    "as it is": (lazy, lambda u: u),
    "elementwise": (lambda u: lazy(u).map(np.exp), np.exp),
    "bools": (lambda u: lazy(u).map(partial(np.less, 0.0), bool), lambda u: u > 0.0),
    "part": (lambda u: lazy(u).part((2, 6), (1, 5)), lambda u: u[2:6, 1:5]),
    "axes": (lambda u: lazy(u).transpose((2, 0, 1), {3: 1}), lambda u: u[..., 1].transpose(2, 0, 1)),
    "frames": (lambda u: lazy(u).map_frames(shifted, (4, 4, 3)), lambda u: shifted(u, 0)),
    "chain": (
        lambda u: lazy(u).transpose((3, 1, 0, 2)).part((1, 3)).map_frames(shifted, (4, 7, 4)).map(np.sin),
        lambda u: np.sin(shifted(u.transpose(3, 1, 0, 2)[1:3], 0)),
    ),
}


@pytest.mark.parametrize("name", VIEWS)
@given(data=st.data())
def test_a_block_is_what_numpy_gives(name, data):
    view, whole = VIEWS[name][0](VALUES), VIEWS[name][1](VALUES)
    assert (view.shape, view.ndim, view.dtype) == (whole.shape, whole.ndim, whole.dtype)
    index = tuple(data.draw(slices(n)) for n in whole.shape[: data.draw(st.integers(1, whole.ndim))])
    np.testing.assert_array_equal(view[index], whole[index])
    np.testing.assert_array_equal(view[index[0]], whole[index[0]])


@pytest.mark.parametrize("name", VIEWS)
def test_views_travel(name):
    view, whole = VIEWS[name][0](VALUES), VIEWS[name][1](VALUES)
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(view))), whole)
    parts = [dask.delayed(view.__getitem__)(slice(k, k + 1)) for k in range(len(whole))]
    with dask.config.set(scheduler="threads"):
        np.testing.assert_array_equal(np.concatenate(dask.compute(*parts)), whole)


def test_a_spawned_process_reads():
    scaled = lazy(VALUES).map(PhaseScale(0.0, 2.0))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        np.testing.assert_array_equal(pool.submit(np.asarray, scaled).result(), VALUES - 1.0)


def test_only_the_block_is_read():
    source = Watched(VALUES)
    lazy(source).map(np.exp).part((1, 5))[1:3, 2:4]
    assert source.read == [(slice(2, 4, 1), slice(2, 4, 1), slice(0, 4, 1), slice(0, 3, 1))]
    lazy(source)[2:4]
    assert source.read[1:] == [slice(2, 4, 1)]  # whole frames by one slice, which is all that some sources know


def test_whole_frames_are_read_in_groups(monkeypatch):
    """Memory is bounded: a region of many frames does not hold them all; groups end where stored chunks do."""
    monkeypatch.setattr(module, "_GROUP", 3 * 8 * 60)
    source = Watched(VALUES, chunks=(2, 5, 4, 3))
    np.testing.assert_array_equal(lazy(source).map_frames(shifted, (4, 4, 3))[1:7, 2:3], shifted(VALUES, 0)[1:7, 2:3])
    assert source.read == [slice(1, 2, 1), slice(2, 4, 1), slice(4, 6, 1), slice(6, 7, 1)]


def test_chunks_and_conversions_are_known():
    source = lazy(Watched(VALUES, chunks=(2, 5, 4, 1)))
    assert source.transpose((3, 0), {1: 0, 2: 0}).chunks == (1, 2)
    assert source.part((2, 6)).chunks == (2, 5, 4, 1)
    assert source.part((1, 6)).chunks is None  # the edges are no longer those of the file
    assert lazy(da.from_array(VALUES, chunks=2)).chunks is None
    scaled = source.map(GreyScale(1.0, 3.0)).map(PhaseScale(0.0, 1.0))
    assert scaled.functions == (GreyScale(1.0, 3.0), PhaseScale(0.0, 1.0))
    assert scaled.base.functions == (GreyScale(1.0, 3.0),)
    assert lazy(source) is source


def test_masked_values_are_nan():
    masked = np.ma.masked_greater(VALUES, 1.0)
    np.testing.assert_array_equal(lazy(masked)[:], np.where(VALUES > 1.0, np.nan, VALUES))


def test_a_record_of_lazy_values_is_clipped_without_reading():
    source = Watched(VALUES[..., 0])
    record = Record(lazy(source).map(np.exp), dx=1.0, dt=1.0, mask="finite").clip(1, 4)
    assert isinstance(record.values, LazyArray)
    assert isinstance(record.mask, LazyArray)
    assert source.read == []
    np.testing.assert_array_equal(record.slab(1, 3, ((0, 2), (1, 3))), np.exp(VALUES[2:4, 0:2, 1:3, 0]))


def test_scales():
    grey = np.array([[10, 20], [30, 20]], dtype=np.uint8)
    np.testing.assert_array_equal(GreyScale(10, 30)(grey), [[-1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(PhaseScale(0.0, 1.0)(np.array([0.0, 0.5, 1.0])), [-1.0, 0.0, 1.0])


def test_ranges_refuse_more_slices_than_axes():
    with pytest.raises(ValueError, match="shorter"):
        ranges((slice(0, 1),) * 3, (2, 2))

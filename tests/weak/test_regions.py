"""Regions: a record cut along time and space gives the rows of the whole, whatever the cuts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.compute.partition import Region
from doublewell.errors import InputError
from doublewell.evidence import merge
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak.assembly import weak_evidence, window_of
from doublewell.weak.stream import Rolling, read_parts
from doublewell.weak.weights import Fold, Support

SHAPE = (31, 26, 30)
SUPPORTS = [(3, 0.1), (5, 0.14)]
FOLDS = (Fold("training", 0, 17), Fold("validation", 17, 31))
META = {"dx": 0.02, "q": 1.0}


def values(shape=SHAPE):
    rng = np.random.default_rng(3)
    return 0.9 * np.sin(np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) / 5) + 0.3 * rng.standard_normal(shape)


def cuts(size, most=4):
    return st.lists(st.integers(1, size - 1), max_size=most, unique=True).map(lambda c: [0, *sorted(c), size])


def regions(t, *space):
    if not space:
        return [Region(pair, ()) for pair in pairwise(t)]
    inner = regions(t, *space[:-1])
    return [Region(r.frames, (*r.cells, pair)) for r in inner for pair in pairwise(space[-1])]


def same(one, other):
    assert [block.key for block in one.blocks] == [block.key for block in other.blocks]
    assert [block.rows for block in one.blocks] == [block.rows for block in other.blocks]
    for a, b in zip(one.blocks, other.blocks, strict=True):
        assert np.allclose(a.triangle, b.triangle, rtol=0, atol=1e-12 * max(1.0, np.abs(a.triangle).max()))


RNG = np.random.default_rng(5)
JITTER = 0.1 * np.arange(31.0) + 2e-5 * RNG.uniform(-1, 1, 31)  # even, to a thousandth of the interval
UNEVEN = np.sort(0.1 * np.arange(31.0) + 0.02 * RNG.uniform(-1, 1, 31))
UNEVEN[15:] = UNEVEN[15] + 0.1 * np.arange(16.0)  # the later half by itself is even
MASK = RNG.uniform(size=SHAPE) > 2e-4
RECORDS = {
    "even": Record(values(), dt=0.1, **META),
    "jitter": Record(values(), times=JITTER, **META),
    "uneven": Record(values(), times=UNEVEN, **META),
    "mask": Record(values(), dt=0.1, mask=MASK, **META),
    "frames": Record(values(), dt=0.1, mask=np.arange(31) != 7, **META),
}


@pytest.mark.parametrize("name", RECORDS)
@settings(derandomize=True, deadline=None, max_examples=12)
@given(t=cuts(31), y=cuts(26), x=cuts(30, 2))
def test_regions_have_the_rows_of_the_whole(name, t, y, x) -> None:
    record, family = RECORDS[name], Bernstein(2)
    whole = weak_evidence(record, family, SUPPORTS, folds=FOLDS)
    parts = [weak_evidence(record, family, SUPPORTS, folds=FOLDS, region=r) for r in regions(t, y, x)]
    assert whole.rows > 100
    same(whole, merge(parts))


@pytest.mark.parametrize("shape", [(20, 60), (14, 22, 26, 24)])
def test_regions_of_other_dimensions(shape) -> None:
    record = Record(values(shape), dx=0.04, dt=0.1, q=1.0)
    whole = weak_evidence(record, Bernstein(1), [(3, 0.16)])
    thirds = [[0, n // 3, n // 2, n] for n in shape]
    same(whole, merge(weak_evidence(record, Bernstein(1), [(3, 0.16)], region=r) for r in regions(*thirds)))


class Chunked:
    """A stored array that refuses to be read across the edges of what is stored together."""

    def __init__(self, array, frames) -> None:
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim
        self.chunks, self.read = (frames, *array.shape[1:]), []

    def __getitem__(self, index):
        frames = index[0] if isinstance(index, tuple) else index
        self.read.append((frames.start, frames.stop))
        return self.array[index]


@pytest.mark.parametrize("ahead", [False, True])
def test_a_buffer_reads_each_chunk_once(ahead) -> None:
    stored = Chunked(values(), 4)
    record = Record(stored, dt=0.1, **META)
    region = Region((6, 25), ((3, 20), (0, 30)))
    held, block = window_of(record, Bernstein(2), [Support(*s) for s in SUPPORTS], region)
    assert block == Region((0, 31), ((0, 26), (0, 30)))
    first, last = block.frames
    buffer = Rolling(record, held, block.cells, first=first, until=last if ahead else None)
    evidence = weak_evidence(record, Bernstein(2), SUPPORTS, region=region, frames=buffer)
    buffer.close()
    assert sorted(frame for a, b in stored.read for frame in range(a, b)) == list(range(31))
    assert all(a % 4 == 0 for a, _ in stored.read)
    same(weak_evidence(RECORDS["even"], Bernstein(2), SUPPORTS, region=region), evidence)


def test_parts_begin_where_chunks_do() -> None:
    record = Record(Chunked(values(), 8), dt=0.1, **META)
    assert list(read_parts(record, ((0, 26), (0, 30)), 5, 30)) == [(5, 30)]
    large = Record(Chunked(np.broadcast_to(0.0, (31, 2048, 2048)), 8), dt=0.1, **META)
    parts = list(read_parts(large, ((0, 2048), (0, 2048)), 5, 30))
    assert parts == [(5, 8), (8, 16), (16, 24), (24, 30)]


def test_cells_outside_the_mesh() -> None:
    with pytest.raises(InputError, match=r"cells \(\(0, 27\), \(0, 30\)\) lie outside the mesh \(26, 30\)"):
        RECORDS["even"].slab(0, 2, ((0, 27), (0, 30)))

"""The weak reader: a record to its space-time moments, compacted while they are made.

    sum_j g_j S[B_j(u)] + (1/q) D S[u] = Lap S[u]

with S the separable smoothing by the test weights, D and Lap fourth-order differences of S[u] (paper, Eq. 11, after
summation by parts). Every mesh point whose whole derivative support lies inside the record is a centre, unless its
weighted temporal mean is in a pure phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.evidence.evidence import Block, Evidence, Key, compact, merge
from doublewell.evidence.weights import AxisWeights, Derivative, Support, axis_weights, check_supports
from doublewell.law import Bernstein
from doublewell.record import Record

__all__ = ["PHASE_CUT", "Fold", "split_folds", "weak_evidence"]

PHASE_CUT = 0.98  # centres whose temporal mean reaches this are bulk and carry no information
_SLAB_BYTES = 48 * 2**20  # a stored record is read in slabs of about this size
_FRAMES = 12  # centre frames per kernel call; features of the halo frames are evaluated again in the next
_CELLS = 256  # centres along x per kernel call
_BATCH = 4  # rows along y taken in together
_ACROSS = 8  # centres along z per kernel call

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fold:
    """A named range of frames. Rows whose whole support lies inside belong to it."""

    name: str
    start: int
    stop: int


STRADDLE = "straddle"


def split_folds(frames: int, longest: int, training: float = 0.6) -> tuple[Fold, Fold]:
    """Split a record in time into training and validation frames; rows that straddle belong to neither.

    `longest` is the temporal half-width, in intervals, of the longest support: both parts must hold it.
    """
    cut = round(training * frames)
    needs = 2 * (longest + 2) + 1
    if min(cut, frames - cut) < needs:
        raise InputError(
            f"record is too short for a validated ridge: each part needs {needs} frames, but {frames} frames split "
            f"into {cut} and {frames - cut}; record longer, pass shorter supports, or give ridge a number"
        )
    return Fold("training", 0, cut), Fold("validation", cut, frames)


def weak_evidence(
    record: Record,
    family: Bernstein,
    supports: Sequence[Support | tuple[int, float]],
    *,
    derivative: Derivative = "discrete",
    folds: Sequence[Fold] = (),
    label: str = "record",
    progress: Progress | None = None,
) -> Evidence:
    """Read the weak moments of a record for a family and a set of supports.

    Parameters
    ----------
    supports
        Pairs (frames, length): half-widths of the test function in frame intervals and in length.
    derivative
        "discrete" differences of the sampled weights (exact summation by parts), or "analytic" samples.
    folds
        Ranges of frames kept in blocks of their own; rows that lie in none form the block "straddle".
    label
        The name of the record in the keys of the blocks.
    progress
        Called with (frames done, frames) after each slab.
    """
    if derivative not in ("discrete", "analytic"):
        raise InputError(f"derivative is {derivative!r}: expected 'discrete' or 'analytic'")
    checked = check_supports(supports, record.frames, record.mesh, record.dx)
    readers = [_Reader(record, family, support, derivative) for support in checked]
    names = [*(fold.name for fold in folds), STRADDLE] if folds else ["all"]
    parts = [
        Evidence(family, (Block(Key(label, str(reader.support), name), np.zeros((family.size + 2,) * 2), 0),))
        for reader in readers
        for name in names
    ]
    for start, stop in _owned_frames(record, max(reader.time.half for reader in readers)):
        parts = [merge([*parts, *_read_slab(record, readers, folds, label, start, stop)])]
        if progress is not None:
            progress(stop, record.frames)
    return merge(parts)


def _owned_frames(record: Record, halo: int) -> Iterator[tuple[int, int]]:
    """Cut the frames into ranges of centres, so that a range with its halo fits the slab size."""
    frame_bytes = 8 * int(np.prod(record.mesh))
    size = max(_FRAMES, _SLAB_BYTES // frame_bytes - 2 * halo)
    for start in range(0, record.frames, size):
        yield start, min(start + size, record.frames)


def _read_slab(
    record: Record, readers: list[_Reader], folds: Sequence[Fold], label: str, start: int, stop: int
) -> Iterator[Evidence]:
    halo = max(reader.time.half for reader in readers)
    first, last = max(0, start - halo), min(record.frames, stop + halo)
    slab = record.slab(first, last)
    fields = slab.reshape(slab.shape[0], *(1,) * (4 - slab.ndim), *slab.shape[1:])
    for reader in readers:
        for name, low, high in reader.segments(folds, record.frames):
            begin, end = max(low, start), min(high, stop)
            if begin < end:
                triangle, rows = reader.read(fields, begin - first, end - first)
                key = Key(label, str(reader.support), name)
                yield Evidence(reader.family, (Block(key, triangle, rows),))


class _Reader:
    """The weights of one support on one record, and the loop over tiles."""

    def __init__(self, record: Record, family: Bernstein, support: Support, derivative: Derivative) -> None:
        self.family, self.support = family, support
        self.time = axis_weights(support.frames, record.dt, derivative)
        missing = 3 - len(record.mesh)
        self.space = [_NO_AXIS] * missing + [axis_weights(support.length / h, h, derivative) for h in record.dx]
        self.mesh = (1,) * missing + record.mesh

    def segments(self, folds: Sequence[Fold], frames: int) -> list[tuple[str, int, int]]:
        """Return (fold, first centre frame, past the last), a partition of all centre frames."""
        half = self.time.half
        if not folds:
            return [("all", half, frames - half)]
        inside = [(fold.name, fold.start + half, fold.stop - half) for fold in folds]
        inside = sorted((item for item in inside if item[1] < item[2]), key=lambda item: item[1])
        edges = [half, *(edge for _, low, high in inside for edge in (low, high)), frames - half]
        between = [(STRADDLE, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        return inside + between

    def read(self, fields: Array, start: int, stop: int) -> tuple[Array, int]:
        """Fold all centres of the frames start..stop-1 of a slab; return R and the number of rows."""
        from doublewell.evidence.kernels import assemble

        triangle = np.zeros((self.family.size + 2,) * 2)
        rows = 0
        for tile in self._tiles(start, stop):
            frames = tile[1] - tile[0]
            rows += assemble(
                fields, tile, self._halves(),
                np.tile(self.time.value, (frames, 1)), np.tile(self.time.first, (frames, 1)),
                *(taps for axis in self.space for taps in (axis.value, axis.second)),
                *self.family.kernel_table(), PHASE_CUT, _BATCH, triangle,
            )  # fmt: skip
        return compact(triangle), rows

    def _halves(self) -> tuple[int, ...]:
        taps = [self.time.value, self.time.first]
        taps += [taps for axis in self.space for taps in (axis.value, axis.second)]
        return tuple(len(weights) // 2 for weights in taps)

    def _tiles(self, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        (z0, z1), (y0, y1), (x0, x1) = (
            (axis.half, cells - axis.half) for axis, cells in zip(self.space, self.mesh, strict=True)
        )
        for t in range(start, stop, _FRAMES):
            for z in range(z0, z1, _ACROSS):
                for x in _even_steps(x0, x1, _CELLS):
                    yield (t, min(t + _FRAMES, stop), z, min(z + _ACROSS, z1), y0, y1, *x)


_NO_AXIS = AxisWeights(np.ones(1), np.zeros(1), np.zeros(1), 0)


def _even_steps(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Cut start..stop into parts of nearly equal size, none larger than `size`."""
    parts = -(-(stop - start) // size)
    edges = np.linspace(start, stop, parts + 1).round().astype(int).tolist()
    return list(pairwise(edges))

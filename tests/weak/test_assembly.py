"""The fused kernel against plain convolutions, and the properties of its rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.ndimage import correlate1d

from doublewell.compute.partition import Region
from doublewell.dynamics import ALLEN_CAHN
from doublewell.errors import InputError
from doublewell.evidence import compact, lower, merge
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak import assembly as reader_module
from doublewell.weak import assembly as weak_module
from doublewell.weak import stream
from doublewell.weak.assembly import PHASE_CUT, Reader, weak_evidence
from doublewell.weak.weights import Fold, Support, axis_weights, split_folds


def plain_rows(record: Record, family: Bernstein, support: tuple[int, float], derivative: str = "discrete"):
    """Every moment row by one convolution per axis and column, no tiles."""
    u = record.slab()
    axes = [axis_weights(support[0], record.dt, derivative)]
    axes += [axis_weights(support[1] / h, h, derivative) for h in record.dx]

    def smooth(field, kinds):
        for axis, (kind, weights) in enumerate(zip(kinds, axes, strict=True)):
            field = correlate1d(field, getattr(weights, kind), axis=axis, mode="constant")
        return field

    space = len(record.mesh)
    columns = [smooth(feature, ["value"] * (space + 1)) for feature in family.features(u)]
    columns.append(smooth(u, ["first"] + ["value"] * space))
    bends = [["value"] + ["second" if i == a else "value" for i in range(space)] for a in range(space)]
    columns.append(sum(smooth(u, kinds) for kinds in bends))
    inside = tuple(slice(weights.half, n - weights.half) for weights, n in zip(axes, u.shape, strict=True))
    mean = correlate1d(u, axes[0].value, axis=0, mode="constant")[inside]
    return np.stack([column[inside][np.abs(mean) < PHASE_CUT] for column in columns], axis=1)


CASES = [
    ((20, 60), 0.02, (3, 0.1)),
    ((30, 300), 0.01, (4, 0.0537)),
    ((25, 40, 50), (0.02, 0.025), (5, 0.1)),
    ((14, 22, 26, 24), 0.04, (3, 0.16)),
    ((13, 17, 16, 40), (0.05, 0.04, 0.02), (2, 0.1)),
]


@pytest.mark.parametrize("derivative", ["discrete", "analytic"])
@pytest.mark.parametrize(("shape", "dx", "support"), CASES)
def test_kernel_equals_plain_convolutions(make_rough, shape, dx, support, derivative) -> None:
    record, family = make_rough(shape, dx=dx), Bernstein(3)
    rows = plain_rows(record, family, support, derivative)
    evidence = weak_evidence(record, family, [support], derivative=derivative)
    expected = compact(rows)
    assert evidence.rows == len(rows) > 100
    assert np.abs(evidence.blocks[0].triangle - expected).max() < 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("degree", [0, 1, 8])
def test_every_degree_has_its_features(make_rough, degree) -> None:
    record, family = make_rough((16, 30, 28), size=1.1), Bernstein(degree)
    expected = compact(plain_rows(record, family, (3, 0.08)))
    got = weak_evidence(record, family, [(3, 0.08)]).blocks[0].triangle
    assert np.abs(got - expected).max() < 1e-13 * np.abs(expected).max()


def test_tiles_and_slabs_do_not_matter(make_rough, monkeypatch) -> None:
    record, family = make_rough((33, 40, 60)), Bernstein(2)
    supports = [(3, 0.1), (5, 0.16)]
    whole = weak_evidence(record, family, supports)
    for frames, cells, size in [(3, 7, 1), (1, 200, 1), (16, 11, 48 << 20), (24, 9, 1)]:
        monkeypatch.setattr(reader_module, "_FRAMES", frames)
        monkeypatch.setattr(reader_module, "_CELLS", cells)
        monkeypatch.setitem(weak_module._STEP_BYTES, "cpu", size)
        other = weak_evidence(record, family, supports)
        for a, b in zip(whole.blocks, other.blocks, strict=True):
            assert a.key == b.key
            assert a.rows == b.rows
            assert np.allclose(a.triangle, b.triangle, rtol=0, atol=1e-12 * np.abs(a.triangle).max())


def test_two_halves_with_their_halos_make_the_whole(make_rough) -> None:
    record, family = make_rough((41, 30, 36)), Bernstein(4)
    supports = [(3, 0.1), (6, 0.14)]
    whole = weak_evidence(record, family, supports)
    parts = []
    for support in supports:  # the halo of a half is the support's own margin
        half = support[0] + 2
        for start, stop in ((0, 20 + half), (20 - half, 41)):
            parts.append(weak_evidence(record.clip(start, stop), family, [support]))
    merged = merge(parts)
    assert [block.rows for block in merged.blocks] == [block.rows for block in whole.blocks]
    for a, b in zip(whole.blocks, merged.blocks, strict=True):
        assert a.key == b.key
        assert np.allclose(a.triangle, b.triangle, rtol=0, atol=1e-12 * np.abs(a.triangle).max())


class Stored:
    """An array that is read by slices and remembers how much was read, and how much at once."""

    def __init__(self, values) -> None:
        self.values, self.most, self.total = values, 0, 0
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, frames):
        out = self.values[frames]
        self.most, self.total = max(self.most, len(out)), self.total + len(out)
        return out


@pytest.mark.parametrize("number", ["f8", ">f8", "f4", "f2"])
def test_stored_records_are_read_once_in_small_parts(make_rough, monkeypatch, number) -> None:
    """Every precision gives the moments of its own values, as float64."""
    values, family = make_rough((80, 24, 24)).slab().astype(number), Bernstein(1)
    supports = [(3, 0.1), (6, 0.12)]
    monkeypatch.setitem(weak_module._STEP_BYTES, "cpu", 1)
    monkeypatch.setattr(stream, "READ_BYTES", 8 * 5 * 24 * 24)
    stored, metadata = Stored(values), {"dx": 0.02, "dt": 0.1, "q": 1.0}
    evidence = weak_evidence(Record(stored, **metadata), family, supports)
    assert stored.most == 5
    assert stored.total == 80
    whole = weak_evidence(Record(values.astype(float), **metadata), family, supports)
    for a, b in zip(evidence.blocks, whole.blocks, strict=True):
        assert a.rows == b.rows
        assert np.allclose(a.triangle, b.triangle, rtol=0, atol=1e-13 * np.abs(b.triangle).max())


def test_wide_supports_take_fewer_frames_and_cells_at_a_time(make_rough, monkeypatch) -> None:
    record, family = make_rough((33, 40, 60)), Bernstein(2)
    supports = [(3, 0.1), (5, 0.16)]
    whole = weak_evidence(record, family, supports)
    monkeypatch.setattr(reader_module, "_QUEUE_BYTES", 1)
    monkeypatch.setattr(reader_module, "_NARROW", 7)
    reader = Reader(record, family, Support(5, 0.16), "discrete", Region.whole(record), ALLEN_CAHN.weak_form)
    assert (reader.frames, reader.cells) == (4, 7)
    for a, b in zip(whole.blocks, weak_evidence(record, family, supports).blocks, strict=True):
        assert a.rows == b.rows
        assert np.allclose(a.triangle, b.triangle, rtol=0, atol=1e-12 * np.abs(a.triangle).max())


class Watched:
    """A frame buffer that remembers what it was asked for."""

    def __init__(self, record) -> None:
        self.record, self.asked = record, []

    def read(self, first, last):
        self.asked.append((first, last))
        return self.record.slab(first, last), None


@pytest.mark.parametrize("frames", [13, 14, 37, 40, 61])
def test_windows_cover_the_record_and_are_not_longer_than_announced(make_rough, monkeypatch, frames) -> None:
    record, family, supports = make_rough((frames, 24, 24)), Bernstein(1), (Support(3, 0.1),)
    monkeypatch.setitem(weak_module._STEP_BYTES, "cpu", 1)
    watched = Watched(record)
    evidence = weak_evidence(record, family, supports, frames=watched)
    held, whole = weak_module.window_of(record, family, supports, Region.whole(record))
    assert whole == Region.whole(record)
    assert (watched.asked[0][0], watched.asked[-1][1]) == (0, frames)
    assert all(a[1] - b[0] == 2 * 5 for a, b in pairwise(watched.asked))  # 3 intervals and a margin of 2
    assert max(last - first for first, last in watched.asked) <= held
    assert evidence.rows == weak_evidence(record, family, supports).rows


def test_supports_that_differ_in_the_last_digit_stay_apart(make_rough) -> None:
    record, family = make_rough((20, 30, 30)), Bernstein(1)
    near = float(np.nextafter(0.1, 1.0))
    evidence = weak_evidence(record, family, [(3, 0.1), (3, near)])
    assert evidence.supports == ("(3 frames, 0.1)", f"(3 frames, {near!r})")
    alone = weak_evidence(record, family, [(3, 0.1)])
    assert [block.rows for block in evidence.blocks] == [alone.rows] * 2
    other = weak_evidence(record, family, [(3, near)])
    assert len(merge([alone, other]).blocks) == 2
    assert Support(5, np.float64(0.06)).key == "(5 frames, 0.06)"


def test_folds_partition_the_rows(make_rough) -> None:
    record, family = make_rough((50, 24, 26)), Bernstein(2)
    supports = [(3, 0.1), (6, 0.1)]
    folds = split_folds(50, 6)
    assert folds == (Fold("training", 0, 30), Fold("validation", 30, 50))
    parts = weak_evidence(record, family, supports, folds=folds)
    assert set(parts.folds) == {"training", "validation", "straddle"}
    whole = weak_evidence(record, family, supports)
    for support in whole.supports:
        cut = parts.select([support])
        assert cut.rows == whole.select([support]).rows
    alone = weak_evidence(record.clip(0, 30), family, supports)
    training = parts.select(fold="training")
    assert [block.rows for block in training.blocks] == [block.rows for block in alone.blocks]
    for a, b in zip(training.blocks, alone.blocks, strict=True):
        assert np.allclose(a.triangle, b.triangle, atol=1e-12 * np.abs(a.triangle).max())


def test_short_record_has_no_folds() -> None:
    with pytest.raises(InputError, match="each part needs 21 frames, but 40 frames split into 24 and 16"):
        split_folds(40, 8)


def test_lower_degrees_come_from_one_assembly(make_rough) -> None:
    record, supports = make_rough((20, 30, 32), size=1.0), [(3, 0.1), (4, 0.14)]
    top = weak_evidence(record, Bernstein(8), supports)
    for degree in range(9):
        direct = weak_evidence(record, Bernstein(degree), supports)
        for a, b in zip(direct.blocks, lower(top, degree).blocks, strict=True):
            assert a.rows == b.rows
            assert np.allclose(a.triangle, b.triangle, rtol=0, atol=1e-12 * np.abs(a.triangle).max())


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_supports_never_wrap(make_rough, axis) -> None:
    """No centre reaches the outermost layer, and only the nearest layer of centres reaches the next one."""
    record, support, family = make_rough((17, 26, 28)), (3, 0.1), Bernstein(1)
    centres = (17 - 2 * 5, 26 - 2 * 7, 28 - 2 * 7)  # 3 intervals and 5 cells, each with a margin of 2
    evidence = weak_evidence(record, family, [support]).blocks[0]
    assert evidence.rows <= np.prod(centres)
    outer, inner = np.array(record.values), np.array(record.values)
    outer.swapaxes(0, axis)[[0, -1]] += 0.1
    assert np.array_equal(weak_evidence(record.replace(outer), family, [support]).blocks[0].triangle, evidence.triangle)
    inner.swapaxes(0, axis)[-2] += 0.1
    rows, moved = (plain_rows(r, family, support) for r in (record, record.replace(inner)))
    touched = np.sum(np.any(rows != moved, axis=1))
    assert 0.8 * np.prod(centres) / centres[axis] < touched <= np.prod(centres) / centres[axis]
    triangle = weak_evidence(record.replace(inner), family, [support]).blocks[0].triangle
    assert not np.allclose(triangle, evidence.triangle, rtol=0, atol=1e-6 * np.abs(triangle).max())
    assert np.allclose(triangle, compact(moved), rtol=0, atol=1e-12 * np.abs(triangle).max())


def test_pure_phases_are_left_out(make_rough) -> None:
    u = np.full((15, 24, 24), 0.99)
    assert weak_evidence(Record(u, dx=0.02, dt=0.1, q=1.0), Bernstein(2), [(3, 0.1)]).rows == 0


def test_progress_reaches_the_end(make_rough) -> None:
    seen = []
    record = make_rough((15, 24, 24))
    weak_evidence(record, Bernstein(0), [(3, 0.1)], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (15, 15)


def test_wrong_derivative(make_rough) -> None:
    record = make_rough((15, 24, 24))
    with pytest.raises(InputError, match="derivative is 'exact': expected 'discrete' or 'analytic'"):
        weak_evidence(record, Bernstein(0), [(3, 0.1)], derivative="exact")


def test_deterministic(make_rough) -> None:
    record = make_rough((20, 30, 30))
    a, b = (weak_evidence(record, Bernstein(5), [(3, 0.1)]).blocks[0].triangle for _ in range(2))
    assert np.array_equal(a, b)


def test_new_widths_degrees_and_dimensions_do_not_compile_again(make_rough) -> None:
    from doublewell.weak.kernel import assemble

    weak_evidence(make_rough((15, 24, 24)), Bernstein(1), [(3, 0.1)])
    before = [str(signature) for signature in assemble.signatures]
    weak_evidence(make_rough((25, 40)), Bernstein(4), [(6, 0.13)])
    weak_evidence(make_rough((13, 16, 18, 20)), Bernstein(0), [(2, 0.071)], derivative="analytic")
    assert [str(signature) for signature in assemble.signatures] == before
    assert len(before) <= 2  # one for stored float32, where it was read in this process


@pytest.mark.parametrize("supports", [[(3, 0.1)], [(3, 0.1), (5, 0.16)], [(3, 0.1), (5, 0.16), (2, 0.08)]])
def test_threads_change_nothing(make_rough, monkeypatch, supports) -> None:
    record, family = make_rough((33, 40, 60)), Bernstein(2)
    monkeypatch.setattr(reader_module, "_FRAMES", 4)
    monkeypatch.setattr(reader_module, "_CELLS", 20)
    one, two, three = (weak_evidence(record, family, supports, threads=n) for n in (1, 2, 3))
    for a, b, c in zip(one.blocks, two.blocks, three.blocks, strict=True):
        assert a.key == b.key == c.key
        assert a.rows == b.rows == c.rows
        assert np.array_equal(a.triangle, b.triangle)
        assert np.array_equal(a.triangle, c.triangle)
    with pytest.raises(InputError, match="threads"):
        weak_evidence(record, family, supports, threads=0)


@pytest.mark.parametrize("shape", [(33, 40, 60), (40, 90), (15, 14, 15, 18)])
def test_supports_read_together_are_those_read_apart(make_rough, shape) -> None:
    record, family, supports = make_rough(shape), Bernstein(3), [(2, 0.05), (4, 0.07)]
    folds = split_folds(33, 4) if shape[0] == 33 else ()
    together = weak_evidence(record, family, supports, folds=folds)
    apart = merge(weak_evidence(record, family, [support], folds=folds) for support in supports)
    assert {block.key for block in together.blocks} == {block.key for block in apart.blocks}
    for block in apart.blocks:
        (other,) = together.select([block.key.support], block.key.fold).blocks
        assert block.rows == other.rows
        assert np.allclose(block.triangle, other.triangle, rtol=0, atol=1e-13 * np.abs(block.triangle).max())

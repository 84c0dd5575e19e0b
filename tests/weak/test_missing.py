"""Only centres whose support is complete count, and their moments are those of the record without holes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import correlate1d

from doublewell.evidence import compact, merge
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak import assembly as reader_module
from doublewell.weak import assembly as weak_module
from doublewell.weak.assembly import PHASE_CUT, weak_evidence
from doublewell.weak.weights import axis_weights, complete_centres, split_folds


def columns_of(record: Record, family: Bernstein, support: tuple[int, float], derivative: str):
    """Return (field, taps along each axis) of every product of the moments, by column."""
    axes = [axis_weights(support[0], record.dt, derivative)]
    axes += [axis_weights(support[1] / h, h, derivative) for h in record.dx]
    u, values = record.slab(), [weights.value for weights in axes]
    columns = [[(feature, values)] for feature in family.features(u)]
    columns.append([(u, [axes[0].first, *values[1:]])])
    columns.append([(u, [*values[:k], axes[k].second, *values[k + 1 :]]) for k in range(1, len(axes))])
    inside = tuple(slice(weights.half, n - weights.half) for weights, n in zip(axes, u.shape, strict=True))
    return columns, axes, inside


def smooth(field, taps):
    for axis, weights in enumerate(taps):
        field = correlate1d(field, weights, axis=axis, mode="constant")
    return field


def plain_rows(full: Record, seen, family: Bernstein, support: tuple[int, float], derivative: str = "discrete"):
    """Every moment row of the full record whose taps touch no missing value, by counting them one product at a time."""
    columns, axes, inside = columns_of(full, family, support, derivative)
    rows = np.stack([sum(smooth(*product) for product in column)[inside] for column in columns], axis=-1)
    missing = (~seen).astype(float)
    touched = sum(smooth(missing, [np.ones_like(t) for t in taps]) for column in columns for _, taps in column)
    mean = correlate1d(full.slab(), axes[0].value, axis=0, mode="constant")[inside]
    return rows[(touched[inside] < 0.5) & (np.abs(mean) < PHASE_CUT)]


def with_holes(record: Record, mask) -> Record:
    seen = np.broadcast_to(mask, record.shape)
    return record.replace(np.where(seen, record.slab(), np.nan), mask=mask)


def hole(shape, seed, count):
    """Return a mask with a few missing values, a missing box, and a dead row."""
    rng = np.random.default_rng(seed)
    mask = np.ones(shape, bool)
    for _ in range(count):
        mask[tuple(rng.integers(0, n) for n in shape)] = False
    mask[tuple(slice(3, 4 + n // 8) for n in shape)] = False
    mask[shape[0] // 2 :, ..., 1] = False
    return mask


CASES = [
    ((24, 60), 0.02, (3, 0.1), 2),
    ((19, 34, 40), (0.02, 0.025), (3, 0.1), 3),
    ((14, 20, 22, 20), 0.04, (2, 0.1), 1),
]


@pytest.mark.parametrize("derivative", ["discrete", "analytic"])
@pytest.mark.parametrize(("shape", "dx", "support", "count"), CASES)
def test_the_moments_are_those_of_the_full_record_at_complete_centres(
    make_rough, shape, dx, support, count, derivative
) -> None:
    full, family = make_rough(shape, dx=dx), Bernstein(2)
    mask = hole(shape, 5, count)
    rows = plain_rows(full, mask, family, support, derivative)
    evidence = weak_evidence(with_holes(full, mask), family, [support], derivative=derivative)
    whole = weak_evidence(full, family, [support], derivative=derivative)
    expected = compact(rows)
    assert evidence.rows == len(rows)
    assert 30 < evidence.rows < whole.rows
    assert np.abs(evidence.blocks[0].triangle - expected).max() < 1e-13 * np.abs(expected).max()


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.integers(0, 999), st.integers(1, 4), st.sampled_from(["values", "frame", "frames"]))
def test_every_kind_of_mask(make_rough, seed, count, kind) -> None:
    full, family, support = make_rough((22, 26, 28)), Bernstein(1), (2, 0.06)
    rng = np.random.default_rng(seed)
    shape = {"values": full.shape, "frame": full.mesh, "frames": (22,)}[kind]
    mask = np.ones(shape, bool)
    for _ in range(count):
        mask[tuple(rng.integers(0, n) for n in shape)] = False
    seen = np.broadcast_to(mask[:, None, None] if kind == "frames" else mask, full.shape)
    rows = plain_rows(full, seen, family, support)
    evidence = weak_evidence(full.replace(full.values, mask=mask), family, [support])
    assert evidence.rows == len(rows)
    if len(rows) > family.size + 2:
        expected = compact(rows)
        assert np.abs(evidence.blocks[0].triangle - expected).max() < 1e-12 * np.abs(expected).max()


def test_tiles_slabs_and_halves_do_not_matter(make_rough, monkeypatch) -> None:
    full, family = make_rough((33, 40, 50)), Bernstein(2)
    record, supports = with_holes(full, hole(full.shape, 3, 6)), [(3, 0.1), (5, 0.12)]
    whole = weak_evidence(record, family, supports)
    parts = []
    for support in supports:
        half = support[0] + 2
        for start, stop in ((0, 16 + half), (16 - half, 33)):
            parts.append(weak_evidence(record.clip(start, stop), family, [support]))
    others = [merge(parts)]
    for frames, cells, size in [(3, 7, 1), (16, 11, 48 << 20)]:
        monkeypatch.setattr(reader_module, "_FRAMES", frames)
        monkeypatch.setattr(reader_module, "_CELLS", cells)
        monkeypatch.setitem(weak_module._STEP_BYTES, "cpu", size)
        others.append(weak_evidence(record, family, supports))
    for other in others:
        for a, b in zip(whole.blocks, other.blocks, strict=True):
            assert (a.key, a.rows) == (b.key, b.rows)
            assert np.allclose(a.triangle, b.triangle, rtol=0, atol=1e-12 * np.abs(a.triangle).max())


def test_folds_keep_complete_centres_only(make_rough) -> None:
    full, family = make_rough((50, 24, 26)), Bernstein(1)
    record = with_holes(full, hole(full.shape, 8, 3))
    parts = weak_evidence(record, family, [(3, 0.1)], folds=split_folds(50, 3))
    assert parts.rows == weak_evidence(record, family, [(3, 0.1)]).rows
    training = parts.select(fold="training")
    assert training.rows == weak_evidence(record.clip(0, 30), family, [(3, 0.1)]).rows


def test_a_complete_mask_changes_nothing(make_rough) -> None:
    record, family = make_rough((20, 30, 30)), Bernstein(3)
    masked = record.replace(record.values, mask=np.ones(record.mesh, bool))
    a, b = (weak_evidence(r, family, [(3, 0.1)]).blocks[0] for r in (record, masked))
    assert a.rows == b.rows
    assert np.array_equal(a.triangle, b.triangle)


def test_one_missing_value_takes_out_the_union_of_boxes() -> None:
    seen = np.ones((15, 1, 15, 15), bool)
    seen[7, 0, 7, 7] = False
    out = ~complete_centres(seen, [(3, 0, 2, 2), (1, 0, 4, 2), (1, 0, 2, 4), (1, 0, 2, 2)])
    along_t, along_y, along_x = 7 * 5 * 5, 3 * 9 * 5, 3 * 5 * 9
    assert out.sum() == along_t + along_y + along_x - 2 * 3 * 5 * 5
    assert out[7, 0, 3:12, 7].all()
    assert out[4:11, 0, 5, 9].all()
    assert not out[7, 0, 3, 3]

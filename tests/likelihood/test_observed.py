"""What was seen of a record: masks, fillings, how many values say something, and the noise of what a fit leaves."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.dynamics import border_mask
from doublewell.likelihood import Batch
from doublewell.observation import View, complete
from doublewell.observation.view import camera_noise, noise_view, noisy, observed, outlier_mask, spectrum
from doublewell.options import Observation
from doublewell.record import Record

MESH = (14, 13)


def blank(boundary="periodic") -> Record:
    values = np.random.default_rng(3).standard_normal((5, *MESH))
    return Record(values, dx=0.1, dt=5e-4, q=1.3, boundary=boundary)


def holed(mask, boundary="periodic", fill=np.nan) -> Record:
    record = blank(boundary)
    return record.replace(np.where(mask, record.slab(), fill), mask=mask)


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_a_mask_with_everything_seen_is_no_mask(boundary) -> None:
    record = blank(boundary)
    one, other = observed(record), observed(holed(np.ones(record.shape, bool), boundary))
    assert np.array_equal(one.values, other.values)
    assert np.all(other.root == one.root)
    assert one.rows == other.rows
    border = np.count_nonzero(border_mask(MESH)) if boundary == "open" else 0
    assert one.rows == 4 * (14 * 13 - border)


def test_a_wide_border_takes_its_values() -> None:
    one, other = observed(blank("open"), width=6), observed(holed(np.ones((5, *MESH), bool), "open"), width=6)
    assert one.rows == other.rows == 4 * np.count_nonzero(~border_mask(MESH, 6)) == 4 * 2 * 1
    assert np.array_equal(noisy(blank("open"), 6)[2], ~border_mask(MESH, 6))


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_values_under_a_false_mask_do_not_matter(boundary) -> None:
    mask = np.random.default_rng(5).random((5, *MESH)) < 0.6
    mask[:, 2:5, 2:5] = False  # never seen
    first, second = (holed(mask, boundary, fill) for fill in (np.nan, 1e6))
    one, other = observed(first), observed(second)
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.root, other.root)
    assert np.array_equal(one.values[mask], blank().slab()[mask])
    assert np.isfinite(one.values).all()
    assert np.array_equal(complete(first).slab(), one.values)
    assert complete(blank()).mask is None


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_what_the_model_needs_is_held_and_the_rest_counts_nothing(boundary) -> None:
    mask = np.random.default_rng(5).random((5, *MESH)) < 0.6
    root = observed(holed(mask, boundary)).root
    assert np.all(root[mask] == 1.0)
    assert np.all((root[0][~mask[0]] > 0.0) & (root[0][~mask[0]] < 1.0))
    edge = border_mask(MESH) if boundary == "open" else np.zeros(MESH, bool)
    assert np.all(root[1:][~mask[1:] & ~edge] == 0.0)
    assert np.all(root[1:][~mask[1:] & edge] > 0.0)


def test_rows_are_the_values_less_what_they_determine() -> None:
    mask = np.ones((5, *MESH), bool)
    mask[:, :4, :3] = False
    mask[2] = False
    assert observed(holed(mask)).rows == (4 - 1) * (14 * 13 - 12)
    whole = observed(blank("open")).rows
    mask = np.ones((5, *MESH), bool)
    mask[0, 6:8, 6:8] = False  # of the first field: seen later, so it is determined all the same
    assert observed(holed(mask, "open")).rows == whole - 4
    mask = np.ones((5, *MESH), bool)
    mask[3, 1, 6] = False  # the inner line of the border is determined by its neighbours inside
    assert observed(holed(mask, "open")).rows == whole - 1
    mask[3, 0, 6] = False  # the outer line hardly is
    assert observed(holed(mask, "open")).rows == whole - 1


def test_records_with_one_mask_are_read_together() -> None:
    mask = np.ones((5, *MESH), bool)
    mask[:, 3] = False
    for alike in ([blank(), blank()], [holed(mask), holed(mask.copy())]):
        assert not Batch(alike).parts
    for other in (blank(), holed(np.roll(mask, 1, axis=1))):
        assert len(Batch([holed(mask), other]).parts) == 2


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_the_noise_that_a_fit_leaves(boundary) -> None:
    """On a window the border is estimated and holds no residual: it must not lower the level."""
    mesh, rng = (24, 22), np.random.default_rng(6)
    u = np.tanh(np.linspace(-3, 3, 24))[:, None] * np.ones((61, *mesh))
    white = 0.02 * rng.standard_normal(u.shape)
    if boundary == "open":
        white[:, border_mask(mesh)] = 0.0
    record = Record(u + white, dx=0.1, dt=1e-3, q=1.0, boundary=boundary)
    coloured = noise_view(record, white, View(), "correlated").whitening
    assert coloured.level == pytest.approx(0.02, rel=0.03)
    assert coloured.memory == 0.0
    assert np.median(coloured.colour) == pytest.approx(1.0, abs=0.1)
    assert np.mean(spectrum(record, white)) == pytest.approx(4e-4, rel=0.05)
    assert np.count_nonzero(~outlier_mask(record, white)) <= 1  # of 32208 normal values 0.02 are that far


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_shot_noise_is_a_line_in_the_phase(boundary) -> None:
    mesh, rng = (24, 22), np.random.default_rng(7)
    u = np.tanh(np.linspace(-3, 3, 24))[:, None] * np.ones((61, *mesh))
    strength = np.sqrt(1.0 + 0.8 * u)
    noise = 0.02 * strength * rng.standard_normal(u.shape)
    record = Record(u + noise, dx=0.1, dt=1e-3, q=1.0, boundary=boundary, origin="camera")
    after = noise_view(record, np.where(border_mask(mesh) & (boundary == "open"), 0.0, noise), View(), "shot")
    for view in (after, camera_noise(record, View(Observation()))):
        ratio = view.whitening.root * strength
        assert np.std(ratio) < 0.06 * np.mean(ratio)
    assert camera_noise(record.replace(origin=None), View(Observation())).whitening.root is None


def test_white_noise_is_not_taken_for_shot_noise() -> None:
    """The slope of a variance is beyond 4.5 of its errors in 7e-6 of all records."""
    u, rng = np.tanh(np.linspace(-3, 3, 24))[:, None] * np.ones((25, 24, 22)), np.random.default_rng(17)
    for _ in range(60):
        record = Record(u + 0.02 * rng.standard_normal(u.shape), dx=0.1, dt=1e-3, origin="camera")
        assert camera_noise(record, View(Observation())).whitening.root is None


def test_memory_of_the_noise() -> None:
    noise = 0.02 * np.random.default_rng(8).standard_normal((41, 20, 20))
    for k in range(1, 41):
        noise[k] = 0.5 * noise[k - 1] + np.sqrt(0.75) * noise[k]
    record = Record(np.zeros(noise.shape), dx=0.1, dt=1e-3, q=1.0, boundary="periodic")
    assert noise_view(record, noise, View(), "correlated").whitening.memory == pytest.approx(0.5, abs=0.04)


def test_outliers_and_cells_that_are_often_off() -> None:
    noise = 0.02 * np.random.default_rng(9).standard_normal((21, 20, 20))
    noise[5, 6, 7], noise[3::2, 10, 11] = 0.4, -0.3
    record = Record(np.zeros(noise.shape), dx=0.1, dt=1e-3, q=1.0, boundary="periodic")
    kept = outlier_mask(record, noise)
    assert not kept[5, 6, 7]
    assert not kept[:, 10, 11].any()
    assert np.count_nonzero(~kept) == 22

"""A survey of a record with holes is one of the values that were observed."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.observation import survey
from doublewell.record import Record
from doublewell.record_findings import survey_findings
from doublewell.simulate import add_noise


def holes(record: Record, mask) -> Record:
    """Return the record with numbers below the mask that would spoil everything."""
    seen = np.broadcast_to(mask[:, None, None] if mask.ndim == 1 else mask, record.shape)
    return record.replace(np.where(seen, record.slab(), np.where(record.slab() > 0, 1e6, np.nan)), mask=mask)


def masks(record: Record):
    rng = np.random.default_rng(5)
    hole = np.ones(record.mesh, bool)
    hole[20:40, 10:30] = False
    drop = np.ones(record.frames, bool)
    drop[[3, 11, 20]] = False
    return {"random": rng.random(record.shape) < 0.7, "hole": hole, "dropped": drop}


@pytest.mark.parametrize("kind", ["random", "hole", "dropped"])
def test_holes_change_little(movie, kind) -> None:
    record = add_noise(movie, 0.03, seed=11)
    mask = masks(record)[kind]
    whole, seen = survey(record), survey(holes(record, mask))
    assert seen.noise == pytest.approx(0.03, rel=0.04)
    assert seen.noise_method == "fourth differences in time"
    assert seen.interface_width == pytest.approx(whole.interface_width, rel=0.12)
    assert seen.coverage == whole.coverage
    assert (seen.low, seen.high) == pytest.approx((whole.low, whole.high), abs=0.02)
    assert seen.change == pytest.approx(whole.change, rel=0.25)
    assert seen.missing == pytest.approx(1.0 - mask.mean())
    assert sum(seen.histogram) == pytest.approx(sum(whole.histogram), abs=0.05)


def test_a_complete_mask_changes_nothing(movie) -> None:
    record = add_noise(movie, 0.03, seed=11)
    assert survey(record.replace(record.values, mask=np.ones(record.mesh, bool))) == survey(record)


def test_where_no_pixel_is_seen_five_times_noise_comes_from_space(movie) -> None:
    record = add_noise(movie, 0.03, seed=11)
    mask = np.arange(record.frames) % 4 != 3
    seen = survey(holes(record, mask))
    assert seen.noise_method == "fourth differences in space"
    assert seen.noise == pytest.approx(0.03, rel=0.1)


def test_noise_at_uneven_times(movie) -> None:
    """A cubic in time is no noise, however the frames lie."""
    t = np.arange(30) + 0.3 * np.random.default_rng(2).uniform(-1, 1, 30)
    cubic = 0.5 * (t / 30)[:, None] ** 3 * np.linspace(-1, 1, 64)
    assert survey(Record(cubic, dx=1.0, times=t)).noise < 1e-14
    noisy = Record(cubic + 0.02 * np.random.default_rng(3).standard_normal(cubic.shape), dx=1.0, times=t)
    assert survey(noisy).noise == pytest.approx(0.02, rel=0.1)


def test_how_much_is_missing_is_said(movie) -> None:
    mask = np.random.default_rng(1).random(movie.shape) < 0.7
    items = survey_findings(survey(holes(add_noise(movie, 0.03, seed=1), mask)))
    (missing,) = [item for item in items if item.code == "values-missing"]
    assert missing.numbers["missing"] == pytest.approx(1 - mask.mean())


class Stored:
    def __init__(self, values) -> None:
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, values.ndim

    def __getitem__(self, frames):
        return self.values[frames]


def test_a_stored_mask(movie) -> None:
    mask = np.random.default_rng(1).random(movie.shape) < 0.9
    plain, stored = (survey(movie.replace(movie.values, mask=m)) for m in (mask, Stored(mask)))
    assert stored.missing == pytest.approx(1.0 - mask.mean(), rel=1e-12)
    assert stored.noise == plain.noise
    with pytest.raises(InputError, match="the mask leaves no value in any of the frames that were looked at"):
        survey(movie.replace(movie.values, mask=Stored(np.zeros_like(mask))))


def test_too_few_neighbours_for_noise(movie) -> None:
    mask = np.zeros(movie.shape, bool)
    mask[::4, :, ::4] = True
    with pytest.raises(InputError, match="too little was observed to measure noise: expected five neighbouring"):
        survey(movie.replace(movie.values, mask=mask))

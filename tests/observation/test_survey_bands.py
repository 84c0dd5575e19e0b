"""A look in bands is the look at whole frames, whatever the bands."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.observation import look
from doublewell.observation.look import change_between, look_at, look_spans, mean_square
from doublewell.record import Record

RNG = np.random.default_rng(0)


def record_of(shape, mask=None):
    place = [np.linspace(-1, 1, n) for n in shape[1:]]
    radius = np.sqrt(sum(x**2 for x in np.meshgrid(*place, indexing="ij")))
    shrink = np.linspace(0.7, 0.5, shape[0]).reshape(-1, *[1] * len(shape[1:]))
    u = np.tanh((shrink - radius) / 0.3) + 0.05 * RNG.standard_normal(shape)
    return Record(u, dx=[0.1, 0.12, 0.14][: len(shape) - 1], dt=0.1, mask=mask)


RECORDS = {
    "plane": record_of((9, 37, 30)),
    "volume": record_of((7, 22, 13, 11)),
    "few frames": record_of((4, 30, 20)),
    "fixed mask": record_of((9, 37, 30), RNG.uniform(size=(37, 30)) > 0.1),
    "long": record_of((15, 37, 30), RNG.uniform(size=(37, 30)) > 0.1),
    "mask": record_of((9, 37, 30), RNG.uniform(size=(9, 37, 30)) > 0.3),
    "middle frames lost": record_of((9, 37, 30), ~np.isin(np.arange(9), [1, 2, 4, 6])),
    "rows lost": record_of((9, 37, 30), np.arange(37)[None, :, None] > 20),
}


@pytest.mark.parametrize("rows", [4, 8, 12, 36, 40])
@pytest.mark.parametrize("name", RECORDS)
def test_bands_do_not_matter(name, rows, monkeypatch) -> None:
    record = RECORDS[name]
    monkeypatch.setattr(look, "_SAMPLE", 200)
    for span in look_spans(record):
        whole, bands = look_at(record, *span), look_at(record, *span, rows)
        if whole is None:  # a frame that nothing was observed of
            assert bands is None
            continue
        assert (whole.size, whole.low, whole.high, whole.time) == (bands.size, bands.low, bands.high, bands.time)
        np.testing.assert_array_equal(whole.counts, bands.counts)
        np.testing.assert_allclose(np.sort(bands.rest), np.sort(whole.rest), rtol=1e-11, atol=1e-14)
        for part in ("values", "squared", "bump"):
            np.testing.assert_allclose(getattr(bands, part), getattr(whole, part), rtol=1e-11, atol=1e-14)
        got, expected = ([own.frames, own.variance, *own.curved, *np.ravel(own.slopes)] for own in (bands, whole))
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_nothing_observed() -> None:
    record = record_of((9, 20, 20), np.arange(9) > 5)
    assert look_at(record, 0, 5, 8) is None
    assert look_at(record, 0, 5) is None


def test_change_between_two_looks_in_bands(monkeypatch) -> None:
    monkeypatch.setattr(look, "_READ_BYTES", 8 * 30 * 5)
    for name in ("plane", "mask"):
        record, (first, last) = RECORDS[name], (look_at(RECORDS[name], 0, 5), look_at(RECORDS[name], 4, 9))
        moved, sample = change_between(record, (0, 5), (4, 9))
        change = last.mean - first.mean
        assert moved == pytest.approx(mean_square(change), rel=1e-12)
        assert sample == pytest.approx(change.ravel(), rel=1e-12, abs=1e-15, nan_ok=True)

"""The law comes back from records with holes, lost frames and uneven times; data from CNAB2."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.identify import identify, repeat
from doublewell.io import load_result, save
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON = 0.05
U = np.linspace(-1.0, 1.0, 401)


@pytest.fixture(scope="module")
def fine() -> Record:
    """A clean movie of the sixth law at frames close together, for records with frames at other times."""
    start = initial_field("nonconvex", (64, 64), 1 / 64, epsilon=EPSILON)
    return simulate(named_law("sixth"), start, dx=1 / 64, dt=2e-5, frames=201, epsilon=EPSILON)


def error(result) -> float:
    true = named_law("sixth").effective(EPSILON).force(U)
    return float(np.linalg.norm(result.law.force(U) - true) / np.linalg.norm(true))


def weak(record: Record):
    return identify(record, law=2, method="weak")


def test_holes_dead_rows_and_a_lost_frame(fine) -> None:
    record = fine.replace(fine.values[::5], times=fine.times[::5])
    mask = np.ones(record.shape, bool)
    mask[:, 24:34, 24:34] = False
    mask[:, 50] = False
    mask[20] = False
    u = np.where(mask, record.slab(), np.nan)
    holed = record.replace(u, mask=mask)
    whole, found = weak(record), weak(holed)
    assert found.diagnostics.rows < 0.6 * whole.diagnostics.rows
    assert error(whole) < 0.01
    assert error(found) < 0.01
    assert found.problem.records[0].checksum != whole.problem.records[0].checksum
    noisy = weak(add_noise(holed, 0.01, seed=3))
    assert error(noisy) < 0.04


def test_uneven_times_give_the_law_of_even_times(fine, tmp_path) -> None:
    rng = np.random.default_rng(4)
    kept = np.arange(0, 201, 5) + np.concatenate([[0], rng.integers(-1, 2, 39), [0]])
    even = weak(fine.replace(fine.values[::5], times=fine.times[::5]))
    uneven = fine.replace(fine.values[kept], times=fine.times[kept])
    found = weak(uneven)
    assert not uneven.uniform
    assert error(even) < 0.01
    assert error(found) < 0.01
    assert np.allclose(found.law.coefficients, even.law.coefficients, rtol=0.01)
    assert found.problem.records[0].times == pytest.approx(fine.times[kept])
    assert even.problem.records[0].times is None
    save(found, tmp_path / "law.json")
    again = repeat(load_result(tmp_path / "law.json"), uneven)
    assert again.data == "the same"
    assert not again.comparison.differences


def test_frames_that_were_never_written(fine) -> None:
    """A gap may be said by times or by a mask; the mask loses every support that meets it, the times do not."""
    kept = np.delete(np.arange(0, 201, 5), [12, 13, 27])
    by_times = weak(fine.replace(fine.values[kept], times=fine.times[kept]))
    mask = np.isin(np.arange(0, 201, 5), kept)
    by_mask = weak(fine.replace(fine.values[::5], times=fine.times[::5], mask=mask))
    assert error(by_times) < 0.01
    assert error(by_mask) < 0.01
    assert by_mask.diagnostics.rows < by_times.diagnostics.rows


def test_too_many_holes_for_any_support(fine) -> None:
    record = fine.replace(fine.values[::5], times=fine.times[::5])
    mask = np.random.default_rng(0).random(record.shape) < 0.7
    with pytest.raises(InputError) as said:
        weak(record.replace(record.values, mask=mask))
    assert str(said.value) == (
        "only 0 centres have a complete support, without a missing pixel or frame, and lie outside the pure phases: "
        "expected at least 60 for 3 coefficients; pass smaller supports, the smallest is supports=[(2, 0.03125)], or "
        "record with fewer holes"
    )

"""The same movie in every format gives the same coefficients to the last bit; 33 x 40 cells, to show swapped axes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from movie_writers import DT, DX, WRITERS

from doublewell.identify import identify
from doublewell.io import open_record, save
from doublewell.law import named_law
from doublewell.options import Weak
from doublewell.record import Record
from doublewell.simulate import initial_field, simulate

LOW, HIGH = -1.2, 1.2  # what the lowest and the highest number of an 8-bit or 16-bit file stand for


@pytest.fixture(scope="module")
def movie() -> Record:
    start = initial_field("nonconvex", (33, 40), DX, epsilon=0.06)
    clean = simulate(named_law("sixth"), start, dx=DX, dt=DT / 4, frames=15, epsilon=0.06)
    return Record(clean.slab().astype("f4").astype("f8"), dx=DX, dt=DT, q=1.0)  # numbers that float32 holds too


def coefficients(record):
    return identify(record, method=Weak(supports=[(3, 0.1)])).coefficients


@pytest.fixture(scope="module")
def expected(movie):
    return coefficients(movie)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_coefficients(name, movie, expected, tmp_path) -> None:
    path, said = WRITERS[name](tmp_path, movie.slab())
    record = open_record(path, q=1.0, **said)
    assert (record.shape, record.dx) == (movie.shape, movie.dx)
    assert record.times.tobytes() == (movie.times if record.time_unit != "ms" else 1000 * movie.times).tobytes()
    assert record.slab().tobytes() == movie.slab().tobytes()
    assert record.slab(4, 7).tobytes() == movie.slab(4, 7).tobytes()
    again = open_record(path, q=1.0, **said, **({} if "dt" in said else {"dt": DT}))
    assert coefficients(again).tobytes() == expected.tobytes()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(record)).slab(2, 5), movie.slab(2, 5))


@pytest.mark.parametrize("suffix", ["npz", "zarr", "nc"])
def test_what_is_saved_gives_the_same_coefficients(suffix, movie, expected, tmp_path) -> None:
    save(movie, tmp_path / f"movie.{suffix}")
    assert coefficients(open_record(tmp_path / f"movie.{suffix}")).tobytes() == expected.tobytes()


@pytest.mark.parametrize(("dtype", "tolerance"), [("uint16", 1e-4), ("uint8", 3e-2)])
@pytest.mark.parametrize("writer", ["plain_tiff", "packed_tiff", "ome_tiff"])
def test_whole_numbers_within_their_quantisation(writer, dtype, tolerance, movie, expected, tmp_path) -> None:
    most = np.iinfo(dtype).max
    counts = np.rint((movie.slab() - LOW) / (HIGH - LOW) * most).astype(dtype)
    path, said = WRITERS[writer](tmp_path, counts)
    levels = tuple((level - LOW) / (HIGH - LOW) * most for level in (-1.0, 1.0))
    record = open_record(path, q=1.0, levels=levels, **said | {"dt": DT})
    assert np.max(np.abs(record.slab() - movie.slab())) <= 0.5001 * (HIGH - LOW) / most
    np.testing.assert_allclose(coefficients(record), expected, rtol=tolerance)

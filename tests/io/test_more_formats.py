"""Formats whose movies are the same to the last bit, or as near as grey values and interpolation allow."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from movie_writers import DT, DX, INEXACT, MORE

from doublewell.io import open_record

MOVIE = np.random.default_rng(0).uniform(-1, 1, (5, 6, 7))


@pytest.mark.parametrize("name", MORE)
def test_the_same_movie_to_the_last_bit(name, tmp_path) -> None:
    path, said = MORE[name](tmp_path, MOVIE)
    record = open_record(path, q=1.0, **said)
    assert record.dx == DX
    np.testing.assert_allclose(record.times, DT * np.arange(5), rtol=1e-15)
    np.testing.assert_array_equal(record.slab(), MOVIE)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(record)).slab(2, 4), MOVIE[2:4])
    np.testing.assert_array_equal(record.slab(1, 3, ((2, 5), (1, 4))), MOVIE[1:3, 2:5, 1:4])


@pytest.mark.parametrize("name", INEXACT)
def test_the_same_movie_nearly(name, tmp_path) -> None:
    y, x = np.meshgrid(np.linspace(0, 1, 16), np.linspace(0, 1, 20), indexing="ij")
    movie = np.stack([np.cos(2 * x + t) * np.cos(3 * y) for t in range(4)])
    path, said = INEXACT[name](tmp_path, movie)
    record = open_record(path, **said)
    slab = pickle.loads(pickle.dumps(record)).slab()
    if name == "vtu_scattered":
        line = [np.linspace(0, 1, n) for n in record.mesh]
        movie = np.stack([np.cos(2 * line[1][None] + t) * np.cos(3 * line[0][:, None]) for t in range(4)])
        assert [note.code for note in record.notes if note.matters] == ["interpolated"]
        assert "the 320 nodes are no regular mesh: values are interpolated to" in record.notes[-1].sentence
    tolerance = {"mp4": 0.15, "vtu_scattered": 0.01}.get(name, 0.5001 / 127.5)
    assert slab.shape == movie.shape
    assert np.max(np.abs(slab - movie)) <= tolerance

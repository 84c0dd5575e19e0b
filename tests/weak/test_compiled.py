"""Kernels compile where their machine code cannot be kept, too."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core import caching

from doublewell.weak.compiled import jit


def add_one(values):
    for i in range(values.size):
        values[i] += 1.0
    return values


def test_without_a_place_for_the_cache(monkeypatch) -> None:
    """As on a read-only disk without a home folder."""
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    from numba import njit

    with pytest.raises(RuntimeError, match="cannot cache function"):
        njit(cache=True)(add_one)
    np.testing.assert_array_equal(jit()(add_one)(np.zeros(3)), np.ones(3))


def test_the_cache_is_used_where_there_is_one(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    np.testing.assert_array_equal(jit(fastmath={"contract"})(add_one)(np.zeros(3)), np.ones(3))
    assert list(tmp_path.rglob("*add_one*.nbi"))

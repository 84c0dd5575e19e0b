"""The kernel's parts: vectors against plain loops, and machine code that is never that of other sources."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core import caching

from doublewell.weak import kernel, loops
from doublewell.weak.loops import ADD, CHUNK, FOREVER, STORE, TURN


def compiled(tile):
    @njit
    def call(out, to, source, at, taps, use, mode):
        tile(out, to, source, at, taps, use, mode)

    return call


with pytest.MonkeyPatch.context() as patch:  # as on a processor with sixteen registers of four numbers
    patch.setattr("llvmlite.binding.get_host_cpu_features", dict)
    TILES = {"here": compiled(loops.tile), "short": compiled(loops._vector_tile())}


@pytest.mark.parametrize("registers", TILES)
@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    width=st.integers(3, 17), mode=st.sampled_from([STORE, ADD, TURN]), ring=st.booleans(), own=st.booleans(),
    start=st.integers(0, 30), seed=st.integers(0, 99),
)  # fmt: skip
def test_vectors_are_the_plain_loops(registers, width, mode, ring, own, start, seed) -> None:
    rng = np.random.default_rng(seed)
    room = 40
    source, out = rng.standard_normal((2 * room + 8) * CHUNK), rng.standard_normal(40 * CHUNK)
    taps = rng.standard_normal((4, width))
    at = (start * CHUNK, CHUNK, room * CHUNK, room * CHUNK) if ring else (start * CHUNK, CHUNK, FOREVER, 0)
    to = {STORE: (3, 4, CHUNK), ADD: (16, CHUNK, 4), TURN: (32, CHUNK, 4 * CHUNK)}[mode]
    use = (0, width if own else 0, width)
    fast, plain = out.copy(), out.copy()
    TILES[registers](fast, to, source, at, taps, use, mode)
    loops.plain_tile(plain, to, source, at, taps, use, mode)
    assert np.allclose(fast, plain, rtol=0, atol=1e-12)
    assert np.count_nonzero(plain != out) == 4 * CHUNK
    lines = [(start + k) % room if ring else start + k for k in range(width)]
    expected = sum(taps[0, k] * source[lines[k] * CHUNK] for k in range(width))
    assert plain[to[0]] == pytest.approx(expected + (out[to[0]] if mode == ADD else 0.0), abs=1e-12)


def add_one(values):
    for i in range(values.size):
        values[i] += 1.0
    return values


def test_without_a_place_for_the_cache(monkeypatch) -> None:
    """As on a read-only disk without a home folder."""
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache function"):
        njit(cache=True)(add_one)
    assert callable(kernel._kept(1))


def test_the_kernel_is_kept_for_these_sources_only() -> None:
    """Nothing else is kept: a part kept on its own would be loaded whatever changed below it."""
    [sources] = [cell.cell_contents for cell in kernel.assemble.py_func.__closure__]
    assert sources == crc32(Path(loops.__file__).read_bytes() + bytes([loops.PLAIN])) >= 0
    parts = [part for module in (kernel, loops) for part in vars(module).values() if hasattr(part, "py_func")]
    assert [part for part in parts if not isinstance(part._cache, caching.NullCache)] == [kernel.assemble]


def test_another_checksum_is_another_entry_of_the_cache(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    def kept(sources):
        @njit(cache=True)
        def same(x):
            return x + 1 if sources >= 0 else 0

        return same

    found = []
    for sources in (1, 2, 1):
        made = kept(sources)
        assert made(1) == 2
        found.append(sum(made.stats.cache_hits.values()))
    assert found == [0, 0, 1]

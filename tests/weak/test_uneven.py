"""Uneven frame times: the exactness of the discrete weights stays, their order too, and even times change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.evidence import merge
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak.assembly import PHASE_CUT, weak_evidence
from doublewell.weak.weights import axis_weights, uneven_weights


def jittered(half, spread, seed, rows=1):
    rng = np.random.default_rng(seed)
    return np.arange(2 * half + 5) + spread * rng.uniform(-1.0, 1.0, (rows, 2 * half + 5))


@pytest.mark.parametrize("derivative", ["discrete", "analytic"])
@pytest.mark.parametrize("half", [2, 3, 5, 8])
def test_even_times_give_the_weights_of_even_times(half, derivative) -> None:
    even = axis_weights(half, 0.1, derivative)
    value, first = uneven_weights(half, 0.1 * jittered(half, 0.0, 0), derivative)
    assert np.allclose(value[0], even.value, rtol=0, atol=1e-14)
    assert np.allclose(first[0], even.first, rtol=0, atol=1e-13 * np.abs(even.first).max())


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 9), st.floats(0.0, 0.45), st.integers(0, 999), st.floats(-100.0, 100.0), st.floats(1e-3, 1e3))
def test_derivatives_of_polynomials_are_exact_to_fourth_order(half, spread, seed, start, unit) -> None:
    window = start + unit * jittered(half, spread, seed)
    value, first = (taps[0] for taps in uneven_weights(half, window))
    t = (window[0] - window[0].mean()) / (half * unit)
    assert value.sum() == pytest.approx(1.0, abs=1e-13)
    for power in range(5):
        expected = power * (value @ t[3:-3] ** (power - 1)) / (half * unit) if power else 0.0
        assert first @ t[1:-1] ** power == pytest.approx(expected, abs=1e-10 / unit)


def test_times_that_scatter_bring_hardly_more_noise() -> None:
    for half in (3, 5, 8):
        windows, even = jittered(half, 0.3, 5, rows=300), axis_weights(half, 1.0)
        value, first = uneven_weights(half, windows)
        reach = (windows[:, 2 + 2 * half] - windows[:, 2]) / 2
        gain = np.linalg.norm(first, axis=1) * reach / half / np.linalg.norm(even.first)
        assert np.mean(gain) < 1.03
        assert np.mean(np.linalg.norm(value, axis=1)) < 1.03 * np.linalg.norm(even.value)


def test_dropped_frames_and_gaps_keep_the_exactness_and_little_noise() -> None:
    rng, half = np.random.default_rng(4), 5
    windows = np.sort([rng.choice(30, 2 * half + 5, replace=False) for _ in range(300)], axis=1).astype(float)
    value, first = uneven_weights(half, windows)
    even = axis_weights(half, 1.0)
    reach = (windows[:, 2 + 2 * half] - windows[:, 2]) / 2
    gain = np.linalg.norm(first, axis=1) * reach / half / np.linalg.norm(even.first)
    assert np.median(gain) < 1.3  # noise in the derivative, relative to that on even times
    assert gain.max() < 4.0
    t = windows - windows.mean(axis=1, keepdims=True)
    error = np.sum(first * t[:, 1:-1] ** 3, axis=1) - 3 * np.sum(value * t[:, 3:-3] ** 2, axis=1)
    assert np.abs(error).max() < 1e-9 * np.abs(t).max() ** 2


def test_the_order_of_the_derivative_is_four_on_jittered_times() -> None:
    """The support stays as long while frames come closer; both sides of D S[u] = S[u_t] are compared."""
    errors, halves = [], np.array([8, 16, 32, 64])
    for half in halves:
        t = jittered(half, 0.3, 7, rows=60) / half
        value, first = uneven_weights(half, t)
        rate = np.sum(first * np.sin(3.0 * t[:, 1:-1] + 0.7), axis=1)
        mean = np.sum(value * 3.0 * np.cos(3.0 * t[:, 3:-3] + 0.7), axis=1)
        errors.append(np.sqrt(np.mean((rate - mean) ** 2)))
    order = -np.polyfit(np.log(halves), np.log(errors), 1)[0]
    assert 3.8 < order < 4.8


def plain_columns(record: Record, half: int, length: float):
    """Time derivative and Laplacian of the smoothed field, frame by frame, for a record of one space axis."""
    space = axis_weights(length / record.dx[0], record.dx[0])
    u, reach = record.slab(), half + 2
    rows = []
    for c in range(reach, record.frames - reach):
        value, first = (taps[0] for taps in uneven_weights(half, record.times[None, c - reach : c + reach + 1]))
        near, wide = u[c - half + 1 : c + half], u[c - half - 1 : c + half + 2]
        mean = value @ near
        rate = np.convolve(first @ wide, space.value[::-1], "valid")[
            3:-3
        ]  # a centre keeps the margin of the longest taps
        bend = np.convolve(mean, space.second[::-1], "valid")[1:-1]
        inside = np.abs(mean[space.half : -space.half]) < PHASE_CUT
        rows += [*zip(rate[inside], bend[inside], strict=True)]
    return np.array(rows)


def uneven_record(make_rough, shape=(26, 60), seed=3) -> Record:
    rough = make_rough(shape)
    times = 0.1 * (np.arange(shape[0]) + 0.3 * np.random.default_rng(seed).uniform(-1, 1, shape[0]))
    return Record(rough.values, dx=rough.dx, times=times, q=1.0)


def test_the_kernel_uses_the_taps_of_each_centre_frame(make_rough) -> None:
    record = uneven_record(make_rough)
    block = weak_evidence(record, Bernstein(0), [(3, 0.1)]).blocks[0]
    rows = plain_columns(record, 3, 0.1)
    assert block.rows == len(rows)
    gram, expected = (block.triangle.T @ block.triangle)[1:, 1:], rows.T @ rows
    assert np.allclose(gram, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_halves_with_their_halos_make_the_whole(make_rough) -> None:
    record, family, half = uneven_record(make_rough, (41, 24, 26)), Bernstein(2), 5
    whole = weak_evidence(record, family, [(3, 0.1)])
    parts = [record.clip(0, 20 + half), record.clip(20 - half, 41)]
    merged = merge([weak_evidence(part, family, [(3, 0.1)]) for part in parts])
    assert merged.rows == whole.rows
    a, b = whole.blocks[0].triangle, merged.blocks[0].triangle
    assert np.allclose(a, b, rtol=0, atol=1e-12 * np.abs(a).max())


def test_times_that_are_even_up_to_round_off_give_the_same_numbers(make_rough) -> None:
    rough = make_rough((20, 24, 26))
    times = 0.1 * np.arange(20)
    even = Record(rough.values, dx=rough.dx, dt=0.1, q=1.0)
    nearly = Record(rough.values, dx=rough.dx, times=times + 1e-12 * np.sin(np.arange(20)), q=1.0)
    a, b = (weak_evidence(r, Bernstein(1), [(3, 0.1)]).blocks[0].triangle for r in (even, nearly))
    assert np.allclose(a, b, rtol=1e-9)

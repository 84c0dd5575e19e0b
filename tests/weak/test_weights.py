from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.weak.weights import Support, axis_weights, check_supports, time_weights, uneven_weights

widths = st.floats(2.0, 20.0)


@given(widths, st.floats(1e-3, 10.0))
def test_value_sums_to_one_and_constants_are_annihilated(width: float, spacing: float) -> None:
    weights = axis_weights(width, spacing)
    assert weights.value.sum() == pytest.approx(1.0, abs=1e-14)
    assert abs(weights.first.sum()) < 1e-14 * np.abs(weights.first).sum()
    assert abs(weights.second.sum()) < 1e-14 * np.abs(weights.second).sum()
    assert np.allclose(weights.value, weights.value[::-1])


@given(widths)
def test_summation_by_parts_is_exact(width: float) -> None:
    """Differencing the smoothed field equals smoothing with the differenced weights."""
    weights = axis_weights(width, 0.5)
    u = np.random.default_rng(1).standard_normal(120)
    smooth = np.correlate(u, weights.value, "valid")
    first = np.array([1, -8, 0, 8, -1]) / (12 * 0.5)
    second = np.array([-1, 16, -30, 16, -1]) / (12 * 0.5**2)
    for stencil, taps in ((first, weights.first), (second, weights.second)):
        assert np.allclose(
            np.correlate(smooth, stencil, "valid"), np.correlate(u, taps, "valid"), atol=1e-13 * np.abs(stencil).max()
        )


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4])
def test_differences_of_polynomials_are_exact_to_fourth_order(power: int) -> None:
    weights = axis_weights(6.0, 0.1)
    x = 0.1 * np.arange(-7, 8)
    smoothed = [weights.value @ x[2:-2] ** k for k in range(5)]  # moments of the weights
    first = power * smoothed[power - 1] if power else 0.0
    second = power * (power - 1) * smoothed[power - 2] if power > 1 else 0.0
    assert weights.first @ x**power == pytest.approx(first, abs=1e-12)
    assert weights.second @ x**power == pytest.approx(second, abs=1e-11)


def test_analytic_weights_are_samples_of_the_derivatives() -> None:
    weights = axis_weights(8.0, 0.25, "analytic")
    xi = np.arange(-7, 8) / 8.0
    test = np.polynomial.Polynomial([1, 0, -1]) ** 5
    mass = test(xi).sum()
    assert np.allclose(weights.first, -test.deriv(1)(xi) / mass / 2.0)
    assert np.allclose(weights.second, test.deriv(2)(xi) / mass / 4.0)


def test_analytic_weights_do_not_annihilate_constants() -> None:
    weights = axis_weights(6.0, 1.0, "analytic")
    assert abs(weights.second.sum()) > 1e-5 * np.abs(weights.second).sum()


def test_whole_widths_despite_round_off() -> None:
    assert axis_weights((1 / 16) / (1 / 96), 1 / 96).half == 8
    assert axis_weights(6.2, 1.0).half == 9


def test_supports_are_checked() -> None:
    fits = {"frames": 61, "mesh": (96, 96), "dx": (1 / 96, 1 / 96)}
    assert check_supports([(5, 1 / 16)], **fits) == (Support(5, 1 / 16),)
    cases = {
        "supports is empty": [],
        r"support 3: expected a pair": [3],
        r"support \(0, 0.1\): expected a pair": [(0, 0.1)],
        r"support \(5.5, 0.1\)": [(5.5, 0.1)],
        r"support \(5, -1\)": [(5, -1)],
        r"support \(5, nan\)": [(5, float("nan"))],
        "given twice": [(5, 0.1), (5, 0.1)],
        "below two cells": [(5, 0.01)],
        "too small for a spatial half-width of 0.5 .48 cells.: needs 101 cells, has 96": [(5, 0.5)],
    }
    for message, supports in cases.items():
        with pytest.raises(InputError, match=message):
            check_supports(supports, **fits)


def test_short_record_message_names_a_support_that_fits() -> None:
    with pytest.raises(InputError) as error:
        check_supports([(8, 0.06)], 15, (96,), (1 / 96,))
    assert str(error.value) == (
        "record is too short for a temporal half-width of 8 intervals: needs 21 frames, has 15; "
        "pass supports=[(5, 0.06)] or record longer"
    )
    check_supports([(5, 0.06)], 15, (96,), (1 / 96,))
    with pytest.raises(InputError, match=r"has 8; pass supports=\[\(1, 0.06\)\] or record longer"):
        check_supports([(8, 0.06)], 8, (96,), (1 / 96,))
    check_supports([(1, 0.06)], 3, (96,), (1 / 96,))
    with pytest.raises(InputError, match="needs 3 frames, has 2; use method='trajectory' or record longer"):
        check_supports([(1, 0.06)], 2, (96,), (1 / 96,))


@pytest.mark.parametrize("times", [[0.0, 1.0, 2.0], [0.0, 0.4, 2.0]])
def test_one_interval_is_the_parabola_through_three_frames(times) -> None:
    value, first = uneven_weights(1, np.array([times]))
    powers = np.array(times) ** np.arange(3)[:, None]
    assert powers @ value[0] == pytest.approx(powers[:, 1])
    assert powers @ first[0] == pytest.approx([0.0, 1.0, 2.0 * times[1]])
    even = time_weights(1, 0.5)
    assert (even.half, even.value.tolist(), even.first.tolist()) == (1, [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0])

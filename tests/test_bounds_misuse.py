"""Bounds name what they expected when they are misused."""

import numpy as np
import pytest

from doublewell.bounds import (
    coefficient_change,
    coefficient_radius,
    condition_bound,
    envelope,
    observed_bound,
    potential_bound,
    scale_bound,
    scale_ratio,
    tension_integral_bound,
)
from doublewell.errors import InputError
from doublewell.law import Law, named_law


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tension_integral_bound(-1.0), "distance is -1: expected a number of at least 0"),
        (lambda: scale_bound(1.0, np.nan), "distance is nan: expected a number of at least 0"),
        (lambda: scale_bound(0.0, 0.1), "tension_integral is 0: expected a positive number"),
        (
            lambda: scale_bound(1.0, 0.1, tension_change=-1.0),
            "tension_change is -1: expected a relative change above -1",
        ),
        (lambda: envelope(-0.1), "change is -0.1: expected a number of at least 0"),
        (
            lambda: potential_bound(epsilon=0.0, ratio=1.0, distance=0.0, height=1.0),
            "epsilon is 0: expected a positive number",
        ),
        (
            lambda: potential_bound(epsilon=1.0, ratio=-1.0, distance=0.0, height=1.0),
            "ratio is -1: expected a positive number",
        ),
        (
            lambda: coefficient_radius(smallest_singular_value=1.0, reference_norm=1.0, data_error=-2.0),
            "data_error is -2: expected a number of at least 0",
        ),
        (
            lambda: scale_ratio(named_law("quartic"), Law.bernstein([0.0])),
            "tension_integral is 0: expected a positive number",
        ),
        (
            lambda: scale_bound(1.0, 0.1, tension_change=float("nan")),
            "tension_change is nan: expected a relative change, a finite number",
        ),
        (lambda: tension_integral_bound("a"), "distance is 'a': expected a number of at least 0"),
        (lambda: observed_bound(named_law("sixth"), -1.0), "radius is -1: expected a number of at least 0"),
        (
            lambda: observed_bound(named_law("rational"), 0.1),
            "the reference is a chebyshev law: expected Bernstein coefficients",
        ),
        (
            lambda: coefficient_change(named_law("quartic"), named_law("sixth")),
            "the laws have different families, bernstein of degree 0 and bernstein of degree 1: expected one; "
            "elevate the lower degree first",
        ),
        (
            lambda: condition_bound(np.eye(3), np.eye(2)),
            "the design has shape (3, 3) and the change of basis (2, 2): expected (rows, n) and (n, n)",
        ),
    ],
)
def test_misuse_names_what_was_expected(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == message

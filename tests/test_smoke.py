"""Recovery in seconds: one small movie, both methods, up to the potential. The thorough tests are slow ones."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.identify import identify
from doublewell.law import named_law

TRUTH = named_law("quartic")
TENSION = TRUTH.surface_tension(epsilon=1.0)
U = np.linspace(-1.0, 1.0, 201)


def error(result) -> float:
    force = TRUTH.effective(0.08).force(U)
    return float(np.linalg.norm(result.force(U) - force) / np.linalg.norm(force))


def test_the_trajectory_fit_recovers_the_law_with_honest_bands(small):
    result = identify(small, TENSION)
    assert error(result) < 0.03
    low, high = result.interval("epsilon")
    assert low < 0.08 < high
    assert high - low < 0.01
    assert result.adequacy.verdict == "adequate"


def test_the_weak_form_fit_recovers_the_law(small):
    result = identify(small, TENSION, method="weak", law=0)
    assert error(result) < 0.1
    assert result.epsilon == pytest.approx(0.08, rel=0.05)

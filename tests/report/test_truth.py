from dataclasses import replace

import numpy as np
import pytest

from doublewell.calibrate import calibrate
from doublewell.law import named_law
from doublewell.report import Truth


def test_force_error_of_a_scaled_law_is_the_scale(result, truth):
    scaled = replace(result, law=truth.force.scaled(1.07))
    assert truth.force_error(scaled) == pytest.approx(0.07, rel=1e-12)
    assert truth.force_error(replace(result, law=truth.force)) == 0.0


def test_force_error_is_the_paper_s_ratio_of_norms(result, truth):
    u = np.linspace(-1, 1, 2001)
    apart = np.sqrt(np.sum((result.force(u) - truth.force.force(u)) ** 2) / np.sum(truth.force.force(u) ** 2))
    assert truth.force_error(result) == pytest.approx(apart, rel=1e-12)
    assert 0.0 < apart < 0.1


def test_epsilon_error_has_a_sign(result):
    law = named_law("quartic")
    exact = replace(result, law=law.effective(0.05), scale=calibrate(law.effective(0.05), law.tension_integral))
    assert Truth(law, 0.05).epsilon_error(exact) == pytest.approx(0.0, abs=1e-13)
    assert Truth(law, 0.04).epsilon_error(exact) == pytest.approx(0.25)
    assert Truth(law, 0.04).epsilon_error(replace(exact, scale=None)) is None

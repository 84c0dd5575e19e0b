"""method="weak-corrected": closer than the plain weak-form fit where bias is its error, and clear about its limits."""

from __future__ import annotations

import numpy as np
import pytest
from found import warned

from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.options import Weak
from doublewell.record import Record
from doublewell.simulate import add_noise

PHASES = np.linspace(-1.0, 1.0, 401)


def error(result) -> float:
    truth = named_law("sixth").effective(0.05).force(PHASES)
    return float(np.linalg.norm(result.force(PHASES) - truth) / np.linalg.norm(truth))


def mean_errors(movie: Record, noise: float, degree: int) -> tuple[float, float]:
    found = []
    for seed in range(60, 63):
        record = add_noise(movie, noise, seed=seed)
        found.append([error(identify(record, law=degree, method=name)) for name in ("weak", "weak-corrected")])
    plain, corrected = np.mean(found, axis=0)
    return float(plain), float(corrected)


@pytest.mark.parametrize(("noise", "most"), [(0.02, 0.01), (0.05, 0.02), (0.1, 0.06)])
def test_the_bias_goes(movie, noise, most) -> None:
    plain, corrected = mean_errors(movie, noise, degree=1)
    assert corrected < most
    assert corrected < 0.6 * plain


def test_a_clean_movie_gives_the_same_law(movie) -> None:
    plain, corrected = (identify(movie, method=name) for name in ("weak", "weak-corrected"))
    assert error(corrected) < 1e-3
    np.testing.assert_allclose(
        corrected.force(PHASES), plain.force(PHASES), atol=2e-3 * np.abs(plain.force(PHASES)).max()
    )


def test_high_degrees_stay_near_the_law(movie) -> None:
    for degree in (5, 8):
        plain, corrected = mean_errors(movie, 0.1, degree)
        assert corrected < 0.2
        assert corrected < plain


def test_it_is_said_and_has_no_bands(noisy) -> None:
    result = identify(noisy, law=8, method="weak-corrected")
    assert result.problem.method.name == "weak-corrected"
    assert "by the weak-form fit corrected for noise" in str(result)
    assert "correction-limited" in warned(result)
    assert "noise-bias" not in warned(result)
    with pytest.raises(InputError, match="no noise model"):
        result.band("force", PHASES)


def test_the_plain_reading_names_it(movie) -> None:
    result = identify(add_noise(movie, 0.05, seed=1), method="weak")
    assert "method='weak-corrected'" in warned(result)["noise-bias"].advice


def test_values_far_beyond_the_phases_are_named(noisy) -> None:
    u = np.array(noisy.slab())
    u[:, ::9, ::9] = 1.6
    assert "correction-beyond-phases" in warned(identify(noisy.replace(u), method="weak-corrected"))


def test_options_that_do_not_fit_are_refused(noisy) -> None:
    with pytest.raises(InputError, match="ridge='validated' belongs to the plain weak-form fit"):
        identify(noisy, method=Weak(corrected=True, ridge="validated"))
    with pytest.raises(InputError, match="degree='auto' needs the trajectory fit"):
        identify(noisy, law="auto", method="weak-corrected")


def test_ridge_and_analytic_weights_work(noisy) -> None:
    plain = identify(noisy, law=5, method="weak-corrected")
    calm = identify(noisy, law=5, method=Weak(corrected=True, ridge=1.0))
    assert np.linalg.norm(calm.coefficients) < np.linalg.norm(plain.coefficients)
    assert error(identify(noisy, method=Weak(corrected=True, derivative="analytic"))) < 0.05

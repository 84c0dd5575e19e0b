"""A window of a larger Cahn-Hilliard movie: its law, q and bands, though nothing is known about the outside."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell import identify
from doublewell.dynamics import CAHN_HILLIARD
from doublewell.errors import InputError
from doublewell.evidence import system
from doublewell.law import named_law
from doublewell.likelihood import Batch
from doublewell.observation import View
from doublewell.options import Observation
from doublewell.record import Record
from doublewell.simulate import simulate

CELLS, EPSILON, LAW, NOISE = 64, 2.4, named_law("sixth"), 0.01
TRUTH = LAW.effective(EPSILON)
PHASES = np.linspace(-1.0, 1.0, 201)
RARE = {1: 15.1, 2: 18.4, 3: 21.1}  # chi-square that is larger once in ten thousand


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    """A drop with five arms on a periodic mesh; the first interval, in which the profile relaxes, is left out."""
    x, y = np.meshgrid(*[np.arange(CELLS) - CELLS / 2] * 2, indexing="ij")
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    start = np.tanh((17.0 * (1.0 + 0.3 * np.cos(5 * angle)) - r) / (np.sqrt(2.0) * EPSILON))
    options = {"dx": 1.0, "dt": 6.0, "frames": 18, "epsilon": EPSILON, "q": 1.0, "dynamics": "cahn-hilliard"}
    return simulate(LAW, start, substeps=80, **options).slab()[3:]


def window(fields: np.ndarray, seed: int = 1, **options) -> Record:
    """A part of 36 x 34 cells, interfaces across its border."""
    part = fields[:, 20:56, 12:46]
    values = part + NOISE * np.random.default_rng(seed).standard_normal(part.shape)
    return Record(values, **({"dx": 1.0, "dt": 6.0, "q": 1.0, "boundary": "open"} | options))


def centred(force) -> np.ndarray:
    return np.asarray(force(PHASES) - np.mean(force(PHASES)))


def fitted(record: Record, view: View | None = None):
    batch = Batch([record], CAHN_HILLIARD, View() if view is None else view)
    return batch.fit(np.full((1, 2), 1.2 * TRUTH.coefficients.mean()))[0]


def is_true(fit, truth) -> bool:
    matrix, target = system(fit.evidence, 1.0)
    best = np.linalg.lstsq(matrix, target, rcond=None)[0]
    return bool(np.sum((matrix @ (best - truth)) ** 2) < RARE[len(truth)])


@pytest.fixture(scope="module")
def fit(whole):
    return fitted(window(whole))


def test_a_noisy_window_gives_the_law(fit) -> None:
    assert fit.status.converged
    assert fit.noise == pytest.approx(NOISE, rel=0.03)
    assert is_true(fit, TRUTH.coefficients)
    law = type(TRUTH)(fit.family, fit.coefficients)
    assert np.linalg.norm(centred(law.force) - centred(TRUTH.force)) < 0.02 * np.linalg.norm(centred(TRUTH.force))


def test_a_window_is_not_a_periodic_domain(whole, fit) -> None:
    other = fitted(window(whole, boundary="periodic"))
    assert other.noise > 2.0 * fit.noise


def test_a_blurred_window(whole) -> None:
    """The picture of the field is stepped; ignored, the blur makes another law."""
    k = 2 * np.pi * np.fft.fftfreq(CELLS)
    passed = np.exp(-0.5 * (k[:, None] ** 2 + k**2))
    blurred = window(np.fft.ifft2(passed * np.fft.fft2(whole)).real)
    found = fitted(blurred, View(Observation(blur=1.0, pixel=False)))
    assert is_true(found, TRUTH.coefficients)
    assert not is_true(fitted(blurred), TRUTH.coefficients)


def test_a_window_with_missing_values(whole) -> None:
    record = window(whole)
    mask = np.ones(record.shape, bool)
    mask[5:, 12:20, 14:20] = False
    mask[3:6, 2:5, 10:14] = False  # of the border
    found = fitted(record.replace(np.where(mask, record.slab(), 0.0), mask=mask))
    assert is_true(found, TRUTH.coefficients)
    assert found.noise == pytest.approx(NOISE, rel=0.03)


def test_the_whole_way(whole) -> None:
    """q is not known, no boundary is declared: the force is inside its band, and the model passes its tests."""
    result = identify(window(whole, seed=2, q=None, boundary=None), dynamics="cahn-hilliard", law=2)
    assert result.resolved.boundary == "open"
    assert result.adequacy.verdict == "adequate"
    low, high = result.interval("q", level=0.9999)
    assert low < 1.0 < high
    assert high - low < 0.8
    lower, upper = result.band("force", PHASES)
    exact = TRUTH.force(PHASES)
    assert np.mean((lower <= exact) & (exact <= upper)) > 0.9
    error = centred(result.force) - centred(TRUTH.force)
    assert np.linalg.norm(error) < 0.03 * np.linalg.norm(centred(TRUTH.force))


def test_a_window_that_is_mostly_border_is_refused(whole) -> None:
    small = Record(whole[:, 20:39, 12:46], dx=1.0, dt=6.0, q=1.0, boundary="open")
    with pytest.raises(InputError, match="the window is 19 x 34: expected at least 20 cells along each axis"):
        identify(small, dynamics="cahn-hilliard")

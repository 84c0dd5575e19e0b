"""What a camera does: frames that take time, pixels too coarse for an interface, noise that grows with the light.

Each record is read with what it needs and without: the one reading holds the truth, the other is off or says so. Data
from CNAB2, on a finer mesh or a finer clock where the camera averages or skips.
"""

from __future__ import annotations

import numpy as np
import pytest
from found import warned
from readings import ONE, RARE, Reading, read_law

from doublewell.identify import identify
from doublewell.law import Law, named_law
from doublewell.likelihood import measure_resolution
from doublewell.observation import PLAIN, View
from doublewell.observation.view import noise_view
from doublewell.options import Observation
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, DX = 24, 15, 1 / 24
SIXTH = named_law("sixth")


def read(record: Record, epsilon: float, view: View = PLAIN) -> Reading:
    truth = SIXTH.effective(epsilon)
    return read_law(record, truth, Law(ONE, 0.9 * truth.coefficients), view=view)


def seen(values: np.ndarray, dt: float) -> Record:
    return Record(values, dx=DX, dt=dt, q=1.0, boundary="periodic")


def test_an_exposure_as_long_as_the_interval() -> None:
    """The mean over a drop that shrinks is not the drop at the middle of the exposure."""
    epsilon, dt, parts = 0.1, 4e-3, 16
    start = initial_field("circle", (CELLS, CELLS), DX, epsilon=epsilon)
    fine = simulate(SIXTH, start, dx=DX, dt=dt / parts, frames=FRAMES * parts + 1, epsilon=epsilon).slab()
    middles = 0.5 * (fine[1:] + fine[:-1])
    record = add_noise(seen(middles.reshape(FRAMES, parts, CELLS, CELLS).mean(axis=1), dt), 0.003, seed=21)
    known, ignored = read(record, epsilon, View(Observation(exposure=dt))), read(record, epsilon)
    assert known.holds
    assert known.error < 0.004
    assert ignored.chi2 > 5 * RARE[2]
    assert ignored.error > 3 * known.error


def test_pixels_too_coarse_for_the_interface() -> None:
    """One pixel to an interface scale: the model needs a finer mesh than the record has, and its error is measured."""
    epsilon, dt = 0.04, 2e-4
    start = initial_field("nonconvex", (3 * CELLS, 3 * CELLS), DX / 3, epsilon=epsilon)
    fine = simulate(SIXTH, start, dx=DX / 3, dt=dt, frames=FRAMES, epsilon=epsilon, substeps=4).slab()
    record = add_noise(seen(fine[:, 1::3, 1::3].copy(), dt), 0.003, seed=22)
    finer, coarse = read(record, epsilon, View(Observation(refine=2))), read(record, epsilon)
    assert finer.holds
    assert finer.error < 0.005
    assert coarse.chi2 > 2 * RARE[2]
    assert coarse.error > 2 * finer.error
    (measured,) = measure_resolution([coarse.found])
    assert measured.mesh_size > 1.0  # standard errors, above which a result warns


@pytest.fixture(scope="module")
def bright() -> tuple[Record, np.ndarray]:
    """A movie that is bright for the most part, and the variance of its noise over the mean."""
    start = -initial_field("nonconvex", (CELLS, CELLS), DX, epsilon=0.1)
    clean = simulate(SIXTH, start, dx=DX, dt=5e-4, frames=FRAMES, epsilon=0.1)
    variance = 1.0 + 0.95 * np.clip(clean.slab(), -1.0, 1.0)
    draw = np.random.default_rng(6).standard_normal(clean.shape)
    return clean.replace(clean.slab() + 0.01 * np.sqrt(variance) * draw), variance / variance.mean()


def test_shot_noise_is_weighed_by_its_variance(bright) -> None:
    """Weights from a first fit are the true ones to a tenth.

    What they win is bounded by the root of mean(v) mean(1/v) over the values that tell of the law, here 1.2.
    """
    record, variance = bright
    white = read(record, 0.1)
    view = noise_view(record, white.found.residual, PLAIN, "shot")
    assert np.quantile(np.abs(view.whitening.root**2 * variance - 1.0), 0.95) < 0.12
    shot = read(record, 0.1, view)
    assert shot.holds
    assert shot.error < 0.015
    assert 1.1 < white.width / shot.width < 1.3


def test_shot_noise_taken_for_white_is_said(bright) -> None:
    found = identify(bright[0], law=1)
    assert found.adequacy.verdict == "check"
    assert "noise-tails" in warned(found)

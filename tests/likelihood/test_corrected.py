"""Fits with shorter steps that keep the linearisation of longer ones: their answer is that of shorter steps alone."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.evidence import system
from doublewell.inference.joint import PartFit, shorter_by
from doublewell.law import Bernstein, named_law
from doublewell.likelihood import LONG, Batch, Resolution, Trajectory, measure_resolution
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON, CELLS = 0.1, 24
STARTS = np.array([[60.0, 90.0, 130.0]])  # about 20 % off (75, 112.5, 150)


@pytest.fixture(scope="module")
def record() -> Record:
    start = initial_field("circle", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    law = named_law("sixth")
    movie = simulate(law, start, dx=1 / CELLS, dt=2e-3, frames=13, epsilon=EPSILON, substeps=80)
    return add_noise(movie, 1e-6, seed=3)


@pytest.fixture(scope="module")
def fits(record) -> tuple[Trajectory, Trajectory, Trajectory]:
    """The record with one step from frame to frame, then with sixteen: from that linearisation, and by themselves."""
    batch, options = Batch([record]), {"family": Bernstein(3), "fitted": Bernstein(2)}
    (coarse,) = batch.fit(STARTS, substeps=1, **options)
    (kept,) = batch.fit(STARTS, substeps=16, before=[coarse], **options)
    (own,) = Batch([record]).fit(STARTS, substeps=16, **options)
    return coarse, kept, own


def test_the_answer_is_that_of_a_fit_with_shorter_steps(fits) -> None:
    coarse, kept, own = fits
    assert (coarse.inner, kept.inner, kept.substeps, own.inner) == (1, 1, 16, 16)
    assert kept.status.converged
    matrix, target = system(own.evidence)
    best, first, then = (
        np.linalg.lstsq(*pair, rcond=None)[0]
        for pair in ((matrix, target), system(coarse.evidence), system(kept.evidence))
    )
    assert np.linalg.norm(matrix @ (first - best)) > 20.0  # standard errors
    assert np.linalg.norm(matrix @ (then - best)) < 0.05
    np.testing.assert_allclose(system(kept.evidence)[0], matrix, rtol=0.02, atol=0.02 * np.abs(matrix).max())
    assert kept.noise == pytest.approx(own.noise, rel=1e-3)


def test_its_prediction_and_what_is_left_are_those_of_shorter_steps(fits) -> None:
    _, kept, own = fits
    predicted = kept.batch.predict([kept])[0]
    np.testing.assert_allclose(kept.record.slab() - predicted, kept.residual, atol=1e-12)
    assert float(np.sqrt(np.mean((predicted - own.batch.predict([own])[0]) ** 2))) < 1e-7
    (measured,) = measure_resolution([kept])
    assert measured.time_size < LONG


def test_another_linearisation_keeps_the_shorter_steps(fits) -> None:
    _, kept, own = fits
    law = np.linalg.lstsq(*system(own.evidence), rcond=None)[0]
    (again,) = kept.batch.relinearise([kept], law[None])
    assert (again.inner, again.substeps) == (1, 16)
    assert again.size(np.linalg.lstsq(*system(again.evidence), rcond=None)[0] - law) < 0.1


def test_order_of_the_steps_tells_how_many_are_wanted(fits) -> None:
    (measured,) = measure_resolution([fits[0]])
    assert measured.time_size > LONG
    assert 3.0 < measured.order <= 4.0
    about = {"evidence": None, "theta": None, "noise": 1.0, "cost": 1.0, "power": 1.0, "status": None, "solve": 0.0}
    about |= {"substeps": 1, "sums": (), "counts": ()}
    nothing = np.zeros(2)

    def wanted(size: float, order: float) -> int:
        return shorter_by(PartFit(**about, resolution=Resolution(nothing, nothing, size * LONG, 0.0, order)))

    assert [wanted(2.0, 4.0), wanted(250.0, 4.0), wanted(250.0, 2.0), wanted(np.inf, 4.0)] == [2, 4, 16, 2]

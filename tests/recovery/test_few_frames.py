"""Trajectory fits of two frames and more: the law within its errors, whatever the times, the border, the dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell import identify
from doublewell.facts import facts
from doublewell.law import Bernstein, named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

LAW, EPSILON, DT = named_law("sixth"), 0.06, 2e-4
RARE = 21.1  # chi-square of three coefficients that one fit in ten thousand exceeds


def movie(mesh, epsilon=EPSILON, frames=61):
    start = initial_field("circle" if len(mesh) != 2 else "nonconvex", mesh, 1 / mesh[0], epsilon=epsilon)
    if len(mesh) == 1:  # an interval does not move by itself
        start = start + 0.2 * np.sin(2 * np.pi * np.arange(mesh[0]) / mesh[0])
    return simulate(LAW, start, dx=1 / mesh[0], dt=DT * (epsilon / EPSILON) ** 2, frames=frames, epsilon=epsilon)


def far(result, epsilon) -> float:
    """Return how far the law of degree 2 is from the truth, as a chi-square of its own errors."""
    fit = result.posterior.path[2]
    away = fit.free - Bernstein(1).elevation(Bernstein(2)) @ LAW.effective(epsilon).coefficients
    return float(away @ np.linalg.solve(fit.covariance, away))


@pytest.mark.parametrize(
    ("mesh", "epsilon", "frames", "changes"),
    [
        ((48, 48), 0.06, [0, 30], {}),
        ((48, 48), 0.06, [0, 30], {"q": None}),
        ((48, 48), 0.06, [5, 10, 40], {"boundary": None}),
        ((96,), 0.05, [0, 20, 60], {}),
        ((20, 20, 20), 0.15, [0, 20], {}),
    ],
    ids=["two", "unknown q", "uneven, a window", "one dimension", "three dimensions"],
)
def test_the_law_is_within_its_errors(mesh, epsilon, frames, changes) -> None:
    clean = movie(mesh, epsilon)
    known = {"dx": clean.dx, "q": 1.0, "boundary": "periodic", "origin": "simulation"} | changes
    record = add_noise(Record(clean.slab()[frames], times=clean.times[frames], **known), 0.02, seed=11)
    result = identify(record)
    quality = result.diagnostics.likelihood
    assert quality.status.converged
    assert quality.noise == pytest.approx(0.02, rel=0.15)
    assert far(result, epsilon) < RARE
    assert str(quality.adequacy.verdict) != "not adequate"
    assert facts(result).supports.startswith("none; started from a quartic law")
    if record.q is None:
        low, high = result.interval("q", level=0.9999)
        assert low < 1.0 < high


def test_without_noise_two_frames_give_the_law() -> None:
    clean = movie((48, 48))
    known = {"dx": clean.dx, "q": 1.0, "boundary": "periodic", "origin": "simulation"}
    result = identify(Record(clean.slab()[[10, 40]], times=clean.times[[10, 40]], **known), check=False)
    u = np.linspace(-1, 1, 201)
    exact = LAW.effective(EPSILON).force(u)
    assert np.linalg.norm(result.force(u) - exact) < 1e-3 * np.linalg.norm(exact)

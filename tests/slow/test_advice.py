"""Each piece of advice is tried: applied, the force is nearer to the truth, or the verdict is better."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import doublewell as dw
from doublewell.dynamics import Cnab2, Grid
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, rollout, simulate

EPSILON, NOISE, DT, CELLS = 0.1, 0.02, 5e-4, 32
LAW = named_law("sixth").effective(EPSILON)
RANK = {"adequate": 0, "check": 1, "not adequate": 2}
EXACT = dw.Observation(contrast="exact")


def movie():
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    return simulate(named_law("sixth"), start, dx=1 / CELLS, dt=DT, frames=21, epsilon=EPSILON)


@pytest.fixture(scope="module")
def clean():
    return movie()


def identified(record, **options):
    return dw.identify(record, law=options.pop("law", dw.DoubleWell(degree=2)), **options)


def error(result, truth=LAW.force):
    u = np.linspace(-1.0, 1.0, 201)
    return np.linalg.norm(result.force(u) - truth(u)) / np.linalg.norm(truth(u))


def better(before, after, code, truth=LAW.force):
    """The fault is named first with its advice; after it the verdict is no worse, and the force nearer to the truth."""
    first = next(item for item in dw.findings(before) if item.topic == "model")
    assert first.code == code, str(first)
    assert first.severity != "ok"
    assert RANK[after.adequacy.verdict] <= RANK[before.adequacy.verdict]
    assert error(after, truth) < error(before, truth)
    return first.advice


def test_a_wrong_q_is_left_out(clean):
    noisy = add_noise(clean, NOISE, seed=11)
    before = identified(noisy.replace(q=1 / 1.1), observation=EXACT)
    advice = better(before, identified(noisy.replace(q=None), observation=EXACT), "q-off")
    assert "leave q out" in advice


def test_blur_is_estimated(clean):
    blurred = clean.replace(np.stack([gaussian_filter(frame, 1.5, mode="wrap") for frame in clean.slab()]))
    noisy = add_noise(blurred, NOISE, seed=12)
    after = identified(noisy, observation=dw.Observation(contrast="exact", blur="estimated"))
    assert "blur='estimated'" in better(identified(noisy, observation=EXACT), after, "blurred")


def test_bad_pixels_are_left_out(clean):
    values = add_noise(clean, NOISE, seed=13).slab().copy()
    values[:, [8, 20, 15], [9, 3, 16]] = [1.5, -1.5, 0.0]
    noisy = clean.replace(values)
    after = identified(noisy, observation=dw.Observation(contrast="exact", noise="robust"))
    assert "noise='robust'" in better(identified(noisy, observation=EXACT), after, "bad-pixels")


@pytest.mark.parametrize(("gain", "offset", "code"), [(1.03, 0.0, "contrast-off"), (1.0, 0.03, "offset")])
def test_contrast_is_estimated(clean, gain, offset, code):
    noisy = add_noise(clean, NOISE, seed=14)
    noisy = noisy.replace(gain * noisy.slab() + offset)
    after = identified(noisy, observation=dw.Observation(contrast="estimated"))
    assert "contrast='estimated'" in better(identified(noisy, observation=EXACT), after, code)


def test_a_contrast_that_is_too_small_bends_the_law(clean):
    """No test of the residual sees it, because the law absorbs it: its force vanishes at the plateaus too."""
    noisy = add_noise(clean, NOISE, seed=24)
    noisy = noisy.replace(0.97 * noisy.slab())
    before = identified(noisy, law=dw.DoubleWell(), observation=EXACT)
    after = identified(noisy, law=dw.DoubleWell(), observation=dw.Observation(contrast="estimated"))
    (bent,) = [item for item in dw.findings(before) if item.code == "extra-structure"]
    assert "contrast='estimated'" in bent.advice
    assert error(after) < 0.3 * error(before)
    assert not [item for item in dw.findings(after) if item.code == "extra-structure"]


def test_a_contrast_that_fades_is_estimated(clean):
    noisy = add_noise(clean, NOISE, seed=15)
    noisy = noisy.replace(noisy.slab() * np.linspace(1.0, 0.95, 21)[:, None, None])
    after = identified(noisy, observation=dw.Observation(contrast="drifting"))
    assert "contrast='drifting'" in better(identified(noisy, observation=EXACT), after, "contrast-drifts")


@pytest.mark.parametrize("exponent", [1.2, 0.85])
def test_a_gamma_curve_is_estimated(clean, exponent):
    grey = (0.1 + 0.9 * (0.5 + 0.5 * clean.slab())) ** exponent
    low, high = 0.1**exponent, 1.0
    noisy = add_noise(clean.replace(2.0 * (grey - low) / (high - low) - 1.0), NOISE, seed=18)
    after = identified(noisy, observation=dw.Observation(contrast="exact", response="estimated"))
    assert "response='estimated'" in better(identified(noisy, observation=EXACT), after, "response-nonlinear")


def test_a_tilt_asks_for_wells_of_unequal_depth(clean):
    class Tilted:
        def force(self, u):
            return LAW.force(u) + 3.0 * (1.0 - u**2)  # the wells stay at -1 and +1

    stepper = Cnab2(Grid((CELLS, CELLS), 1 / CELLS, "periodic"), DT, 1.0, 24)
    noisy = add_noise(clean.replace(rollout(stepper, Tilted(), clean.slab()[0], frames=21)), NOISE, seed=16)
    after = identified(noisy, law=dw.DoubleWell(degree=2, wells="unequal"), observation=EXACT)
    advice = better(identified(noisy, observation=EXACT), after, "force-tilted", Tilted().force)
    assert "wells='unequal'" in advice


def test_a_wrong_boundary_is_left_out():
    start = np.roll(initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON), (12, 11), axis=(0, 1))
    made = simulate(named_law("sixth"), start, dx=1 / CELLS, dt=DT, frames=21, epsilon=EPSILON)
    noisy = add_noise(made, NOISE, seed=17)
    given = {"dx": noisy.dx, "dt": DT, "q": 1.0}
    before = identified(Record(noisy.slab(), boundary="neumann", **given), observation=EXACT)
    advice = better(before, identified(Record(noisy.slab(), **given), observation=EXACT), "boundary-off")
    assert "or none" in advice

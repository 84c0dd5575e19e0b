"""Pictures that drift as a whole, and the optics of a camera."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.options import Observation
from doublewell.problem import ask
from doublewell.record import Record
from doublewell.record.phase import shift_frame
from doublewell.simulate import initial_field, simulate

LAW, CELLS, EPSILON = named_law("sixth"), 32, 0.08
U = np.linspace(-1.0, 1.0, 201)
FORCE = LAW.force(U) / EPSILON**2


def drifting(window: bool) -> tuple[Record, np.ndarray]:
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    clean = simulate(LAW, start, dx=1 / CELLS, dt=4e-4, frames=25, epsilon=EPSILON)
    t = np.linspace(0.0, 1.0, 25)
    way = np.stack([0.5 * t, -0.4 * t + 0.4 * t * (1.0 - t)], axis=1)
    moved = np.stack([shift_frame(u, s, periodic=True) for u, s in zip(clean.slab(), way, strict=True)])
    moved = moved + 0.01 * np.random.default_rng(4).standard_normal(moved.shape)
    if window:
        return clean.replace(moved[:, 4:28, 4:28], boundary="open"), way
    return clean.replace(moved), way


@pytest.mark.parametrize("window", [False, True])
def test_drift_is_found_and_does_no_harm(window: bool) -> None:
    record, way = drifting(window)
    still = identify(record, check=False, law=1)
    result = identify(record, check=False, law=1, observation="drift=estimated")
    errors = [np.linalg.norm(r.force(U) - FORCE) / np.linalg.norm(FORCE) for r in (still, result)]
    assert errors[1] < 0.03
    assert errors[1] < 0.5 * errors[0]
    for axis, number in (("y", 0), ("x", 1)):
        low, high = result.interval(f"drift {axis}", level=0.9999)
        assert low < way[-1, number] < high
    low, high = result.interval("bend x", level=0.9999)
    assert low < 0.1 < high


def test_a_drift_that_is_estimated_is_no_fault_of_the_model() -> None:
    result = identify(drifting(window=False)[0], law=1, observation="drift=estimated")
    assert result.adequacy is not None
    assert result.adequacy.verdict == "adequate"
    assert not {"advection", "boundary"} & {test.name for test in result.adequacy.tests}


def test_camera_has_pixels_and_some_blur_unless_they_are_declared() -> None:
    record, _ = drifting(window=True)
    camera = record.replace(origin="camera")
    view = ask([camera]).view(camera)
    assert view.optics.pixel is True
    assert view.free == ("blur", "gain", "offset")
    declared = ask([camera], observation=Observation(blur=0.0, pixel=False, contrast="exact")).view(camera)
    assert declared.free == ()
    assert not declared.imaged
    assert not ask([record]).view(record).imaged


def test_a_drift_between_walls_is_refused() -> None:
    record, _ = drifting(window=False)
    with pytest.raises(InputError, match="no fixed wall"):
        identify(record.replace(boundary="neumann"), check=False, observation="drift=estimated")


def test_weak_form_fit_refuses_a_drift() -> None:
    record, _ = drifting(window=False)
    with pytest.raises(InputError, match="drift"):
        identify(record, method="weak", observation="drift=estimated")

"""Swapped axes and borders that are not periodic are refused at once; a good record never is."""

import numpy as np
import pytest

from doublewell import add_noise, identify, identify_many, initial_field, named_law, simulate
from doublewell.errors import InputError
from doublewell.record import Record
from doublewell.record_findings import layout_findings

NOISES = (0.0, 0.03, 0.14)
SHAPES = ("circle", "nonconvex", "inclusion", "wobbled", "dumbbell", "spinodal")


def movie(shape, boundary, dynamics="allen-cahn", cells=32, epsilon=0.08):
    seed = {"seed": 3} if shape == "spinodal" else {}
    start = initial_field(shape, (cells, cells), 1 / cells, epsilon=epsilon, **seed)
    dt, solver = (2e-6, "etdrk4") if dynamics == "cahn-hilliard" else (4e-4, "cnab2")
    options = {"epsilon": epsilon, "boundary": boundary, "dynamics": dynamics, "solver": solver}
    return simulate(named_law("quartic"), start, dx=1 / cells, dt=dt, frames=25, **options)


def alarms(record):
    return [item.code for item in layout_findings(record) if item.severity != "ok"]


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_alarm_on_good_records(shape, boundary):
    for dynamics in ("allen-cahn", "cahn-hilliard"):
        clean = movie(shape, boundary, dynamics)
        for noise in NOISES:
            record = add_noise(clean, noise, seed=1) if noise else clean
            assert alarms(record) == []
            assert alarms(record.replace(record.slab()[:, 4:20, 7:], boundary=None)) == []


@pytest.mark.parametrize("noise", NOISES)
def test_no_refusal_of_fronts_that_move_a_pixel_per_frame(noise):
    x = (np.arange(48) + 0.5) / 48
    rng = np.random.default_rng(2)
    for bend in (0.0, 0.1):
        centre = 0.4 - bend * np.cos(2 * np.pi * x)[:, None]
        u = np.stack([np.tanh((x - centre - t / 48) / 0.05) for t in range(15)])
        record = Record(u + noise * rng.standard_normal(u.shape), dx=1 / 48, dt=1e-4, q=1.0, boundary="neumann")
        assert not [item for item in layout_findings(record) if item.severity == "fail"]


def test_a_kink_in_a_periodic_border_that_diffusion_removes_is_good():
    x = np.arange(128) / 64 - 1.0
    start = x**2 * np.cos(np.pi * x)
    law = named_law("quartic")
    assert alarms(simulate(law, start, dx=1 / 64, dt=5e-4, frames=61, epsilon=0.1)) == []


@pytest.fixture(scope="module")
def good():
    return movie("nonconvex", "periodic")


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_time_that_is_not_first_is_refused(good, noise):
    u = add_noise(good, noise, seed=1).slab() if noise else good.slab()
    for axis, name in ((1, "y"), (2, "x")):
        swapped = Record(np.swapaxes(u, 0, axis), dx=1 / 32, dt=4e-4, q=1.0)
        with pytest.raises(InputError) as caught:
            identify(swapped)
        assert str(caught.value) == (
            f"frames differ as much as neighbouring pixels do, and pixels along {name} differ far less: the time axis "
            f"is {name}, expected the axes (t, y, x); change the order of the axes (axes= of a file)"
        )
        with pytest.raises(InputError, match="record 1 .*the time axis is"):
            identify_many([good, swapped])


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.14])
def test_a_window_declared_periodic_is_refused(good, noise):
    u = (add_noise(good, noise, seed=1) if noise else good).slab()
    window = Record(u[:, 2:19, 4:21], dx=1 / 32, dt=4e-4, q=1.0, boundary="periodic")
    with pytest.raises(InputError, match="the picture jumps by .* across the periodic border along .") as caught:
        identify(window)
    assert str(caught.value).endswith(
        "expected no more than there: the record is a part of the domain, or has another boundary: leave boundary= "
        "out, then it is a window; or uneven light was left in its values"
    )
    assert alarms(window.replace(boundary=None)) == []


def test_a_small_jump_is_noticed_by_what_its_neighbours_lead_to(good):
    cut = good.replace(good.slab()[:, 3:])
    assert "border-not-periodic" in alarms(cut)

"""Tension from capillary waves: heights of known spectrum, simulated strips, invariances, errors, refusals."""

import numpy as np
import pytest
from scipy.fft import idctn, ifftn
from scipy.stats import binom

from doublewell.capillary import capillary
from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

RARE, TENSION = 1e-4, 5.0


def waves(mesh, frames, rng, *, periodic, rate=np.inf, tension=TENSION):
    """Heights of a line or surface of a tension, in cells; a mode relaxes with `rate` k^2 from frame to frame."""
    base = [np.fft.fftfreq(n) * 2 * np.pi if periodic else np.pi * np.arange(n) / n for n in mesh]
    square = sum(k**2 for k in np.meshgrid(*base, indexing="ij"))
    square.flat[0] = np.inf
    keep = np.exp(-rate * square)
    modes, out = 0.0, []
    for frame in range(frames):
        noise = rng.normal(size=mesh)
        noise = (np.fft.fftn(noise, norm="ortho") if periodic else noise) / np.sqrt(tension * square)
        modes = noise if frame == 0 else keep * modes + np.sqrt(1.0 - keep**2) * noise
        out.append(ifftn(modes, norm="ortho").real if periodic else idctn(modes, norm="ortho"))
    return np.array(out)


def movie(mesh=(64,), frames=300, *, boundary="neumann", across=40, noise=0.03, width=2.0, seed=1, **more):
    """Interfaces of such heights, normal to the first axis: one, or two where periodic."""
    rng, periodic = np.random.default_rng(seed), boundary == "periodic"
    one, two = (waves(mesh, frames, rng, periodic=periodic, **more)[:, None] for _ in range(2))
    z = np.arange(across).reshape(-1, *[1] * len(mesh))
    u = np.tanh((z - (0.25 if periodic else 0.5) * across - one) / width)
    if periodic:
        u = u - np.tanh((z - 0.75 * across - two) / width) - 1.0
    return Record(u + noise * rng.normal(size=u.shape), dx=1.0, dt=1.0, boundary=boundary)


@pytest.mark.parametrize(("boundary", "interfaces"), [("periodic", 2), ("neumann", 1), ("open", 1)])
def test_the_tension_of_known_heights(boundary, interfaces):
    found = capillary(movie(boundary=boundary))
    low, high = found.interval(1.0 - RARE)
    assert low + found.stiffening < TENSION < high + found.stiffening  # these heights are normal: no stiffening
    assert found.sd < 0.06 * TENSION
    assert (found.interfaces, found.axis) == (interfaces, 0)
    assert found.stiffening == (1.5 / 64 if boundary == "periodic" else 0.0)
    assert str(found).startswith("tension / kT = ")


def test_a_surface_in_three_dimensions():
    found = capillary(movie((24, 20), 60, across=32, boundary="neumann"))
    low, high = found.interval(1.0 - RARE)
    assert low < TENSION < high
    assert found.sd < 0.08 * TENSION


def test_pixels_that_are_means_show_smaller_waves():
    fine = movie((192,), noise=0.0, across=120, width=6.0, tension=0.3)
    u = fine.slab().reshape(300, 40, 3, 64, 3).mean(axis=(2, 4))
    low, high = capillary(fine.replace(u, dx=3.0, origin="camera")).interval(1.0 - RARE)
    assert low < 0.3 < high


def test_lengths_scale_and_gain_and_offset_do_not_matter():
    record = movie(frames=60, boundary="periodic")
    first, turned = capillary(record), capillary(record.replace(np.swapaxes(record.slab(), 1, 2)))
    longer = capillary(record.replace(dx=3.0))
    grey = capillary(record.replace(100.0 + 7.0 * record.slab()), phases=(93.0, 107.0))
    assert longer.tension == pytest.approx(first.tension / 3.0, rel=1e-9)
    assert longer.width == pytest.approx(3.0 * first.width, rel=1e-9)
    for other in (grey, turned):
        assert (other.tension, other.sd) == pytest.approx((first.tension, first.sd), rel=1e-9)
    assert turned.axis == 1
    assert grey.plateaus == pytest.approx([100.0 + 7.0 * p for p in first.plateaus], rel=1e-9)


def test_intervals_cover_where_frames_are_correlated():
    """The slowest wave relaxes in 10 frames of 80."""
    rate, missed, records = 0.1 / (np.pi / 64) ** 2, 0, 60
    for seed in range(records):
        found = capillary(movie(frames=80, rate=rate, seed=seed, across=32))
        low, high = found.interval()
        missed += not low < TENSION < high
    assert missed <= binom.ppf(1.0 - RARE, records, 0.05)
    exact = 80 * np.tanh(rate * found.waves**2)
    assert np.all(np.abs(np.log(found.samples / exact)) < 1.0)


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_the_tension_of_a_simulated_law(boundary):
    cells, epsilon, theta, law = (56, 64), 2.0, 0.01, named_law("quartic")
    away = 14.0 - np.abs(np.arange(56) - 28.0) if boundary == "periodic" else np.arange(56) - 27.5
    flat = np.tanh(away / (np.sqrt(2) * epsilon))[:, None] * np.ones(cells)
    record = simulate(
        law, flat, dx=1.0, dt=20.0, frames=120, substeps=40, epsilon=epsilon, theta=theta, boundary=boundary, seed=5
    ).clip(30, 120)
    for seen in (record, add_noise(record, 0.05, seed=1)):
        found = capillary(seen)
        low, high = found.interval(1.0 - RARE)
        assert low < law.effective(epsilon).tension_integral / theta < high
        assert found.sd < 0.25 * found.tension


def drop():
    return np.tile(initial_field("circle", (40, 40), 1.0, epsilon=2.0), (4, 1, 1))


def overhang():
    u = np.tile(np.tanh((np.arange(40) - 19.5) / 2.0)[:, None], (4, 1, 64))
    return np.where((np.abs(np.arange(40) - 30)[:, None] < 5) & (np.abs(np.arange(64) - 30) < 14), -1.0, u)


def meeting():
    z = np.arange(40)[:, None] + np.zeros(64)
    return np.stack([np.tanh((10.0 - np.abs(z - 20.0)) / 2.0), np.full(z.shape, -1.0)])


@pytest.mark.parametrize(
    ("u", "more", "words"),
    [
        (drop(), {}, "no flat interface"),
        (np.random.default_rng(1).normal(size=(4, 40, 40)), {}, "no flat interface"),
        (overhang(), {}, "meet it more than once"),
        (meeting(), {}, "frame 1 has 0 flat interfaces"),
        (np.tile(np.tanh((np.arange(40) - 19.5) / 2.0)[:, None], (4, 1, 64)), {}, "stands still"),
        (np.tile(np.tanh((np.arange(40) - 19.5) / 2.0)[:, None], (4, 1, 4)), {}, "use a longer field"),
        (np.tile(np.tanh((np.arange(40) - 19.5) / 9.0)[:, None], (4, 1, 64)), {}, "a larger field across"),
        (np.tile(np.tanh(np.arange(40) - 19.5), (4, 1)), {}, "expected a complete movie"),
        (drop(), {"mask": np.ones((40, 40), dtype=bool)}, "expected a complete movie"),
    ],
)
def test_what_has_no_flat_interface_is_refused(u, more, words):
    with pytest.raises(InputError, match=words):
        capillary(Record(u, dx=1.0, dt=1.0, boundary="neumann", **more))


def test_a_level_and_phases_are_checked():
    found = capillary(movie(frames=20))
    with pytest.raises(InputError, match="level is 95"):
        found.interval(95)
    with pytest.raises(InputError, match="the lower one first"):
        capillary(movie(frames=4), phases=(1.0, -1.0))

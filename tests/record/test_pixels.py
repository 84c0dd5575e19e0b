"""Dead, hot, stuck and flickering pixels in raw grey values; sound movies lose none; holes in movies of grey values."""

import numpy as np
import pytest

from doublewell.law import named_law
from doublewell.observation import survey
from doublewell.record import Record, phase_from_intensity
from doublewell.record.pixels import bad_pixels, differences, noise_line, runs
from doublewell.simulate import initial_field, simulate


def movie(mesh, frames=31, width=3.0, seed=1, speed=0.0):
    """A pattern that coarsens, without noise; interfaces are `width` pixels wide, the stage moves by whole pixels."""
    dx, epsilon, kind = 1 / mesh[-1], width / 4.163 / mesh[-1], ("spinodal", "wobbled", "nonconvex")[seed % 3]
    start = initial_field(kind, mesh, dx, epsilon=epsilon, seed=seed)
    u = simulate(named_law("quartic"), start, dx=dx, dt=0.2 * epsilon**2, frames=frames + 8, epsilon=epsilon).slab()
    return np.stack([np.roll(frame, round(speed * k), axis=-1) for k, frame in enumerate(u[8:])])


def photograph(u, rng, *, photons=400.0, high=20000.0):
    """Shot noise and 16 bits."""
    signal = 2000.0 + (high - 2000.0) * (u + 1.0) / 2.0
    return np.clip(np.rint(rng.poisson(signal * photons / high) * high / photons), 0, 65535).astype(np.uint16)


def found(grey, step=1.0):
    return bad_pixels(np.stack([grey[a:b].astype(float) for a, b in runs(len(grey))]), step)


@pytest.mark.parametrize("width", [2.5, 3.9, 9.3])
@pytest.mark.parametrize("frames", [2, 5, 13, 61])
def test_sound_movies_lose_no_pixels(width, frames):
    """At most one pixel in ten thousand; moving and resting drops, thin interfaces, few and many photons."""
    lost = total = 0
    for seed in range(6):
        rng = np.random.default_rng(100 * frames + seed)
        u = movie((64, 64), frames, width, seed, speed=rng.choice([0.0, 0.2, 1.0]))
        photons = rng.choice([30.0, 400.0, 1e5])
        bad = found(photograph(u, rng, photons=photons), max(1.0, 20000.0 / photons))
        lost, total = lost + int(bad.sum()), total + bad.size
    assert lost <= 1e-4 * total


def test_a_resting_pattern_loses_no_pixels():
    """An early pattern whose hills hardly move, in one, two and three dimensions, and a file of eight bits."""
    for mesh in ((400,), (64, 64), (20, 20, 20)):
        start = 0.5 * np.asarray(initial_field("spinodal", mesh, 1 / 32, epsilon=0.1, seed=3))
        u = np.repeat(start[None], 15, axis=0)
        rng = np.random.default_rng(4)
        assert not found(photograph(u, rng)).any()
        assert not found(np.rint(100 + 80 * u + 0.4 * rng.standard_normal(u.shape))).any()


def test_bad_pixels_are_found():
    """Dead, hot, stuck at a plateau, flickering, and a dead column."""
    rng = np.random.default_rng(5)
    grey = photograph(movie((64, 64), 51, 6.0), rng)
    grey[:, 10, 10], grey[:, 20, 60], grey[:, 33, 35], grey[:, 40:44, 50] = 0, 65535, 2300, 0
    grey[:, 5, 40] = np.clip(grey[:, 5, 40] + rng.normal(0, 12000, 51), 0, 65535)
    assert sorted(map(tuple, np.argwhere(found(grey)))) == sorted(
        [(10, 10), (20, 60), (33, 35), (5, 40), *((k, 50) for k in range(40, 44))]
    )


def test_bad_pixels_and_holes_are_masked_and_do_not_fool_the_survey(field, known, shoot):
    """Five dead pixels made an interface of 9 pixels one of 1.4; a mask and NaN are kept."""
    clean = phase_from_intensity(shoot(field), **known)
    grey = shoot(field)
    places = [(12, 30), (40, 41), (50, 80), (70, 20), (88, 88)]
    for k, (row, column) in enumerate(places):
        grey[:, row, column] = 65535 * (k % 2)
    phase = phase_from_intensity(grey, **known)
    assert sorted(map(tuple, np.argwhere(~phase.record.observed(0, 1)[0]))) == places
    assert survey(phase.record).cells == pytest.approx(survey(clean.record).cells, rel=0.01)
    assert phase.levels == pytest.approx(clean.levels, rel=1e-3)
    assert phase.record.origin == "camera"
    assert phase.quality.found[0].effect == 5
    holes = grey.astype(float)
    holes[:, 60:75, 10:25] = np.nan
    part = phase_from_intensity(Record(holes, **known, mask="finite"))
    assert part.levels == pytest.approx(clean.levels, rel=1e-3)
    assert not part.record.observed()[:, 60:75, 10:25].any()
    assert not part.record.observed()[:, 12, 30].any()
    assert np.count_nonzero(~part.record.observed(3, 4)) == 225 + 4


def test_low_contrast_and_much_noise_have_a_start(field, known, shoot):
    """The histogram shows one hill; the smoothed picture shows two."""
    grey = 30000 + 1000 * field + 1000 * np.random.default_rng(7).standard_normal(field.shape)
    phase = phase_from_intensity(grey, **known)
    assert phase.levels == pytest.approx((29000, 31000), abs=60)
    assert np.all(np.abs(np.subtract(phase.levels, (29000, 31000))) < 5 * np.array(phase.levels_sd))


def test_a_drift_is_measured_and_left_alone(field, known, shoot):
    t = np.linspace(0.0, 1.0, len(field))
    way = np.stack([0.3 * t, -0.2 * t**2], 1)
    phase = phase_from_intensity(shoot(field, way=way), **known)
    assert np.max(np.abs(phase.drift - way)) < 0.03
    assert np.sqrt(np.mean((phase.record.slab() - field) ** 2)) > 0.011
    assert phase.quality.moved is None
    assert phase_from_intensity(shoot(field), **known).drift is None


def test_variance_against_signal():
    rng = np.random.default_rng(8)
    u = movie((48, 48), 15, 6.0)
    rest, means = differences(u + 0.05 * np.sqrt(1 + 0.6 * u) * rng.standard_normal(u.shape))
    line = noise_line(means[::3].ravel(), rest[::3].ravel())
    assert line.shot
    assert line.slope / line.level == pytest.approx(0.6, abs=0.06)

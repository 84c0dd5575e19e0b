"""From camera to law: grey values with known faults, phase values, and the force that they give."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.record import Record, phase_from_intensity

WAY = np.outer(np.linspace(0.0, 1.0, 31), [2.3, -1.4])
DRIFT = np.cumsum(np.random.default_rng(3).normal(0.0, 0.15, (31, 2)), axis=0)


@pytest.mark.parametrize(
    ("faults", "asked", "tolerance"),
    [
        ({}, {}, 0.01),
        ({"low": 40, "high": 200, "bits": 8}, {}, 0.01),
        ({"vignette": 0.3}, {"flatten": "gain"}, 0.015),
        ({"stray": 0.1}, {"flatten": "offset"}, 0.015),
        ({"bleach": 0.3}, {"bleaching": True}, 0.01),
        ({"way": WAY}, {"drift": "remove"}, 0.01),
        ({"vignette": 0.3, "bleach": 0.3, "dark": 400, "way": DRIFT - DRIFT[0]},
         {"flatten": "gain", "bleaching": True, "dark": 400, "drift": "remove"}, 0.02),
        ({"low": 30, "high": 200, "bits": 8, "vignette": 0.3, "bleach": 0.3, "dark": 10, "way": WAY},
         {"flatten": "gain", "bleaching": True, "dark": 10, "drift": "remove"}, 0.02),
    ],
    ids=["plain", "8 bits", "vignetting", "stray light", "bleaching", "drift", "all", "all, 8 bits"],
)  # fmt: skip
def test_the_force_comes_back(field, known, shoot, force_error, faults, asked, tolerance):
    phase = phase_from_intensity(shoot(field, **faults), **asked, **known)
    assert force_error(identify(phase.record, method="weak")) < tolerance  # 0.004 from phase values with the same noise
    error = phase.record.slab() - field
    assert np.sqrt(np.mean(error**2)) < 0.018  # noise is 0.01, more where the light has faded or 8 bits round
    inner = np.abs(field) < 0.9
    assert abs(np.mean(error[inner])) < 0.002 + 2.0 * np.max(phase.levels_sd) / np.ptp(phase.levels)
    if "way" in faults:
        assert np.max(np.abs(phase.drift - faults["way"])) < 0.03
    if "bleach" in faults:
        assert phase.fading[-1] / phase.fading[0] == pytest.approx(np.exp(-0.3), rel=3e-3)


@pytest.mark.parametrize("faults", [{"vignette": 0.3}, {"bleach": 0.3}, {"stray": 0.1}])
def test_what_is_not_asked_for_spoils_the_force(field, known, shoot, force_error, faults):
    """So the options above did something; without options the faults are found."""
    none = {"flatten": None, "bleaching": False, "drift": None}
    phase = phase_from_intensity(shoot(field, **faults), **none, **known)
    if "stray" in faults:
        with pytest.raises(InputError, match="uneven light was left"):
            identify(phase.record, method="weak")
    else:
        assert force_error(identify(phase.record, method="weak")) > 0.1
    phase = phase_from_intensity(shoot(field, **faults), **known)
    assert force_error(identify(phase.record, method="weak")) < 0.015
    kept = [item.name for item in phase.quality.found if item.kept and item.name not in ("dark", "drift")]
    assert kept == [{"vignette": "uneven light", "bleach": "fading", "stray": "stray light"}[next(iter(faults))]]


@pytest.mark.parametrize("degree", [1, 2])
def test_the_light_bends_no_more_than_it_must(field, known, degree):
    """Pixels choose the degree of the light, and the levels are the better for it."""
    y, x = np.mgrid[tuple(slice(-1, 1, n * 1j) for n in field.shape[1:])]
    light = 1.0 + 0.1 * x - 0.15 * (y if degree == 1 else y**2)
    noise = 20.0 * np.random.default_rng(17).standard_normal(field.shape)
    phase = phase_from_intensity(np.rint(light * (5000 + 2000 * field) + noise).astype(np.uint16), **known)
    assert phase.quality.orders == (degree, 0)
    mean = 5000 * float(np.mean(light))
    assert phase.levels == pytest.approx((mean * 0.6, mean * 1.4), rel=3e-3)


def test_drift_that_is_not_asked_for_stays_in_the_field(field, known, shoot):
    """Weak moments of a closed drop hardly feel a drift, which acts alike on both of its sides; the field does."""
    error = phase_from_intensity(shoot(field, way=WAY), **known).record.slab() - field
    assert np.sqrt(np.mean(error**2)) > 0.08


def test_levels_lie_within_their_errors(field, known, shoot):
    """Over seeds the level minus the truth, over its standard deviation, has about the size 1."""
    ratios = []
    for seed in range(8):
        phase = phase_from_intensity(shoot(field, noise=0.05, seed=seed), **known)
        ratios.append((np.array(phase.levels) - [3000.0, 20000.0]) / phase.levels_sd)
        assert max(phase.levels_sd) < 0.003 * 17000
        assert not [item.name for item in phase.quality.found if item.kept]  # each in 1e-4 of all movies
    assert np.all(np.abs(ratios) < 4.0)
    assert 0.5 < np.sqrt(np.mean(np.array(ratios)[:, 0] ** 2)) < 1.8
    assert np.sqrt(np.mean(np.array(ratios)[:, 1] ** 2)) < 1.5  # the shallow bulk of the drop adds to this one's error
    assert phase.noise == pytest.approx(0.05, rel=0.1)


def test_given_levels_are_used(field, known, shoot):
    picture = shoot(field)
    phase = phase_from_intensity(picture, levels=(2900, 20100), levels_sd=(10, 20), **known)
    assert phase.levels == (2900.0, 20100.0)
    assert phase.levels_sd == (10.0, 20.0)
    assert np.allclose(phase.record.slab(), 2 * (picture - 2900.0) / 17200 - 1)
    bare = phase_from_intensity(picture, levels=(20000, 3000), **known)  # bright is the phase -1
    assert np.allclose(bare.record.slab(), -phase_from_intensity(picture, levels=(3000, 20000), **known).record.slab())
    assert bare.levels_sd is None


def test_a_record_brings_its_mesh_and_is_read_lazily(field, known, shoot, tmp_path):
    zarr = pytest.importorskip("zarr")
    picture = shoot(field, bleach=0.2)
    store = zarr.create_array(str(tmp_path / "i.zarr"), shape=picture.shape, chunks=(4, 96, 96), dtype=picture.dtype)
    store[:] = picture
    lazy = phase_from_intensity(store, bleaching=True, length_unit="um", time_unit="s", **known)
    assert not isinstance(lazy.record.values, np.ndarray)
    assert (lazy.record.length_unit, lazy.record.time_unit) == ("um", "s")
    whole = phase_from_intensity(Record(picture.astype(float), **known), bleaching=True)
    assert whole.record.dx == lazy.record.dx
    assert whole.record.boundary == "periodic"
    assert np.allclose(lazy.record.slab(3, 7), whole.record.slab(3, 7), rtol=0, atol=1e-12)
    assert lazy.record.clip(3, 7).slab().shape == (4, 96, 96)


def test_a_window_that_drifts_is_cut_to_what_all_frames_show(field, known, shoot, force_error):
    wide = shoot(field, way=WAY)
    window = wide[:, 8:88, 8:88]  # the border is now somewhere in the sample
    phase = phase_from_intensity(window, drift="remove", **(known | {"boundary": None}))
    assert phase.record.mesh == (80 - 3 - 4, 80 - 2 - 2 - 2)
    assert np.max(np.abs(phase.drift - WAY)) < 0.05
    low, high = 2, 4  # pixels that a spline spoils, and where the picture came from
    n, m = phase.record.mesh
    true = field[:, 8 + low : 8 + low + n, 8 + high : 8 + high + m]
    assert np.sqrt(np.mean((phase.record.slab() - true) ** 2)) < 0.015
    assert force_error(identify(phase.record, method="weak")) < 0.02


def test_one_and_three_axes():
    x = np.linspace(0.0, 1.0, 200)
    u = np.tanh((x - 0.5 - 0.1 * np.linspace(0, 1, 11)[:, None]) / 0.03)
    line = phase_from_intensity(np.rint(500 + 200 * u).astype(np.uint16), dx=0.005, dt=1.0)
    assert np.max(np.abs(line.record.slab() - u)) < 0.01
    grid = np.linspace(-1, 1, 30)
    z, y, x = np.meshgrid(grid, grid, grid, indexing="ij")
    ball = np.stack([np.tanh((r - np.sqrt(x**2 + y**2 + z**2)) / 0.12) for r in (0.75, 0.74, 0.73)])
    cube = phase_from_intensity(np.rint(3000 + 2000 * ball).astype(np.uint16), dx=0.07, dt=1.0, flatten="gain", order=1)
    assert np.sqrt(np.mean((cube.record.slab() - ball) ** 2)) < 0.02


def test_text_says_levels_light_fading_and_drift(field, known, shoot):
    picture = shoot(field, vignette=0.3, bleach=0.3, way=WAY)
    said = str(phase_from_intensity(picture, flatten="gain", bleaching=True, drift="remove", **known))
    for words in ("levels ", " +- ", "uneven light: ", "fading:        1.1", "drift:         (2.30, -1.4"):
        assert words in said
    assert "noise of neighbours is correlated" in " ".join(said.split())


def test_noise_that_hides_the_levels_is_named():
    x = np.arange(32) - 16
    drop = np.stack([np.tanh((10 - 0.3 * t - np.hypot(*np.meshgrid(x, x))) / 2) for t in range(6)])
    rng = np.random.default_rng(0)
    for picture in (drop + 4.0 * rng.standard_normal(drop.shape), rng.standard_normal(drop.shape)):
        grey = np.clip(128 + 15 * picture, 0, 255).astype("u1")
        with pytest.raises(InputError, match="the noise hides the levels: that of one pixel is .* pass levels="):
            phase_from_intensity(grey, dx=1.0, dt=1.0)
    quiet = np.clip(128 + 40 * (drop + 0.5 * rng.standard_normal(drop.shape)), 0, 255).astype("u1")
    phase = phase_from_intensity(quiet, dx=1.0, dt=1.0)  # noise of half the step hides nothing
    assert phase.levels == pytest.approx((88, 168), abs=5)

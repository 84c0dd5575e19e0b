"""What cannot be turned into phase values, what deserves a note, and the parts by themselves."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.record import phase_from_intensity
from doublewell.record.levels import find_bulk, interface_pixels, rough_levels, smooth_basis
from doublewell.record.phase import measure_drift, measure_saturation, shift_frame
from doublewell.record_findings import grey_findings
from doublewell.report import inspect_record

MESH = {"dx": 1 / 96, "dt": 5e-5}


def test_masks_are_refused(field):
    for mask in (field > 0, (255 * (field > 0)).astype(np.uint8), np.sign(field)):
        with pytest.raises(InputError, match=r"contours and thresholded masks are not enough"):
            phase_from_intensity(mask, **MESH)


def test_sharp_steps_with_noise_are_told(field):
    rng = np.random.default_rng(1)
    sharp = np.where(field[:, :1] > -2, np.sign(np.arange(96) - 48.5), 0.0) * np.ones((1, 96, 1))
    grey = 1000 + 300 * sharp + 3 * rng.standard_normal((31, 96, 96))
    phase = phase_from_intensity(grey, **MESH)  # the levels are there; that nothing lies between them is said next
    said = " ".join(str(inspect_record(phase.record)).split())
    assert "not an order parameter" in said
    assert "contours and thresholded masks are not enough" in said


def test_one_phase_and_noise_are_refused():
    rng = np.random.default_rng(2)
    for picture in (np.full((5, 32, 32), 7.0), 100 + rng.standard_normal((9, 64, 64))):
        with pytest.raises(
            InputError, match=r"all intensities are 7|two plateaus cannot be distinguished|no interface|no pixels far"
        ):
            phase_from_intensity(picture, dx=1.0, dt=1.0)


def test_a_picture_without_bulk_asks_for_levels():
    x = np.arange(64) / 64
    waves = 500 + 100 * np.sin(2 * np.pi * 8 * x)[None, :, None] * np.ones((7, 1, 64))
    with pytest.raises(InputError, match=r"plateau has no pixels far from an interface.*pass levels=\(low, high\)"):
        phase_from_intensity(waves, dx=1.0, dt=1.0, flatten=None)
    with pytest.raises(InputError, match=r"two plateaus cannot be distinguished.*pass levels=\(low, high\)"):
        phase_from_intensity(waves, dx=1.0, dt=1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"levels": (1, 1)}, "levels is (1, 1): expected two different intensities (low, high)"),
        ({"levels": 3}, "expected two different intensities"),
        ({"levels_sd": (1, 1)}, "levels_sd means nothing without levels"),
        ({"levels": (3000, 20000), "levels_sd": (1, -1)}, "levels_sd is -1"),
        ({"flatten": True}, "flatten is True: expected 'auto', 'gain' (uneven light), 'offset' (stray light) or None"),
        ({"drift": True}, "drift is True: expected 'auto'"),
        ({"drift": "remove", "boundary": "neumann"}, "a picture that drifts has no fixed wall at its border"),
        ({"order": 0}, "order is 0"),
        ({"dark": float("nan")}, "dark is nan"),
    ],
)
def test_wrong_options(field, shoot, given, message):
    with pytest.raises(InputError) as error:
        phase_from_intensity(shoot(field), **(MESH | given))
    assert message in str(error.value)


def test_wrong_arrays():
    with pytest.raises(InputError, match=r"has type complex128: expected grey values"):
        phase_from_intensity(np.zeros((5, 16, 16), dtype=complex), **MESH)
    with pytest.raises(InputError, match=r"shape \(5, 16, 3\).*of a colour picture pass one channel"):
        phase_from_intensity(np.zeros((5, 16, 3)), **MESH)
    broken = np.ones((5, 16, 16))
    broken[2, 3, 4] = np.nan
    with pytest.raises(InputError, match=r"first in frame 2 at cell \(3, 4\)"):
        phase_from_intensity(broken, **MESH)


def test_a_drift_as_large_as_the_picture_is_refused():
    x = np.arange(40.0)
    u = np.stack([np.tanh((np.hypot(x[:, None] - 20 - 1.5 * k, x[None] - 20) - 11) / 2.5) for k in range(24)])
    with pytest.raises(InputError, match=r"nothing is left that all frames show: cut the movie"):
        phase_from_intensity(500 + 100 * u, dx=1.0, dt=1.0, drift="remove")


def test_saturation_is_reported(field, shoot):
    phase = phase_from_intensity(shoot(field, low=40, high=262, bits=8), **MESH)
    assert phase.quality.saturated[1] > 0.1
    assert phase.quality.saturated[0] == 0.0
    assert "grey-saturated" in codes(phase)
    fine = phase_from_intensity(shoot(field), **MESH)
    assert fine.quality.saturated == (0.0, 0.0)
    assert codes(fine) == []


def test_a_camera_of_twelve_bits_in_a_file_of_sixteen():
    values = np.minimum(np.arange(5000), 4095).astype(float).reshape(1, 50, 100)
    assert measure_saturation(values, np.dtype(np.uint16))[1] == (0.0002, pytest.approx(905 / 5000))
    assert measure_saturation(values - 1, np.dtype(np.uint16))[1][1] == pytest.approx(905 / 5000)  # cut off at 4094
    assert measure_saturation(np.arange(5000.0).reshape(1, 50, 100), np.dtype(np.uint16))[1][1] == 0.0
    assert measure_saturation(values, np.dtype(float))[1] == (0.0, 0.0)
    low = np.maximum(np.arange(-100, 900), 0).astype(float).reshape(1, 10, 100)
    assert measure_saturation(low, np.dtype(np.uint16))[1][0] == pytest.approx(101 / 1000)
    two = np.stack([low[0] + 5, low[0]])  # the end is in the second frame
    assert measure_saturation(two, np.dtype(np.uint16)) == ((0.0, 904.0), (pytest.approx(101 / 2000), 0.0), 1.0)


def test_few_grey_values_are_noted(field, shoot):
    phase = phase_from_intensity(shoot(field, low=10, high=35, bits=8, noise=0.001), **MESH)
    assert "grey-few-steps" in codes(phase)


def test_fading_that_was_not_asked_for_and_a_wrong_dark_value_are_noted(field, shoot):
    assert "grey-fading" in codes(phase_from_intensity(shoot(field, bleach=0.3), bleaching=False, **MESH))
    faded = shoot(field, bleach=0.5, dark=8000)
    assert "grey-fading-unequal" in codes(phase_from_intensity(faded, bleaching=True, dark=0, **MESH))
    for dark in (8000, None, np.full((3, 96, 96), 8000)):
        phase = phase_from_intensity(faded, dark=dark, **MESH)
        assert not codes(phase)
        assert phase.quality.dark == pytest.approx(8000, rel=0.03)


def test_a_small_drop_has_a_wide_error(field, shoot):
    """No pixel inside is far from the interface, so the level's error says so."""
    x = np.arange(64.0) - 31.5
    u = np.stack([np.tanh((9.0 - 0.1 * k - np.hypot(x[:, None], x[None])) / 4.0) for k in range(9)])
    phase = phase_from_intensity(500 + 100 * u, dx=1.0, dt=1.0)
    assert "grey-plateau-narrow" in codes(phase)
    assert abs(phase.levels[1] - 600) < 3 * phase.levels_sd[1]


def test_rough_levels_are_the_plateaus():
    rng = np.random.default_rng(5)
    sample = np.concatenate([rng.normal(100, 5, 7000), rng.uniform(100, 300, 800), rng.normal(300, 5, 2000)])
    assert rough_levels(sample) == pytest.approx([100, 300], abs=3)


def test_bulk_and_width_of_a_profile():
    x = np.arange(200.0) - 100
    u = np.tanh(x / 6.0) * np.ones((20, 1))
    width = interface_pixels(u)
    assert width == pytest.approx(2 * np.arctanh(0.9) * 6.0, rel=0.1)
    (low, _), (high, deficit) = find_bulk(u, width)
    assert np.all(u[high] > 0.999)
    assert np.all(u[low] < -0.999)
    assert deficit < 1e-3


def test_the_smooth_basis_has_no_constant():
    basis = smooth_basis((12, 17), 3)
    assert basis.shape == (9, 12 * 17)
    assert np.allclose(basis.mean(axis=1), 0.0)
    assert np.linalg.matrix_rank(basis) == 9


@pytest.mark.parametrize("periodic", [True, False])
def test_drift_of_a_pure_shift(periodic):
    x = np.arange(64.0)
    y, x = np.meshgrid(x, x, indexing="ij")
    first = np.tanh((14.0 - np.hypot(y - 30, x - 34)) / 3.0)
    way = np.array([[0.0, 0.0], [0.7, -0.4], [1.9, 0.3], [2.5, 1.25]])
    frames = [shift_frame(first, d, periodic=True) for d in way]
    found = measure_drift(lambda k: frames[k], range(4), periodic=periodic)
    assert np.max(np.abs(found - way)) < 0.01
    back = shift_frame(frames[3], -way[3], periodic=periodic)
    assert np.max(np.abs(back - first)) < 0.02


def codes(phase):
    return [item.code for item in grey_findings(phase.quality)]

"""crop: frames, windows and what is left out, of arrays in memory and in files, with masks of every kind."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.record import Record

MESH = {"dx": (0.1, 0.2), "dt": 1.0, "q": 1.0}
U = np.random.default_rng(1).uniform(-1, 1, (6, 8, 10))
CROP = {"frames": (1, 5), "window": ((2, 7), (None, 6)), "leave_out": [((3, 4), (1, 3)), ((0, 1), (0, 1))]}


def kept():
    mask = np.ones(U.shape, dtype=bool)
    mask[:, 3:4, 1:3] = mask[:, 0, 0] = False
    return mask


@pytest.mark.parametrize("kind", ["none", "frame", "dropped", "whole"])
@pytest.mark.parametrize("stored", [False, True])
def test_values_and_mask_of_a_part(tmp_path, kind, stored):
    own = np.ones(U.shape, dtype=bool)
    if kind == "frame":
        own[:, 5, 5] = False
    elif kind == "dropped":
        own[2] = False
    elif kind == "whole":
        own[3, 4, 2] = False
    mask = {"none": None, "frame": own[0], "dropped": own[:, 0, 0], "whole": own}[kind]
    record = Record(U, mask=mask, boundary="periodic", **MESH)
    if stored:
        save(record, tmp_path / "movie.zarr")
        record = open_record(tmp_path / "movie.zarr")
    part = record.crop(**CROP)
    seen = (own & kept())[1:5, 2:7, :6]
    assert (part.shape, part.boundary, part.dx, part.q) == ((4, 5, 6), "open", (0.1, 0.2), 1.0)
    assert np.array_equal(part.times, record.times[1:5])
    assert np.array_equal(part.observed(), seen)
    assert np.array_equal(part.slab(), np.where(seen, U[1:5, 2:7, :6], 0.0))


def test_frames_alone_and_a_window_of_all_keep_the_border():
    record = Record(U, boundary="periodic", **MESH)
    assert record.crop((2, None)).boundary == "periodic"
    assert record.crop(window=((None, None), (0, 10))).boundary == "periodic"
    assert record.crop(window=((None, None), (0, 9))).boundary == "open"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"frames": (3, 9)}, "outside the record"),
        ({"frames": 3}, "first, past the last"),
        ({"window": ((0, 3),)}, "one per space axis"),
        ({"window": ((0, 9), (0, 3))}, "outside the mesh"),
        ({"leave_out": [((5, 4), (0, 3))]}, "outside the mesh"),
        ({"leave_out": [((None, None), (None, None))]}, "False everywhere"),
        ({"window": ((0, 4), (0, 4)), "boundary": "periodic"}, "cut out of something larger"),
    ],
)
def test_what_cannot_be_cut_is_refused(tmp_path, wrong, words):
    np.save(tmp_path / "movie.npy", U)
    with pytest.raises(InputError, match=words):
        open_record(tmp_path / "movie.npy", dx=0.1, dt=1.0, **wrong)


def test_grey_levels_are_those_of_what_is_left(tmp_path):
    x = np.linspace(-20, 20, 60)
    frames = [np.broadcast_to(np.tanh((x - 0.8 * k) / 3), (50, 60)) for k in range(8)]
    noise = np.random.default_rng(2).normal(0, 2, (8, 50, 60))
    grey = (100 + 50 * np.array(frames) + noise).astype(np.uint8)
    grey[:, 45:, :20] = 255  # a scale bar
    np.save(tmp_path / "movie.npy", grey)
    record = open_record(tmp_path / "movie.npy", dx=1.0, dt=1.0, leave_out=[((44, 50), (0, 21))])
    assert record.grey.levels == pytest.approx((50, 150), abs=3)
    assert not record.observed()[:, 44:, :21].any()


def test_a_diffusion_coefficient_with_a_unit(tmp_path):
    pytest.importorskip("pint")
    np.save(tmp_path / "movie.npy", U)
    units = {"length_unit": "um", "time_unit": "ms"}
    assert open_record(tmp_path / "movie.npy", dx=1.0, dt=1.0, q="1e-12 m^2/s", **units).q == pytest.approx(1e-3)
    assert open_record(tmp_path / "movie.npy", dx=1.0, dt=1.0, q="2").q == 2.0
    with pytest.raises(InputError, match="length_unit"):
        open_record(tmp_path / "movie.npy", dx=1.0, dt=1.0, q="1e-12 m^2/s")


def test_a_fit_of_grey_levels_that_runs_away_is_refused(tmp_path, monkeypatch):
    """It did with a scale bar, and ended in an error of linear algebra."""
    frames = [np.broadcast_to(np.tanh((np.linspace(-20, 20, 60) - 0.8 * k) / 3), (50, 60)) for k in range(8)]
    np.save(tmp_path / "movie.npy", (100 + 50 * np.array(frames)).astype(np.uint8))

    def fail(*_, **__):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "lstsq", fail)
    with pytest.raises(InputError, match="leave_out="):
        open_record(tmp_path / "movie.npy", dx=1.0, dt=1.0)

"""OME-Zarr: scales and units of versions 0.4 and 0.5, channels, and images that are damaged."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from movie_writers import DT, DX, WRITERS

from doublewell.errors import InputError
from doublewell.io import open_record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


def image(tmp_path, version, change=lambda about: None, channels=1):
    tmp_path.mkdir(exist_ok=True)
    path, _ = WRITERS[f"ngff_0{version}"](tmp_path, MOVIE)
    group = zarr.open(path)
    if channels > 1:
        values = np.stack([(channel + 1) * MOVIE for channel in range(channels)], axis=1)[:, :, None]
        group.create_array("0", shape=values.shape, dtype="f8", overwrite=True)[...] = values
    attributes = dict(group.attrs)
    change(attributes["ome"] if version == 5 else attributes)
    group.attrs.update(attributes)
    return path


@pytest.mark.parametrize("version", [4, 5])
def test_scales_and_units(version, tmp_path) -> None:
    record = open_record(image(tmp_path, version))
    assert (record.dx, record.dt) == (DX, 1000 * DT)
    assert (record.length_unit, record.time_unit) == ("um", "ms")  # y was in nm
    record = open_record(tmp_path / "movie.zarr", dx=2.0, dt=3.0)
    assert (record.dx, record.dt, record.length_unit) == ((2.0, 2.0), 3.0, None)
    np.testing.assert_array_equal(record.slab(1, 3), MOVIE[1:3])


def test_the_scale_of_the_whole_image(tmp_path) -> None:
    def change(about):
        scale = {"type": "scale", "scale": [2, 1, 1, 1, 4]}
        about["multiscales"][0]["coordinateTransformations"] = [scale, {"type": "translation", "translation": [9] * 5}]

    record = open_record(image(tmp_path, 5, change))
    assert (record.dx, record.dt) == ((DX[0], 4 * DX[1]), 2000 * DT)


def test_a_scale_of_one_without_a_unit_is_no_calibration(tmp_path) -> None:
    def change(about):
        axes = about["multiscales"][0]["axes"]
        del axes[0]["unit"], axes[3]["unit"], axes[4]["unit"]
        about["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"] = [1, 1, 1, 0.5, 0.5]

    with refused("has no frame interval: pass dt="):
        open_record(image(tmp_path, 4, change))
    assert open_record(tmp_path / "movie.zarr", dt=1.0).dx == (0.5, 0.5)


@pytest.mark.parametrize("version", [4, 5])
def test_channels(version, tmp_path) -> None:
    def change(about):
        about["omero"] = {"channels": [{"label": "solid"}, {"label": "melt"}]}

    path = image(tmp_path, version, change, channels=2)
    with refused("holds several channels: pass var= with one of solid, melt"):
        open_record(path)
    np.testing.assert_array_equal(open_record(path, var="melt").slab(), 2 * MOVIE)
    with refused("has no channel 'gas'"):
        open_record(path, var="gas")
    plain = image(tmp_path / "plain", version, channels=3)
    np.testing.assert_array_equal(open_record(plain, var="2").slab(2, 4), 3 * MOVIE[2:4])
    one = image(tmp_path / "one", version)
    with refused("holds one array without a name: leave out var='solid'"):
        open_record(one, var="solid")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about: about.update(multiscales=[]), "its list of images .multiscales. is empty"),
        (lambda about: about["multiscales"][0].update(axes=["t", "y", "x"]), "damaged"),
        (lambda about: about["multiscales"][0]["datasets"][0].update(path="../other.zarr/0"), "its image lies at"),
        (
            lambda about: about["multiscales"][0]["datasets"][0].update(path="7"),
            "the array '7' of the image is missing",
        ),
        (lambda about: about["multiscales"][0].pop("axes"), "movie.zarr is damaged or not in the zarr format"),
        (lambda about: about["multiscales"][0]["axes"].pop(), "damaged"),
    ],
)
def test_damaged_images(change, words, tmp_path) -> None:
    with refused(words):
        open_record(image(tmp_path, 5, change))


def test_a_group_with_other_attributes_is_no_image(tmp_path) -> None:
    group = zarr.create_group(tmp_path / "m.zarr", attributes={"multiscales": "none", "dx": 0.1, "dt": 1.0})
    group.create_array("u", shape=(3, 4), dtype="f8")[...] = 0.5
    assert open_record(tmp_path / "m.zarr").mesh == (4,)


def test_packed_numbers_of_xarray(tmp_path) -> None:
    array = zarr.create_array(tmp_path / "m.zarr", shape=(3, 4), dtype="i2", fill_value=-1)
    array[...] = np.arange(12).reshape(3, 4)
    array.attrs.update(scale_factor=0.5, add_offset=-1.0, _FillValue=7, dx=0.1, dt=1.0)
    record = open_record(tmp_path / "m.zarr")
    np.testing.assert_array_equal(record.slab(0, 1), [[-1.0, -0.5, 0.0, 0.5]])
    with refused(r"first in frame 1 at cell \(3,\)"):
        record.slab()


def test_a_changed_chunk_packed_by_blosc(tmp_path) -> None:
    path, _ = WRITERS["ngff_04"](tmp_path, MOVIE)
    chunk = path / "0" / "0.0.0.0.0"
    raw = bytearray(chunk.read_bytes())
    for changed in (raw[:12] + b"\xff\xff\xff\x7f" + raw[16:], raw[:-1], raw[:5]):
        chunk.write_bytes(changed)
        with refused("movie.zarr is damaged: chunk 0.0.0.0.0 is cut short or changed; copy the store again"):
            open_record(path).slab()

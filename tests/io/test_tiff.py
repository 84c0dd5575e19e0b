"""TIFF: metadata of OME and ImageJ with their units, plain stacks, and nothing made up where images are missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tifffile
from movie_writers import DT, DX, MORE, WRITERS

from doublewell.errors import InputError
from doublewell.io import open_record
from doublewell.io.format import _read_mapped
from doublewell.io.formats.tiff import _read_pages

MOVIE = np.random.default_rng(2).uniform(-1, 1, (5, 8, 6)).astype("f4")
FIVE = MOVIE.reshape(5, 1, 2, 4, 6)  # t, z, c, y, x


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture
def tif(tmp_path):
    def write(u, **options):
        tifffile.imwrite(tmp_path / "movie.tif", u, **options)
        return tmp_path / "movie.tif"

    return write


def test_units_of_ome(tmp_path) -> None:
    record = open_record(WRITERS["ome_tiff"](tmp_path, MOVIE)[0])
    assert (record.dx, record.length_unit, record.time_unit) == (DX, "um", "ms")
    assert record.dt == 1000 * DT
    assert record.values.read.func is _read_mapped


def test_units_of_imagej(tif) -> None:
    about = {"axes": "TYX", "finterval": 2.0, "unit": "nm", "tunit": "min"}
    record = open_record(tif(MOVIE, imagej=True, resolution=(4, 8), metadata=about))
    assert (record.dx, record.dt) == ((0.125, 0.25), 2.0)
    assert (record.length_unit, record.time_unit) == ("nm", "min")
    other = open_record(tif(MOVIE, imagej=True, resolution=(4, 8), metadata=about), dx=3.0, dt=4.0, time_unit="h")
    assert (other.dx, other.dt, other.length_unit, other.time_unit) == ((3.0, 3.0), 4.0, None, "h")


@pytest.mark.parametrize("unit", ["pixel", ""])
def test_a_stack_without_calibration(unit, tif) -> None:
    path = tif(MOVIE, imagej=True, resolution=(4, 8), metadata={"axes": "TYX", "unit": unit, "fps": 9.0})
    with refused("has no mesh spacing and no frame interval: pass dx=.*; dt="):  # fps is how fast it is shown
        open_record(path)


def test_a_plain_stack_asks_by_name(tif) -> None:
    path = tif(MOVIE, photometric="minisblack", resolution=(72, 72), resolutionunit="INCH")
    with refused(r"movie.tif has no mesh spacing and no frame interval: pass dx=.*dt="):
        open_record(path)
    np.testing.assert_array_equal(open_record(path, dx=1, dt=1).slab(), MOVIE)


def test_times_of_planes(tif, tmp_path) -> None:
    times = [0.0, 1.0, 2.5, 3.0, 4.0]
    planes = {"DeltaT": times, "DeltaTUnit": ["ms"] * 5}
    about = {"axes": "TYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5, "Plane": planes}
    record = open_record(tif(MOVIE, ome=True, metadata=about))
    assert record.times.tolist() == times
    assert (record.length_unit, record.time_unit) == ("um", "ms")
    text = tif(MOVIE, ome=True, metadata=about).read_bytes()
    (tmp_path / "movie.tif").write_bytes(text.replace(b'DeltaT="2.5"', b'DeltaT="two"'))
    with refused("has no frame interval"):
        open_record(tmp_path / "movie.tif")


@pytest.mark.parametrize("kind", ["ome", "imagej"])
def test_channels_are_chosen_by_name(kind, tif) -> None:
    about = {"axes": "TZCYX"} | ({"Channel": {"Name": ["red", "green"]}} if kind == "ome" else {})
    path = tif(FIVE, metadata=about, **{kind: True})
    names = ["red", "green"] if kind == "ome" else ["0", "1"]
    with refused(f"holds several channels: pass var= with one of {names[0]}, {names[1]}"):
        open_record(path, dx=1, dt=1)
    record = open_record(path, var=names[1], dx=1, dt=1)
    np.testing.assert_array_equal(record.slab(), FIVE[:, 0, 1])
    with refused("has no channel 'blue'"):
        open_record(path, var="blue", dx=1, dt=1)
    with refused("holds one array without a name: leave out var='red'"):
        open_record(tif(MOVIE, metadata={"axes": "TYX"}, **{kind: True}), var="red", dx=1, dt=1)


def test_slices_without_time_are_asked_for(tif) -> None:
    path = tif(MOVIE, imagej=True, resolution=(4, 4), metadata={"axes": "ZYX", "unit": "um", "spacing": 3.0})
    with refused("the axes are named z, y, x, and none of the axes is known to be time: .*pass axes=.*axes='tyx'"):
        open_record(path, dt=1.0)
    record = open_record(path, axes="tyx", dt=1.0)
    assert record.dx == (0.25, 0.25)
    with refused("has no frame interval"):  # a distance of slices is no time
        open_record(path, axes="tyx")


def test_a_stack_of_volumes(tif) -> None:
    u = np.random.default_rng(1).uniform(-1, 1, (4, 3, 8, 6)).astype("f4")
    about = {"axes": "TZYX", "unit": "um", "spacing": 3.0, "finterval": 1.0}
    record = open_record(tif(u, imagej=True, resolution=(4, 2), metadata=about))
    assert (record.dx, record.dt) == ((3.0, 0.5, 0.25), 1.0)
    np.testing.assert_array_equal(record.slab(1, 3), u[1:3])
    record = open_record(tif(u, photometric="minisblack"), dx=1, dt=1)  # only the shape is known: time first
    np.testing.assert_array_equal(record.slab(), u)


def test_colours_are_refused(tif) -> None:
    colour = np.zeros((5, 8, 6, 3), "uint8")
    for options in ({"photometric": "rgb"}, {"photometric": "rgb", "imagej": True}):
        with refused(r"movie.tif holds colour images \(RGB\): expected one number per pixel; save the channel"):
            open_record(tif(colour, **options), dx=1, dt=1, levels=(0, 255))
    with refused(r"holds colour images \(3 samples per pixel\)"):
        open_record(tif(colour, photometric="minisblack", planarconfig="contig"), dx=1, dt=1, levels=(0, 255))
    palette = np.zeros((3, 256), "uint16")
    with refused("holds images with a palette, whose numbers are not intensities"):
        open_record(tif(colour[..., 0], photometric="palette", colormap=palette), dx=1, dt=1, levels=(0, 255))


def test_several_images_and_one_image(tmp_path) -> None:
    with tifffile.TiffWriter(tmp_path / "movie.tif") as file:
        file.write(MOVIE, photometric="minisblack")
        file.write(np.zeros((3, 4, 4), "f4"), photometric="minisblack")
    with refused("holds several images: pass var= with one of 0, 1"):
        open_record(tmp_path / "movie.tif", dx=1, dt=1)
    assert open_record(tmp_path / "movie.tif", var="1", dx=1, dt=1).shape == (3, 4, 4)
    tifffile.imwrite(tmp_path / "one.tif", MOVIE[0], photometric="minisblack")
    with refused(r"holds one image of shape \(8, 6\): expected a stack of at least 2; pass the folder of all images"):
        open_record(tmp_path / "one.tif", dx=1, dt=1)


@pytest.mark.parametrize("writer", ["ome_tiff", "ome_tiff_packed", "imagej", "plain_tiff", "packed_tiff"])
@pytest.mark.parametrize("kept", [0.2, 0.5, 0.8, 0.97])
def test_a_truncated_stack(writer, kept, tmp_path) -> None:
    path, said = WRITERS[writer](tmp_path, MOVIE)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(kept * len(raw))])
    if writer == "imagej" and kept > 0.6:  # all images and the first index are before that: nothing is lost
        np.testing.assert_array_equal(open_record(path).slab(), MOVIE)
        return
    with refused(r"movie.*\.tif is (damaged|cut short)"):
        open_record(path, **{"dx": 1, "dt": 1} | said).slab()


def test_missing_images_are_not_zeros(tmp_path) -> None:
    path, said = WRITERS["packed_tiff"](tmp_path, MOVIE)
    with tifffile.TiffFile(path) as file:
        place = file.pages[3].tags["StripByteCounts"].valueoffset
    raw = bytearray(path.read_bytes())
    raw[place : place + 4] = b"\0\0\0\0"
    path.write_bytes(raw)
    record = open_record(path, **said)
    assert record.values.read.func is _read_pages
    np.testing.assert_array_equal(record.slab(0, 3), MOVIE[:3])
    with refused("movie.tif is cut short: image 3 is missing; copy the file again"):
        record.slab()


def test_a_page_packed_by_a_codec_that_is_not_there(tif, monkeypatch) -> None:
    path = tif(MOVIE, photometric="minisblack", compression="zlib")

    def missing(page, **options):
        raise ValueError("<COMPRESSION.LZW: 5> requires the 'imagecodecs' package")

    monkeypatch.setattr(tifffile.TiffPage, "asarray", missing)
    with refused("is packed .*requires the 'imagecodecs' package.*or run pip install imagecodecs$"):
        open_record(path, dx=1, dt=1).slab()


def test_a_missing_library(tif, monkeypatch) -> None:
    path = tif(MOVIE, photometric="minisblack")
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with refused(r"reading TIFF files needs the library tifffile, .*run pip install 'doublewell\[tiff\]'$"):
        open_record(path, dx=1, dt=1)


def test_a_folder_takes_the_pixel_size_of_its_first_image(tmp_path) -> None:
    for number, frame in enumerate(MOVIE):
        tifffile.imwrite(tmp_path / f"f{number}.tif", frame, imagej=True, resolution=(4, 2), metadata={"unit": "um"})
    with refused("has no frame interval: pass dt="):
        open_record(tmp_path)
    record = open_record(tmp_path, dt=1.0)
    assert (record.dx, record.length_unit) == ((0.5, 0.25), "um")
    np.testing.assert_array_equal(record.slab(1, 4), MOVIE[1:4])
    tifffile.imwrite(tmp_path / "f3.tif", MOVIE, photometric="minisblack")
    with refused(r"f3.tif has shape \(5, 8, 6\): expected one image, as it is one of several files"):
        record.slab()


def test_dots_per_inch_are_no_pixel_size(tif) -> None:
    about = {"axes": "TYX", "finterval": 2.0, "unit": "inch"}
    path = tif(MOVIE, imagej=True, resolution=(72, 72), metadata=about)
    with refused("movie.tif has no mesh spacing: pass dx="):
        open_record(path)


def test_positions_are_no_axis_of_space(tmp_path) -> None:
    path = tmp_path / "movie.ome.tif"
    tifffile.imwrite(path, FIVE[:, 0], metadata={"axes": "TRYX"}, photometric="minisblack")
    text = tifffile.tiffcomment(path)
    assert "SizeT" in text
    with tifffile.TiffFile(path) as file:
        axes = file.series[0].axes
    if "R" not in axes:  # of OME-TIFF the library may write positions otherwise; the plain kind keeps the letter
        path = tmp_path / "movie.tif"
        tifffile.imwrite(path, FIVE[:, 0], metadata={"axes": "TRYX"}, photometric="minisblack")
    with refused("holds several positions: pass var= with one of 0, 1"):
        open_record(path, dx=1.0, dt=1.0)
    np.testing.assert_array_equal(open_record(path, var="1", dx=1.0, dt=1.0).slab(), FIVE[:, 0, 1])


def test_a_movie_in_several_files(tmp_path) -> None:
    path, _ = MORE["ome_tiff_files"](tmp_path, MOVIE)
    assert open_record(tmp_path).shape == MOVIE.shape  # the folder: the first file describes all
    text = path.read_bytes()
    for name in (b"../other_01.ome.tif", b"/etc/passwd_000.xml"):
        path.write_bytes(text.replace(b"movie_001.ome.tif", name[:17].ljust(17, b"f")))
        with refused("movie_000.ome.tif names the file .* which lies outside its folder"):
            open_record(path)
    path.write_bytes(text)
    (tmp_path / "away").mkdir()
    (tmp_path / "movie_002.ome.tif").rename(tmp_path / "away" / "movie_002.ome.tif")
    with refused("movie_000.ome.tif names other files of its movie that are missing or damaged"):
        open_record(path)
    (tmp_path / "in").mkdir()
    for file in tmp_path.glob("*.tif"):
        file.rename(tmp_path / "in" / file.name)
    (tmp_path / "in" / "movie_002.ome.tif").symlink_to(tmp_path / "away" / "movie_002.ome.tif")
    with refused("which lies outside its folder"):
        open_record(tmp_path / "in" / "movie_000.ome.tif")


def test_entities_of_ome(tmp_path) -> None:
    text = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"></OME>'
    tifffile.imwrite(tmp_path / "movie.ome.tif", MOVIE, description=text, metadata=None, photometric="minisblack")
    with refused("movie.ome.tif defines XML entities"):
        open_record(tmp_path / "movie.ome.tif", dx=1.0, dt=1.0)

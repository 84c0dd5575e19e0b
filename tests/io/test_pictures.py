"""Pictures, tables, videos and microscopes' own files; and what is named as what it is."""

from __future__ import annotations

import sys
from datetime import timedelta
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from movie_writers import GREYS, MESH, avi, grey, mp4, png_folder
from PIL import Image

from doublewell.errors import InputError
from doublewell.io import open_record
from doublewell.io.formats.video import read_video

MOVIE = np.linspace(-1, 1, 3 * 16 * 12).reshape(3, 16, 12)


def refused(match):
    return pytest.raises(InputError, match=match)


def pictures(folder, frames, **options):
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(folder / f"frame_{number}.png", **options)
    return folder


def test_a_folder_of_pictures(tmp_path) -> None:
    path, said = png_folder(tmp_path, MOVIE)
    with refused(r"run has no mesh spacing and no frame interval: pass dx=, .*; dt=, one number, or times="):
        open_record(path)
    with refused("holds one array without a name: leave out var='red'"):
        open_record(path, var="red", **said)
    np.testing.assert_array_equal(open_record(path / "frame_*.png", **said).slab(), open_record(path, **said).slab())
    with refused("frame_1.png holds one picture: expected one for each frame; pass the folder"):
        open_record(path / "frame_1.png", **said)
    (path / "frame_2.png").write_bytes((path / "frame_2.png").read_bytes()[:60])
    with refused("frame_2.png is damaged or not in the PNG format"):
        open_record(path, **said).slab()


def test_depths_and_colours(tmp_path) -> None:
    deep = (grey(MOVIE).astype("u2") * 257)[:, :, :]
    for name, frames in {
        "deep": deep, "alpha": np.stack([grey(MOVIE), grey(MOVIE) * 0 + 255], -1),
        "colour": np.stack([grey(MOVIE)] * 3, -1),
    }.items():  # fmt: skip
        (tmp_path / name).mkdir()
        record = open_record(pictures(tmp_path / name, frames), **MESH, levels=(0, 65535 if name == "deep" else 255))
        np.testing.assert_allclose(record.slab(), grey(MOVIE) / 127.5 - 1, atol=1e-15)
    (tmp_path / "red").mkdir()
    tinted = np.stack([grey(MOVIE), grey(MOVIE) // 2, grey(MOVIE) // 3], -1)
    path = pictures(tmp_path / "red", tinted)
    with refused("red holds several colours: pass var= with one of red, green, blue"):
        open_record(path)
    record = open_record(path, var="green", **MESH, levels=(0, 127))
    np.testing.assert_allclose(record.slab(), 2 * tinted[..., 1] / 127 - 1, atol=1e-15)
    Image.fromarray(grey(MOVIE)[0]).convert("P").save(path / "frame_0.png")
    with refused("frame_0.png has colours of a palette, or one bit"):
        open_record(path)


def test_a_picture_that_unpacks_without_end(tmp_path, monkeypatch) -> None:
    path = pictures(tmp_path, grey(MOVIE))
    for limit in (150, 50):  # Pillow warns beyond the limit, and raises beyond twice the limit
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with refused(f"frame_0.png has more than {limit} pixels: cut it into parts"):
            open_record(path, **MESH)


def test_tables(tmp_path) -> None:
    numbers = {
        "a.csv": "1,2,3\n4,5,6\n", "b.csv": "x;y;z\n1,0;2;3\n4;5;6e0\n", "c.tsv": "1\t2\t3\n\n4\t5\t6\n",
        "d.dat": "# of a run\n 1 2   3 # first\n4 5 6", "e.csv": "\ufeff1.,2,3\r\n4,5,+6\r\n",
    }  # fmt: skip
    for name, text in numbers.items():
        (tmp_path / name).write_bytes(text.encode())
        record = open_record(tmp_path / name, axes="tx", dx=1.0, dt=1.0)
        np.testing.assert_array_equal(record.slab(), [[1, 2, 3], [4, 5, 6]])
    with refused("a.csv has no order of its axes and no mesh spacing and no frame interval: pass axes=.*such as"):
        open_record(tmp_path / "a.csv")
    for text, words in (
        ("a,b\nc,d\n", "no table of numbers"),
        ("1,2\n3\n", "damaged or not in the table"),
        ("", "empty"),
    ):
        (tmp_path / "a.csv").write_text(text)
        with refused(f"a.csv .*{words}"):
            open_record(tmp_path / "a.csv", axes="tx", dx=1.0, dt=1.0)


def test_lines_of_numbers_in_files_are_frames(tmp_path) -> None:
    for number in range(3):
        (tmp_path / f"u{number}.dat").write_text("\n".join(str(number + k) for k in range(5)))
    record = open_record(tmp_path, dx=1.0, dt=1.0)
    np.testing.assert_array_equal(record.slab(), np.add.outer(range(3), range(5)))


def test_videos(tmp_path) -> None:
    path, said = avi(tmp_path, MOVIE, "rawvideo")
    assert open_record(path, **said).notes == ()
    with refused("no mesh spacing and no frame interval"):  # the frames a second are how fast it is shown
        open_record(path)
    assert np.array_equal(read_video(path, None, frozenset()).values[1:3, 2:5], grey(MOVIE)[1:3, 2:5])
    path, said = mp4(tmp_path, MOVIE)
    (note,) = open_record(path, **said).notes
    assert (note.code, note.matters) == ("packed-with-loss", True)
    assert "(mpeg4)" in note.sentence
    path.write_bytes(b"RIFF" + bytes(200))
    with refused("movie.mp4 is damaged or no video"):
        open_record(path, **said)


@pytest.mark.parametrize(
    "text", ["#EXTM3U\n#EXTINF:1,\nfile://{}\n#EXT-X-ENDLIST\n", "ffconcat version 1.0\nfile {}\n"]
)
def test_a_playlist_is_no_video(tmp_path, text) -> None:
    other, _ = avi(tmp_path, MOVIE, "rawvideo")
    (tmp_path / "list.mp4").write_text(text.format(other if "EXT" in text else other.name))
    with refused("list.mp4 is damaged or no video"):
        open_record(tmp_path / "list.mp4", **MESH)


def test_a_colour_video(tmp_path) -> None:
    import av

    with av.open(str(tmp_path / "movie.avi"), "w") as file:
        stream = file.add_stream("png", rate=10)
        stream.height, stream.width, stream.pix_fmt = 16, 16, "rgb24"
        frame = np.zeros((16, 16, 3), "u1") + np.array([200, 20, 20], "u1")
        file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        file.mux(stream.encode())
    with refused("is a colour video: expected grey"):
        open_record(tmp_path / "movie.avi", **MESH)


@pytest.mark.parametrize(("suffix", "library", "extra"), [(".avi", "av", "video"), (".nd2", "bioio", "microscopes")])
def test_a_library_that_is_missing(suffix, library, extra, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / f"movie{suffix}").write_bytes(b"RIFF1234")
    with refused(rf"movie{suffix}.*needs the library {library}, .*run pip install 'doublewell\[{extra}\]'"):
        open_record(tmp_path / f"movie{suffix}")


class BioImage:
    """The interface of bioio's BioImage 3.6, as far as it is used: two scenes with two channels each."""

    scenes = ("Image:0", "Image:1")
    channel_names = ("GFP", "RFP")
    physical_pixel_sizes = SimpleNamespace(Z=None, Y=0.25, X=0.125)
    time_interval = timedelta(seconds=0.5)
    dtype = np.dtype("u2")

    def __init__(self, path) -> None:
        if path.stat().st_size < 10:
            raise UnsupportedFileFormatError(path)
        self.scene = 0

    def set_scene(self, number) -> None:
        self.scene = number

    @property
    def data(self):
        movie = grey(MOVIE).astype("u2")[:, None, None]
        return np.concatenate([movie, 2 * movie], axis=1) + 1000 * self.scene

    @property
    def dims(self):
        return SimpleNamespace(order="TCZYX", **dict(zip("TCZYX", self.data.shape, strict=True)))

    def get_image_dask_data(self, order, **chosen):
        assert order == "TCZYX"
        index = np.ix_(*(chosen.get(name, range(n)) for name, n in zip(order, self.data.shape, strict=True)))
        return self.data[index]


class UnsupportedFileFormatError(Exception):
    pass


def test_microscopes_files(tmp_path, monkeypatch) -> None:
    module = ModuleType("bioio")
    module.BioImage = BioImage
    monkeypatch.setitem(sys.modules, "bioio", module)
    path = tmp_path / "movie.czi"
    path.write_bytes(bytes(100))
    with refused(
        r"several scene and channels: pass var= with one of Image:0:GFP, Image:0:RFP, Image:1:GFP, Image:1:RFP"
    ):
        open_record(path)
    record = open_record(path, var="Image:1:RFP", levels=(1000, 1510))
    assert (record.dx, record.length_unit, record.dt, record.time_unit) == ((0.25, 0.125), "um", 0.5, "s")
    np.testing.assert_allclose(record.slab(1, 3), grey(MOVIE)[1:3] / 127.5 - 1, atol=1e-15)
    monkeypatch.setattr(BioImage, "scenes", ("Image:0",))
    assert open_record(path, var="GFP", levels=(0, 255)).shape == MOVIE.shape
    path.write_bytes(b"1")
    with refused(
        "reading .czi files needs the reader bioio-czi, .*run pip install bioio bioio-czi, or copy the file again"
    ):
        open_record(path)


def test_what_things_are(tmp_path) -> None:
    (tmp_path / "movie.tif").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n")
    with refused("movie.tif is a Git LFS pointer, a few lines that stand for the file: get it with git lfs pull"):
        open_record(tmp_path / "movie.tif")
    (tmp_path / "a").mkdir()
    for number in range(3):
        (tmp_path / "a" / f"{number}.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "a" / "notes").write_text("x")
    with refused(
        r"a is a folder .* without frames \(its files: 3 \.jpg, 1 without a suffix\): .*; pictures packed with loss"
    ):
        open_record(tmp_path / "a")
    with refused(r"0\.jpg has no suffix of a record: .* it is a picture packed with loss \(JPEG\): record PNG or TIFF"):
        open_record(tmp_path / "a" / "0.jpg")
    with refused("run.e-s003 is empty"):
        (tmp_path / "run.e-s003").write_bytes(b"")
        open_record(tmp_path / "run.e-s003")


def test_grey_levels_are_not_asked_twice(tmp_path) -> None:
    path, said = avi(tmp_path, MOVIE)
    assert open_record(path, **{key: said[key] for key in MESH}, **GREYS).origin == "camera"

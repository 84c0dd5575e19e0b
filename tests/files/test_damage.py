"""Files with random damage end in a value or an InputError, never in another error."""

import warnings

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.files import load_result, open_record, save


def damaged(raw, rng):
    """Change, cut, repeat or insert a few bytes."""
    raw = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        place, kind = int(rng.integers(len(raw))), rng.integers(6)
        if kind < 3:
            raw[place] = int(rng.integers(256))
        elif kind == 3:
            raw[place] ^= 1 << int(rng.integers(8))
        elif kind == 4:
            del raw[place : place + int(rng.integers(1, 9))]
        else:
            raw[place:place] = rng.choice([b"9", b"-", b"0" * 9, b'"', b"}", b"[", b"null", b"\x00", b"1e999"])
        if not raw:
            return b""
    return bytes(raw)


def outcomes(call, write, raw, times, seed):
    """Count the values and the refusals of a call on damaged files."""
    rng, values, refusals = np.random.default_rng(seed), 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(times):
            write(damaged(raw, rng))
            try:
                call()
                values += 1
            except InputError:
                refusals += 1
    return values, refusals


@pytest.mark.parametrize("seed", [1, 2])
def test_npz(seed, small, tmp_path):
    path = tmp_path / "movie.npz"
    save(small, path)
    _, refusals = outcomes(lambda: open_record(path).slab(), path.write_bytes, path.read_bytes(), 400, seed)
    assert refusals > 300


def test_npz_where_it_is_read(small, tmp_path):
    """Damage to the directory at the end of the archive, where all sizes and names are."""
    path = tmp_path / "movie.npz"
    save(small, path)
    raw = path.read_bytes()
    cut = raw.index(b"PK\x01\x02")
    _, refusals = outcomes(
        lambda: open_record(path).slab(), lambda tail: path.write_bytes(raw[:cut] + tail), raw[cut:], 400, 3
    )
    assert refusals > 200


def test_compressed_npz(small, tmp_path):
    path = tmp_path / "movie.npz"
    np.savez_compressed(path, u=small.slab(), dx=0.1, dt=1.0)
    _, refusals = outcomes(lambda: open_record(path).slab(), path.write_bytes, path.read_bytes(), 300, 4)
    assert refusals > 200


def test_npy(small, tmp_path):
    path = tmp_path / "movie.npy"
    np.save(path, small.slab())
    raw = path.read_bytes()
    values, refusals = outcomes(
        lambda: open_record(path, dx=0.1, dt=1.0).slab(),
        lambda head: path.write_bytes(head + raw[90:]),
        raw[:90],
        300,
        5,
    )
    assert refusals > 100
    assert values > 0


@pytest.mark.parametrize("place", ["zarr.json", "u/zarr.json", "u/c/0/0/0"])
def test_zarr(place, small, tmp_path):
    save(small, tmp_path / "movie.zarr")
    file = tmp_path / "movie.zarr" / place
    _, refusals = outcomes(
        lambda: open_record(tmp_path / "movie.zarr").slab(), file.write_bytes, file.read_bytes(), 250, 6
    )
    assert refusals > 100


@pytest.mark.parametrize("name", [".zarray", "0.0.0", ".zattrs"])
def test_zarr_of_version_two(name, small, tmp_path):
    import zarr

    array = zarr.create_array(tmp_path / "m.zarr", shape=small.shape, chunks=small.shape, dtype="f8", zarr_format=2)
    array[:] = small.slab()
    array.attrs.update(dx=0.1, dt=1.0)
    file = tmp_path / "m.zarr" / name
    _, refusals = outcomes(lambda: open_record(tmp_path / "m.zarr").slab(), file.write_bytes, file.read_bytes(), 250, 7)
    assert refusals > 20


def test_json(result, tmp_path):
    path = tmp_path / "result.json"
    save(result, path)
    values, refusals = outcomes(lambda: str(load_result(path)), path.write_bytes, path.read_bytes(), 500, 8)
    assert refusals > 400  # all but damage to white space
    assert values + refusals == 500

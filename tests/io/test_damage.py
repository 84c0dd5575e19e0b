"""Files with random damage end in a value or an InputError, never in another error."""

import warnings

import numpy as np
import pytest
from damage import damaged
from movie_writers import WRITERS, files_of

from doublewell.errors import InputError
from doublewell.io import load_result, open_record, save


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


@pytest.mark.parametrize("name", [name for name in WRITERS if not name.startswith(("np", "zarr_plain"))])
def test_formats_of_others(name, tmp_path):
    """A few of what benchmarks/fuzz_files.py does by the thousand; each file of a movie in turn."""
    u = np.random.default_rng(0).uniform(-1, 1, (5, 6, 7)).astype("f4").astype("f8")
    path, said = WRITERS[name](tmp_path, u)
    files, total = files_of(path), [0, 0]
    each = max(2, 40 // len(files))
    for number, file in enumerate(files):
        raw = file.read_bytes()
        counts = outcomes(lambda: open_record(path, **said).slab(), file.write_bytes, raw, each, number)
        total = [a + b for a, b in zip(total, counts, strict=True)]
        file.write_bytes(raw)
    assert sum(total) == each * len(files)
    assert total[1] > 5

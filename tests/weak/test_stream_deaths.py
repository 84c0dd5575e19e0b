"""Workers that die, and runs that die: the answer is that of an undisturbed run, to the last bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from doublewell.difference import compare
from doublewell.errors import InputError
from doublewell.identify import identify as identify_any
from doublewell.io import load_result, open_record, save
from doublewell.options import Compute, DoubleWell, Weak

identify = partial(identify_any, method="weak")


def same_to_the_bit(one, other) -> bool:
    """Whether laws and evidence are; tests of the moments, whose sums BLAS divides among threads, to round-off."""
    bare = [replace(each, diagnostics=replace(each.diagnostics, moments=None)) for each in (one, other)]
    found = compare(*bare, tolerance=0.0)
    return found.same and found.equal == found.fields and compare(one, other, tolerance=1e-8).same


class Killer:
    """A callback that kills a process, once, when the first slab is there."""

    def __init__(self, processes) -> None:
        self.processes, self.killed = processes, None

    def __call__(self, words, done, total) -> None:
        if self.killed is None and words.startswith("reading slabs") and 0 < done < total:
            self.killed = self.processes()[0]
            os.kill(self.killed, signal.SIGKILL)


def test_a_spawned_worker_is_killed(stored, many_slabs) -> None:
    calm = identify(stored, 1.0, method=Weak(memory="1GB"))
    killer = Killer(lambda: [child.pid for child in active_children()])
    assert same_to_the_bit(
        calm, identify(stored, 1.0, method=Weak(memory="1GB"), compute=Compute(workers=2), progress=killer)
    )
    assert killer.killed is not None


@pytest.fixture
def client():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def test_a_dask_worker_is_killed(stored, many_slabs, client) -> None:
    calm = identify(stored, 1.0, method=Weak(memory="1GB"))
    killer = Killer(lambda: list(client.run(os.getpid).values()))
    assert same_to_the_bit(
        calm, identify(stored, 1.0, method=Weak(memory="1GB"), compute=Compute(scheduler=client), progress=killer)
    )
    assert killer.killed is not None
    by_address = identify(stored, 1.0, method=Weak(memory="1GB"), compute=Compute(scheduler=client.scheduler.address))
    assert same_to_the_bit(calm, by_address)


def test_no_scheduler_there(stored, monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("doublewell.compute.run._PATIENCE", "0.5s")
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:1' .*start one with dask"):
        identify(stored, compute=Compute(scheduler="tcp://127.0.0.1:1"))


SCRIPT = """
import sys, time
from doublewell.io import open_record, save
from doublewell.identify import identify
from doublewell.options import Compute, Weak
from doublewell.weak import stream as plan

def watch(words, done, total):
    if words.startswith("reading slabs"):
        print(done, flush=True)
        if done == stop:
            time.sleep(60)

if __name__ == "__main__":
    path, checkpoint, out, workers, stop = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    plan._HALOS = plan._SLAB_BYTES = 1
    result = identify(
        open_record(path), 1.0, method=Weak(memory="1GB"), progress=watch,
        compute=Compute(workers=workers, checkpoint=checkpoint),
    )
    save(result, out)
"""


def start(tmp_path, movie_path, *, workers, stop):
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    words = [script, movie_path, tmp_path / "part.npz", tmp_path / "result.json", workers, stop]
    return subprocess.Popen([sys.executable, *map(str, words)], stdout=subprocess.PIPE, text=True)


def test_a_run_that_is_killed_goes_on(stored, movie_path, tmp_path, many_slabs) -> None:
    calm = identify(stored, 1.0, method=Weak(memory="1GB"))
    with start(tmp_path, movie_path, workers=2, stop=3) as first:
        assert [int(first.stdout.readline()) for _ in range(3)] == [1, 2, 3]
        first.kill()
    assert first.returncode == -signal.SIGKILL
    assert not (tmp_path / "result.json").exists()
    with start(tmp_path, movie_path, workers=2, stop=99) as second:
        counts = [int(line) for line in second.stdout]
    assert counts == [3, 4, 5, 6]  # three were there, three are read
    assert same_to_the_bit(load_result(tmp_path / "result.json"), calm)


def test_a_finished_checkpoint_is_read_again(stored, tmp_path, many_slabs) -> None:
    path, said = tmp_path / "part.npz", []
    one = identify(stored, 1.0, compute=Compute(checkpoint=path))
    other = identify(stored, 1.0, compute=Compute(checkpoint=path), progress=lambda *words: said.append(words[0]))
    assert same_to_the_bit(one, other)
    assert set(said) == {"looking at the record"}
    identify(
        stored, 1.0, law=DoubleWell(degree=2, constraint="none"), compute=Compute(checkpoint=path)
    )  # the evidence is the same


def test_a_checkpoint_of_something_else(long_movie, stored, tmp_path, many_slabs) -> None:
    path = tmp_path / "part.npz"
    save(long_movie, tmp_path / "copy.zarr")
    record = open_record(tmp_path / "copy.zarr")
    identify(record, compute=Compute(checkpoint=path))
    refused = partial(pytest.raises, InputError)
    with refused(match="part.npz is the checkpoint of another run: the record changed; .*another name, or delete"):
        identify(stored, compute=Compute(checkpoint=path))
    with refused(match="another run: the options of the fit changed"):
        identify(record, law=3, compute=Compute(checkpoint=path))
    with refused(match="another run: the record changed"):
        identify(record.replace(times=2.0 * record.times), compute=Compute(checkpoint=path))
    chunk = next(
        file for file in (tmp_path / "copy.zarr" / "u").rglob("*") if file.is_file() and file.name != "zarr.json"
    )
    os.utime(chunk, (1, 1))
    with refused(match="another run: the record changed"):
        identify(record, compute=Compute(checkpoint=path))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"no zip at all"])
def test_what_is_no_checkpoint(stored, tmp_path, content) -> None:
    path = tmp_path / "part.npz"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match="part.npz is not a checkpoint of this version .* delete the file to begin again"
    ):
        identify(stored, compute=Compute(checkpoint=path))
    assert path.read_bytes() == content


def test_a_checkpoint_with_pickles_is_not_loaded(stored, tmp_path) -> None:
    path = tmp_path / "part.npz"
    np.savez(path, about=np.array([{"format": 1}], dtype=object))
    with pytest.raises(InputError, match="part.npz is not a checkpoint of this version"):
        identify(stored, compute=Compute(checkpoint=path))


def test_a_folder_that_is_not_there(stored, tmp_path) -> None:
    with pytest.raises(InputError, match="the folder .* does not exist"):
        identify(stored, compute=Compute(checkpoint=Path(tmp_path, "none", "part.npz")))

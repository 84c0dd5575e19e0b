"""A record larger than memory, streamed: peak memory and speed against the kernel alone and the store alone.

Run: python benchmarks/scale.py --gigabytes 20 --folder FOLDER
It writes FOLDER/scale_N.zarr (kept with --keep), N the gigabytes, and benchmarks/results/scale.json (--results NAME).
Every row is measured in a process of its own. Speeds are of values at which a test function can be centred, 8 bytes
each, so that short and long records compare. Peak memory is the largest of the process and its workers. A Dask worker
has one core, for the kernel and for reading ahead; other workers read ahead on any core that is free.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from common import print_table, save_results, sized, target, words

SIDE, TILE = sized((2048, 256), tiny=(128, 64))
MEMORY = "900MB"
SUPPORTS = [(5, 6 / TILE), (8, 12 / TILE)]
DEGREE = 2
KERNEL_FRAMES = 24  # centre frames that the kernel is timed on
WAYS = sized([("processes", 1), ("processes", 2), ("Dask", 1), ("Dask", 2)], tiny=[("processes", 1), ("Dask", 1)])
ASKED = {"peak MB": 1000, "share of the slower": 0.7, "Dask, 2 workers over 1": 1.7}


@dataclass(frozen=True)
class Tiled:
    """A small movie repeated over a large frame, with noise from a pool that is moved from frame to frame."""

    frames: int
    side: int = SIDE
    ndim: int = 3

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames, self.side, self.side

    @property
    def dtype(self) -> np.dtype:
        return np.dtype("f8")

    @cached_property
    def noise(self) -> np.ndarray:
        return 0.02 * np.random.default_rng(0).standard_normal((self.side, self.side))

    def __getitem__(self, index: slice) -> np.ndarray:
        return np.stack([self.frame(k) for k in range(*index.indices(self.frames))])

    def frame(self, k: int) -> np.ndarray:
        x = (np.arange(TILE) + 0.5) / TILE - 0.5
        radius = 0.35 * np.sqrt(1.0 - 0.6 * k / self.frames)
        small = np.tanh((radius - np.hypot(x[:, None], x)) / (np.sqrt(2.0) * 4 / TILE))
        return np.tile(small, (self.side // TILE, self.side // TILE)) + np.roll(self.noise, (601 * k, 1301 * k), (0, 1))


def record_of(values):
    from doublewell.record import Record

    return Record(values, dx=1 / TILE, dt=1e-5, q=1.0)


def write(path: Path, gigabytes: float) -> None:
    from doublewell.io import save

    frames = round(gigabytes * 1e9 / (8 * SIDE * SIDE))
    save(record_of(Tiled(frames) if frames else Tiled(40, TILE)), path)


def inner_bytes(record) -> int:
    """Bytes of the values that are centres of the longer support."""
    half = [SUPPORTS[1][0] + 2, *(round(SUPPORTS[1][1] / h) + 2 for h in record.dx)]
    return 8 * int(np.prod([n - 2 * k for n, k in zip(record.shape, half, strict=True)]))


def kernel(path: Path) -> dict:
    from doublewell.weak.assembly import weak_evidence
    from doublewell.io import open_record
    from doublewell.law import Bernstein

    stored = open_record(path)
    record = record_of(stored.slab(0, KERNEL_FRAMES + 2 * (SUPPORTS[1][0] + 2)))
    weak_evidence(record_of(record.slab()[:, :64, :64]), Bernstein(DEGREE), SUPPORTS)
    seconds = min(_timed(lambda: weak_evidence(record, Bernstein(DEGREE), SUPPORTS)) for _ in range(2))
    return {"what": "kernel, in memory", "seconds": seconds, "bytes": inner_bytes(record)}


def store(path: Path) -> dict:
    from doublewell.io import open_record

    record = open_record(path)

    def read() -> None:
        for k in range(0, record.frames, 4):
            record.values[k : min(k + 4, record.frames)]

    return {"what": "reading the store", "seconds": _timed(read), "bytes": 8 * int(np.prod(record.shape))}


def stream(path: Path, kind: str, workers: int) -> dict:
    """Identify the record, processes started and kernels loaded before."""
    from doublewell.io import open_record
    from doublewell.identify import identify
    from doublewell.options import Compute, Weak

    record = open_record(path)
    small = open_record(path.with_name("small.zarr"))
    options = {"method": Weak(supports=SUPPORTS, memory=MEMORY), "law": DEGREE}
    with _resources(kind, workers, small) as (given, processes):
        identify(small, **options, compute=Compute(**given))
        answer = {}
        seconds = _timed(lambda: answer.update(result=identify(record, **options, compute=Compute(**given))))
        peaks = [_peak(process) for process in (os.getpid(), *processes())]
    words = f"{kind}, {workers} worker{'s' if workers > 1 else ''}"
    rows = answer["result"].diagnostics.rows
    return {"what": words, "seconds": seconds, "bytes": inner_bytes(record), "peak": max(peaks), "rows": rows}


class _resources:
    """The workers of a measurement, and their process numbers."""

    def __init__(self, kind: str, workers: int, small) -> None:
        self.kind, self.workers, self.small = kind, workers, small

    def __enter__(self):
        from contextlib import ExitStack

        self.stack = ExitStack()
        if self.kind == "Dask":
            from distributed import Client, LocalCluster

            cluster = LocalCluster(n_workers=self.workers, threads_per_worker=1, dashboard_address=None)
            client = self.stack.enter_context(Client(self.stack.enter_context(cluster)))
            addresses = sorted(client.scheduler_info()["workers"])
            for core, address in zip(sorted(os.sched_getaffinity(0)), addresses, strict=False):
                client.run(_pin, core, workers=[address])
            return {"scheduler": client}, lambda: client.run(os.getpid).values()
        if self.workers == 1:
            return {}, lambda: []
        from doublewell.compute.run import worker_pool

        pool = self.stack.enter_context(worker_pool(self.workers))
        return {"scheduler": pool}, lambda: list(pool._processes)

    def __exit__(self, *error) -> None:
        self.stack.__exit__(*error)


def _pin(core: int) -> None:
    """Keep all threads of this process on one core."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})


def _timed(action) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _peak(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def _in_own_process(*words: str) -> dict:
    done = subprocess.run([sys.executable, __file__, "--one", *words], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(gigabytes: float, folder: Path, results: str, keep: bool) -> None:
    path = folder / f"scale_{gigabytes:g}.zarr"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        seconds = _timed(lambda: _in_own_process("write", str(path), str(gigabytes)))
        print(f"wrote {gigabytes:g} GB in {seconds:.0f} s", flush=True)
    if not path.with_name("small.zarr").exists():
        _in_own_process("write", str(path.with_name("small.zarr")), "0")
    rows = [_in_own_process(what, str(path)) for what in ("kernel", "store")]
    for kind, workers in WAYS:
        rows.append(_in_own_process("stream", str(path), kind, str(workers)))
        print(rows[-1], flush=True)
    table = _table(rows, gigabytes)
    print_table(f"{gigabytes:g} GB, {SIDE} x {SIDE} float64, degree {DEGREE}, memory={MEMORY}; asked: {ASKED}", table)
    save_results(results, table)
    if not keep:
        shutil.rmtree(path)
        shutil.rmtree(path.with_name("small.zarr"))


def _table(rows: list[dict], gigabytes: float) -> list[dict]:
    speed = {row["what"]: row["bytes"] / row["seconds"] / 1e6 for row in rows}
    slower = min(speed["kernel, in memory"], speed["reading the store"])
    table = []
    for row in rows:
        what, kind = row["what"], row["what"].split(",")[0]
        one = speed.get(f"{kind}, 1 worker")
        table.append(
            {
                "what": what,
                "GB": gigabytes,
                "seconds": round(row["seconds"], 2),
                "MB/s": round(speed[what], 1),
                "share of the slower": round(speed[what] / slower, 3) if "rows" in row else "",
                "over 1 worker": round(speed[what] / one, 2) if one and "2 workers" in what else "",
                "peak MB": round(row["peak"] / 1e6) if "peak" in row else "",
                "rows": row.get("rows", ""),
            }
        )
    return table


def one(what: str, path: str, *rest: str) -> dict:
    if what == "write":
        write(Path(path), float(rest[0]))
        return {}
    if what == "stream":
        return stream(Path(path), rest[0], int(rest[1]))
    return {"kernel": kernel, "store": store}[what](Path(path))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(*sys.argv[2:])))
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--gigabytes", type=float, default=1.0)
        parser.add_argument("--folder", type=Path, required=True)
        parser.add_argument("--results", default="scale")
        parser.add_argument("--keep", action="store_true")
        given = parser.parse_args(words(f"--gigabytes 0.006 --folder {target(Path('scale'))}"))
        main(given.gigabytes, given.folder, given.results, given.keep)

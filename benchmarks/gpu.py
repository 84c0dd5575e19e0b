"""A GPU against two CPU cores of the same machine: weak evidence of a large record, and batches of trajectories.

Run on a machine with a GPU: python benchmarks/gpu.py [--frames 101] [--cells 1024] [--out FOLDER]

Weak: m = 5, both supports. The floor of the passes, per centre and support, in doubles moved, with p features in 2-D:

    time: read p + 1, write p + 2         y: read p + 2, write p + 3
    x: read p + 3, write p + 2            R: read p + 2                        sum: 7 p + 15

and once for both supports, for the features of every value: read 1, write p;

all at the rate of a copy that is measured in the same run. The floor of the arithmetic, per centre and support,

    2 [(p + 1) T + T' + (p + 2) Y + Y' + (p + 2) X + X' + (p + 2)(p + 3)] operations

with T, Y, X taps of the value, T', Y', X' of the derivative, at the rate of a product of two matrices of 8192 x 8192.
The floor is the longer of the two. Copying the record to the device has a line of its own.

Trajectories: 96 x 96, 61 frames, noise 0.03, read without the adequacy check; programs compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import RESULTS, SMALL, TINY, machine, print_table, sized, target, words

from doublewell.compute.partition import Region
from doublewell.runtime import Processor
from doublewell.weak.assembly import weak_evidence
from doublewell.weak.weights import Support
from doublewell.weak.weights import axis_weights
from doublewell.law import Bernstein, named_law
from doublewell.record import Record

DEGREE = 5
CELLS = sized((6, 12), tiny=(4, 6))  # half-widths of the supports
FRAMES = (5, 8)
TILE = sized(256, tiny=32)
BATCH = sized(20, tiny=1)
MESH, LENGTH, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)  # of the trajectories


def best(action: Callable[[], object], repeats: int = 3) -> float:
    """Run once before, then return the shortest time."""
    action()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)


def large_record(frames: int, cells: int) -> Record:
    """Shrinking discs side by side, with noise."""
    x = (np.arange(TILE) + 0.5) / TILE - 0.5
    noise = 0.02 * np.random.default_rng(0).standard_normal((cells, cells))
    values = np.empty((frames, cells, cells))
    for k in range(frames):
        radius = 0.35 * np.sqrt(1.0 - 0.6 * k / frames)
        disc = np.tanh((radius - np.hypot(x[:, None], x)) / (np.sqrt(2.0) * 4 / TILE))
        count = -(-cells // TILE)
        values[k] = np.tile(disc, (count, count))[:cells, :cells] + np.roll(noise, (601 * k, 1301 * k), (0, 1))
    return Record(values, dx=1.0 / TILE, dt=1e-5, q=1.0)


def supports() -> list[Support]:
    return [Support(frames, cells / TILE) for frames, cells in zip(FRAMES, CELLS, strict=True)]


def rates() -> dict:
    """Measure what the device can do at best."""
    import jax
    import jax.numpy as jnp

    from doublewell.runtime import double_precision

    with double_precision():
        long, square = jnp.ones(2**28), jnp.ones((8192, 8192))
        copy, product = jax.jit(lambda a: a + 1.0), jax.jit(lambda a: a @ a)
        moved = best(lambda: copy(long).block_until_ready())
        multiplied = best(lambda: product(square).block_until_ready())
    return {"copy TB/s": 2 * long.nbytes / moved / 1e12, "product TFLOP/s": 2 * 8192**3 / multiplied / 1e12}


def floor(record: Record, seen: dict) -> dict:
    """Return the seconds below which the passes, or their arithmetic, cannot go."""
    p, operations = DEGREE + 1, 0.0
    moved = 8.0 * (p + 1) * np.prod(record.shape)
    for support in supports():
        time_axis, space = axis_weights(support.frames, 1.0), axis_weights(support.length / record.dx[0], 1.0)
        centres = (record.frames - 2 * time_axis.half) * np.prod([n - 2 * space.half for n in record.mesh])
        moved += 8.0 * (7 * p + 15) * centres
        taps = (p + 1) * time_axis.value.size + time_axis.first.size
        taps += 2 * ((p + 2) * space.value.size + space.second.size)
        operations += 2.0 * (taps + (p + 2) * (p + 3)) * centres
    return {
        "GB": moved / 1e9,
        "memory floor ms": moved / seen["copy TB/s"] / 1e9,
        "GFLOP": operations / 1e9,
        "FLOP floor ms": operations / seen["product TFLOP/s"] / 1e9,
    }


def weak(frames: int, cells: int) -> dict:
    from doublewell.dynamics import ALLEN_CAHN
    from doublewell.weak.assembly import Reader, Window
    from doublewell.weak.gpu import DevicePass, on_device

    record, family, seen = large_record(frames, cells), Bernstein(DEGREE), rates()
    found = {**seen, **floor(record, seen)}
    fields = record.slab()[:, None]
    found["copy to the device ms"] = 1e3 * best(lambda: on_device(fields).block_until_ready())
    answers = {}
    for precision in ("double", "single"):
        processor = Processor("gpu", precision)
        whole, form = Region.whole(record), ALLEN_CAHN.weak_form
        readers = [Reader(record, family, support, "discrete", whole, form) for support in supports()]
        both = DevicePass(readers, precision)
        window = Window(0, frames, 0, fields, None, (0, 0, 0), np.empty((0, 0)))
        parts = [reader.part(window, reader.half[0], frames - reader.half[0]) for reader in readers]
        copy = on_device(fields, precision)

        def on_the_device(both=both, copy=copy, window=window, parts=parts) -> None:
            both.read_copy(copy, window, parts)

        found[f"{precision}, on the device ms"] = 1e3 * best(on_the_device)
        del copy
        answers[precision] = weak_evidence(record, family, supports(), processor=processor)
        found[f"{precision}, from host memory ms"] = 1e3 * best(
            lambda processor=processor: weak_evidence(record, family, supports(), processor=processor)
        )
    pairs = zip(answers["double"].blocks, answers["single"].blocks, strict=True)
    found["single against double, largest change of R"] = max(
        float(np.abs(np.linalg.solve(a.triangle.T, b.triangle.T) - np.eye(len(a.triangle))).max()) for a, b in pairs
    )
    found["rows"] = answers["double"].rows
    cpu = _in_own_process("weak", frames, cells)
    found["two CPU cores ms"] = cpu["ms"]
    found["GPU against CPU, largest change of R"] = max(
        float(np.abs(np.linalg.solve(np.array(b).T, a.triangle.T) - np.eye(len(a.triangle))).max())
        for a, b in zip(answers["double"].blocks, cpu["triangles"], strict=True)
    )
    found["rows on the CPU"] = cpu["rows"]
    nearest = max(found["memory floor ms"], found["FLOP floor ms"])
    found["on the device over the floor"] = found["double, on the device ms"] / nearest
    found["CPU over GPU, from host memory"] = cpu["ms"] / found["double, from host memory ms"]
    found["CPU over GPU, on the device"] = cpu["ms"] / found["double, on the device ms"]
    return found


def weak_on_cpu(frames: int, cells: int) -> dict:
    """Two threads on two cores."""
    record, family, answer = large_record(frames, cells), Bernstein(DEGREE), {}
    took = best(lambda: answer.update(found=weak_evidence(record, family, supports(), threads=2)), repeats=2)
    found = answer["found"]
    return {"ms": 1e3 * took, "rows": found.rows, "triangles": [one.triangle.tolist() for one in found.blocks]}


def movies(first: int, count: int) -> list[Record]:
    from doublewell.simulate import add_noise, initial_field, simulate

    start = initial_field("nonconvex", (MESH, MESH), 1 / MESH, epsilon=EPSILON)
    clean = simulate(named_law("sixth"), start, dx=1 / MESH, dt=DT, frames=LENGTH, epsilon=EPSILON)
    return [add_noise(clean, 0.03, seed=first + k) for k in range(count)]


def trajectories(count: int, workers: int | None) -> dict:
    """Return the seconds a record takes, programs compiled on other records of the same number."""
    from doublewell.identify import identify_many
    from doublewell.options import Compute

    options = {"compute": Compute(workers=workers)}
    before, records = movies(880_000, count), movies(881_000, count)
    identify_many(before, check=False, **options)
    began = time.perf_counter()
    identify_many(records, check=False, **options)
    return {"seconds a record": (time.perf_counter() - began) / count}


def _in_own_process(what: str, *numbers: int) -> dict:
    """Measure on two cores and without a GPU."""
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, __file__, "--on-cpu", what, *map(str, numbers)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=settings)
    return json.loads(done.stdout.splitlines()[-1])


def batches() -> dict:
    gpu = trajectories(BATCH, None)["seconds a record"]
    cpu = _in_own_process("trajectories", 6, 2)["seconds a record"]
    return {
        f"GPU, batches of {BATCH}, seconds a record": gpu, "two CPU cores, seconds a record": cpu, "ratio": cpu / gpu
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=101)
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--parts", nargs="+", choices=["weak", "trajectories"], default=["weak", "trajectories"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args(words(f"--frames 25 --cells 64 --out {target(RESULTS)}"))
    import jax

    from doublewell.runtime import on_gpu

    if not on_gpu():
        print("needs a GPU" + ": the CPU side alone" * TINY)
        if not TINY:
            raise SystemExit(1)
        print(weak_on_cpu(asked.frames, asked.cells), trajectories(1, 1))
        return
    about = {
        "device": jax.devices()[0].device_kind,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "record": [asked.frames, asked.cells, asked.cells],
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "gpu.json"
    before: dict = json.loads(kept.read_text()) if kept.exists() else {}
    found = {**(before if before.get("about") == about else {}), "about": about}  # the other part, if it is of today
    for part in asked.parts:
        found[part] = weak(asked.frames, asked.cells) if part == "weak" else batches()
        print_table(part, [{"what": key, "value": f"{value:.6g}"} for key, value in found[part].items()])
        kept.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-cpu"]:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        what, *numbers = sys.argv[2:]
        print(json.dumps({"weak": weak_on_cpu, "trajectories": trajectories}[what](*map(int, numbers))))
    else:
        main()

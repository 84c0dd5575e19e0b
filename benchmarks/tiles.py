"""A record read whole and in tiles: errors, bands, coverage, seconds and memory.

    python benchmarks/tiles.py [--seeds N] [--first SEED] [--cells N] [--frames N] [--cuts 1 2 3] [--noise S] [--check]

The record is of the sixth law, with curved interfaces all over a periodic domain, by CNAB2. A cut of k reads it as
k x k tiles, by the memory that this takes; a cut of 1 reads it whole. Every cut is a process of its own: its peak
memory is that of the reading, its seconds those of the first record (compiled programs are kept between runs) and of
the later ones. On a GPU the sizes are larger, tiles of one shape are a batch, and the device's peak memory is told
too. Writes results/tiles.json, or results/tiles_gpu.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import print_table, save_results, words

from doublewell.options import Trajectory
from doublewell.io import save

LAW, EPSILON, H = "sixth", 0.03, 1 / 96
PHASES = np.linspace(-1.0, 1.0, 401)


def make(cells: int, frames: int):
    """Interfaces 9 cells wide, as in the study's records of 96 x 96, on a domain of any number of cells."""
    from doublewell.law import named_law
    from doublewell.simulate import simulate

    start = np.tanh(_waves(cells) / (np.sqrt(2.0) * EPSILON))
    return simulate(named_law(LAW), start, dx=H, dt=5e-5, frames=frames, epsilon=EPSILON, substeps=12)


def _waves(cells: int):
    """Return a smooth periodic field, about a distance from its zero lines; the same for every seed of the noise."""
    rng, x = np.random.default_rng(5), 2 * np.pi * (np.arange(cells) + 0.5) / cells
    most = max(2, round(2.5 * cells * H))
    total, slope = np.zeros((cells, cells)), 0.0
    for k in range(-most, most + 1):
        for m in range(1, most + 1):
            size = rng.standard_normal()
            total += size * np.cos(k * x[:, None] + m * x + rng.uniform(0, 2 * np.pi))
            slope += 0.5 * size**2 * (k**2 + m**2) * (2 * np.pi / (cells * H)) ** 2
    return total / np.sqrt(slope)


def budget(record, cut: int) -> int:
    """Return the memory that tiles of a cut take, to the byte; whole records get all there is."""
    from doublewell.likelihood import first_substeps
    from doublewell.compute.partition import tile_memory, window_copies

    if cut == 1:
        return 10**15
    side = -(-record.mesh[0] // cut)
    steps = first_substeps(record.replace(boundary="open"), 2.0)
    return tile_memory(window_copies(9, steps), record.frames * side**2)


def measure(cut: int, path: str, noise: float, seeds: list[int], check: bool) -> dict:
    from doublewell.runtime import device_names, on_gpu
    from doublewell.io import open_record
    from doublewell.identify import identify
    from doublewell.law import named_law
    from doublewell.simulate import add_noise

    clean = open_record(path)
    frames, cells = clean.frames, clean.mesh[0]
    exact = named_law(LAW).effective(EPSILON).force(PHASES)
    memory, rows = budget(clean, cut), []
    for seed in seeds:
        record = add_noise(clean, noise, seed=seed)  # in memory, on top of what the reading takes
        began = time.perf_counter()
        result = identify(record, method=Trajectory(memory=memory), check=check)
        seconds = time.perf_counter() - began
        low, high = result.band("force", PHASES)
        features = result.posterior.family.features(PHASES)
        spread = np.sqrt(np.sum(features * (result.posterior.covariance @ features)))
        fit = result.diagnostics.likelihood
        rows.append(
            {
                "seed": seed,
                "seconds": seconds,
                "error, %": 100 * float(np.linalg.norm(result.force(PHASES) - exact) / np.linalg.norm(exact)),
                "spread, %": 100 * float(spread / np.linalg.norm(exact)),
                "band, %": 100 * float(np.sqrt(np.mean((0.5 * (high - low)) ** 2) / np.mean(exact**2))),
                "covered": float(np.mean((low <= exact) & (exact <= high))),
                "noise": fit.noise,
                "rounds": fit.rounds,
                "tiles": None if fit.tiles is None else [fit.tiles.read, fit.tiles.empty, *fit.tiles.shape],
                "agree": [sum(one.agrees for one in result.agreements), len(result.agreements)],
                "verdict": None if result.adequacy is None else result.adequacy.verdict,
            }
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    device = None
    if on_gpu():
        import jax

        device = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0) / 1e9
    return {
        "cut": cut,
        "record": f"{frames} x {cells} x {cells}",
        "noise": noise,
        "device": device_names()[0],
        "budget, GB": None if cut == 1 else memory / 1e9,
        "peak memory, GB": peak,
        "peak on the device, GB": device,
        "rows": rows,
    }


def shown(found: dict, whole: dict | None) -> dict:
    rows = found["rows"]
    rms = {name: float(np.sqrt(np.mean([row[name] ** 2 for row in rows]))) for name in ("error, %", "spread, %")}
    first = rows[0]["tiles"]
    table = {
        "record": found["record"],
        "tiles": "whole" if first is None else f"{first[0]} of {' x '.join(map(str, first[2:]))}",
        "records": len(rows),
        "error, %": f"{rms['error, %']:.3f}",
        "spread, %": f"{rms['spread, %']:.3f}",
        "covered": f"{np.mean([row['covered'] for row in rows]):.2f}",
        "first, s": f"{rows[0]['seconds']:.0f}",
        "later, s": f"{np.mean([row['seconds'] for row in rows[1:]]):.1f}" if len(rows) > 1 else "",
        "peak, GB": f"{found['peak memory, GB']:.2f}",
        "budget, GB": "" if found["budget, GB"] is None else f"{found['budget, GB']:.2f}",
    }
    if whole is not None:
        ratio = np.mean([row["spread, %"] for row in rows]) / np.mean([row["spread, %"] for row in whole["rows"]])
        table["spread / whole"] = f"{ratio:.3f}"
    return table


def on_a_gpu() -> bool:
    code = "from doublewell.runtime import on_gpu; print(int(on_gpu()))"
    return (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "1"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=910_000)
    parser.add_argument("--cells", type=int)
    parser.add_argument("--frames", type=int)
    parser.add_argument("--cuts", type=int, nargs="+")
    parser.add_argument("--noise", type=float, default=0.03)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args(words("--seeds 1 --cells 48 --frames 15 --cuts 2"))
    gpu = on_a_gpu()
    cells, frames = asked.cells or (512 if gpu else 144), asked.frames or (61 if gpu else 21)
    seeds = list(range(asked.first, asked.first + asked.seeds))
    found: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "movie.npz")
        save(make(cells, frames), path)
        for cut in asked.cuts or ([1, 4] if gpu else [1, 2, 3]):
            arguments = (cut, path, asked.noise, seeds, asked.check)
            code = f"import json; from tiles import measure; print(json.dumps(measure{arguments}))"
            done = subprocess.run(
                [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parent
            )
            found.append(json.loads(done.stdout.splitlines()[-1]))
            whole = next((one for one in found if one["cut"] == 1), None)
            print_table("A record whole and in tiles", [shown(one, whole) for one in found])
            save_results("tiles_gpu" if gpu else "tiles", found)


if __name__ == "__main__":
    main()

"""Answers of a GPU beside those of the CPU of the same machine: `python benchmarks/gpu_check.py [--tiny]`.

Weak moments in double and single precision and streamed, one trajectory, a batch of records, and tiles. Differences of
weak forces are relative, those of trajectory fits in standard errors. The figures go to results/gpu_check.json.
"""

from __future__ import annotations

import sys
import time
from datetime import date
from pathlib import Path

import numpy as np

import doublewell as dw
from doublewell.law import named_law
from doublewell.runtime import on_gpu
from doublewell.simulate import add_noise, initial_field, simulate

U = np.linspace(-0.9, 0.9, 18)  # at u = 0 the force of symmetric wells is zero, and so is its error


def movie(seed: int, frames: int = 61, cells: int = 96) -> dw.Record:
    epsilon = 0.03 * 96 / cells
    start = initial_field("nonconvex", (cells, cells), 1 / cells, epsilon=epsilon)
    dt = 5e-5 * (epsilon / 0.03) ** 2
    clean = simulate(named_law("sixth"), start, dx=1 / cells, dt=dt, frames=frames, epsilon=epsilon, solver="cnab2")
    return add_noise(clean, 0.03, seed=seed)


def timed(action) -> tuple[object, float]:
    """Call twice; return the answer and the seconds of the second call."""
    action()
    began = time.perf_counter()
    return action(), time.perf_counter() - began


def relative(one: dw.Result, other: dw.Result) -> float:
    return float(np.max(np.abs(one.force(U) - other.force(U))) / np.max(np.abs(other.force(U))))


def in_errors(one: dw.Result, other: dw.Result) -> float:
    low, high = other.band("force", U)
    return float(np.max(np.abs(one.force(U) - other.force(U)) / ((high - low) / 3.92)))


def main() -> None:
    if not on_gpu():
        print("JAX sees no GPU here: nothing to compare")
        return
    first, figures = movie(1), {}
    gpu, cpu = dw.Compute(device="gpu"), dw.Compute(device="cpu")
    weak = dw.identify(first, method="weak", compute=cpu)
    for name, method in {
        "double": "weak",
        "single": dw.Weak(precision="single"),
        "streamed": dw.Weak(memory="2GB"),
    }.items():
        figures[f"weak, {name}"] = relative(dw.identify(first, method=method, compute=gpu), weak)
    fits = {}
    for name, compute in (("gpu", gpu), ("cpu", cpu)):
        fits[name], figures[f"trajectory, {name}, s"] = timed(
            lambda compute=compute: dw.identify(first, compute=compute)
        )
    figures["trajectory, standard errors"] = in_errors(fits["gpu"], fits["cpu"])
    records = [movie(seed) for seed in range(2, 8)]
    many, figures["batch of 6, s"] = timed(lambda: dw.identify_many(records, check=False))
    figures["batch, standard errors"] = in_errors(many[0], dw.identify(records[0], check=False))
    large = movie(9, 31, 128)
    tiled = dw.identify(large, method=dw.Trajectory(memory="1.1GB"), check=False)
    figures["tiles"] = tiled.diagnostics.likelihood.tiles.read
    figures["tiles, standard errors"] = in_errors(tiled, dw.identify(large, check=False))
    for name, value in figures.items():
        print(f"{name:32} {value:.3g}", flush=True)
    if "--tiny" not in sys.argv[1:]:
        import jax
        from common import machine, write_json

        about = {"device": jax.devices()[0].device_kind, "date": str(date.today()), "machine": machine()}
        out = Path(sys.argv[sys.argv.index("--out") + 1]) if "--out" in sys.argv else Path(__file__).parent / "results"
        write_json(
            out / "gpu_check.json",
            about | {"rows": [{"figure": k, "value": v} for k, v in figures.items()]},
        )


if __name__ == "__main__":
    main()

"""Movies of Ising models, whose free energy nobody chose: tension from capillary waves against exact values.

    python benchmarks/ising.py [PART ...] [--tiny]     # results/ising.json; rows of other parts stay

Spins s = +-1 on a square lattice, H = -J sum of s s over nearest neighbours, J = 1; movies of block spins, the means
over b x b spins, after equilibration. Time is in sweeps, length in lattice spacings. Exact are the magnetisation m of a
phase (Yang 1952), the tension sigma = 2 J + kT ln tanh(J/kT) of an interface along an axis (Onsager 1944), and its
stiffness sigma + sigma'' = kT sinh(sigma/kT), which is what capillary waves measure on a lattice. In the Kac model each
spin is coupled by J/n to its n neighbours within a range R; as R grows it becomes that of mean-field theory,

    f(m) = -(J/2) m^2 + kT [(1+m)/2 ln (1+m)/2 + (1-m)/2 ln (1-m)/2],    kT_c = J,    kappa = J <r^2> / 4

with the gradient energy kappa/2 |grad m|^2, <r^2> the mean square distance of the neighbours.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from common import RESULTS, markdown, print_table, save_results, sized, target, words
from numba import njit

import doublewell as dw

Rows = Iterator[dict[str, Any]]
CRITICAL = 2.0 / np.log(1.0 + np.sqrt(2.0))  # kT_c / J


@njit(cache=True)
def heat_bath(spins: Any, up: Any, sweeps: int, rng: Any) -> None:
    """Draw all spins given their four neighbours, those of one colour of a checkerboard after the other."""
    rows, columns = spins.shape
    for colour in range(2 * sweeps):
        for i in range(rows):
            above, line, below = spins[i - 1], spins[i], spins[i + 1 - rows]
            for j in range((i + colour) % 2, columns, 2):
                total = above[j] + below[j] + line[j - 1] + line[j + 1 - columns]
                line[j] = 1 if rng.random() < up[(total + 4) // 2] else -1


@njit(cache=True)
def exchange(spins: Any, up: Any, sweeps: int, rng: Any) -> None:
    """Draw the order of two neighbours that differ, a pair at random, given the six neighbours of the pair."""
    rows, columns = spins.shape
    for _ in range(sweeps * spins.size):
        draw = int(rng.random() * 2 * spins.size)
        i, j = draw // 2 // columns, draw // 2 % columns
        k, m = (i + 1 - rows, j) if draw % 2 else (i, j + 1 - columns)
        if spins[i, j] != spins[k, m]:
            total = 0  # of the neighbours of the first spin, less those of the second
            for side in (-1, 1):
                total += spins[(i + side) % rows, j] + spins[i, (j + side) % columns]
                total -= spins[(k + side) % rows, m] + spins[k, (m + side) % columns]
            total += spins[i, j] - spins[k, m]  # each is a neighbour of the other
            first = 1 if rng.random() < up[total // 2 + 3] else -1
            spins[i, j], spins[k, m] = first, -first


@njit(cache=True)
def long_range(spins: Any, field: Any, offsets: Any, up: Any, sweeps: int, rng: Any) -> None:
    """Draw each spin given the sum over its neighbours, `field`, which is kept; spins in random order."""
    rows, columns = spins.shape
    for _ in range(sweeps * spins.size):
        draw = int(rng.random() * spins.size)
        i, j = draw // columns, draw % columns
        drawn = 1 if rng.random() < up[field[i, j] + len(offsets)] else -1
        if drawn != spins[i, j]:
            spins[i, j] = drawn
            for a, b in offsets:
                field[(i + a) % rows, (j + b) % columns] += 2 * drawn


def start(cells: tuple[int, int], shape: str, m: float, rng: np.random.Generator) -> np.ndarray:
    """Return a strip of half the field between two flat interfaces, or a drop, of independent spins of mean +-m."""
    z, x = np.meshgrid(*[np.arange(n) + 0.5 - n / 2 for n in cells], indexing="ij")
    inside = np.abs(z) < cells[0] / 4 if shape == "strip" else np.hypot(z, x) < 0.35 * min(cells)
    return np.where((rng.random(cells) < 0.5 * (1.0 + m)) == inside, 1, -1).astype(np.int8)


def movie(spins: np.ndarray, advance: Any, frames: int, every: int, block: int) -> dw.Record:
    """Return the record of block spins, `every` sweeps apart."""
    means = np.empty((frames, spins.shape[0] // block, spins.shape[1] // block))
    for frame in range(frames):
        advance(sweeps=every)
        means[frame] = block_means(spins[None], block)[0]
    return dw.Record(means, dx=float(block), dt=float(every), boundary="periodic", origin="camera")  # pixels are means


def block_means(u: np.ndarray, b: int) -> np.ndarray:
    frames, rows, columns = u.shape
    return u.reshape(frames, rows // b, b, columns // b, b).mean(axis=(2, 4), dtype=np.float64)


def chances(temperature: float, sums: np.ndarray) -> np.ndarray:
    """Return the probability of a spin up for each value of what it is coupled to."""
    return 1.0 / (1.0 + np.exp(-2.0 * sums / temperature))


def glauber(
    cells: tuple[int, int], ratio: float, *, frames: int, every: int, before: int, seed: int, block: int = 1,
    shape: str = "strip",
) -> dw.Record:  # fmt: skip
    """Return a movie at ratio = T/T_c without conservation, after `before` sweeps."""
    rng, up = np.random.default_rng(seed), chances(ratio * CRITICAL, np.arange(-4, 5, 2))
    spins = start(cells, shape, yang(ratio), rng)
    heat_bath(spins, up, before, rng)
    return movie(spins, partial(heat_bath, spins, up, rng=rng), frames, every, block)


def kawasaki(
    cells: tuple[int, int], ratio: float, *, frames: int, every: int, before: int, seed: int, block: int = 1,
    shape: str = "strip",
) -> dw.Record:  # fmt: skip
    """Return a movie of conserved spins; a strip is brought to equilibrium without conservation, which is faster."""
    rng, temperature = np.random.default_rng(seed), ratio * CRITICAL
    spins, up = start(cells, shape, yang(ratio), rng), chances(temperature, np.arange(-6, 7, 2))
    if shape == "strip":
        heat_bath(spins, chances(temperature, np.arange(-4, 5, 2)), before, rng)
    exchange(spins, up, before, rng)
    return movie(spins, partial(exchange, spins, up, rng=rng), frames, every, block)


def kac(
    cells: tuple[int, int], ratio: float, reach: int, *, frames: int, every: int, before: int, seed: int, block: int = 1
) -> dw.Record:
    """Return a movie of a strip where all neighbours up to a distance count alike, T_c that of mean-field theory."""
    rng, offsets = np.random.default_rng(seed), neighbours(reach)
    spins = start(cells, "strip", mean_field(ratio, reach)[0], rng)
    field = sum(np.roll(spins.astype(np.int64), tuple(by), axis=(0, 1)) for by in offsets)
    up = chances(ratio * len(offsets), np.arange(-len(offsets), len(offsets) + 1))
    advance = partial(long_range, spins, field, offsets, up, rng=rng)
    advance(sweeps=before)
    return movie(spins, advance, frames, every, block)


def neighbours(reach: int) -> np.ndarray:
    """Return the offsets of all neighbours up to a distance."""
    a, b = (c.ravel() for c in np.mgrid[-reach : reach + 1, -reach : reach + 1])
    return np.stack([a, b], axis=1)[(a**2 + b**2 <= reach**2) & (a**2 + b**2 > 0)]


def blocked(record: dw.Record, b: int) -> dw.Record:
    """Return the movie of the means over b x b cells."""
    return record.replace(block_means(record.slab(), b), dx=b * record.dx[0])


def yang(ratio: float) -> float:
    return float((1.0 - np.sinh(2.0 / (ratio * CRITICAL)) ** -4) ** 0.125)


def onsager(ratio: float) -> tuple[float, float]:
    """Return tension and stiffness over kT."""
    coupling = 1.0 / (ratio * CRITICAL)
    tension = 2.0 * coupling + np.log(np.tanh(coupling))
    return float(tension), float(np.sinh(tension))


def mean_field(ratio: float, reach: int) -> tuple[float, float]:
    """Return magnetisation and tension over kT of the Kac model in mean-field theory."""
    from scipy.optimize import brentq
    from scipy.special import xlogy

    m = float(brentq(lambda x: np.tanh(x / ratio) - x, 0.01, 1.0))
    kappa = float(np.mean(np.sum(neighbours(reach) ** 2, axis=1))) / 4.0
    x = np.linspace(-m, m, 2001)
    f = -0.5 * x**2 + ratio * (xlogy((1 + x) / 2, (1 + x) / 2) + xlogy((1 - x) / 2, (1 - x) / 2))
    return m, float(np.trapezoid(np.sqrt(2.0 * kappa * np.maximum(f - f[0], 0.0)), x)) / ratio


def law_row(record: dw.Record, phases: tuple[float, float]) -> dict[str, Any]:
    """Return what a Ginzburg-Landau law says that is fitted to the movie, kappa C_H over kT among it.

    Block spins are averages over their pixels, without blur. How well such a law describes them is part of the answer.
    """
    row = {"block": round(record.dx[0]), "cells": list(record.mesh), "frames": record.frames, "dt": record.dt}
    seen = {"pixel": True, "blur": 0, "contrast": "exact", "phases": phases}
    try:
        result = dw.identify(record, dynamics=dw.AllenCahn(thermal=True), law=LAW_DEGREE, observation=seen)
    except dw.InputError as error:
        return row | {"law refused": str(error)}
    assert result.theta is not None
    assert result.adequacy is not None
    row |= {"theta": result.theta, "q": result.q, "verdict": str(result.adequacy.verdict)}
    row |= {"unbalanced": [test.name for test in result.adequacy.significant]}
    row |= {"converged": "converged" in {finding.code for finding in dw.findings(result)}}
    return row | {"kappa C_H": result.law.tension_integral / max(result.theta, 1e-300)}


def strip_rows(record: dw.Record, blocks: int, m: float, exact: tuple[float, float]) -> list[dict]:
    """Return plateau and tension of movies of block spins, each of twice the size, against the exact ones."""
    rows = []
    for times in [2**n for n in range(blocks)]:
        movie, phases = blocked(record, times), (-m, m)
        row = {"block": round(movie.dx[0]), "cells": list(movie.mesh), "frames": movie.frames, "dt": movie.dt}
        row |= {"m exact": m, "tension exact": exact[0], "stiffness exact": exact[1]}
        try:
            found = dw.capillary(movie, phases=phases)
        except dw.InputError as error:
            rows.append(row | {"refused": str(error)})
            continue
        (low, high), plateau = found.interval(), 0.5 * (found.plateaus[1] - found.plateaus[0])
        row |= {"m": plateau, "tension": found.tension, "sd": found.sd, "low": low, "high": high, "width": found.width}
        row |= {"waves": len(found.waves), "samples": [round(float(n), 1) for n in found.samples]}
        rows.append(row)
    return rows


def drop_row(record: dw.Record, m: float) -> dict[str, Any]:
    """Return the loss of area of a drop over 2 pi, which is the diffusion coefficient of interfaces."""
    area = np.sum(0.5 * (record.slab() / m + 1.0), axis=(1, 2)) * record.dx[0] ** 2
    slope = float(np.polyfit(record.times, area, 1)[0])
    row = {"block": round(record.dx[0]), "cells": list(record.mesh), "frames": record.frames, "dt": record.dt}
    return row | {"area": float(area[0]), "loss": -slope / (2.0 * np.pi)}


# T/T_c, cells (across, along), sweeps before and in the movie, smallest block, number of block sizes (of the first
# seed), seeds. Two interfaces without conservation drift: the field across is so large that they do not meet.
STRIPS = {
    "glauber": (
        (0.90, (512, 128), 6_000, 40_000, 1, 3, 1), (0.95, (576, 192), 10_000, 70_000, 2, 3, 1),
        (0.97, (768, 256), 15_000, 70_000, 4, 2, 4), (0.98, (896, 320), 20_000, 50_000, 4, 2, 1),
    ),
    "kawasaki": ((0.90, (160, 96), 5_000, 250_000, 1, 3, 5),),
}  # fmt: skip
DROPS = {"glauber": (0.90, (128, 128), 100, 1_200), "kawasaki": (0.90, (96, 96), 5_000, 50_000)}
KACS = (
    (0.80, 3, (384, 128), 2_000, 12_000, 1, 2), (0.80, 6, (256, 128), 1_000, 8_000, 2, 2),
    (0.80, 10, (384, 192), 200, 1_200, 4, 1),
)  # fmt: skip
LAWS = {0.95: (5, 2), 0.97: (10, 2), 0.98: (20, 3)}  # T/T_c: sweeps per frame, block
LAW_CELLS, LAW_FRAMES, LAW_DEGREE = 48, 21, 0
KAC_LAW = (0.80, 10, 32, 1, 4)  # T/T_c, range, blocks, sweeps per frame, block
MAKE = {"glauber": glauber, "kawasaki": kawasaki}
SHORTER, FRAMES = sized((1, 400), tiny=(100, 20))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tension of each model and temperature, of the smallest blocks; of several seeds the mean.

    The error of a mean is that of the scatter between the seeds.
    """
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in rows:
        if row["shape"] == "strip" and "tension" in row:
            groups.setdefault((row["model"], row["ratio"]), []).append(row)
    found = []
    for (model, ratio), group in groups.items():
        own = [row for row in group if row["block"] == min(row["block"] for row in group)]
        tensions, seeds = np.array([row["tension"] for row in own]), len(own)
        sd = float(np.std(tensions, ddof=1) / np.sqrt(seeds)) if seeds > 2 else own[0]["sd"]
        about = {name: own[0][name] for name in ("block", "m exact", "tension exact", "stiffness exact")}
        about |= {"model": model, "ratio": ratio, "seeds": seeds, "m": float(np.mean([row["m"] for row in own]))}
        found.append(about | {"tension": float(np.mean(tensions)), "sd": sd})
    return found


def tables(rows: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the tables of the page on Ising models: tensions from waves, and laws fitted to block spins."""
    waves = [["model", "T/T_c", "block", "movies", "m", "exact", "tension / kT", "exact"]]
    for row in summary(rows):
        numbers = [f"{row['m']:.3f}", f"{row['m exact']:.3f}", f"{row['tension']:.4f} +- {row['sd']:.4f}"]
        numbers += [f"{row['stiffness exact']:.4f}"]
        waves.append([row["model"], f"{row['ratio']:.2f}", str(row["block"]), str(row["seeds"]), *numbers])
    laws = [["model", "T/T_c", "block", "kappa C_H / kT", "exact", "theta", "verdict", "tests that fail"]]
    for row in [row for row in rows if row["shape"] == "law"]:
        known = [row["model"], f"{row['ratio']:.2f}", str(row["block"])]
        numbers = [f"{row['kappa C_H']:.3f}"] if "theta" in row else ["refused"]
        numbers += [f"{row['tension exact']:.3f}"]
        numbers += [f"{row['theta']:.2f}", row["verdict"], ", ".join(row["unbalanced"])] if "theta" in row else [""] * 3
        laws.append(known + numbers)
    return markdown(waves), markdown(laws)


def times(before: int, sweeps: int, seed: int = 1) -> dict[str, int]:
    every = max(1, sweeps // SHORTER // FRAMES)
    return {"frames": FRAMES, "every": every, "before": before // SHORTER, "seed": seed}


def strips(model: str) -> Rows:
    settings = STRIPS[model]
    for ratio, cells, before, sweeps, block, blocks, seeds in sized(settings, tiny=settings[:1]):
        for seed in range(1, sized(seeds, tiny=1) + 1):
            record = MAKE[model](cells, ratio, block=block, **times(before, sweeps, seed))
            for row in strip_rows(record, blocks if seed == 1 else 1, yang(ratio), onsager(ratio)):
                yield {"model": model, "shape": "strip", "ratio": ratio, "seed": seed} | row


def kacs() -> Rows:
    for ratio, reach, cells, before, sweeps, block, blocks in sized(KACS, tiny=KACS[:1]):
        record, (m, tension) = kac(cells, ratio, reach, block=block, **times(before, sweeps)), mean_field(ratio, reach)
        for row in strip_rows(record, blocks, m, (tension, tension)):
            yield {"model": f"kac R = {reach}", "shape": "strip", "ratio": ratio, "seed": 1} | row


def drops() -> Rows:
    for model, (ratio, cells, before, sweeps) in DROPS.items():
        record = MAKE[model](cells, ratio, block=4, shape="drop", **times(before, sweeps))
        yield {"model": model, "shape": "drop", "ratio": ratio, "seed": 1} | drop_row(record, yang(ratio))


def laws() -> Rows:
    """Fit laws to strips of small meshes, with frames so near that waves are seen to decay."""
    for ratio, (every, block) in sized(LAWS, tiny={}).items():
        cells, m = (LAW_CELLS * block, LAW_CELLS * block), yang(ratio)
        record = glauber(cells, ratio, frames=LAW_FRAMES, every=every, before=3_000, seed=21, block=block)
        exact = {"tension exact": onsager(ratio)[0]}
        yield {"model": "glauber", "shape": "law", "ratio": ratio, "seed": 21} | exact | law_row(record, (-m, m))
    ratio, reach, blocks, every, block = KAC_LAW
    (m, tension), cells = mean_field(ratio, reach), (blocks * block, blocks * block)
    for seed in sized((31,), tiny=()):
        record = kac(cells, ratio, reach, frames=LAW_FRAMES, every=every, before=150, seed=seed, block=block)
        about = {"model": f"kac R = {reach}", "shape": "law", "ratio": ratio, "seed": seed, "tension exact": tension}
        yield about | law_row(record, (-m, m))


PARTS: dict[str, Callable[[], Rows]] = {
    "glauber": partial(strips, "glauber"), "kawasaki": partial(strips, "kawasaki"), "kac": kacs, "drops": drops,
    "laws": laws,
}  # fmt: skip


def main() -> None:
    chosen = words() or list(PARTS)
    path = target(RESULTS / "ising.json")
    kept = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = {part: [row for row in kept if row["part"] == part and part not in chosen] for part in PARTS}
    for part in chosen:
        began = time.perf_counter()
        for row in PARTS[part]():
            rows[part].append({"part": part} | row | {"seconds": round(time.perf_counter() - began, 1)})
            save_results("ising", [row for part in rows.values() for row in part])
    names = ("model", "ratio", "block", "m", "m exact", "tension", "sd", "tension exact", "stiffness exact", "waves")
    found = [row for part in rows.values() for row in part if row["shape"] == "strip"]
    table = [{name: row.get(name, "refused") for name in names} for row in found]
    print_table("strips", [{n: round(x, 4) if isinstance(x, float) else x for n, x in row.items()} for row in table])


if __name__ == "__main__":
    main()

"""Equations with parts: anisotropy, drift and a mobility of the phase, estimated with the law; errors and coverage.

    python benchmarks/parts.py [anisotropy drift mobility constant] [--first 1] [--records 20] [--degree 2] [--out FILE]
    python benchmarks/parts.py --merge FILE ...                         # joins runs in parts

21 frames of 96 x 96 of a star-shaped drop with random lobes, periodic, quartic law, interface of 12 cells, noise
0.03, the law averaged over degrees. Anisotropy: ratio 1.2 to 2.5 in a random direction, by CNAB2 with 100 steps a
frame. Drift: a random velocity, the movie displaced by its modes. Mobility: log m = c_1 T_1 + c_2 T_2 with random c,
by spectral derivatives and explicit Runge-Kutta steps; constant: the same fit of records whose mobility is constant.
The bound is that of Cramer and Rao, linearised at the truth, for the quartic law with the part. The data choose the
degree of log m, 1 to 6, unless one is given; its bound is that of degree 2.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from common import join_results, parser_in_parts, print_table, save_results, sized, words
from scipy.special import chdtrc

import doublewell as dw
from doublewell.dynamics import Anisotropy, Mobility
from doublewell.dynamics.anisotropy import entries_of
from doublewell.law import Bernstein
from doublewell.likelihood import Batch
from doublewell.observation.view import View

CELLS, FRAMES, STEPS = sized((96, 21, 100), tiny=(32, 15, 30))
WIDTH, NOISE, DT, RK_STEP = 3.0, 0.03, sized(4.0, tiny=2.0), 0.05
KINDS = ("anisotropy", "drift", "mobility", "constant")
EQUATIONS: dict[str, Any] = {
    "anisotropy": dw.AllenCahn(anisotropy="estimated"),
    "mobility": dw.AllenCahn(mobility="estimated"),
}
LAW = sized(None, tiny=0)
U = np.linspace(-1.0, 1.0, 201)


def force(u: Any) -> Any:
    return (u**3 - u) / WIDTH**2


def waves(cells: int) -> tuple[np.ndarray, np.ndarray]:
    return 2 * np.pi * np.fft.fftfreq(cells)[:, None], 2 * np.pi * np.fft.rfftfreq(cells)[None]


def start(rng: np.random.Generator, cells: int) -> np.ndarray:
    """Return a star-shaped drop with random lobes."""
    x = np.arange(cells) - cells / 2
    y, x = np.meshgrid(x, x, indexing="ij")
    angle, lobes = np.arctan2(y, x) + rng.uniform(0.0, 2 * np.pi), int(rng.integers(3, 7))
    outline = 0.27 * cells * (1 + rng.uniform(0.2, 0.35) * np.cos(lobes * angle))
    return np.tanh((outline - np.hypot(x, y)) / (np.sqrt(2) * WIDTH))


def explicit(u: np.ndarray, rate: Any) -> np.ndarray:
    """Return the frames of u_t = m(u) (Laplacian u - G(u)) by explicit Runge-Kutta steps."""
    steps, square = int(np.ceil(DT / RK_STEP)), -sum(wave**2 for wave in waves(len(u)))
    h, frames = DT / steps, [u]

    def change(u: np.ndarray) -> np.ndarray:
        return rate(u) * (np.fft.irfft2(square * np.fft.rfft2(u), s=u.shape) - force(u))

    for _ in range(FRAMES - 1):
        for _ in range(steps):
            a = change(u)
            b = change(u + 0.5 * h * a)
            c = change(u + 0.5 * h * b)
            u = u + h / 6.0 * (a + 2.0 * b + 2.0 * c + change(u + h * c))
        frames.append(u)
    return np.stack(frames)


def make(kind: str, seed: int, cells: int = CELLS) -> tuple[dw.Record, dict[str, Any], np.ndarray]:
    """Return a record with noise, its truth, and its clean values."""
    rng = np.random.default_rng([seed, KINDS.index(kind), 19])
    u, truth = start(rng, cells), dict[str, Any]()
    law, mesh = dw.named_law("quartic"), {"dx": 1.0, "dt": DT, "frames": FRAMES, "epsilon": WIDTH}
    if kind == "anisotropy":
        part = Anisotropy(rng.uniform(1.2, 2.5), rng.uniform(0.0, 180.0))
        truth = {"ratio": part.ratio, "angle": part.angle} | {
            f"anisotropy {k}": v for k, v in entries_of(part.tensor).items()
        }
        values = dw.simulate(law, u, **mesh, dynamics=dw.AllenCahn(anisotropy=part), substeps=STEPS).slab()
    elif kind == "drift":
        way = rng.uniform(-3.0, 3.0, 2)  # cells over the record
        values, clock = dw.simulate(law, u, **mesh, substeps=STEPS).slab(), np.linspace(0.0, 1.0, FRAMES)
        ky, kx = waves(cells)
        phase = [np.exp(-1j * t * (way[0] * ky + way[1] * kx)) for t in clock]
        moved = [np.fft.irfft2(np.fft.rfft2(f) * p, s=f.shape) for f, p in zip(values, phase, strict=True)]
        values, truth = np.stack(moved), {"drift y": way[0], "drift x": way[1]}
    else:
        part = Mobility((rng.uniform(-0.8, 0.8), rng.uniform(-0.4, 0.4)) if kind == "mobility" else (0.0, 0.0))
        values, truth = explicit(u, part), {f"mobility {k + 1}": c for k, c in enumerate(part.coefficients)}
    record = dw.Record(values, dx=1.0, dt=DT, q=1.0, boundary="periodic", origin="simulation")
    return dw.add_noise(record, NOISE, seed=rng), truth, values


def all_made(kind: str, seeds: range, cells: int) -> list[tuple[dw.Record, dict[str, Any], np.ndarray]]:
    """Return the records of some seeds, made by all cores but two where there are many."""
    workers = min((os.cpu_count() or 1) - 2, len(seeds), 6)
    if workers < 3:
        return [make(kind, seed, cells) for seed in seeds]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(make, kind, cells=cells), seeds))


def curves(names: tuple[str, ...], coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes of log q(u) by the coefficients of a mobility, and the weights of q(u), its error's measure."""
    table = np.polynomial.chebyshev.chebvander(U, len(names))[:, 1:].T
    m = Mobility(tuple(coefficients))(U)
    return table - (table @ m / U.size)[:, None], m


def bound_of(record: dw.Record, truth: dict[str, Any], substeps: int) -> dict[str, float]:
    """Return standard deviations at the truth, of the entries that are estimated and of q(u) in percent."""
    names = tuple(name for name in truth if name not in ("ratio", "angle"))
    equation = EQUATIONS["anisotropy"] if names[0].startswith("anisotropy") else dw.AllenCahn(mobility=len(names))
    batch = Batch([record], equation, View(equation=names))
    theta = np.array([*[truth[name] for name in names], 1.0 / WIDTH**2])
    (fit,) = batch.follow(theta, family=Bernstein(0), substeps=substeps)
    root = fit.evidence.blocks[0].triangle[: theta.size, : theta.size]
    spread = np.linalg.inv(root)
    covariance = spread @ spread.T
    found = {f"bound {name}": float(np.sqrt(covariance[k, k])) for k, name in enumerate(names)}
    if names[0].startswith("mobility"):
        slopes, m = curves(names, theta[: len(names)])
        sd = np.sqrt(np.einsum("ku,kl,lu->u", slopes, covariance[: len(names), : len(names)], slopes))
        found["bound mobility"] = 100.0 * float(np.linalg.norm(m * sd) / np.linalg.norm(m))
    return found


def row_of(kind: str, seed: int, record: dw.Record, truth: dict[str, Any], result: dw.Result) -> dict[str, Any]:
    exact, fit = force(U), result.diagnostics.likelihood
    low, high = result.band("force", U)
    row: dict[str, Any] = {
        "kind": kind, "seed": seed, "converged": bool(fit.status.converged), "substeps": fit.substeps,
        "force error": 100 * float(np.linalg.norm(result.force(U) - exact) / np.linalg.norm(exact)),
        "force covered": float(np.mean((low <= exact) & (exact <= high))),
    }  # fmt: skip
    values = result.posterior.joint_values(result.law)
    part = result.dynamics.parts.anisotropy
    if isinstance(part, Anisotropy):
        values |= {"ratio": part.ratio, "angle": part.angle}
    inside = {}
    for name, value in truth.items():
        if name not in values:
            continue  # a coefficient of the mobility that the data do not ask for
        ends = np.array(result.interval(name))
        shift = 180.0 * round((values[name] - value) / 180.0) if name == "angle" else 0.0
        row |= {name: value, f"found {name}": values[name] - shift}
        middle = 180.0 * round((float(np.mean(ends)) - value) / 180.0) if name == "angle" else 0.0
        inside[name] = bool(ends[0] <= value + middle <= ends[1])
    if kind in ("mobility", "constant"):
        exact = Mobility(tuple(truth.values()))(U)
        low, high = result.band("mobility", U)
        row["mobility error"] = 100 * float(np.linalg.norm(result.mobility(U) - exact) / np.linalg.norm(exact))
        row["mobility covered"] = float(np.mean((low <= exact) & (exact <= high)))
        chi2, row["degree"] = result.posterior.constant_mobility()
        row["constant p"] = float(chdtrc(row["degree"], chi2))
    if kind != "drift":
        row |= bound_of(record, truth, fit.substeps)
    return row | {"inside": inside}


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own, part = [row for row in rows if row["kind"] == kind], kind.split(",")[0]
        line: dict[str, Any] = {"kind": kind, "records": len(own)}
        line["force error %"] = round(rms(row["force error"] for row in own), 3)
        line["force covered %"] = round(100 * float(np.mean([row["force covered"] for row in own])), 1)
        inside = [
            flag for row in own for name, flag in row["inside"].items() if " " not in name or part != "anisotropy"
        ]
        line["values covered %"] = round(100 * float(np.mean(inside)), 1)
        if part == "anisotropy":
            line["ratio error %"] = round(rms(100 * (row["found ratio"] / row["ratio"] - 1) for row in own), 3)
            line["angle error deg"] = round(rms(row["found angle"] - row["angle"] for row in own), 3)
            names = [name for name in own[0]["inside"] if " " in name]
            line["over bound"] = round(rms((r[f"found {n}"] - r[n]) / r[f"bound {n}"] for r in own for n in names), 2)
        elif part == "drift":
            line["drift error cells"] = round(
                rms(r[f"found drift {a}"] - r[f"drift {a}"] for r in own for a in "yx"), 4
            )
        else:
            line["mobility error %"] = round(rms(row["mobility error"] for row in own), 3)
            line["over bound"] = round(rms(row["mobility error"] / row["bound mobility"] for row in own), 2)
            line["mobility covered %"] = round(100 * float(np.mean([row["mobility covered"] for row in own])), 1)
            line["constant rejected %"] = round(100 * float(np.mean([row["constant p"] < 0.05 for row in own])), 1)
        lines.append(line)
    return lines


def main() -> None:
    parser = parser_in_parts()
    parser.add_argument("kinds", nargs="*", default=[*KINDS])
    parser.add_argument("--records", type=int, default=sized(20, tiny=1), help="of each kind")
    parser.add_argument("--batch", type=int, default=20, help="records that are fitted together on a GPU")
    parser.add_argument("--cells", type=int, default=CELLS, help="along each axis")
    parser.add_argument("--degree", type=int, help="of log m, where the data do not choose it")
    asked = parser.parse_args(words("anisotropy"))
    rows = list[dict[str, Any]]()
    if asked.merge:
        rows = join_results("parts", asked.merge, lambda row: (row["kind"], row["seed"]))
    else:
        for kind in asked.kinds:
            label = kind
            options: dict[str, Any] = {"observation": {"drift": "estimated"}}
            if kind != "drift":
                options = {"dynamics": EQUATIONS["anisotropy" if kind == "anisotropy" else "mobility"]}
            if asked.degree is not None:
                options, label = {"dynamics": dw.AllenCahn(mobility=asked.degree)}, f"{kind}, degree {asked.degree}"
            if asked.cells != CELLS:
                label = f"{label}, {asked.cells} cells"
            for first in range(asked.first, asked.first + asked.records, asked.batch):
                seeds = range(first, min(first + asked.batch, asked.first + asked.records))
                made, began = all_made(kind, seeds, asked.cells), time.perf_counter()
                results = dw.identify_many(
                    [record for record, *_ in made],
                    **options,
                    check=False,
                    batch=asked.batch,
                    compute={"workers": 1},
                    law=LAW,
                )
                seconds = (time.perf_counter() - began) / len(made)
                for seed, (record, truth, _), result in zip(seeds, made, results, strict=True):
                    row = row_of(kind, seed, record, truth, result)
                    rows.append(row | {"kind": label, "seconds": round(seconds, 1)})
                    print(rows[-1], flush=True)
                save_results("parts", rows, asked.out)
    for line in summary(rows):
        print_table(line["kind"], [line])


if __name__ == "__main__":
    main()

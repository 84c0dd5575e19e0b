"""Cahn-Hilliard records: error against the Cramer-Rao bound, coverage of bands, of q and of the coexisting phases.

    python benchmarks/conserved.py [--first 1] [--seeds 5] [--out FILE]     # results/conserved.json
    python benchmarks/conserved.py --merge FILE ...                         # joins runs in parts
    python benchmarks/conserved.py --weak-again FILE                        # the weak form of a file's records again
    python benchmarks/conserved.py --frames 2                               # two snapshots: results/conserved_two.json

41 frames of 96 x 96, a periodic domain, CNAB2 with 200 steps a frame (the fits use ETDRK4). Four laws: quartic, sixth,
a regular solution, asymmetric; three stages: a star-shaped drop, a spinodal pattern, and one that has coarsened for ten
times as long before it (by ETDRK4); noise 0.01 and 0.03; q known and unknown. The error is that of the force between
the true coexisting phases, its mean removed. The regular solution is fitted with the entropy of ideal mixing, the
others as polynomials. The bound is that of the lowest degree that has the law, linearised at the truth.

Two snapshots: of movies of 48 x 48, the last frame and one that is 2, 8 or 24 intervals before it, q known.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from common import join_results, parser_in_parts, print_table, save_results, sized, words

import doublewell as dw
from doublewell.dynamics import CAHN_HILLIARD, Cnab2, Etdrk4, Grid
from doublewell.errors import InputError
from doublewell.law import EqualWells, Law, Mixture
from doublewell.likelihood import Batch
from doublewell.observation.view import View
from doublewell.simulate import add_noise

CELLS, FRAMES, STEPS = sized((96, 41, 200), tiny=(32, 15, 60))
WIDTH = 3.0  # epsilon in cells, of the quartic law
NOISES, STAGES = (0.01, 0.03), ("drop", "spinodal", "late")
METHODS, CASE = ("weak", "weak-corrected"), ("law", "stage", "noise", "q", "seed")
APART, SMALL = sized((2, 8, 24), tiny=(8,)), sized(48, tiny=32)  # intervals between two snapshots, and their cells
SHORT = WIDTH**4 * 8.0 / 40.0  # a frame interval of the quartic law, in cells^4 / q


@dataclass(frozen=True)
class Truth:
    """A force, the coexisting phases, and the wells and the degree of the smallest family that has it."""

    name: str
    low: float
    high: float
    wells: str
    degree: int

    def force(self, u: Any) -> Any:
        return _FORCES[self.name](u) / WIDTH**2

    @property
    def interval(self) -> float:
        """A frame interval: the fastest wave grows as G'^2, so patterns of all laws are as far."""
        slopes = np.gradient(self.force(self.points), self.points)
        return SHORT / float(WIDTH**2 * np.min(slopes)) ** 2

    @property
    def points(self) -> np.ndarray:
        return np.linspace(self.low, self.high, 201)


_ASYMMETRIC = Law(EqualWells(1), 4.0 * np.array([0.25, 0.2, 0.35]))
_FORCES = {
    "quartic": lambda u: u**3 - u,
    "sixth": lambda u: -0.75 * u * (1 - u**2) * (1 + u**2),
    "regular": lambda u: np.arctanh(np.clip(u, -0.999, 0.999)) - np.arctanh(0.85) / 0.85 * u,
    "asymmetric": lambda u: np.polyval(_POLYNOMIAL, u),  # not linear beyond the wells
}
_POLYNOMIAL = np.polyfit(np.linspace(-1, 1, 41), _ASYMMETRIC.force(np.linspace(-1, 1, 41)), 5)
TRUTHS = {
    "quartic": Truth("quartic", -1.0, 1.0, "found", 0),
    "sixth": Truth("sixth", -1.0, 1.0, "found", 2),
    "regular": Truth("regular", -0.85, 0.85, "ideal", 0),
    "asymmetric": Truth("asymmetric", -1.0, 1.0, "found", 2),
}


def start(stage: str, truth: Truth, rng: np.random.Generator, cells: int = CELLS) -> np.ndarray:
    """Return a star-shaped drop with random lobes, or a random pattern of small amplitude."""
    x = np.arange(cells) - cells / 2
    y, x = np.meshgrid(x, x, indexing="ij")
    middle, half = 0.5 * (truth.high + truth.low), 0.5 * (truth.high - truth.low)
    if stage == "drop":
        angle, lobes = np.arctan2(y, x) + rng.uniform(0.0, 2 * np.pi), int(rng.integers(3, 7))
        outline = 0.27 * cells * (1 + rng.uniform(0.2, 0.35) * np.cos(lobes * angle))
        return middle + half * np.tanh((outline - np.hypot(x, y)) / (np.sqrt(2) * WIDTH))
    waves = np.hypot(*np.meshgrid(np.fft.fftfreq(cells), np.fft.rfftfreq(cells), indexing="ij"))
    modes = np.fft.rfft2(rng.standard_normal((cells, cells))) * np.exp(-((2 * np.pi * WIDTH * waves) ** 2))
    field = np.fft.irfft2(modes)
    return middle + rng.uniform(-0.2, 0.2) * half + 0.3 * half * field / np.std(field)


@lru_cache(maxsize=2)
def movie(name: str, stage: str, seed: int, cells: int = CELLS) -> dw.Record:
    """Return a movie without noise; a late one begins when a spinodal pattern has coarsened for ten times as long."""
    truth, grid = TRUTHS[name], Grid((cells, cells), 1.0)
    u = start(stage, truth, np.random.default_rng([seed, 7]), cells)
    if stage == "late":
        family = Mixture(5, (-2.0, 2.0))
        law = Law(family, family.fitted(truth.force))
        *_, u = Etdrk4(grid, truth.interval, 1.0, 4, CAHN_HILLIARD).run(law, u, intervals=10 * FRAMES)
    steps = round(STEPS * truth.interval / SHORT)
    frames = Cnab2(grid, truth.interval, 1.0, steps, CAHN_HILLIARD).run(truth, u, intervals=FRAMES - 1)
    values = np.stack([u, *frames])
    return dw.Record(values, dx=1.0, dt=truth.interval, q=1.0, boundary="periodic", origin="simulation")


def snapshots(name: str, stage: str, seed: int, apart: int) -> dw.Record:
    """Return the last frame of a small movie, and the one so many intervals before it."""
    whole = movie(name, stage, seed, SMALL)
    return dw.Record(
        whole.slab()[[-1 - apart, -1]], dx=1.0, dt=apart * whole.dt, q=1.0, boundary="periodic", origin="simulation"
    )


def centred(curve: np.ndarray) -> np.ndarray:
    return curve - np.mean(curve, axis=-1, keepdims=True)


def relative(truth: Truth, change: np.ndarray) -> float:
    return 100.0 * float(np.linalg.norm(change) / np.linalg.norm(centred(truth.force(truth.points))))


def bound_of(truth: Truth, record: dw.Record, result: dw.Result) -> float:
    """Return the Cramer-Rao bound of the force error at noise 1, in percent; where q is unknown it is estimated."""
    family = result.posterior.family.at(truth.degree)
    theta = family.fitted(truth.force)
    scaled = record.replace((record.slab() - family.middle) / family.half)
    fit = result.diagnostics.likelihood
    batch = Batch([scaled], CAHN_HILLIARD, View(q_free=result.q_estimated))
    theta = np.concatenate([[1.0], theta]) if result.q_estimated else theta
    (linear,) = batch.follow(theta, family=family.placed((-1.0, 1.0)), substeps=fit.substeps)
    root = linear.evidence.blocks[0].triangle[-family.size - 1 : -1, -family.size - 1 : -1]  # after q
    spread = np.linalg.solve(root.T * linear.noise * family.half, centred(family.features(truth.points)))
    return relative(truth, np.linalg.norm(spread, axis=0))


def made(
    name: str, stage: str, noise: float, seed: int, *, known: bool, apart: int | None = None
) -> tuple[dw.Record, dw.Record]:
    """Return a record without noise and with noise; with `apart`, two snapshots."""
    clean = movie(name, stage, seed) if apart is None else snapshots(name, stage, seed, apart)
    own = [seed, [*TRUTHS].index(name), STAGES.index(stage), int(1000 * noise), known]  # no two records share noise
    record = add_noise(clean, noise, seed=np.random.default_rng(own if apart is None else [*own, apart]))
    return clean, record if known else record.replace(q=None)


def in_weak_form(truth: Truth, record: dw.Record, method: str) -> dict[str, Any]:
    """Return the error of the weak form at the degree of the truth, and its q."""
    exact, law = truth.force(truth.points), dw.DoubleWell(truth.degree, wells=truth.wells)
    try:
        found = dw.identify(record, dynamics="cahn-hilliard", method=method, check=False, law=law)
    except InputError as error:
        return {f"{method} refused": str(error)}
    return {method: relative(truth, centred(found.force(truth.points) - exact)), f"{method} q": found.q}


def weak_again(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the weak form made again."""
    case = row["law"], row["stage"], row["noise"], row["seed"]
    _, record = made(*case, known=row["q"] == "known", apart=row.get("apart"))
    row = {key: value for key, value in row.items() if not key.startswith("weak")}
    for method in METHODS:
        row |= in_weak_form(TRUTHS[row["law"]], record, method)
    return row


def read(
    name: str, stage: str, noise: float, seed: int, *, known: bool, check: bool, apart: int | None = None
) -> dict[str, Any]:
    """Return what a fit of a record says; with `apart`, of two snapshots."""
    truth = TRUTHS[name]
    clean, record = made(name, stage, noise, seed, known=known, apart=apart)
    row: dict[str, Any] = {"law": name, "stage": stage, "noise": noise, "q": "known" if known else "free", "seed": seed}
    if apart is not None:
        row["apart"] = apart
    exact, began = truth.force(truth.points), time.perf_counter()
    exact = exact - exact[0]  # zero at the coexisting phases
    for method in METHODS:
        row |= in_weak_form(truth, record, method)
    try:
        result = dw.identify(record, dynamics="cahn-hilliard", law=dw.DoubleWell(wells=truth.wells), check=check)
    except InputError as error:
        return row | {"refused": str(error)}
    row["seconds"] = round(time.perf_counter() - began, 1)
    low, high = result.band("force", truth.points)
    fit, posterior = result.diagnostics.likelihood, result.posterior
    row |= {
        "error": relative(truth, centred(result.force(truth.points) - exact)),
        "covered": float(np.mean((low <= exact) & (exact <= high))),
        "width": relative(truth, (high - low) / 3.92),
        "bound": noise * bound_of(truth, clean, result),
        "converged": bool(fit.status.converged),
        "degrees": [round(part.weight, 3) for part in posterior.path],
        "steps": sum(step.iterations for step in fit.steps),
    }
    if check:
        row["verdict"] = str(result.adequacy.verdict)
    inside = {}
    for key, value in ({"low": truth.low, "high": truth.high} | ({} if known else {"q": 1.0})).items():
        try:
            ends = result.interval(key)
            inside[key] = bool(ends[0] <= value <= ends[1])
            row[f"{key} width"] = round(float(ends[1] - ends[0]), 6)
        except InputError as error:
            inside[key] = str(error)
    findings = [item.code for item in dw.findings(result) if str(item.severity) != "ok"]
    return row | {"inside": inside, "findings": findings}


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for each law, stage, noise and for all: error over bound, coverage of band, q and phases."""
    lines = []
    for key in ("law", "stage", "noise", "q", "apart", None):
        for value in ["all"] if key is None else list(dict.fromkeys(row[key] for row in rows if key in row)):
            own = [row for row in rows if key is None or row.get(key) == value]
            done = [row for row in own if "error" in row]
            if not done:
                continue
            line: dict[str, Any] = {"of": f"{key or ''} {value}".strip(), "records": len(own), "fitted": len(done)}
            line["error %"] = round(rms(row["error"] for row in done), 3)
            line["over bound"] = round(rms(row["error"] / row["bound"] for row in done), 2)
            line["band covers %"] = round(100 * float(np.mean([row["covered"] for row in done])), 1)
            for name in ("low", "high", "q"):
                known = [row["inside"][name] for row in done if isinstance(row["inside"].get(name), bool)]
                line[f"{name} covered %"] = round(100 * float(np.mean(known)), 1) if known else None
            for method in METHODS:
                weak = [row[method] for row in done if method in row]
                line[f"{method} %"] = round(float(np.median(weak)), 3) if weak else None
            lines.append(line)
    return lines


def main() -> None:
    parser = parser_in_parts()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--laws", nargs="+", default=[*TRUTHS])
    parser.add_argument("--stages", nargs="+", default=[*STAGES])
    parser.add_argument("--check", action="store_true", help="test the model too")
    parser.add_argument("--frames", type=int, choices=(2, FRAMES), default=FRAMES, help="2: snapshots of small movies")
    parser.add_argument("--weak-again", type=Path, help="make the weak form of the records of a file again")
    asked = parser.parse_args(words("--laws quartic --stages drop"))
    rows, two = list[dict[str, Any]](), asked.frames == 2
    if asked.weak_again is not None:
        for row in json.loads(asked.weak_again.read_text())["rows"]:
            rows.append(weak_again(row))
            print({key: rows[-1][key] for key in rows[-1] if key in CASE or key.startswith("weak")}, flush=True)
            save_results("conserved", rows, asked.out)
    elif asked.merge:
        rows = join_results("conserved", asked.merge, lambda row: tuple(str(row[key]) for key in CASE))
    else:
        seeds = range(asked.first, asked.first + asked.seeds)
        cases = product(seeds, asked.laws, asked.stages, NOISES, (True,) if two else (True, False))
        for seed, name, stage, noise, known in islice(cases, sized(None, tiny=1)):
            for apart in APART if two else (None,):
                rows.append(read(name, stage, noise, seed, known=known, check=asked.check, apart=apart))
                print(rows[-1], flush=True)
                save_results("conserved_two" if two else "conserved", rows, asked.out)
    print_table("Cahn-Hilliard", summary(rows))


if __name__ == "__main__":
    main()

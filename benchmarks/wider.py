"""Wider physics: windows, missing values, optics, unknown q, coloured noise and several records, against their figures.

    python benchmarks/wider.py PART ... [--seeds N] [--first SEED] [--laws LAW ...] [--out FOLDER]
    python benchmarks/wider.py window|periodic|neumann|q|together --merge FOLDER ...

Parts: window periodic neumann missing optics q noise together. The second form joins what several runs wrote to
folders, one for each process of a large machine.

Each part writes results/wider_PART.json. Movies are made by CNAB2, readings by the user's own calls; on a GPU a part
takes one to four minutes, on two cores about ten times as long.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from common import RESULTS, SMALL, sized, words, write_json

from doublewell.options import Observation
from doublewell.identify import identify, identify_many
from doublewell.law import Bernstein, named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

NAMES = ("sixth", "bernstein3", "exponential", "rational")
LAWS = list(sized(NAMES, tiny=NAMES[:1]))
Q_LAWS = sized(("sixth", "exponential"), tiny=("sixth",))
PHASES = np.linspace(-1.0, 1.0, 2001)
CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
WINDOW = sized((slice(2, 66), slice(8, 72)), tiny=(slice(1, 25), slice(4, 28)))
HOLE = sized((slice(20, 40), slice(38, 58)), tiny=(slice(7, 13), slice(13, 19)))


@lru_cache(maxsize=16)
def movie(law: str, geometry: str, cells: int = CELLS) -> Record:
    start = initial_field(geometry, (cells, cells), 1 / cells, epsilon=EPSILON)
    return simulate(named_law(law), start, dx=1 / cells, dt=DT, frames=FRAMES, epsilon=EPSILON, substeps=12)


def truth(law: str):
    return named_law(law).effective(EPSILON)


def error(law: str, found) -> float:
    exact = truth(law).force(PHASES)
    return 100.0 * float(np.linalg.norm(found.force(PHASES) - exact) / np.linalg.norm(exact))


def row(law: str, seed: int, result, **more) -> dict:
    """Return what one result says: errors at the automatic degree and at degree five, the bound, coverage, verdict."""
    exact = truth(law).force(PHASES)
    found = {"law": law, "seed": seed, "e_G": error(law, result.law), **more}
    if result.posterior is not None:
        fit = result.posterior.path[5]
        found["m5"] = error(law, type(result.law)(Bernstein(5), fit.free))
        found["bound"] = _bound(fit, 5, exact)
        features = result.posterior.family.features(PHASES)
        spread = np.sqrt(np.sum(features * (result.posterior.covariance @ features)))
        found["spread"] = 100.0 * float(spread / np.linalg.norm(exact))
        found["bounds"] = [_bound(one, one.degree, exact) for one in result.posterior.path]
        low, high = result.band("force", PHASES[1:-1:20])
        inside = (low <= exact[1:-1:20]) & (exact[1:-1:20] <= high)
        found["covered"] = float(np.mean(inside))
    seen = result.diagnostics.likelihood
    if seen is not None:
        found["converged"], found["noise"] = bool(seen.status.converged), float(seen.noise)
        found["verdict"] = seen.adequacy.verdict if seen.adequacy is not None else None
    return found


def _bound(fit, degree: int, exact: np.ndarray) -> float:
    """Return the Cramer-Rao root mean square of the force error at a degree, in percent."""
    features = Bernstein(degree).features(PHASES)
    return 100.0 * float(np.sqrt(np.sum(features * (fit.covariance @ features))) / np.linalg.norm(exact))


def rms(values) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


def summary(rows: list[dict]) -> dict:
    laws = sorted({r["law"] for r in rows})
    found = {"records": len(rows), "mean e_G": float(np.mean([r["e_G"] for r in rows]))}
    found["mean e_G by law"] = {law: float(np.mean([r["e_G"] for r in rows if r["law"] == law])) for law in laws}
    if "m5" in rows[0]:
        found["m5 rms / bound"] = rms(r["m5"] for r in rows) / rms(r["bound"] for r in rows)
        found["e_G rms / spread"] = rms(r["e_G"] for r in rows) / rms(r["spread"] for r in rows)
        found["coverage"] = float(np.mean([r["covered"] for r in rows]))
    verdicts = [r["verdict"] for r in rows if r.get("verdict")]
    if verdicts:
        found["verdicts"] = {words: verdicts.count(words) for words in sorted(set(verdicts))}
    return found


def window(seeds: range) -> dict:
    """A 64 x 64 part of nonconvex records, interfaces across its border."""
    pairs, cut = _windows(seeds)
    rows = _read(pairs, cut, "window", check=True)
    return {"summary": summary(rows), "rows": rows}


def periodic(seeds: range) -> dict:
    """The same windows taken for a periodic domain: the adequacy check must refuse them."""
    return _taken_for("periodic", seeds)


def neumann(seeds: range) -> dict:
    """The same windows taken for a domain with walls."""
    return _taken_for("neumann", seeds)


def _taken_for(boundary: str, seeds: range) -> dict:
    pairs, cut = _windows(seeds)
    rows = _read(pairs, [record.replace(boundary=boundary) for record in cut], boundary, check=True)
    return {"summary": summary(rows), "rows": rows}


def _read(pairs: list[tuple[str, int]], records: Sequence[Record], name: str, **options) -> list[dict]:
    """Read the records of each law in a batch of their own, and say how far it is."""
    rows: list[dict] = []
    for law in LAWS:
        chosen = [k for k, pair in enumerate(pairs) if pair[0] == law]
        results = identify_many([records[k] for k in chosen], **options)
        rows += [row(*pairs[k], result) for k, result in zip(chosen, results, strict=True)]
        print(name, law, json.dumps(summary(rows[-len(chosen) :])), file=sys.stderr, flush=True)
    return rows


def _windows(seeds: range) -> tuple[list[tuple[str, int]], list[Record]]:
    pairs = [(law, seed) for law in LAWS for seed in seeds]
    return pairs, [_window(law, seed) for law, seed in pairs]


def _window(law: str, seed: int) -> Record:
    full = add_noise(movie(law, "nonconvex"), 0.03, seed=seed).slab()
    return Record(np.ascontiguousarray(full[:, *WINDOW]), dx=1 / CELLS, dt=DT, q=1.0)


def missing(seeds: range) -> dict:
    """30 % of the values at random, and a hole of 20 x 20 over the interface."""
    random = np.random.default_rng(7).random((FRAMES, CELLS, CELLS)) > 0.3
    hole = np.ones((CELLS, CELLS), dtype=bool)
    hole[HOLE] = False
    pairs = [(law, seed) for law in LAWS for seed in seeds]
    found: dict = {}
    for name, mask in (("30 % at random", random), ("hole of 20 x 20", hole)):
        records = [add_noise(movie(law, "nonconvex"), 0.03, seed=seed).replace(mask=mask) for law, seed in pairs]
        rows = _read(pairs, records, name, check=False)
        found[name] = {"summary": summary(rows), "rows": rows}
    return found


def optics(seeds: range) -> dict:
    """A blur of one cell and pixels that average, from a mesh three times finer: seen as such, and not."""
    pairs = [(law, seed) for law in LAWS for seed in seeds]
    sharp, blurred = zip(*(_imaged(law, seed) for law, seed in pairs), strict=True)
    known = Observation(blur=1 / CELLS, pixel=True)
    found: dict = {}
    for name, records, options in (
        ("sharp", sharp, {"check": False}),
        ("blurred, operator", blurred, {"observation": known, "check": False}),
        (
            "blurred, operator with unknown width",
            blurred,
            {"observation": Observation(blur="estimated", pixel=True), "check": False},
        ),
        ("blurred, no operator", blurred, {"check": True}),
    ):
        rows = _read(pairs, records, name, **options)
        found[name] = {"summary": summary(rows), "rows": rows}
    return found


@lru_cache(maxsize=8)
def _fine(law: str) -> tuple[np.ndarray, np.ndarray]:
    fine = movie(law, "nonconvex", 3 * CELLS).slab()
    waves = [np.fft.fftfreq(3 * CELLS, 1 / (3 * CELLS)), np.fft.rfftfreq(3 * CELLS, 1 / (3 * CELLS))]
    squares = (2 * np.pi * waves[0][:, None]) ** 2 + (2 * np.pi * waves[1][None]) ** 2
    passed = np.exp(-0.5 * squares / CELLS**2)
    smooth = np.stack([np.fft.irfft2(passed * np.fft.rfft2(u), s=u.shape) for u in fine])
    blocks = smooth.reshape(FRAMES, CELLS, 3, CELLS, 3)
    return np.ascontiguousarray(fine[:, 1::3, 1::3]), blocks.mean(axis=(2, 4))


def _imaged(law: str, seed: int) -> tuple[Record, Record]:
    made = (Record(u, dx=1 / CELLS, dt=DT, q=1.0, boundary="periodic") for u in _fine(law))
    sharp, blurred = (add_noise(record, 0.03, seed=seed) for record in made)
    return sharp, blurred


def q(seeds: range) -> dict:
    """q not known: its error, its interval, and what it costs the force; two laws, two geometries."""
    pairs = [(law, shape, seed) for law in Q_LAWS for shape in ("circle", "nonconvex") for seed in seeds]
    rows = []
    for law, shape, seed in pairs:
        record = add_noise(movie(law, shape), 0.03, seed=seed)
        unknown = Record(record.slab(), dx=record.dx, dt=DT, boundary="periodic")
        found, known = identify(unknown, check=False), identify(record, check=False)
        low, high = found.interval("q")
        more = {"shape": shape, "q": 100.0 * (found.q - 1.0), "q covered": bool(low <= 1.0 <= high)}
        rows.append(row(law, seed, found, known=error(law, known.law), **more))
    return {"summary": q_summary(rows), "rows": rows}


def q_summary(rows: list[dict]) -> dict:
    return {
        **summary(rows),
        "rms error of q in percent": rms(r["q"] for r in rows),
        "intervals of q that cover": f"{sum(r['q covered'] for r in rows)} of {len(rows)}",
        "e_G over that with known q": float(np.mean([r["e_G"] for r in rows]) / np.mean([r["known"] for r in rows])),
    }


def noise(seeds: range) -> dict:
    """Noise correlated over 1.5 cells: read as correlated, and as white."""
    found: dict = {}
    for name in ("correlated", "white"):
        rows = []
        for shape in ("circle", "nonconvex"):
            for seed in seeds:
                record = add_noise(movie("sixth", shape), 0.03, seed=seed, correlation=1.5)
                rows.append(
                    row("sixth", seed, identify(record, observation=Observation(noise=name), check=False), shape=shape)
                )
        found[name] = {"summary": summary(rows), "rows": rows}
    return found


def together(seeds: range) -> dict:
    """Four records of one law read together: two geometries, two seeds each, noise of its own for each law."""
    rows = []
    for law in LAWS:
        own = 100_000_000 * (1 + NAMES.index(law))
        for seed in seeds:
            records = [
                add_noise(movie(law, shape), 0.03, seed=own + 10 * seed + k)
                for k, shape in enumerate(("circle", "nonconvex", "circle", "nonconvex"))
            ]
            result = identify(records, check=False)
            agreed = sum(one.agrees for one in result.agreements)
            rows.append(row(law, seed, result, agreements=f"{agreed} of {len(result.agreements)}"))
            print("together", json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return {"summary": summary(rows), "rows": rows}


PARTS = {part.__name__: part for part in (window, periodic, neumann, missing, optics, q, noise, together)}


def about(**more) -> dict:
    """Return the device and the date, to be kept with the numbers."""
    import jax

    one = jax.devices()[0]
    seen = {"device": f"{one.platform}: {one.device_kind}", "date": time.strftime("%Y-%m-%d")}
    return {**seen, "python": platform.python_version(), **more}


def joined(part: str, folders: list[Path]) -> dict:
    """Return the rows of several runs of one part as those of one run."""
    found = [json.loads((folder / f"wider_{part}.json").read_text()) for folder in folders]
    rows = sorted((r for one in found for r in one["rows"]), key=lambda r: (NAMES.index(r["law"]), r["seed"]))
    abouts = [one["about"] for one in found]
    seeds = [min(r["seed"] for r in rows), max(r["seed"] for r in rows)]
    kept = {**abouts[-1], "seconds": round(sum(a["seconds"] for a in abouts), 1), "seeds": seeds}
    kept["device"] = ", ".join(sorted({a["device"] for a in abouts}))
    return {"about": kept, "summary": (q_summary if part == "q" else summary)(rows), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--laws", nargs="+", choices=NAMES, default=LAWS)
    parser.add_argument("--first", type=int, default=610_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--merge", type=Path, nargs="+")
    asked = parser.parse_args(words("missing q --seeds 1"))
    if asked.merge:
        for part in asked.parts:
            write_json(asked.out / f"wider_{part}.json", joined(part, asked.merge))
        return
    LAWS[:] = asked.laws
    for part in asked.parts:
        began = time.time()
        found = PARTS[part](range(asked.first, asked.first + asked.seeds))
        seconds, seeds = round(time.time() - began, 1), [asked.first, asked.first + asked.seeds - 1]
        write_json(asked.out / f"wider_{part}.json", {"about": about(seconds=seconds, seeds=seeds), **found})
        shown = {k: v if k == "summary" else v.get("summary", v) for k, v in found.items() if isinstance(v, dict)}
        print(part, json.dumps(shown, indent=1), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

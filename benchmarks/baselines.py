"""Other methods on the paper's 256 x 256 records: errors, structure, cost and coverage, one line a fit.

Run:  python benchmarks/baselines.py --methods classical          (CPU, about an hour)
      python benchmarks/baselines.py --methods trajectory         (a GPU; minutes a record on a CPU)
Choices: --methods (names with semicolons between), --laws, --noise, --geometries, --seeds of the method (with commas),
--out FILE. Lines of a file that is there are kept: a new line takes the place of an older one of the same method,
record and seed, so lines of several machines come into one file.
--join FILE ... puts the lines of files from other machines into --out.
--public AC.mat takes the public 1-D record in place of the paper's, clean and with noise 0.03, and each method with its
own settings; its lines go to results/public_baselines.json (networks: neural.py --public, then --score --into it).
Every classical fit has a process of its own, so that no memory of an earlier one serves it.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from common import RESULTS, TINY, print_table, sized, target, words
from reference import reference_triangles

from doublewell.errors import InputError
from doublewell.inference import estimate
from doublewell.evidence import Block, Evidence, Key
from doublewell.weak.weights import check_supports
from doublewell.law import Bernstein
from doublewell.baselines import (
    EXACT_DEGREE, PAPER_DEGREE, Analytic, Baseline, BaselineFit, PySindy, SmoothedFD4, Stac,
    admissible, cores, measured, methods, missing, project,
)  # fmt: skip
from doublewell_paper.run import about
from doublewell_paper.cases import GEOMETRIES_256, LAWS
from doublewell_paper.records import Sample, Spec, tiny
from doublewell_paper.scores import scale_errors

RECORD_SEED = 24_000  # of the paper's set in the study; nothing was tuned on it
NOISES = (0.01, 0.03)
PUBLIC_NOISES = (0.0, 0.03)
QUICK = sized(5.0, tiny=0.0)  # seconds: what is faster is run again, and the best time counts
REPEATS = 3
SLOW = ("trajectory", "SPINN", "PFWNN", "PINN")  # in JAX, best on a GPU
BRIEF = ("method", "law", "geometry", "noise", "e_G", "seconds", "status")
COLUMNS = (*BRIEF[:5], "e_G_positive", "e_G_exact", "e_F", "admissible", "coverage", "seconds", "memory_mb")
KEY = ("method", "law", "geometry", "noise", "cells", "record_seed", "seed")


@dataclass(frozen=True)
class PaperRoute(Baseline):
    """The paper's way to the same estimate: FFT convolutions frame by frame, explicit rows, one QR."""

    supports: tuple[tuple[int, float], ...]
    name: str = "STAC, the paper's route"

    def fit(self, record, *, seed=0) -> BaselineFit:  # noqa: ARG002
        with measured() as cost:
            found = reference_triangles(record, Bernstein(PAPER_DEGREE), self.supports)
            names = check_supports(self.supports, record.frames, record.mesh, record.dx)
            blocks = [Block(Key("record", str(s), "all"), *one) for s, one in zip(names, found, strict=True)]
            law = estimate(Evidence(Bernstein(PAPER_DEGREE), tuple(blocks)), 1.0, constraint="bernstein").law
        return BaselineFit(self.name, law.force, cost.seconds, cost.memory, cores(), law=law)


def methods_of(supports) -> dict[str, Baseline]:
    """The methods with the paper's supports; PySINDy has a shorter one, which does better (pysindy_speed.py --tune).

    So does STAC, which has a second line for that.
    """
    frames, length = supports[0]
    short, middle = (frames, length / 2), (frames, 0.75 * length)
    settings = [Stac(supports=supports), Stac(supports=(short,), name="STAC, short"), PaperRoute(supports)]
    settings += [Analytic(supports=supports), SmoothedFD4(supports=supports)]
    settings += [
        PySindy(rows=rows, solver=solver, support=middle, **sized({}, tiny={"count": 60, "models": 2}))
        for rows in ("masked", "all")
        for solver in ("least squares", "NNLS")
    ]
    return methods() | {one.name: one for one in settings}


def measure(sample: Sample, method: Baseline, seed: int) -> dict:
    """Fit one record by one method and return a line of the file; a refusal is a line, too."""
    spec = sample.spec
    line = {"method": method.name, "law": spec.law, "geometry": spec.geometry, "noise": spec.noise}
    line |= {"cells": spec.cells, "record_seed": spec.seed, "seed": seed}
    try:
        fit, processor = best_of(method, sample, seed)
    except InputError as error:
        return line | {"status": f"refused: {error}"}
    line |= scores(sample, fit)
    line |= {"seconds": round(fit.seconds, 4), "processor_seconds": round(processor, 4)}
    line |= {"device": fit.device, "notes": list(fit.notes)}
    line["memory_mb"] = None if fit.memory is None else round(fit.memory / 1e6, 1)
    return line | {"status": "fitted"}


def best_of(method: Baseline, sample: Sample, seed: int) -> tuple[BaselineFit, float]:
    """Fit once, or a few times where that is quick; keep the quickest, the least processor time, the largest memory."""
    fits, processor = [], []
    while not fits or (fits[0].seconds < QUICK and len(fits) < REPEATS):
        began = time.process_time()
        fits.append(method.fit(sample.record, seed=seed))
        processor.append(time.process_time() - began)
    memory = None if fits[0].memory is None else max(fit.memory for fit in fits)
    return replace(min(fits, key=lambda fit: fit.seconds), memory=memory), min(processor)


def scores(sample: Sample, fit: BaselineFit) -> dict:
    """Errors in percent: as produced, projected as in the paper, and on the double wells of the highest degree."""
    u = np.linspace(-1.0, 1.0, sample.spec.phases)
    truth = sample.truth.force(u)
    size = np.linalg.norm(truth)

    def error(force) -> float:
        return 100 * float(np.linalg.norm(force(u) - truth) / size)

    positive = project(fit.force, PAPER_DEGREE)
    found = {"e_G": error(fit.force), "e_G_positive": error(positive.force)}
    found["e_G_exact"] = error(project(fit.force, EXACT_DEGREE, constraint="admissible").force)
    try:
        _, found["e_F"] = scale_errors(
            positive, sample.truth, sample.tension, epsilon=sample.spec.epsilon, phases=sample.spec.phases
        )
    except InputError:
        found["e_F"] = None
    found["admissible"] = admissible(fit)
    found["coverage"] = None if fit.band is None else coverage(fit, u, truth)
    return found


def coverage(fit: BaselineFit, u, truth) -> float:
    """The share of phase values whose 95 % interval holds the truth; not where every law is zero."""
    low, high = fit.band(u)
    asked = np.abs(truth) > 1e-6 * np.max(np.abs(truth))
    return float(np.mean(((low <= truth) & (truth <= high))[asked]))


def merged(path: Path, lines: list[dict]) -> list[dict]:
    """The lines of a file with new ones in the place of older ones of the same key."""
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = {tuple(line[name] for name in KEY): line for line in [*before, *lines]}
    return [kept[key] for key in sorted(kept, key=str)]


def write(path: Path, lines: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"rows": merged(path, lines)}, indent=1) + "\n")
    temporary.replace(path)


def chosen(text: str, known: dict[str, Baseline]) -> list[Baseline]:
    """Methods by name; "classical" is all that needs no GPU."""
    names = [one.strip() for one in text.split(";")]
    if names == ["classical"]:
        names = [name for name in known if not name.startswith(SLOW)]
    absent = [name for name in names if name not in known]
    if absent:
        raise SystemExit(f"unknown methods {absent}: expected classical, or some of {'; '.join(known)}")
    return [known[name] for name in names]


def in_child(task, *given):
    """Return what a task returns, from a forked process of its own; only for what does not touch JAX before."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(task(*given)))
    child.start()
    there.close()
    try:
        return here.recv()
    finally:
        child.join()


def main() -> None:
    asked = arguments()
    if asked.join:
        write(asked.out, [line for file in asked.join for line in json.loads(file.read_text())["rows"]])
        return
    base = Spec("", "", cells=256, phases=20_001, seed=RECORD_SEED)
    base = replace(tiny(base, 32), supports=((2, 1 / 8), (3, 3 / 16))) if TINY else base
    chosen_methods = chosen(asked.methods, methods() if asked.public else methods_of(base.supports))
    said = in_child(about)
    said.pop("device")  # of each line
    shown = []
    warm()
    for sample in public_samples(asked.public, asked.noise) if asked.public else samples(asked, base):
        sample.record  # noqa: B018  made before any process is forked
        for method, seed in product(chosen_methods, map(int, asked.seeds.split(","))):
            if (reason := missing(method)) is not None:
                print(reason, flush=True)
                continue
            given = (sample, method, seed)
            line = (measure(*given) if method.name.startswith(SLOW) else in_child(measure, *given)) | said
            write(asked.out, [line])
            shown.append(line)
            print(*(line.get(k, "") for k in BRIEF), sep=" | ", flush=True)
    if fitted := [line for line in shown if line["status"] == "fitted"]:
        print_table("Baselines", [{k: line[k] for k in COLUMNS} for line in fitted])


def samples(asked: argparse.Namespace, base: Spec) -> Iterator[Sample]:
    for law, noise, geometry in product(asked.laws.split(","), asked.noise.split(","), asked.geometries.split(",")):
        yield Sample(replace(base, law=law, geometry=geometry, noise=float(noise)))


def public_samples(path: Path, noises: str) -> Iterator[Sample]:
    """Yield the public record, clean and with noise, in the place of a movie of our own."""
    import neural

    for spec, record in neural.public(path, [float(noise) for noise in noises.split(",")], neural.PUBLIC_SEED):
        sample = Sample(replace(spec, phases=20_001))
        vars(sample)["record"] = record
        yield sample


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="classical")
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--noise", help=f"{NOISES}, or {PUBLIC_NOISES} for the public record")
    parser.add_argument("--geometries", default=",".join(GEOMETRIES_256))
    parser.add_argument("--seeds", default="0", help="of the method, such as 0,1,2 for three initialisations")
    parser.add_argument("--out", type=Path, help="results/baselines.json, or results/public_baselines.json")
    parser.add_argument("--public", type=Path, help="AC.mat, in place of the paper's records")
    parser.add_argument("--join", type=Path, nargs="+", help="put the lines of these files into --out, and no more")
    asked = parser.parse_args(words("--laws sixth --noise 0.01 --geometries circle"))
    asked.noise = asked.noise or ",".join(map(str, PUBLIC_NOISES if asked.public else NOISES))
    asked.out = asked.out or target(RESULTS / ("public_baselines.json" if asked.public else "baselines.json"))
    return asked


def warm() -> None:
    """Load the compiled kernels and the libraries before anything is timed."""
    small = Sample(tiny(Spec("sixth", "circle", noise=0.01, seed=1), 32))
    supports = small.spec.supports
    for one in (Stac(supports=supports), Analytic(supports=supports), PySindy(count=20, batch=20)):
        if missing(one) is None:
            one.fit(small.record)


if __name__ == "__main__":
    main()

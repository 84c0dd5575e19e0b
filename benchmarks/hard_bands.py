"""Bands of the force in hard conditions: random laws, wavy ones among them, at noise 0.01 to 0.14.

Run: python benchmarks/hard_bands.py [--seeds N] [--keep FILE.npz] [--tuning]
The laws are of a population of its own, none of it used to choose the prior: the bracket is the exponential of a random
Fourier sum or of a Gaussian process, or a wave of up to 1.6 periods, scaled to mean 1. Movies come from CNAB2 (41
frames of 64 x 64, circle and nonconvex), readings from the user's own call. The prior as it was (TODAY) and as it is
are applied to the same evidence in the same run. Covered: the share of 99 phase values inside the pointwise 95 % band.
Width: the mean width of the band, in percent of the rms force.

--keep stores the evidence and ends (minutes on a GPU, hours on two cores); where it is stored, it is read and judged.
--tuning takes the laws and seeds on which the prior was chosen: those of law_population.py and random Legendre series.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import RESULTS, SMALL, machine, print_table, sized, words, write_json
from law_population import KINDS as OLD_KINDS
from numpy.random import Generator

from doublewell.atomic import replace_file
from doublewell.evidence import Block, Evidence, Key, compact
from doublewell.identify import identify_many
from doublewell.inference import DEGREE_PRIOR, DegreePrior, Posterior, average_degrees
from doublewell.inference.posterior import curve_band
from doublewell.law import Bernstein, Law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, DT = sized((64, 41, 0.045, 1.125e-4), tiny=SMALL)
NOISES = sized((0.01, 0.03, 0.10, 0.14), tiny=(0.03,))
GEOMETRIES = sized(("circle", "nonconvex"), tiny=("circle",))
BATCH = 128  # records a GPU reads at once
TOP = Bernstein(8)
AT = np.linspace(0.01, 0.99, 99)
TODAY = DegreePrior(ratios=(0.3, 0.6, 1.2), sizes=(0.3, 1.0, 3.0), odds=0.9)
_FINE = np.linspace(0.0, 1.0, 1001)


def _fourier(rng: Generator):
    terms = 0.35 * rng.standard_normal((2, 3)) / np.sqrt(np.arange(1, 4))
    waves = np.pi * np.arange(1, 4)
    return lambda z: np.exp(sum(a * np.cos(k * z) + b * np.sin(k * z) for a, b, k in zip(*terms, waves, strict=True)))


def _process(rng: Generator):
    """Return the exponential of a Gaussian process with a squared-exponential covariance, as a sum of random waves."""
    size, length = rng.uniform(0.2, 0.5), rng.uniform(0.2, 0.8)
    waves, shifts = rng.standard_normal(200) / length, rng.uniform(0.0, 2 * np.pi, 200)
    return lambda z: np.exp(size * np.sqrt(2 / 200) * np.cos(np.multiply.outer(z, waves) + shifts).sum(axis=-1))


def _wavy(rng: Generator):
    a, b, c = rng.uniform(0.3, 0.7), rng.uniform(4.0, 10.0), rng.uniform(0.0, 2 * np.pi)
    return lambda z: 1.0 + a * np.cos(b * z + c)


def _series(rng: Generator):
    return np.polynomial.Legendre([1.0, *0.35 * rng.standard_normal(6)], domain=[0.0, 1.0])


@dataclass(frozen=True)
class Population:
    """Kinds of random brackets, how many laws are drawn, and the first seeds of laws and noise."""

    kinds: tuple[Callable, ...]
    laws: int
    law_seed: int
    first_seed: int


REPORT = Population((_process, _fourier, _wavy), sized(16, tiny=1), 18_005, 1_850_000)
TUNING = Population((*OLD_KINDS.values(), _series, _series), sized(16, tiny=1), 4_242, 950_000)


def draw_laws(population: Population) -> list[Law]:
    """Draw double wells of ordinary size, the kinds in turn."""
    rng, laws, kinds = np.random.default_rng(population.law_seed), list[Law](), population.kinds
    while len(laws) < population.laws:
        kind = kinds[len(laws) % len(kinds)]
        bracket = kind(rng)
        values = bracket(_FINE)
        mean = float(np.mean(values))
        if np.min(values) > 0.05 * mean and np.max(values) < 5.0 * mean:
            force = lambda u, b=bracket, m=mean: -u * (1 - u**2) * b(u**2) / m  # noqa: E731
            laws.append(Law.from_force(force, name=f"{kind.__name__[1:]} {len(laws) + 1}"))
    return laws


def read_records(population: Population, noise: float, seeds: int) -> dict[str, np.ndarray]:
    """Identify the records of all laws at a noise; return the estimate at degree 8, its covariance and the drift."""
    seed, records, known = population.first_seed + round(1e7 * noise), list[Record](), list[tuple]()
    for law in draw_laws(population):
        for geometry in GEOMETRIES:
            start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
            clean = simulate(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON)
            records += [add_noise(clean, noise, seed=seed + k) for k in range(seeds)]
            known += [(law.name, noise, law.effective(EPSILON).force(AT))] * seeds
            seed += seeds
    began, rows = time.time(), []
    for own, result in zip(known, identify_many(records, check=False, batch=BATCH), strict=True):
        fit = result.posterior.path[-1]
        rows.append((*own, fit.free, fit.covariance, result.posterior.drift))
    print(f"noise {noise:g}: {len(rows)} records in {time.time() - began:.0f} s", flush=True)
    names = "law", "noise", "truth", "free", "covariance", "drift"
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def band(row: dict[str, np.ndarray], prior: DegreePrior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the force and its band at AT under a prior, from the evidence of one record."""
    root = np.linalg.cholesky(np.linalg.inv(row["covariance"])).T
    stacked = np.zeros((10, 11))
    stacked[:9, :9], stacked[:9, -1] = root, root @ row["free"]
    evidence = Evidence(TOP, (Block(Key("r", "trajectory", "all"), compact(stacked), 10),), whitened=True)
    found = average_degrees(evidence, 1.0, constraint="admissible", prior=prior)
    posterior = Posterior(TOP, found.path, found.components, row["drift"], "admissible")
    return (TOP.features(AT).T @ found.coefficients, *curve_band(posterior, "force", AT, 0.95, None))


def scores(rows: dict[str, np.ndarray], prior: DegreePrior) -> dict[str, np.ndarray]:
    """Return of each record whether its band covers the force at AT, its mean width and its error, in percent."""
    covered, widths, errors = [], [], []
    for k, truth in enumerate(rows["truth"]):
        law, low, high = band({name: column[k] for name, column in rows.items()}, prior)
        size = np.sqrt(np.mean(truth**2))
        covered.append((low <= truth) & (truth <= high))
        widths.append(100 * np.mean(high - low) / size)
        errors.append(100 * np.sqrt(np.mean((law - truth) ** 2)) / size)
    return {"covered": np.array(covered), "width": np.array(widths), "error": np.array(errors)}


def summary(rows: dict[str, np.ndarray], noise: float, title: str, prior: DegreePrior) -> dict:
    chosen = {name: column[rows["noise"] == noise] for name, column in rows.items()}
    found, names = scores(chosen, prior), sorted(set(chosen["law"].tolist()))
    by_law = {n: round(100 * float(np.mean(found["covered"][chosen["law"] == n])), 1) for n in names}
    return {
        "noise": noise,
        "prior": title,
        "records": len(found["width"]),
        "covered, %": round(100 * float(np.mean(found["covered"])), 1),
        "worst law, %": min(by_law.values()),
        "width, %": round(float(np.mean(found["width"])), 3),
        "e_G, %": round(float(np.mean(found["error"])), 3),
        "covered by law, %": by_law,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4, help="records of each law and geometry")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--tuning", action="store_true")
    asked = parser.parse_args(words("--seeds 1"))
    population = TUNING if asked.tuning else REPORT
    if asked.keep and asked.keep.exists():
        rows = dict(np.load(asked.keep))
    else:
        parts = [read_records(population, noise, asked.seeds) for noise in NOISES]
        rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if asked.keep:
            with replace_file(asked.keep) as temporary, temporary.open("wb") as stream:
                np.savez_compressed(stream, **rows)
            return
    table = []
    for noise in NOISES:
        pair = [summary(rows, noise, *one) for one in (("before", TODAY), ("as built", DEGREE_PRIOR))]
        pair = [one | {"width, before": round(one["width, %"] / pair[0]["width, %"], 3)} for one in pair]
        table += pair
    print_table("Bands of the force", [{k: v for k, v in one.items() if k != "covered by law, %"} for one in table])
    if not asked.tuning:
        seeds = {"law seed": population.law_seed, "first seed": population.first_seed}
        about = {"machine": machine(), "shape": [FRAMES, CELLS, CELLS], **seeds}
        write_json(RESULTS / "hard_bands.json", about | {"rows": table})


if __name__ == "__main__":
    main()

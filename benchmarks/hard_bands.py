"""Bands of the force in hard conditions: random laws, wavy ones among them, at noise 0.01 to 0.14.

Run: python benchmarks/hard_bands.py [report|tuning|second] [--linear] [--seeds N] [--keep FILE.npz]
The bracket of a law is the exponential of a random Fourier sum or of a Gaussian process, a wave of up to 1.6 periods,
or a sum of bumps, scaled to mean 1. Movies come from CNAB2 (41 frames of 64 x 64, circle and nonconvex), readings from
the user's own call. The prior as it was (BEFORE) and as it is are applied to the same evidence in the same run.
Covered: the share of 99 phase values inside the pointwise 95 % band. Width: its mean, in percent of the rms force.

The prior was chosen on two sets of laws: tuning (those of law_population.py and random Legendre series) and second (the
kinds above without the bumps), and on further seeds of their kinds. The laws of the report, and its kind of bumps,
chose nothing. --linear draws the estimate from the normal distribution that `doublewell plan` predicts instead of
fitting movies: seconds a law. --keep stores the evidence and ends (fits: a minute a noise level on a GPU, hours on two
cores); where it is stored, it is judged.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
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
from doublewell.plan import Experiment, experiment_information
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, DT = sized((64, 41, 0.045, 1.125e-4), tiny=SMALL)
NOISES = sized((0.01, 0.03, 0.10, 0.14), tiny=(0.03,))
GEOMETRIES = sized(("circle", "nonconvex"), tiny=("circle",))
BATCH = 128  # records a GPU reads at once
TOP = Bernstein(8)
AT = np.linspace(0.01, 0.99, 99)
PHASES = np.linspace(0.0, 1.0, 401)
FINE = TOP.features(PHASES)
BEFORE = DegreePrior(ratios=(0.3, 0.6, 1.2), sizes=(0.3, 1.0, 3.0), odds=0.9)
_BRACKET = np.linspace(0.0, 1.0, 1001)


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


def _bumps(rng: Generator):
    sizes, places, widths = rng.uniform(-0.6, 1.2, 3), rng.uniform(0.0, 1.0, 3), rng.uniform(0.12, 0.4, 3)
    terms = list(zip(sizes, places, widths, strict=True))
    return lambda z: 1.0 + sum(a * np.exp(-0.5 * ((z - c) / w) ** 2) for a, c, w in terms)


def _series(rng: Generator):
    return np.polynomial.Legendre([1.0, *0.35 * rng.standard_normal(6)], domain=[0.0, 1.0])


@dataclass(frozen=True)
class Population:
    """Kinds of random brackets, how many laws are drawn, and the first seeds of laws and noise."""

    kinds: tuple[Callable, ...]
    laws: int
    law_seed: int
    first_seed: int


POPULATIONS = {
    "report": Population((_process, _fourier, _wavy, _bumps), sized(16, tiny=1), 58_119, 8_250_000),
    "tuning": Population((*OLD_KINDS.values(), _series, _series), sized(16, tiny=1), 4_242, 950_000),
    "second": Population((_process, _fourier, _wavy), sized(16, tiny=1), 18_005, 1_850_000),
}


def draw_laws(population: Population) -> list[Law]:
    """Draw double wells of ordinary size, the kinds in turn."""
    rng, laws, kinds = np.random.default_rng(population.law_seed), list[Law](), population.kinds
    while len(laws) < population.laws:
        kind = kinds[len(laws) % len(kinds)]
        bracket = kind(rng)
        values = bracket(_BRACKET)
        mean = float(np.mean(values))
        if np.min(values) > 0.05 * mean and np.max(values) < 5.0 * mean:
            force = lambda u, b=bracket, m=mean: -u * (1 - u**2) * b(u**2) / m  # noqa: E731
            laws.append(Law.from_force(force, name=f"{kind.__name__[1:]} {len(laws) + 1}"))
    return laws


def read_records(population: Population, seeds: int, *, linear: bool) -> dict[str, np.ndarray]:
    """Return of each record the estimate at degree 8, its covariance and the drift, from fits or predicted ones."""
    scenes, rows = list[tuple](), list[tuple]()
    for law, geometry in product(draw_laws(population), GEOMETRIES):
        start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
        planned = Experiment(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, noise=1.0, epsilon=EPSILON)
        clean = simulate(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON)
        scenes.append((law.name, planned.force.force, experiment_information(planned).triangle if linear else clean))
    for noise in NOISES:
        first = population.first_seed + round(1e7 * noise)
        places = [(scene, first + seeds * k + n) for k, scene in enumerate(scenes) for n in range(seeds)]
        if linear:
            found = [predicted(force, triangle, noise, seed) for (_, force, triangle), seed in places]
        else:
            records = [add_noise(clean, noise, seed=seed) for (_, _, clean), seed in places]
            read = [result.posterior for result in identify_many(records, check=False, batch=BATCH)]
            found = [(own.path[-1].free, own.path[-1].covariance, own.drift[:2]) for own in read]
        rows += [(name, noise, force(AT), *fit) for ((name, force, _), _), fit in zip(places, found, strict=True)]
        print(f"noise {noise:g}: {len(found)} records", flush=True)
    names = "law", "noise", "truth", "free", "covariance", "drift"
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def predicted(force: Callable, triangle: np.ndarray, noise: float, seed: int) -> tuple[np.ndarray, ...]:
    """Draw an estimate from the distribution that the information of a record predicts."""
    inverse, best = noise * np.linalg.inv(triangle), np.linalg.lstsq(FINE.T, force(PHASES), rcond=None)[0]
    drawn = best + inverse @ np.random.default_rng(seed).standard_normal(TOP.size)
    return drawn, inverse @ inverse.T, np.zeros((2, TOP.size))


def band(row: dict[str, np.ndarray], prior: DegreePrior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the force and its band at AT under a prior, from the evidence of one record."""
    root = np.linalg.cholesky(np.linalg.inv(row["covariance"])).T
    stacked = np.zeros((10, 11))
    stacked[:9, :9], stacked[:9, -1] = root, root @ row["free"]
    evidence = Evidence(TOP, (Block(Key("r", "trajectory", "all"), compact(stacked), 10),), whitened=True)
    found = average_degrees(evidence, 1.0, constraint="admissible", prior=prior)
    drift = np.vstack([row["drift"], found.unseen])
    posterior = Posterior(TOP, found.path, found.components, drift, "admissible")
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
    parser.add_argument("laws", nargs="?", choices=list(POPULATIONS), default="report")
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--seeds", type=int, default=4, help="records of each law and geometry")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args(words("--seeds 1"))
    population = POPULATIONS[asked.laws]
    if asked.keep and asked.keep.exists():
        rows = dict(np.load(asked.keep))
    else:
        rows = read_records(population, asked.seeds, linear=asked.linear)
        if asked.keep:
            with replace_file(asked.keep) as temporary, temporary.open("wb") as stream:
                np.savez_compressed(stream, **rows)
            return
    table = []
    for noise in NOISES:
        pair = [summary(rows, noise, *one) for one in (("before", BEFORE), ("as built", DEGREE_PRIOR))]
        table += [one | {"width, before": round(one["width, %"] / pair[0]["width, %"], 3)} for one in pair]
    print_table("Bands of the force", [{k: v for k, v in one.items() if k != "covered by law, %"} for one in table])
    stored = RESULTS / "hard_bands.json"
    known = json.loads(stored.read_text()) if stored.exists() else {}
    name = f"{asked.laws}, {'linearised' if asked.linear else 'fits'}"
    about = {"machine": machine(), "shape": [FRAMES, CELLS, CELLS]}
    seeds = {"law seed": population.law_seed, "first seed": population.first_seed}
    write_json(stored, known | {name: about | seeds | {"rows": table}})


if __name__ == "__main__":
    main()

"""Simulation-based calibration: laws drawn from the prior of the degree average, and the ranks of the truth.

Run: python benchmarks/ranks.py [--draws N] [--first SEED] [--out FILE.json]
A law is drawn from the prior of average_degrees (inference); draws that are
no double well are rejected, and so are such draws of the posterior, so that prior and posterior belong together. The
movie comes from CNAB2 (31 frames of 48 x 48, noise 0.03). If the posterior is right, the rank of the truth among its
draws is uniform (Talts and others 2018), for the force at every u and for the tension integral.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from adequacy import device
from common import RESULTS, SMALL, print_table, sized, words, write_json
from scipy import stats
from trajectory_records import read_all

from doublewell.inference import DEGREE_PRIOR, average_degrees
from doublewell.law import Bernstein, Law, legendre_to_bernstein
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, DT = sized((48, 31, 0.06, 4e-4), tiny=SMALL)
NOISE = 0.03
TOP = Bernstein(8)
SCALE = 1.0 / EPSILON**2
AT = np.array([0.15, 0.35, 0.55, 0.75, 0.95])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
FINE = np.linspace(0.0, 1.0, 201)


def is_well(coefficients: np.ndarray) -> np.ndarray:
    """Say of each row at degree 8 whether its bracket is positive."""
    return np.min(coefficients @ TOP.bracket(np.eye(9), FINE[:, None]).T, axis=1) > 0.0


def draw_law(rng: np.random.Generator) -> np.ndarray:
    """Draw coefficients at degree 8 from the prior, given that they make a double well."""
    terms = DEGREE_PRIOR.terms(TOP)
    chances = np.exp([term.log_weight for term in terms])
    while True:
        term = terms[int(rng.choice(len(terms), p=chances / chances.sum()))]
        a = SCALE * np.concatenate(
            [[1.0], term.spreads(np.arange(1, term.degree + 1)) * rng.standard_normal(term.degree)]
        )
        g = Bernstein(term.degree).elevation(TOP) @ (legendre_to_bernstein(term.degree) @ a)
        if is_well(g[None])[0]:
            return g


def posterior_wells(found, seed: int, *, least: int = 1000, rounds: int = 200) -> np.ndarray:
    """Draw from the posterior, given a double well; a law near the edge of the wells takes many draws."""
    components = average_degrees(found.evidence, 1.0, constraint="none").components
    weights = np.array([item.weight for item in components])
    rng, kept = np.random.default_rng(seed), np.zeros((0, 9))
    for _ in range(rounds):
        counts = rng.multinomial(10_000, weights / weights.sum())
        parts = [
            rng.multivariate_normal(item.free, item.covariance, size=int(n)) @ Bernstein(item.degree).elevation(TOP).T
            for item, n in zip(components, counts, strict=True)
            if n
        ]
        draws = np.vstack(parts)
        kept = np.vstack([kept, draws[is_well(draws)]])
        if len(kept) >= least:
            return kept
    raise RuntimeError(f"{len(kept)} double wells among {10_000 * rounds} draws of the posterior")


def ranks(found, truth: np.ndarray, seed: int) -> np.ndarray:
    """The share of posterior draws below the truth, for each quantity; ties cannot happen."""
    stacked = np.vstack([posterior_wells(found, seed), truth])
    integrals = np.sqrt(2.0 * np.maximum(stacked @ TOP.primitives(NODES), 0.0)) @ WEIGHTS
    values = np.column_stack([-stacked @ TOP.features(AT), integrals])
    return np.mean(values[:-1] < values[-1], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--first", type=int, default=700_000)
    parser.add_argument("--out", type=Path, default=RESULTS / "ranks.json")
    asked = parser.parse_args(words("--draws 1 --batch 1"))
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    table, stopped = [], 0
    for first in range(0, asked.draws, asked.batch):
        laws = [draw_law(np.random.default_rng(asked.first + first + k)) for k in range(asked.batch)]
        movies = [simulate(Law(TOP, g), start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=1.0) for g in laws]
        records = [add_noise(m, NOISE, seed=asked.first + 50_000 + first + k) for k, m in enumerate(movies)]
        found, _ = read_all(records)
        stopped += sum(not one.status.converged for one in found)
        table += [ranks(one, g, first + k) for k, (one, g) in enumerate(zip(found, laws, strict=True))]
        report(np.array(table), stopped, asked.out)
        print(f"{len(table)} of {asked.draws} draws, {stopped} did not converge", flush=True)


def report(table: np.ndarray, stopped: int, out: Path) -> None:
    names = [*(f"G({u:g})" for u in AT), "tension integral"]
    rows = []
    for name, column in zip(names, table.T, strict=True):
        counts = np.histogram(column, bins=10, range=(0.0, 1.0))[0]
        rows.append(
            {
                "quantity": name,
                "draws": len(column),
                "counts in tenths": counts.tolist(),
                "p of chi-square": round(float(stats.chisquare(counts).pvalue), 4),
                "p of Kolmogorov-Smirnov": round(float(stats.kstest(column, "uniform").pvalue), 4),
                "inside the central 95 %": round(float(np.mean(np.abs(column - 0.5) <= 0.475)), 4),
            }
        )
    write_json(out, {"device": device(), "not converged": stopped, "rows": rows})
    if len(table) % 200 == 0:
        print_table("Ranks of the truth among posterior draws", rows)


if __name__ == "__main__":
    main()

"""A population of random double wells on which the rule for the degree is chosen, and what a record says of each.

Run: python benchmarks/law_population.py [--laws N] [--seed SEED]
The rule must not be chosen on the laws that are reported (study_laws.py), so it is chosen on these. A bracket is drawn
from one of six kinds of formula with random parameters, scaled to mean 1, and kept where it stays above 0.05 and below
5. For each the file results/evidence/population.npz holds the force at PHASES and the triangle R of a 61 x 96 x 96
record for noise 1, as `doublewell plan` computes it, without any noise drawn. About ten seconds a law.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import RESULTS, SMALL, sized, target, words
from numpy.random import Generator

from doublewell.atomic import replace_file
from doublewell.law import Law
from doublewell.plan import Experiment, experiment_information
from doublewell.simulate import initial_field

CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
GEOMETRIES = ("circle", "nonconvex")
PHASES = np.linspace(-1.0, 1.0, 801)
FILE = RESULTS / "evidence" / "population.npz"
_FINE = np.linspace(0.0, 1.0, 1001)


def _polynomial(rng: Generator):
    knots = np.linspace(0.0, 1.0, int(rng.integers(2, 7)))
    values = np.exp(0.5 * rng.standard_normal(knots.size))
    series = np.polynomial.Polynomial.fit(knots, values, knots.size - 1)
    return series


def _exponential(rng: Generator):
    a, b = rng.normal(0.0, 0.8), rng.normal(0.0, 0.5)
    return lambda z: np.exp(a * z + b * (2 * z - 1) ** 2)


def _rational(rng: Generator):
    a, b = rng.uniform(0.1, 4.0), rng.uniform(-1.0, 1.0)
    return lambda z: (1.0 + b * z) / (1.0 + a * z) if b > -0.9 else 1.0 / (1.0 + a * z**2)


def _wave(rng: Generator):
    a, b, c = rng.uniform(0.1, 0.7), rng.uniform(1.0, 6.0), rng.uniform(0.0, 2 * np.pi)
    return lambda z: 1.0 + a * np.sin(b * z + c)


def _bump(rng: Generator):
    a, b, c = rng.uniform(0.3, 2.0), rng.uniform(2.0, 15.0), rng.uniform(0.0, 1.0)
    return lambda z: 1.0 + a * np.exp(-b * (z - c) ** 2)


def _power(rng: Generator):
    a, b = rng.uniform(0.1, 1.0), rng.uniform(-1.5, 2.5)
    return lambda z: (a + z) ** b


KINDS = {f.__name__[1:]: f for f in (_polynomial, _exponential, _rational, _wave, _bump, _power)}


def draw_law(kind: str, rng: Generator) -> Law:
    """Draw until the bracket is a double well of ordinary size."""
    while True:
        bracket = KINDS[kind](rng)
        mean = float(np.mean(bracket(_FINE)))
        values = bracket(_FINE) / mean
        if np.min(values) > 0.05 and np.max(values) < 5.0:
            return Law.from_force(lambda u, b=bracket, m=mean: -u * (1 - u**2) * b(u**2) / m, name=kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--laws", type=int, default=36)
    parser.add_argument("--seed", type=int, default=77)
    asked = parser.parse_args(words("--laws 1"))
    rng = np.random.default_rng(asked.seed)
    kinds, forces, triangles = [], [], []
    for k in range(asked.laws):
        kind, geometry = list(KINDS)[k % len(KINDS)], GEOMETRIES[(k // len(KINDS)) % 2]
        start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
        law = draw_law(kind, rng)
        planned = Experiment(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, noise=1.0, epsilon=EPSILON)
        triangles.append(experiment_information(planned).triangle)
        forces.append(planned.force.force(PHASES))
        kinds.append(f"{kind}, {geometry}")
        print(k, kinds[-1], flush=True)
        with replace_file(target(FILE)) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(stream, kinds=np.array(kinds), forces=np.array(forces), triangles=np.array(triangles))


if __name__ == "__main__":
    main()

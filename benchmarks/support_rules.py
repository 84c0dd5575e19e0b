"""How long the test functions of the weak reading should be: rules against each other on the paper's laws.

Run: python benchmarks/support_rules.py [--seed SEED]
A rule gives half-widths in frames, and in space a share of the interface width with a least number of cells. For every
mesh, law, geometry and noise all rules read the same record; printed is the geometric mean, over laws and geometries,
of their errors over those of the first rule: half and one interface width, which is nearly the paper's. The rule of
`default_supports` was chosen with the noise of seed 24200; the kept numbers are of another seed.
"""

from __future__ import annotations

import one_thread  # noqa: F401

import argparse
from itertools import product

import numpy as np
from common import print_table, save_results, sized, words

from doublewell.inference import estimate
from doublewell.evidence import lower
from doublewell.weak.assembly import weak_evidence
from doublewell.weak.weights import MARGIN, Support, default_supports
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell_paper.records import Sample, Spec
from doublewell.observation import survey

FRESH_SEED = 24_400
RULES = {
    "1/2 and 1": (((5, 0.5, 4), (8, 1.0, 8))),
    "1/4 and 1/2": (((5, 0.25, 4), (8, 0.5, 6))),
    "1/4, 5 frames": (((5, 0.25, 4),)),
    "1/4, 8 frames": (((8, 0.25, 4),)),
    "1/4 twice": (((5, 0.25, 4), (8, 0.25, 4))),
    "0.3, 8 frames": (((8, 0.3, 4.5),)),
}
FIRST, DEFAULT = list(RULES)[:2]
MESHES = sized(  # cells, frames, one frame in so many
    ((64, 61, 1), (96, 61, 1), (96, 31, 2), (160, 61, 1), (256, 41, 1)), tiny=((64, 31, 1),)
)
LAWS = sized(("sixth", "exponential", "rational", "bernstein3"), tiny=("sixth",))
GEOMETRIES = ("circle", "nonconvex")
NOISES = sized((0.003, 0.01, 0.03), tiny=(0.01,))
DEGREES = (2, 3, 5)
PHASES = np.linspace(-1.0, 1.0, 2001)


def by_rule(record: Record, width: float, rule: tuple[tuple[int, float, float], ...]) -> tuple[Support, ...]:
    """Return the supports of a rule; frames and long sides are cut as `default_supports` does."""
    cuts = {n: min(n, (record.frames - 5 - 2 * MARGIN) // 2) for n in (5, 8)}
    most = min(record.extent) / 4
    lengths = (min(max(share * width, cells * record.dx[0]), most) for _, share, cells in rule)
    return tuple(dict.fromkeys(Support(cuts[n], x) for (n, _, _), x in zip(rule, lengths, strict=True)))


def errors(sample: Sample) -> dict[tuple[int, str], float]:
    """Return the logarithm of e_G for each degree and rule."""
    record, found = sample.record, {}
    width = survey(record).interface_width
    truth = sample.truth.force(PHASES)
    assert by_rule(record, width, RULES[DEFAULT]) == default_supports(record, width)[0]
    for name, rule in RULES.items():
        evidence = weak_evidence(record, Bernstein(max(DEGREES)), by_rule(record, width, rule))
        for degree in DEGREES:
            force = estimate(lower(evidence, degree), 1.0, constraint="bernstein").law.force(PHASES)
            found[degree, name] = float(np.log(np.linalg.norm(force - truth) / np.linalg.norm(truth)))
    return found


def measure(mesh: tuple[int, int, int], seed: int) -> list[dict]:
    """Return a row for each noise and degree of one mesh."""
    cells, frames, stride = mesh
    seen: dict[float, list[dict]] = {noise: [] for noise in NOISES}
    for law, geometry in product(LAWS, GEOMETRIES):
        spec = Spec(law, geometry, cells=cells, frames=frames, stride=stride, phases=PHASES.size, seed=seed)
        clean = Sample(spec).clean
        for noise in NOISES:
            sample = Sample(Spec(**{**vars(spec), "noise": noise}))
            vars(sample)["clean"] = clean  # simulated once
            seen[noise].append(errors(sample))
    rows = []
    for noise, degree in product(NOISES, DEGREES):
        logs = {name: np.array([one[degree, name] for one in seen[noise]]) for name in RULES}
        ratios = {name: round(float(np.exp(np.mean(log - logs[FIRST]))), 3) for name, log in logs.items()}
        row = {"cells": cells, "frames": frames, "noise": noise, "degree": degree}
        rows.append({**row, "e_G, %": round(100 * float(np.exp(np.mean(logs[FIRST]))), 3), **ratios})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=FRESH_SEED)
    asked = parser.parse_args(words())
    rows = []
    for mesh in MESHES:
        rows += measure(mesh, asked.seed)
        print_table("Errors over those of the first rule", rows)
    means = {name: round(float(np.exp(np.mean([np.log(row[name]) for row in rows]))), 3) for name in RULES}
    print(means)
    save_results("support_rules", [*rows, {"cells": "all", **means}])


if __name__ == "__main__":
    main()

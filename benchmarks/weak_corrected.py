"""The plain weak reading against the one without noise bias, and q from either.

Run: python benchmarks/weak_corrected.py [--seeds N] [--choose]
The paper's principal set-up (61 frames of 96 x 96, its supports), four laws, two geometries, noise 0.01, 0.03 and 0.10,
degrees 2 and 5, noise seeds from 53001 on, which nothing was chosen on. Writes results/weak_corrected.json.
--choose compares the pull of without_noise on twelve random laws (law_population.py) with noise seeds from 7000 on, on
which it was chosen, and writes results/weak_corrected_choice.json.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import SMALL, print_table, save_results, sized, words
from law_population import KINDS, draw_law

from doublewell.options import DoubleWell, Weak
from doublewell.inference import estimate
from doublewell.evidence import Evidence
from doublewell.weak.assembly import weak_evidence
from doublewell.weak.noise import noisy_moments, without_noise
from doublewell.weak.weights import paper_supports
from doublewell.identify.weak_fit import find_q, fit_weak
from doublewell.problem import ask
from doublewell.law import Bernstein, Law, named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.observation import survey

CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
SUBSTEPS = 12
LAWS = sized(("sixth", "bernstein3", "exponential", "rational"), tiny=("sixth",))
GEOMETRIES = ("circle", "nonconvex")
NOISES = sized((0.01, 0.03, 0.10), tiny=(0.01,))
DEGREES, METHODS = (2, 5), ("weak", "weak-corrected")
PULLS = (0.03, 0.05, 0.1, 0.2, 0.4, 1.0)
PHASES = np.linspace(-1.0, 1.0, 2001)
FIRST_SEED, CHOICE_SEED = 53001, 7000


def movie(law: Law, geometry: str) -> Record:
    start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    return simulate(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON, substeps=SUBSTEPS)


def force_error(found: Law, truth: Law) -> float:
    exact = truth.effective(EPSILON).force(PHASES)
    return 100.0 * float(np.linalg.norm(found.force(PHASES) - exact) / np.linalg.norm(exact))


def one_record(record: Record, law: Law) -> dict[str, float]:
    """Force errors in percent by method and degree; with q unknown also those of q. As identify, with one reading."""
    seen, out = survey(record), {}
    for method in METHODS:
        for degree in DEGREES:
            asked = Weak(supports="paper", corrected=method == "weak-corrected")
            known = fit_weak(record, seen, ask([record], law=DoubleWell(degree, "bernstein"), method=asked))
            q, _ = find_q(record, known.uncorrected, known.supports, seen.noise, "discrete", "bernstein")
            free = estimate(known.evidence, q)
            out[f"{method} m={degree} e_G"] = force_error(known.estimate.law, law)
            out[f"{method} m={degree} e_G, q unknown"] = force_error(free.law, law)
            out[f"{method} m={degree} e_q"] = 100.0 * (q - 1.0)
    return out


def compare(seeds: int) -> None:
    rows = []
    for name in LAWS:
        law = named_law(name)
        for geometry in GEOMETRIES:
            clean = movie(law, geometry)
            for noise in NOISES:
                errors = [one_record(add_noise(clean, noise, seed=FIRST_SEED + k), law) for k in range(seeds)]
                rows.append({"law": name, "geometry": geometry, "noise": noise, "seeds": seeds, "errors": errors})
                save_results("weak_corrected", rows)
                print(name, geometry, noise, flush=True)
    show(rows)


def show(rows: list[dict]) -> None:
    for title, groups in (("law", LAWS), ("geometry", GEOMETRIES)):
        lines = []
        for noise in NOISES:
            for group in (*groups, "all"):
                found = [e for r in rows if r["noise"] == noise and group in (r[title], "all") for e in r["errors"]]
                means = {key: f"{np.mean([e[key] for e in found]):.2f}" for key in found[0] if key.endswith("e_G")}
                lines.append({"noise": noise, title: group, **means})
        print_table("mean force error in percent", lines)
    lines = []
    for noise in NOISES:
        found = [e for r in rows if r["noise"] == noise for e in r["errors"]]
        for method in METHODS:
            for m in DEGREES:
                key = f"{method} m={m} e_q"
                q = np.array([e[key] for e in found])
                e = np.mean([e[f"{method} m={m} e_G, q unknown"] for e in found])
                lines.append({
                    "noise": noise, "method": method, "degree": m, "mean error of q": f"{q.mean():+.2f}",
                    "rms": f"{np.sqrt(np.mean(q**2)):.2f}", "largest": f"{np.abs(q).max():.2f}", "e_G": f"{e:.2f}",
                })  # fmt: skip
    print_table("q unknown, percent", lines)


def choose(laws: int = 12) -> None:
    rng = np.random.default_rng(4242)
    rows = []
    for k in range(laws):
        law = draw_law(list(KINDS)[k % len(KINDS)], rng)
        clean = movie(law, GEOMETRIES[k // len(KINDS) % 2])
        for noise in NOISES:
            record = add_noise(clean, noise, seed=CHOICE_SEED + k)
            level, supports = survey(record).noise, paper_supports(record)
            for degree in (2, 5, 8):
                family = Bernstein(degree)
                plain = estimate(weak_evidence(record, family, supports), 1.0)
                seen = [noisy_moments(record, family, support, level) for support in supports]
                found = {"law": k, "noise": noise, "degree": degree, "plain": force_error(plain.law, law)}
                for pull in PULLS:
                    blocks = tuple(without_noise(one, family, pull=pull) for one in seen)
                    found[f"pull {pull}"] = force_error(estimate(Evidence(family, blocks), 1.0).law, law)
                rows.append(found)
        save_results("weak_corrected_choice", rows)
        print(k, flush=True)
    names = ["plain", *(f"pull {pull}" for pull in PULLS)]
    lines = []
    for noise in NOISES:
        for degree in (2, 5, 8):
            found = [r for r in rows if (r["noise"], r["degree"]) == (noise, degree)]
            lines.append(
                {"noise": noise, "degree": degree, **{n: f"{np.mean([r[n] for r in found]):.2f}" for n in names}}
            )
    print_table("mean force error in percent, laws of the population", lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--choose", action="store_true")
    asked = parser.parse_args(words("--seeds 1"))
    choose() if asked.choose else compare(asked.seeds)

"""Accuracy and coverage of the trajectory reading, from stored evidence of simulated records.

Run: python benchmarks/trajectory_figures.py [--constraint admissible|bernstein|none ...] [evidence.npz ...]
The evidence in results/evidence was read on a GPU by trajectory_records.py (device and seeds are in the files). Each
record is averaged over degrees under each constraint, all three by default; errors and bands are compared with the law
that made the movie. trajectory_noise_*.json is for the default constraint, *_bernstein.json and *_none.json for others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from common import evidence_files, print_table, save_results, stored_evidence, words
from scipy import stats
from study_laws import study_law

from doublewell.inference import Posterior, average_degrees, quantile_interval
from doublewell.evidence import Block, Evidence, Key, lower, system
from doublewell.law import CONSTRAINTS, Bernstein, Law

EPSILON = 0.03
TOP = Bernstein(8)
PHASES = np.linspace(-1.0, 1.0, 2001)
BAND = np.linspace(-0.995, 0.995, 200)  # no end points and no centre, where the force is zero by construction
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
POLYNOMIALS = {"quartic": 0, "sixth": 1, "bernstein3": 3, "outside_cone": 4}
FOUR = ("sixth", "bernstein3", "exponential", "rational")


def scores(name: str, triangle: np.ndarray, rows: int, constraint: str) -> dict:
    """Errors in percent, and whether bands and intervals cover, for one record."""
    law = study_law(name).effective(EPSILON)
    evidence = Evidence(TOP, (Block(Key("r", "trajectory", "all"), triangle, rows),), whitened=True)
    average = average_degrees(evidence, 1.0, constraint=constraint)
    posterior = Posterior(TOP, average.path, average.components, average.unseen, constraint)
    truth, at = law.force(PHASES), law.force(BAND)
    low, high = quantile_interval(posterior.draws @ TOP.features(BAND), 0.95)
    integrals = np.sqrt(2 * np.maximum(posterior.draws @ TOP.primitives(NODES), 0)) @ WEIGHTS
    c_low, c_high = quantile_interval(integrals, 0.95)
    found = np.sqrt(2 * np.maximum(average.coefficients @ TOP.primitives(NODES), 0)) @ WEIGHTS
    fixed = average.path[5]
    lift = Bernstein(5).elevation(TOP)
    features = lift.T @ TOP.features(PHASES)
    bound = np.sqrt(np.einsum("ia,ij,ja->", features, fixed.covariance, features))
    own = [_own_band(fit, at) for fit in average.path]
    return {
        "e_G": 100 * np.linalg.norm(average.coefficients @ TOP.features(PHASES) - truth) / np.linalg.norm(truth),
        "e_eps": 100 * abs(law.tension_integral / found - 1),
        "band": np.mean((low <= at) & (at <= high)),
        "epsilon": float(c_low <= law.tension_integral <= c_high),
        "width": np.mean(high - low) / np.max(np.abs(truth)),
        "e_G5": 100 * np.linalg.norm(fixed.coefficients @ features - truth) / np.linalg.norm(truth),
        "bound5": 100 * bound / np.linalg.norm(truth),
        "own_cover": [cover for cover, _ in own],
        "own_width": [width / np.max(np.abs(truth)) for _, width in own],
    }


def _own_band(fit, truth) -> tuple[float, float]:
    """Coverage and mean width of the band that one fixed degree gives itself."""
    features = Bernstein(fit.degree).elevation(TOP).T @ TOP.features(BAND)
    spread = 1.96 * np.sqrt(np.einsum("ia,ij,ja->a", features, fit.covariance, features))
    return float(np.mean(np.abs(fit.free @ features - truth) <= spread)), float(np.mean(2 * spread))


def inside(path: Path) -> list[dict]:
    """(g_hat - g)' I (g_hat - g) at degree 5 for laws that are of that degree: chi-square with 6 degrees of freedom."""
    content = stored_evidence(path)
    names = content["law"].astype(str)
    table, pooled = [], []
    for name, degree in POLYNOMIALS.items():
        if not np.any(names == name):
            continue
        law = study_law(name).effective(EPSILON)
        truth = np.linalg.lstsq(Bernstein(degree).features(PHASES).T, law.force(PHASES), rcond=None)[0]
        lifted = Bernstein(degree).elevation(Bernstein(5)) @ truth
        values = [_distance(triangle, lifted) for triangle in content["triangles"][names == name]]
        pooled += values
        table.append(_chi_row(name, values))
    return [*table, _chi_row("all", pooled)]


def _distance(triangle: np.ndarray, truth: np.ndarray) -> float:
    evidence = Evidence(TOP, (Block(Key("r", "trajectory", "all"), triangle, 1),), whitened=True)
    matrix, target = system(lower(evidence, 5), 1.0)
    basis, root = np.linalg.qr(matrix)
    return float(np.sum((basis.T @ target - root @ truth) ** 2))


def _chi_row(name: str, values: list[float]) -> dict:
    return {
        "law": name,
        "records": len(values),
        "mean (6 expected)": round(float(np.mean(values)), 2),
        "p of Kolmogorov-Smirnov": round(float(stats.kstest(values, stats.chi2(6).cdf).pvalue), 4),
    }


def violations(path: Path, constraint: str) -> dict:
    """Averages that are no plain double well, by the exact test."""
    content = stored_evidence(path)
    names = content["law"].astype(str)
    laws = [name for name in FOUR if np.any(names == name)]
    wrong = total = 0
    for triangle in content["triangles"][np.isin(names, laws)]:
        evidence = Evidence(TOP, (Block(Key("r", "trajectory", "all"), triangle, 1),), whitened=True)
        law = Law(TOP, average_degrees(evidence, 1.0, constraint=constraint).coefficients)
        wrong, total = wrong + (not law.structure.ok), total + 1
    return {"constraint": constraint, "averages": total, "no plain double well": wrong}


def table_of(path: Path, constraint: str) -> list[dict]:
    content = stored_evidence(path)
    names = content["law"].astype(str)
    table = []
    for name in dict.fromkeys(names):
        found = [scores(name, t, int(content["rows"]), constraint) for t in content["triangles"][names == name]]
        mean = {key: np.mean([row[key] for row in found], axis=0) for key in found[0]}
        covering = [m for m, cover in enumerate(mean["own_cover"]) if cover >= 0.92]
        smallest = covering[0] if covering else 8
        rms = [float(np.sqrt(np.mean([row[key] ** 2 for row in found]))) for key in ("e_G5", "bound5")]
        table.append(
            {
                "law": name,
                "records": len(found),
                "e_G": round(float(mean["e_G"]), 3),
                "|e_eps|": round(float(mean["e_eps"]), 4),
                "band covers": round(float(mean["band"]), 3),
                "epsilon covers": round(float(mean["epsilon"]), 3),
                "width / smallest covering degree": round(float(mean["width"] / mean["own_width"][smallest]), 2),
                "that degree": smallest,
                "m = 5 rms / Cramer-Rao": round(rms[0] / rms[1], 3),
                "seconds": round(float(np.median(content["seconds"][names == name])), 2),
            }
        )
    four = [row for row in table if row["law"] in FOUR]
    return [*table, _total("the paper's four", four), _total("all", table)]


def _total(title: str, rows: list[dict]) -> dict:
    out = {"law": title, "records": sum(row["records"] for row in rows)}
    keys = [key for key in rows[0] if key not in ("law", "records", "that degree")]
    out |= {key: round(float(np.mean([row[key] for row in rows])), 4) for key in keys}
    return out | {"that degree": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constraint", choices=list(CONSTRAINTS), nargs="+", default=list(CONSTRAINTS))
    parser.add_argument("evidence", type=Path, nargs="*")
    asked = parser.parse_args(words())
    for path in asked.evidence or evidence_files():
        device = str(np.load(path)["device"])
        for constraint in asked.constraint:
            table = table_of(path, constraint)
            print_table(f"{path.stem}, read on {device}; {CONSTRAINTS[constraint]}; errors in percent", table)
            save_results(f"trajectory_{path.stem}" + ("" if constraint == "admissible" else f"_{constraint}"), table)
        chi = inside(path)
        print_table("Distance to the truth in units of the noise, laws of degree 5 or less", chi)
        seen = [violations(path, constraint) for constraint in asked.constraint]
        print_table("Structure of the averages, the paper's four laws", seen)
        save_results(f"inside_{path.stem}", [*chi, *seen])


if __name__ == "__main__":
    main()

"""Priors for the degree, compared on draws of the linearised likelihood: what each costs in error and in coverage.

Run: python benchmarks/degree_rules.py [--draws N] [--seed SEED]
For a law the estimate at degree 8 is normal with the truth as its mean and the covariance (R' R)^-1. A draw costs
nothing, and no noise of a reported record plays a part. The prior was chosen on the random laws of law_population.py;
the nine laws of the study (R from one stored record of each geometry, results/evidence) stand beside it and chose
nothing. Lowest: the mean coverage of the worst twelfth of the laws.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from common import RESULTS, print_table, save_results, sized, words
from law_population import FILE, PHASES
from scipy.interpolate import CubicSpline
from scipy.special import ndtr
from study_laws import OTHERS, study_law

from doublewell.inference import DEGREE_PRIOR, DegreePrior, WeighedTerm, mixture_mean, weigh_terms
from doublewell.law import Bernstein

TOP = Bernstein(8)
FOUR = ("sixth", "bernstein3", "exponential", "rational")
BAND = np.linspace(0.01, 0.99, 50)
FEATURES, AT = TOP.features(PHASES), TOP.features(BAND)
NOISES = (0.01, 0.03, 0.10)
EIGHT = (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2)


@dataclass(frozen=True)
class Scene:
    """A law and what a record of it says, for noise 1."""

    name: str
    force: np.ndarray
    triangle: np.ndarray


def population() -> list[Scene]:
    content = np.load(FILE)
    columns = content["kinds"].tolist(), content["forces"], content["triangles"]
    return [Scene(*row) for row in zip(*columns, strict=True)][: sized(None, tiny=2)]


def study() -> list[Scene]:
    content = np.load(RESULTS / "evidence" / "noise_003.npz")
    scenes = []
    for name in (*FOUR, *OTHERS):
        for geometry in ("circle", "nonconvex"):
            where = (content["law"] == name) & (content["geometry"] == geometry)
            triangle = content["triangles"][where][0][:9, :9] * 0.03
            scenes.append(Scene(name, study_law(name).effective(0.03).force(PHASES), triangle))
    return scenes


def score(scene: Scene, noise: float, prior: DegreePrior, draws: int, seed: int) -> tuple[float, float]:
    """Mean e_G in percent, and the share of phase values inside the 95 % band."""
    triangle = scene.triangle / noise
    best = np.linalg.lstsq(FEATURES.T, scene.force, rcond=None)[0]
    targets = triangle @ best + np.random.default_rng(seed).standard_normal((draws, 9))
    terms = weigh_terms(triangle, targets, TOP, prior, constraint="none")
    gap = mixture_mean(terms, TOP) @ FEATURES - scene.force
    error = 100 * np.linalg.norm(gap, axis=1) / np.linalg.norm(scene.force)
    truth = CubicSpline(PHASES, scene.force)(BAND)
    below = sum(share_below(item, truth) for item in terms)
    return float(np.mean(error)), float(np.mean((below > 0.025) & (below < 0.975)))


def share_below(item: WeighedTerm, truth: np.ndarray) -> np.ndarray:
    """Weight of one term below the truth; a row a draw, a column a phase value."""
    features = Bernstein(item.term.degree).elevation(TOP).T @ AT
    spread = np.sqrt(np.einsum("ia,nij,ja->na", features, item.covariances, features))
    return item.weights[:, None] * ndtr((truth - item.free @ features) / spread)


def row(who: str, scenes: list[Scene], title: str, prior: DegreePrior, asked: argparse.Namespace) -> dict:
    out: dict = {"laws": who, "prior": title}
    for noise in NOISES:
        scores = [score(s, noise, prior, asked.draws, asked.seed + k) for k, s in enumerate(scenes)]
        found = np.array(scores)
        lowest = np.sort(found[:, 1])[: max(1, len(scenes) // 12)]
        out |= {
            f"{noise:g}: e_G": round(float(np.mean(found[:, 0])), 3),
            f"{noise:g}: covers, %": round(100 * float(np.mean(found[:, 1])), 1),
            f"{noise:g}: lowest, %": round(100 * float(np.mean(lowest)), 1),
        }
    return out


def candidates() -> dict[str, DegreePrior]:
    three, sizes = (0.3, 0.6, 1.2), (0.3, 1.0, 3.0)
    priors = {"as built": DEGREE_PRIOR}
    priors |= {f"odds {odds:g}": DegreePrior(three, sizes, odds) for odds in (1.0, 0.8)}
    priors |= {
        f"ratios 0.15 and as built, odds {odds:g}": DegreePrior((0.15, *three), sizes, odds) for odds in (1, 0.9)
    }
    priors |= {f"sizes {s}": DegreePrior(three, s, 0.9) for s in ((1.0,), (0.5, 1.5), (0.2, 1.0, 5.0))}
    priors |= {f"eight ratios, size 1, odds {odds:g}": DegreePrior(EIGHT, (1.0,), odds) for odds in (1.0, 0.9, 0.8)}
    priors |= {"eight ratios, three sizes, odds 0.9": DegreePrior(EIGHT, sizes, 0.9)}
    return priors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(words("--draws 2"))
    known = study()
    groups = {"random": population(), "the four": known[:8], "the other five": known[8:]}
    table = [
        row(who, scenes, title, prior, asked)
        for title, prior in candidates().items()
        for who, scenes in groups.items()
        if who == "random" or title in ("as built", "eight ratios, size 1, odds 0.9")
    ]
    print_table("Mean e_G in percent and coverage of 95 % bands, by noise level", table)
    save_results("degree_rules", table)


if __name__ == "__main__":
    main()

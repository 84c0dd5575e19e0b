"""Rules for the degree, compared on draws of the linearised likelihood: what each costs in error and in coverage.

Run: python benchmarks/degree_rules.py [--draws N] [--seed SEED]
For each law, geometry and noise level the estimate at degree 8 is normal with the truth as its mean and the covariance
(R' R)^-1, R taken from one stored record (results/evidence; R hardly depends on the noise). A draw costs nothing, so
means are exact to about 1 %, and the noise of the records that are reported elsewhere plays no part. A rule is a list
of components (degree, spreads of the Legendre coefficients, log of the prior weight), as in estimate/degrees.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from common import print_table, save_results
from scipy.special import ndtr
from study_laws import study_law

from doublewell.estimate.degrees import DEGREE_ODDS, RATIOS, legendre_to_bernstein
from doublewell.law import Bernstein

TOP = Bernstein(8)
LAWS = ("sixth", "bernstein3", "exponential", "rational", "quartic", "outside_cone", "cosine", "hump", "root")
PHASES, BAND = np.linspace(-1.0, 1.0, 801), np.linspace(0.01, 0.99, 50)
FEATURES, AT = TOP.features(PHASES), TOP.features(BAND)
STORED = {0.01: ("noise_001", 1.0), 0.03: ("noise_003", 1.0), 0.10: ("noise_003", 0.3)}  # file, factor of its R


def rule(ratios: tuple[float, ...], odds: float, size: float = 1.0) -> list[tuple[int, np.ndarray, float]]:
    """a_k ~ N(0, (size a_0 ratio^k)^2), each ratio as likely, a further degree less likely by `odds`."""
    return [
        (m, size * ratio ** np.arange(1, m + 1), m * np.log(odds) - np.log(len(ratios) if m else 1))
        for m in range(9)
        for ratio in (ratios if m else ratios[:1])
    ]


def mixture(triangle, targets, components) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Weights [component, draw], means [component, draw, coefficient] and covariances of the components."""
    low = triangle @ Bernstein(2).elevation(TOP) @ legendre_to_bernstein(2)
    amplitude = np.mean(np.abs(np.linalg.lstsq(low, targets.T, rcond=None)[0][0]))
    logs, means, covariances = [], [], []
    for degree, spreads, log in components:
        lift = Bernstein(degree).elevation(TOP) @ legendre_to_bernstein(degree)
        prior = np.diag(np.concatenate([[0.0], 1.0 / (amplitude * spreads)]))
        basis, root = np.linalg.qr(np.vstack([triangle @ lift, prior]))
        right = targets @ basis[:9]
        cost = np.sum(targets**2, axis=1) - np.sum(right**2, axis=1)
        occam = np.sum(np.log(np.abs(np.diag(root)))) + np.sum(np.log(amplitude * spreads))
        logs.append(-0.5 * cost - occam + log)
        means.append(np.linalg.solve(root, right.T).T @ lift.T)
        spread_out = lift @ np.linalg.inv(root)
        covariances.append(spread_out @ spread_out.T)
    weights = np.exp(np.array(logs) - np.max(logs, axis=0))
    return weights / np.sum(weights, axis=0), np.array(means), covariances


def score(name: str, triangle, components, draws: int, seed: int) -> tuple[float, float]:
    """Mean e_G in percent, and the share of phase values inside the 95 % band."""
    law = study_law(name).effective(0.03)
    truth = law.force(PHASES)
    best = np.linalg.lstsq(FEATURES.T, truth, rcond=None)[0]
    targets = triangle @ best + np.random.default_rng(seed).standard_normal((draws, 9))
    weights, means, covariances = mixture(triangle, targets, components)
    found = np.einsum("cn,cnk->nk", weights, means) @ FEATURES
    error = 100 * np.linalg.norm(found - truth, axis=1) / np.linalg.norm(truth)
    spread = np.array([np.sqrt(np.einsum("ia,ij,ja->a", AT, c, AT)) for c in covariances])
    below = np.sum(weights[:, :, None] * ndtr((law.force(BAND) - means @ AT) / spread[:, None]), axis=0)
    return float(np.mean(error)), float(np.mean((below > 0.025) & (below < 0.975)))


def row(title: str, components, draws: int, seed: int) -> dict:
    out: dict = {"rule": title}
    for noise, (file, factor) in STORED.items():
        content = np.load(Path(__file__).parent / "results" / "evidence" / f"{file}.npz")
        kinds = np.stack([content["law"].astype(str), content["geometry"].astype(str)], axis=1)
        seen = {}
        for k, name in enumerate(LAWS):
            pairs = []
            for j, geometry in enumerate(("circle", "nonconvex")):
                triangle = content["triangles"][np.all(kinds == (name, geometry), axis=1)][0][:9, :9] * factor
                pairs.append(score(name, triangle, components, draws, seed + 10 * k + j))
            seen[name] = np.mean(pairs, axis=0)
        worst = min(LAWS, key=lambda name: seen[name][1])
        out |= {
            f"{noise:g}: the four": round(float(np.mean([seen[name][0] for name in LAWS[:4]])), 3),
            f"{noise:g}: the others": round(float(np.mean([seen[name][0] for name in LAWS[4:]])), 3),
            f"{noise:g}: covers, %": round(100 * float(np.mean([seen[name][1] for name in LAWS])), 1),
            f"{noise:g}: worst, %": f"{100 * seen[worst][1]:.1f} {worst}",
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rules = {"as built": rule(RATIOS, DEGREE_ODDS)}
    rules |= {f"odds {odds:g}": rule(RATIOS, odds) for odds in (1.0, 0.8, 0.7, 0.5)}
    others = ((0.15, 0.3, 0.6, 1.2), (0.2, 0.4, 0.8), (0.3, 0.6), (0.15, 0.5))
    rules |= {
        f"ratios {', '.join(map(str, ratios))}, odds {odds:g}": rule(ratios, odds)
        for ratios in others
        for odds in (1.0, 0.9, 0.8)
    }
    rules |= {f"spreads times {size:g}": rule(RATIOS, DEGREE_ODDS, size) for size in (0.5, 2.0)}
    table = [row(title, components, asked.draws, asked.seed) for title, components in rules.items()]
    print_table("Mean e_G in percent and coverage of 95 % bands, by noise level", table)
    save_results("degree_rules", table)


if __name__ == "__main__":
    main()

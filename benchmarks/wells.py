"""Laws with wells of unequal depth: is the symmetric fit flagged, and what does the fit with unlike wells reach?

python benchmarks/wells.py            # writes benchmarks/results/wells.json, and goes on where it was left

Principal set-up: 96 x 96, 61 frames, nonconvex start, epsilon 0.03, CNAB2, noise 0.03, automatic degree. The depths
differ by 20 % of the barrier over the higher phase. The last row has no tilt: what the freedom costs where it is not
needed.
"""

from __future__ import annotations

import json

import numpy as np
from common import RESULTS, SMALL, print_table, save_results, sized, target

from doublewell.options import DoubleWell
from doublewell.identify import identify
from doublewell.law import Law, named_law
from doublewell.result import Result
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
NOISE = 0.03
SEEDS = (61_001, 61_002, 61_003, 61_004)
CASES = sized(  # law, tilt, seeds
    (("sixth", 0.2, 4), ("quartic", 0.2, 2), ("bernstein3", 0.2, 2), ("sixth", 0.0, 2)), tiny=(("sixth", 0.2, 1),)
)


def force_error(result: Result, truth: Law) -> float:
    u = np.linspace(-1.0, 1.0, 2001)
    true = truth.force(u)
    return 100.0 * float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true))


def covers(result: Result, name: str, value: float) -> bool:
    low, high = result.interval(name)
    return low <= value <= high


def one_seed(law: Law, name: str, share: float, seed: int) -> dict:
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    movie = simulate(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON)
    record, truth = add_noise(movie, NOISE, seed=seed), law.effective(EPSILON)
    symmetric, unequal = (identify(record, law=DoubleWell(wells=wells)) for wells in ("symmetric", "unequal"))
    low, high = unequal.band("force", np.linspace(-1.0, 1.0, 201))
    inside = truth.force(np.linspace(-1.0, 1.0, 201))
    return {
        "law": name,
        "tilt": share,
        "seed": seed,
        "symmetric_error": force_error(symmetric, truth),
        "symmetric_verdict": symmetric.adequacy.verdict,
        "unequal_error": force_error(unequal, truth),
        "unequal_verdict": unequal.adequacy.verdict,
        "band_covers": float(np.mean((low <= inside) & (inside <= high))),
        "maximum": unequal.law.maximum,
        "maximum_true": law.maximum,
        "maximum_covered": covers(unequal, "maximum", law.maximum),
        "tilt_covered": covers(unequal, "tilt", truth.tilt),
    }


def summary(rows: list[dict]) -> list[dict]:
    table = []
    for name, share in dict.fromkeys((row["law"], row["tilt"]) for row in rows):
        group = [row for row in rows if (row["law"], row["tilt"]) == (name, share)]
        table.append(
            {
                "law": name,
                "tilt": share,
                "seeds": len(group),
                "symmetric": round(float(np.mean([row["symmetric_error"] for row in group])), 3),
                "flagged": sum(row["symmetric_verdict"] == "not adequate" for row in group),
                "unequal": round(float(np.mean([row["unequal_error"] for row in group])), 3),
                "worst": round(max(row["unequal_error"] for row in group), 3),
                "unequal flagged": sum(row["unequal_verdict"] == "not adequate" for row in group),
                "band covers": round(float(np.mean([row["band_covers"] for row in group])), 3),
                "maximum covered": sum(row["maximum_covered"] for row in group),
                "tilt covered": sum(row["tilt_covered"] for row in group),
            }
        )
    return table


def main() -> None:
    path = target(RESULTS / "wells.json")
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    done = {(row["law"], row["tilt"], row["seed"]) for row in rows}
    for name, share, count in CASES:
        law = named_law(name).tilted(share) if share else named_law(name)
        for seed in SEEDS[:count]:
            if (name, share, seed) in done:
                continue
            rows.append(one_seed(law, name, share, seed))
            print(rows[-1], flush=True)
            save_results("wells", rows)
    print_table("force error in percent, noise 0.03, automatic degree", summary(rows))


if __name__ == "__main__":
    main()

"""Which equation? dynamics="auto" on small records of Allen-Cahn, Cahn-Hilliard and mass-conserving Allen-Cahn.

    python benchmarks/auto.py [--first 1] [--records 102] [--still 12] [--out FILE]    # results/auto.json
    python benchmarks/auto.py --merge FILE ...                                         # joins runs in parts

15 frames of 48 x 48, a periodic domain, CNAB2 with 400 steps a frame or more (the fits use ETDRK4), frame intervals
of 0.1 growth times of the fastest wave. Laws are those of conserved.py, the regular solution only where the phases
are found; a drop with lobes or a pattern; noise 0.005 to 0.03; q known and unknown. A record is told apart where the
equation that made it is chosen, and clearly where the finding is "equation-chosen". Still records, a stripe and a
round drop in equilibrium, obey all equations: nothing may be stated clearly of them. Of stripes that are bent by a
third of a cell, which move by less than the noise, no other equation may be stated clearly.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import join_results, parser_in_parts, print_table, save_results, sized, words
from conserved import TRUTHS, WIDTH, Truth, start

import doublewell as dw
from doublewell.dynamics import DYNAMICS, MASS_CONSERVING, Cnab2, Dynamics, Grid
from doublewell.errors import InputError
from doublewell.identify.choose import choose_dynamics
from doublewell.model_findings import rival_findings
from doublewell.simulate import add_noise

CELLS, FRAMES, STEPS = sized((48, 15, 400), tiny=(32, 15, 100))
GROWTH = 0.1  # of the fastest wave, in a frame interval
NOISES = 0.005, 0.03
BENT = 0.3  # cells by which a stripe is bent


def growth(dynamics: Dynamics, truth: Truth) -> float:
    """Return the rate of the fastest wave where the force falls most, at q = 1."""
    slope = -float(np.min(np.gradient(truth.force(truth.points), truth.points)))
    return slope**2 / 4.0 if dynamics.order == 4 else slope


def run(dynamics: Dynamics, truth: Truth, u: np.ndarray, interval: float, frames: int, steps: int) -> np.ndarray:
    """Return frames of an equation from a field on."""
    stepper = Cnab2(Grid((CELLS, CELLS), 1.0), interval, 1.0, steps, dynamics)
    return np.stack([u, *stepper.run(truth, u, intervals=frames - 1)])


def equilibrium(stage: str, truth: Truth) -> np.ndarray:
    """Return a stripe or a round drop that stands still, relaxed for a long time with its mean held; or bend it."""
    x = np.arange(CELLS) - CELLS / 2 + 0.5
    y, x = np.meshgrid(x, x, indexing="ij")
    inside = 0.3 * CELLS - np.hypot(x, y) if stage == "round" else 0.25 * CELLS - np.abs(x)
    middle, half = 0.5 * (truth.high + truth.low), 0.5 * (truth.high - truth.low)
    u = middle + half * np.tanh(inside / (np.sqrt(2) * WIDTH))
    u = run(MASS_CONSERVING, truth, u, 100.0 / growth(MASS_CONSERVING, truth), 2, 4000)[-1]
    if stage == "bent":
        shift = BENT * np.cos(2 * np.pi * np.arange(CELLS) / CELLS)[:, None]
        u = np.fft.irfft(np.fft.rfft(u) * np.exp(-2j * np.pi * np.fft.rfftfreq(CELLS) * shift), CELLS)
    return u


def made(seed: int, still: bool) -> tuple[dict[str, Any], dw.Record]:
    """Return what a record is, and the record."""
    rng, names = np.random.default_rng([seed, still, 11]), [*DYNAMICS]
    dynamics = DYNAMICS[names[seed % len(names)]]
    # Allen-Cahn takes the phases as given, -1 and +1, and the regular solution has others
    laws = [name for name in TRUTHS if (dynamics.gauge == "constant" and not still) or name != "regular"]
    truth = TRUTHS[str(rng.choice(laws))]
    noise, known = float(np.exp(rng.uniform(*np.log(NOISES)))), bool(rng.integers(2))
    interval = GROWTH / growth(dynamics, truth)
    if still:  # a round drop of Allen-Cahn shrinks
        stage = str(rng.choice(["stripe", "bent"] if dynamics.gauge == "nothing" else ["stripe", "round", "bent"]))
        u = equilibrium(stage, truth)
    else:
        stage = str(rng.choice(["drop", "spinodal"]))
        u = start(stage, truth, rng, CELLS)
    steps = round(STEPS * max(growth(dynamics, TRUTHS["quartic"]) / growth(dynamics, truth), 1.0))
    values = run(dynamics, truth, u, interval, FRAMES, steps)
    assert np.max(np.abs(values[1:])) < 1.5 * max(truth.high, -truth.low), "steps too long for the law"
    clean = dw.Record(values, dx=1.0, dt=interval, q=1.0 if known else None, boundary="periodic", origin="simulation")
    what = {"seed": seed, "still": still, "equation": dynamics.name, "law": truth.name, "stage": stage}
    what |= {"noise": round(noise, 4), "q": "known" if known else "free"}
    what["moved"] = round(float(np.sqrt(np.mean((values[-1] - values[0]) ** 2))) / noise, 3)
    return what, add_noise(clean, noise, seed=rng)


def read(seed: int, still: bool) -> dict[str, Any]:
    """Return which equation is chosen for a record, and how clearly."""
    (row, record), began = made(seed, still), time.perf_counter()
    try:
        dynamics, rivals = choose_dynamics([record], {}, None)
    except InputError as error:
        return row | {"refused": str(error), "told": False, "clear": False}
    (finding,) = rival_findings(rivals)
    return row | {
        "seconds": round(time.perf_counter() - began, 1),
        "chosen": dynamics.name,
        "told": dynamics.name == row["equation"],
        "clear": finding.code == "equation-chosen",
        "undecided": finding.code == "equation-undecided",
        "chi2": {one.dynamics: round(one.chi2, 1) if np.isfinite(one.chi2) else one.text for one in rivals},
        "sd": {one.dynamics: round(one.sd, 1) for one in rivals[1:]},
    }


def wrong(row: dict[str, Any]) -> bool:
    """Whether something is stated clearly that is false, or that the record cannot tell."""
    return row["clear"] and (not row["told"] or row["stage"] in ("stripe", "round"))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for each equation and for still records: told, clearly, undecided, refused, clearly wrong."""
    lines = []
    for name in [*DYNAMICS, "still"]:
        own = [row for row in rows if name == ("still" if row["still"] else row["equation"])]
        if own:
            counts = {key: sum(bool(row.get(key)) for row in own) for key in ("told", "clear", "undecided", "refused")}
            lines.append({"of": name, "records": len(own)} | counts | {"clearly wrong": sum(map(wrong, own))})
    return lines


def main() -> None:
    parser = parser_in_parts()
    parser.add_argument("--records", type=int, default=102)
    parser.add_argument("--still", type=int, default=12, help="records that stand still")
    asked = parser.parse_args(words("--records 1 --still 1"))
    rows = list[dict[str, Any]]()
    if asked.merge:
        rows = join_results("auto", asked.merge, lambda row: (row["still"], row["seed"]))
    else:
        for still, count in ((True, asked.still), (False, asked.records)):
            for seed in range(asked.first, asked.first + count):
                rows.append(read(seed, still))
                print(rows[-1], flush=True)
                save_results("auto", rows, asked.out)
    print_table("Which equation?", summary(rows))


if __name__ == "__main__":
    main()

"""Power and false alarms of the adequacy check: what was asked and what was got.

Run: python benchmarks/adequacy.py [--seeds N] [--null-seeds N] [--first FIRST] [--out FILE.json]
Two laws, two geometries, 61 frames of 96 x 96, noise 0.03, all data from CNAB2. A fault is seen when its own test is
significant after Holm's correction for all tests together; a false alarm is any verdict but "adequate" on a
record of the model. Wrong boundary: the drop is moved over the border, aslant, because a drop in the middle does not
feel the border and a drop symmetric about it cannot tell the two conditions apart. The records of a case are fitted and
checked in one batch; JAX takes a GPU where it sees one.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from common import RESULTS, SMALL, print_table, sized, words, write_json

from doublewell.adequacy import FALSE_ALARMS, Adequacy, check_adequacies
from doublewell.likelihood import Batch
from doublewell.law import Bernstein, named_law
from doublewell.observation import survey
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

LAWS = sized(("sixth", "exponential"), tiny=("sixth",))
GEOMETRIES = sized(("circle", "nonconvex"), tiny=("circle",))
CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
NOISE = 0.03
DRIFT = 0.05  # cells over the whole record
OVER_THE_BORDER = sized((36, 34), tiny=(12, 11))  # cells


def movie(law: str, geometry: str, *, moved: bool = False, boundary: str = "periodic") -> Record:
    start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    start = np.roll(start, OVER_THE_BORDER, axis=(0, 1)) if moved else start
    return simulate(named_law(law), start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON, boundary=boundary)


def declared(record: Record, *, q: float = 1.0, boundary: str = "periodic") -> Record:
    return Record(record.slab(), dx=record.dx, dt=record.dt, q=q, boundary=boundary)


def advected(record: Record) -> Record:
    """The record in a frame that moves along x: each frame shifted through its Fourier modes."""
    waves = 2j * np.pi * np.fft.rfftfreq(CELLS)
    cells = DRIFT * np.arange(FRAMES)[:, None] / (FRAMES - 1)
    modes = np.fft.rfft(record.slab(), axis=-1) * np.exp(-waves * cells)[:, None, :]
    return record.replace(np.fft.irfft(modes, n=CELLS, axis=-1))


def scenes(law: str, geometry: str) -> dict[str, tuple[str, Record]]:
    """For each fault the name of the test that should see it, and the clean record."""
    plain = movie(law, geometry)
    moved = {side: movie(law, geometry, moved=True, boundary=side) for side in ("periodic", "neumann")}
    return {
        "none": ("", plain),
        "none, at the border": ("", moved["neumann"]),
        "q 5 % too small": ("q", declared(plain, q=1 / 1.05)),
        "q 5 % too large": ("q", declared(plain, q=1.05)),
        "advection": ("advection", advected(plain)),
        "periodic, not neumann": ("boundary", declared(moved["periodic"], boundary="neumann")),
        "neumann, not periodic": ("boundary", declared(moved["neumann"], boundary="periodic")),
    }


def rough_start(record: Record) -> np.ndarray:
    """The quartic law with the record's interface width: no weak moments needed."""
    slope = 2 * np.arctanh(0.9) / survey(record).interface_width
    return np.full(3, 2 * slope**2)


def check(records: list[Record]) -> tuple[list[Adequacy], float]:
    """Fit at degree 5 and check; the seconds are those of one record's check."""
    starts = np.stack([rough_start(record) for record in records])
    found = Batch(records).fit(starts, family=Bernstein(5))
    began = time.perf_counter()
    answers = check_adequacies(found)
    return answers, (time.perf_counter() - began) / len(records)


def one(law: str, geometry: str, fault: str, wanted: str, clean: Record, seeds: range) -> dict:
    seen, first, sizes, values, largest, blamed = 0, 0, [], [], [], []
    answers, seconds = check([add_noise(clean, NOISE, seed=seed) for seed in seeds])
    for answer in answers:
        strongest = min(answer.tests, key=lambda t: (t.p, -abs(t.statistic)))
        largest.append(strongest.adjusted)
        if not wanted:
            seen += answer.verdict != "adequate"
            blamed += [t.name for t in answer.tests if t.adjusted < FALSE_ALARMS]
            continue
        test = next(t for t in answer.tests if t.name == wanted)
        seen += test.adjusted < FALSE_ALARMS
        first += bool(answer.significant) and answer.significant[0] is test
        sizes.append(abs(test.statistic) if test.degrees == 1 else test.statistic**0.5)
        values.append(test.estimate[-1])
    return {
        "law": law, "geometry": geometry, "fault": fault, "seen": f"{seen}/{len(seeds)}",
        "named first": f"{first}/{len(seeds)}" if wanted else "",
        "sigma": f"{min(sizes):.1f} to {max(sizes):.1f}" if wanted else "",
        "estimate": f"{np.mean(values):.3g}" if wanted else "",
        "smallest p, all": f"{min(largest):.2g}",
        "false alarm by": ", ".join(blamed),
        "s a check": round(seconds, 2),
    }  # fmt: skip


def device() -> str:
    import jax

    return str(jax.devices()[0].device_kind)


def totals(rows: list[dict]) -> list[dict]:
    def share(chosen: list[dict]) -> str:
        if not chosen:
            return "not yet"
        counts = np.array([[int(n) for n in row["seen"].split("/")] for row in chosen]).sum(axis=0)
        return f"{counts[0]}/{counts[1]} = {100 * counts[0] / counts[1]:.1f} %"

    groups = {
        "false alarms": ("none", "at most 5 %"),
        "q off by 5 %": ("q", "at least 95 %"),
        "advection": ("adv", "at least 95 %"),
        "wrong boundary": (("per", "neu"), "at least 95 %"),
    }
    return [
        {"what": name, "got": share([row for row in rows if row["fault"].startswith(key)]), "asked": asked}
        for name, (key, asked) in groups.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--null-seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=30_000)
    parser.add_argument("--out", type=Path, default=RESULTS / "adequacy.json")
    asked = parser.parse_args(words("--seeds 1 --null-seeds 1"))
    rows = []
    for k, (law, geometry) in enumerate((a, b) for a in LAWS for b in GEOMETRIES):
        for j, (fault, (wanted, clean)) in enumerate([*scenes(law, geometry).items()][: sized(None, tiny=2)]):
            first = asked.first + 1000 * (10 * k + j)  # no noise is used twice
            count = asked.seeds if wanted else asked.null_seeds
            if count == 0:
                continue
            rows.append(one(law, geometry, fault, wanted, clean, range(first, first + count)))
            print("  ".join(str(value) for value in rows[-1].values()), flush=True)
            write_json(asked.out, {"device": device(), "rows": totals(rows) + rows})
    print()
    print_table("Adequacy by case", rows)
    summary = totals(rows)
    print_table("Adequacy, all cases", summary)


if __name__ == "__main__":
    main()

"""How well the law comes back from grey values: simulated cameras, five seeds each, weak-form fit, faults found.

python benchmarks/camera.py        # writes benchmarks/results/camera.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from common import RESULTS, sized, write_json

from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.record import Record, phase_from_intensity
from doublewell.simulate import initial_field, simulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "record"))
from conftest import LAW, camera

CELLS, FRAMES, EPSILON, DT = sized((96, 31, 0.03, 5e-5), tiny=(64, 25, 0.03, 5e-5))
SEEDS = range(11, sized(16, tiny=12))
KNOWN = {"dx": 1 / CELLS, "dt": DT, "q": 1.0, "boundary": "periodic"}
WAY = np.outer(np.linspace(0.0, 1.0, FRAMES), [2.3, -1.4])
EVERY = {"vignette": 0.3, "bleach": 0.3, "way": WAY}
NOTHING = {"flatten": None, "bleaching": False, "drift": None, "dark": 0.0}
CASES = {
    "16 bits": ({}, {}),
    "8 bits": ({"low": 40, "high": 200, "bits": 8}, {}),
    "uneven light, 30 %": ({"vignette": 0.3}, {}),
    "stray light, 10 % of the contrast": ({"stray": 0.1}, {}),
    "bleaching, 26 %": ({"bleach": 0.3}, {}),
    "drift, 2.7 pixels": ({"way": WAY}, {"drift": "remove"}),
    "light, bleaching, drift, 16 bits": (EVERY | {"dark": 400}, {"drift": "remove"}),
    "light, bleaching, drift, 8 bits": (EVERY | {"low": 30, "high": 200, "bits": 8, "dark": 10}, {"drift": "remove"}),
}


def force_error(record: Record) -> float:
    u = np.linspace(-1.0, 1.0, 2001)
    true = LAW.effective(EPSILON).force(u)
    return float(np.linalg.norm(identify(record, method="weak").force(u) - true) / np.linalg.norm(true))


def main() -> None:
    start = initial_field("wobbled", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    field = simulate(LAW, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON).slab()
    rows = []
    for name, (faults, asked) in CASES.items():
        pictures = [camera(field, **faults, seed=seed) for seed in SEEDS]
        corrected = [force_error(phase_from_intensity(picture, **asked, **KNOWN).record) for picture in pictures]
        try:
            plain = force_error(phase_from_intensity(pictures[0], **NOTHING, **KNOWN).record)
        except InputError:  # light that is left in may look like a border that is not periodic
            plain = None
        rows.append({"camera": name, "force": float(np.mean(corrected)), "worst": max(corrected), "uncorrected": plain})
        print(rows[-1], flush=True)
    noisy = [field + 0.01 * np.random.default_rng(seed).standard_normal(field.shape) for seed in SEEDS]
    direct = float(np.mean([force_error(Record(u, **KNOWN)) for u in noisy]))
    document = {"seeds": list(SEEDS), "noise": 0.01, "phase values directly": direct, "rows": rows}
    write_json(RESULTS / "camera.json", document)


if __name__ == "__main__":
    main()

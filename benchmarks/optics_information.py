"""How much information a blur takes: the Cramer-Rao bound of the force at every degree, sharp against blurred.

    python benchmarks/optics_information.py [--out FILE]

Twice: with the initial field unknown, as it is in a reading, and with the initial field given exactly, which no reading
can beat. No noise is drawn: the bound follows from the model at the true law and the true first frame.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from common import RESULTS, words, write_json
from wider import CELLS, LAWS, PHASES, about, movie, truth

from doublewell.likelihood import record_model
from doublewell.observation import View
from doublewell.options import Observation
from doublewell.likelihood.programs import compiled
from doublewell.law import Bernstein

TOP = Bernstein(8)
VIEWS = {"sharp": View(), "blurred": View(Observation(blur=1 / CELLS, pixel=True))}
NOISE = 0.03


def triangles(law: str, view: View) -> dict[str, np.ndarray]:
    """Return R of the sensitivities of the coefficients at degree 8, for both states of knowledge."""
    record, force = movie(law, "nonconvex"), truth(law).force(PHASES)
    theta = np.linalg.lstsq(TOP.features(PHASES).T, force, rcond=None)[0]
    model, constants = record_model(record, TOP, 1, view)
    data = record.slab()
    at = data[:1], theta[None], data[None], constants
    free, known = compiled().sensitivity(model, *at).triangle, compiled().tangents(model, *at).basis.triangle
    return {"unknown": np.asarray(free)[0], "known": np.asarray(known)[0]}


def bounds(law: str, triangle: np.ndarray) -> list[float]:
    """Return the root mean square of the force error in percent at degrees 0 to 8."""
    found, size = [], np.linalg.norm(truth(law).force(PHASES))
    for degree in range(TOP.degree + 1):
        family = Bernstein(degree)
        turned = np.linalg.qr(triangle @ family.elevation(TOP), mode="r")
        spread = np.linalg.solve(turned.T, family.features(PHASES))
        found.append(100.0 * NOISE * float(np.linalg.norm(spread) / size))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "optics_information.json")
    asked = parser.parse_args(words())
    found: dict = {"about": about()}
    for law in LAWS:
        made = {name: {k: bounds(law, r) for k, r in triangles(law, view).items()} for name, view in VIEWS.items()}
        ratios = {k: list(np.divide(made["blurred"][k], made["sharp"][k])) for k in ("unknown", "known")}
        found[law] = {**made, "blurred over sharp": ratios}
        for k, values in ratios.items():
            print(f"{law:12s} initial field {k:8s} blurred / sharp, degrees 0 to 8:", *(f"{v:5.2f}" for v in values))
    write_json(asked.out, found)


if __name__ == "__main__":
    main()

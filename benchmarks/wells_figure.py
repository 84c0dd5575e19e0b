"""Draw the figure of docs/asymmetric.md: a tilted law, its symmetric fit and its fit with unlike wells.

python benchmarks/wells_figure.py        # writes docs/figures/asymmetric.png
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import SMALL, sized, target

from doublewell.options import DoubleWell
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, DT = sized((64, 41, 0.06, 2e-4), tiny=SMALL)
NOISE, SEED = 0.03, 61_101
FILE = target(Path(__file__).resolve().parents[1] / "docs/figures/asymmetric.png")
TRUTH, SYMMETRIC, UNEQUAL = "0.6", "#c44e52", "#2f6db0"


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    law = named_law("sixth").tilted(0.2)
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    movie = simulate(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON)
    record, truth, u = add_noise(movie, NOISE, seed=SEED), law.effective(EPSILON), np.linspace(-1.0, 1.0, 401)
    symmetric, unequal = (
        identify(record, law=DoubleWell(wells=wells), check=False) for wells in ("symmetric", "unequal")
    )

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
    left.plot(u, truth.primitive(u), color=TRUTH, lw=5.0, label="truth")
    left.plot(u, symmetric.primitive(u), color=SYMMETRIC, lw=1.6, ls="--", label='wells="symmetric"')
    left.fill_between(u, *unequal.band("primitive", u), color=UNEQUAL, alpha=0.3, lw=0)
    left.plot(u, unequal.primitive(u), color=UNEQUAL, lw=1.6, label='wells="unequal"')
    left.set(xlabel="phase value u", ylabel="H(u)  (1 / length$^2$)", title="primitive of the force")
    left.legend(frameon=False)
    unit = 100.0 / np.max(np.abs(truth.force(u)))
    low, high = (unit * (edge - truth.force(u)) for edge in unequal.band("force", u))
    right.plot(u, unit * (symmetric.force(u) - truth.force(u)), color=SYMMETRIC, lw=1.6, ls="--")
    right.fill_between(u, low, high, color=UNEQUAL, alpha=0.3, lw=0, label="95 % band")
    right.plot(u, unit * (unequal.force(u) - truth.force(u)), color=UNEQUAL, lw=1.6)
    right.axhline(0.0, color=TRUTH, lw=1.0)
    right.set(xlabel="phase value u", ylabel="force minus truth  (% of its maximum)", title="error of the force")
    right.legend(frameon=False)
    figure.savefig(FILE, dpi=120)
    print(f"wrote {FILE.name}")


if __name__ == "__main__":
    main()

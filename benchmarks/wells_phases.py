"""How well the phases are estimated by the weak reading, and what it costs the force.

python benchmarks/wells_phases.py        # writes benchmarks/results/wells_phases.json

Principal set-up: 96 x 96, 61 frames, nonconvex start, epsilon 0.03, CNAB2; the sixth law with depths that
differ by 20 % of the barrier.
"""

from __future__ import annotations

import numpy as np
from common import SMALL, print_table, save_results, sized

from doublewell.options import DoubleWell, Observation
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
NOISES, SEEDS = sized(((0.0, 0.01, 0.03), (62_101, 62_102, 62_103)), tiny=((0.0, 0.01), (62_101,)))


def main() -> None:
    law, u = named_law("sixth").tilted(0.2), np.linspace(-1.0, 1.0, 2001)
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    movie, true = (
        simulate(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON),
        law.effective(EPSILON).force(u),
    )
    rows = []
    for noise in NOISES:
        found = []
        for seed in SEEDS:
            record = add_noise(movie, noise, seed=seed) if noise else movie
            fits = [
                identify(record, law=DoubleWell(wells="unequal"), method="weak", observation=Observation(phases=phases))
                for phases in ((-1, 1), "estimated")
            ]
            errors = [100.0 * np.linalg.norm(fit.force(u) - true) / np.linalg.norm(true) for fit in fits]
            low, high = fits[1].resolved.phases
            found.append([100.0 * max(abs(low + 1.0), abs(high - 1.0)) / 2.0, *errors])
        worst = np.max(found, axis=0)
        rows.append({"noise": noise, "phase": worst[0], "given": worst[1], "estimated": worst[2]})
        print(rows[-1], flush=True)
    save_results("wells_phases", rows)
    print_table("in percent, worst of three seeds: phases over their distance; force, phases given and estimated", rows)


if __name__ == "__main__":
    main()

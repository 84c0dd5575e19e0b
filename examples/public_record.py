"""The Allen-Cahn record of the neural-network literature: its force by both methods, clean and with noise.

The record is AC.mat of the repository maziarraissi/PINNs on GitHub (folder main/Data, MIT licence), made by its authors
with Chebfun: u_t = 1e-4 u_xx + 5 u - 5 u^3 on [-1, 1), periodic, 201 frames of 512 cells. Here this is q = 1e-4 and
G(u) = -5e4 u (1 - u^2). Papers use it to learn the equation with a network; here it is an inverse problem whose
answer is known. The file is not part of doublewell:

    python examples/public_record.py AC.mat --out folder [--noise 0.03] [--seed 2001] [--every 1]

Where the file is absent the script reports so and ends. It writes errors.json and force.png to the folder.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import doublewell as dw

Q = 1e-4
AMPLITUDE = 5.0 / Q  # of G: the reaction of the equation divided by q
PHASES = np.linspace(-1.0, 1.0, 401)
TRUE = -AMPLITUDE * PHASES * (1.0 - PHASES**2)
NAMES = {"clean": "weak, clean", "weak": "weak, with noise", "trajectory": "trajectory, with noise"}


def force_error(result: dw.Result) -> float:
    """Return the relative L2 error of the force over the phase range."""
    return float(np.linalg.norm(result.force(PHASES) - TRUE) / np.linalg.norm(TRUE))


def band_covers(result: dw.Result) -> float:
    """Return the fraction of the phase values whose true force lies in the 95 % band; the ends and 0 are exact."""
    low, high = result.band("force", PHASES)
    inside = (low <= TRUE) & (high >= TRUE)
    return float(np.mean(inside[np.abs(TRUE) > 1e-9 * AMPLITUDE]))


def thinned(record: dw.Record, every: int) -> dw.Record:
    """Return every n-th frame."""
    return dw.Record(
        record.slab()[::every], dx=record.dx, times=record.times[::every], q=record.q, boundary=record.boundary
    )


def draw(noisy: dw.Record, results: dict[str, dw.Result], path: Path) -> None:
    """Draw the movie, the forces, and what is left to the truth with the band of the trajectory fit."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.7), layout="constrained")
    FigureCanvasAgg(figure)
    film, force, rest = figure.subplots(1, 3)
    ends = (0.0, noisy.extent[0], noisy.times[-1], noisy.times[0])
    picture = film.imshow(noisy.slab(), aspect="auto", extent=ends, cmap="cividis", interpolation="nearest")
    figure.colorbar(picture, ax=film, label="u")
    film.set(title="the record, with noise", xlabel="x", ylabel="t")
    _draw_forces(force, rest, results)
    figure.legend(*rest.get_legend_handles_labels(), loc="outside lower right", ncols=5)
    figure.savefig(path, dpi=110)


def _draw_forces(force: Any, rest: Any, results: dict[str, dw.Result]) -> None:
    unit = float(np.abs(TRUE).max())
    force.plot(PHASES, TRUE / AMPLITUDE, color="#E69F00", linewidth=5)
    low, high = (ends - TRUE for ends in results["trajectory"].band("force", PHASES))
    rest.plot([], [], color="#E69F00", linewidth=5, label="true")  # for the legend
    rest.fill_between(PHASES, 100 * low / unit, 100 * high / unit, color="#A6CFE6", label="95 % band, trajectory")
    dashes = {"clean": ":", "weak": "--", "trajectory": "-"}
    for name, result in results.items():
        found = result.force(PHASES)
        colour = "#0072B2" if name == "trajectory" else "#000000"
        force.plot(PHASES, found / AMPLITUDE, dashes[name], color=colour)
        rest.plot(PHASES, 100 * (found - TRUE) / unit, dashes[name], color=colour, label=NAMES[name])
    force.set(title="force", xlabel="u", ylabel="G / 5e4")
    rest.set(title="found minus true", xlabel="u", ylabel="% of the largest force")


def main(words: list[str] | None = None) -> dict[str, float] | None:
    """Identify the record and return the errors; None, with the reason printed, where there is no record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", type=Path, nargs="?", default=Path("AC.mat"))
    parser.add_argument("--out", type=Path, default=Path("public_record"))
    parser.add_argument("--noise", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=2001)
    parser.add_argument("--every", type=int, default=1, help="take every n-th frame")
    asked = parser.parse_args(words)
    if not asked.record.exists():
        print(f"skipped: {asked.record} is not there; get AC.mat from the repository maziarraissi/PINNs on GitHub "
              "and pass its path")  # fmt: skip
        return None
    asked.out.mkdir(parents=True, exist_ok=True)
    record = dw.open_record(asked.record, q=Q, boundary="periodic")  # mesh, times and their order are in the file
    record = thinned(record, asked.every)
    noisy = dw.add_noise(record, asked.noise, seed=asked.seed)
    results = {
        "clean": dw.identify(record, method="weak"),
        "weak": dw.identify(noisy, method="weak"),
        "trajectory": dw.identify(noisy),
    }
    errors = {name: force_error(result) for name, result in results.items()}
    for name, error in errors.items():
        print(f"{NAMES[name]:>22}: force error {100 * error:.2g} %")
    errors["band covers"] = band_covers(results["trajectory"])
    adequacy = results["trajectory"].adequacy
    print(f"the 95 % band holds {100 * errors['band covers']:.0f} % of the true force; model: {adequacy.verdict}")
    settings = {"noise": asked.noise, "seed": asked.seed, "every": asked.every}
    kept = settings | {"errors": errors, "model": adequacy.verdict}
    (asked.out / "errors.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
    draw(noisy, results, asked.out / "force.png")
    return errors


if __name__ == "__main__":
    main()

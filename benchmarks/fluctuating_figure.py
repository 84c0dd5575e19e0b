"""Draw the figure of the page on fluctuating movies: a movie, the potential in kT that is read from it, all tensions.

python benchmarks/fluctuating_figure.py     # docs/figures/fluctuating.png, from results/fluctuating.json and a movie
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from common import RESULTS, sized, target
from fluctuating import WIDTH, law_of, made

import doublewell as dw
from doublewell.report.style import COLOURS, FIELD_MAP, new_figure, render, style

CASE = ("allen-cahn", "sixth", sized(0.01, tiny=1e-3), 0.03, 2001)
FOUND, U = COLOURS["recovered"], np.linspace(-1.0, 1.0, 201)
KINDS = {"allen-cahn": "Allen-Cahn", "cahn-hilliard": "Cahn-Hilliard", "contrast": "grey values", "blocks": "pixels"}


def draw_potential(axis: Any, result: dw.Result) -> None:
    """Draw the free energy density in kT over the area of a pixel, with its band, and the true one."""
    truth, theta = law_of(CASE[1]).effective(WIDTH), CASE[2]
    low, high = result.band("bulk_energy", U)
    axis.fill_between(U, low, high, color=FOUND, alpha=0.25, lw=0)
    axis.plot(U, result.scale.kappa * result.primitive(U), color=FOUND, lw=1.8, label="from the movie")
    axis.plot(U, truth.primitive(U) / theta, "k--", lw=1.2, label="true")
    axis.set(xlabel="u", ylabel="free energy / kT, of a pixel", title="law and scale, no tension given")
    axis.legend(frameon=False, fontsize=8, loc="lower center")


def draw_tensions(axis: Any, rows: list[dict[str, Any]]) -> None:
    """Draw errors of the tension with their standard errors, in percent, by kind."""
    rng = np.random.default_rng(1)
    for place, (kind, name) in enumerate(KINDS.items()):
        own = [row for row in rows if row["kind"] == kind and "refused" not in row]
        z = [row["tension error"] / row["tension sd"] for row in own]
        axis.plot(place + rng.uniform(-0.25, 0.25, len(z)), z, ".", ms=4, color=FOUND)
        axis.annotate(f"{name}\n{len(z)}", (place, -4.4), ha="center", fontsize=8, annotation_clip=False, va="top")
    axis.axhspan(-1.96, 1.96, color="k", alpha=0.07, lw=0)
    axis.axhline(0.0, color="k", lw=0.8)
    axis.set(ylim=(-4.2, 4.2), xticks=[], ylabel="error / standard error", title="tension in kT, all movies")


def main() -> None:
    rows, record = json.loads((RESULTS / "fluctuating.json").read_text())["rows"], made(CASE)
    result = dw.identify(record, temperature=1.0, observation={"contrast": "exact"}, check=False)
    with style():
        figure = new_figure(9.6, 3.1)
        left, middle, right = figure.subplots(1, 3, width_ratios=[0.8, 1.0, 1.2])
        left.imshow(record.slab()[-1], cmap=FIELD_MAP, vmin=-1.3, vmax=1.3, interpolation="nearest")
        left.set(title=f"a frame, theta = {CASE[2]:g}", xticks=[], yticks=[])
        left.spines[:].set_visible(False)
        draw_potential(middle, result)
        draw_tensions(right, rows)
    target(RESULTS.parents[1] / "docs/figures/fluctuating.png").write_bytes(render(figure, "png"))
    print("docs/figures/fluctuating.png")


if __name__ == "__main__":
    main()

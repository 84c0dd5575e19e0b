"""Draw the figure of the page on Ising models: block spins, capillary waves, and tensions against exact ones.

python benchmarks/ising_figure.py     # docs/figures/ising.png, from results/ising.json and a movie of its own
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from common import RESULTS, sized, target
from ising import glauber, onsager, summary, yang

import doublewell as dw
from doublewell.report.style import COLOURS, FIELD_MAP, new_figure, render, style

RATIO, BLOCK = 0.95, 2
FRAMES, EVERY, BEFORE, CELLS = sized((300, 100, 4_000, (512, 128)), tiny=(60, 100, 4_000, (512, 128)))
FOUND, BLOCKED, CONSERVED = COLOURS["recovered"], COLOURS["noise"], "#009E73"


def draw_waves(axis: Any, record: dw.Record) -> None:
    """Draw the spectrum of heights of a movie, what was fitted, and what Onsager's tension would give."""
    m, stiffness = yang(RATIO), onsager(RATIO)[1]
    found = dw.capillary(record, phases=(-m, m))
    spread = np.sqrt(2.0 / found.samples)
    axis.errorbar(found.waves, found.power, spread * found.power, fmt="o", ms=4, color=FOUND, label="measured")
    axis.plot(found.waves, found.model, color=FOUND, lw=1.5, label="fit, with noise")
    k = np.geomspace(found.waves[0], found.waves[-1], 50)
    axis.plot(k, 1.0 / ((stiffness + found.stiffening) * k**2), "--", color="k", lw=1.2, label="Onsager")
    axis.set(xscale="log", yscale="log", xlabel="wave number k", ylabel=r"L $\langle|h_k|^2\rangle$")
    axis.set(title=f"capillary waves, {RATIO:g} T$_c$", xticks=(ticks := [0.05, 0.1, 0.2, 0.3]), xticklabels=ticks)
    axis.tick_params(which="minor", labelbottom=False)
    axis.legend(frameon=False, fontsize=8)


def draw_tensions(axis: Any, rows: list[dict[str, Any]]) -> None:
    """Draw tensions over kT against the temperature: exact, from waves, and of laws fitted to block spins."""
    line = np.linspace(0.88, 0.995, 200)
    axis.plot(line, [onsager(ratio)[1] for ratio in line], "k", lw=1.5, label="Onsager (stiffness)")
    for model, shift, colour, mark in (("glauber", 0.0, FOUND, "o"), ("kawasaki", 0.002, CONSERVED, "s")):
        own = [each for each in summary(rows) if each["model"] == model]
        places, values = [each["ratio"] + shift for each in own], [each["tension"] for each in own]
        errors = [each["sd"] for each in own]
        axis.errorbar(places, values, errors, fmt=mark, ms=5, color=colour, label=f"waves, {model.title()}")
    laws = [row for row in rows if row["shape"] == "law" and row["model"] == "glauber" and "kappa C_H" in row]
    if laws:
        values = [row["kappa C_H"] for row in laws]
        axis.plot(
            [row["ratio"] for row in laws], values, "x", ms=7, mew=2, color=BLOCKED, label=r"$\kappa C_H$, blocks"
        )
    axis.set(xlabel="T / T$_c$", ylabel="tension / kT", title="tension", yscale="log", ylim=(0.01, 0.4))
    axis.set(yticks=(ticks := [0.01, 0.03, 0.1, 0.3]), yticklabels=ticks)
    axis.tick_params(which="minor", labelleft=False)
    axis.legend(frameon=False, fontsize=8)


def main() -> None:
    rows = json.loads((RESULTS / "ising.json").read_text())["rows"]
    record = glauber(CELLS, RATIO, frames=FRAMES, every=EVERY, before=BEFORE, seed=51, block=BLOCK)
    with style():
        figure = new_figure(9.6, 3.3)
        left, middle, right = figure.subplots(1, 3, width_ratios=[0.55, 1.0, 1.2])
        frame = record.slab()[-1]
        circle = np.exp(2j * np.pi * np.arange(n := len(frame)) / n)
        middle_row = round(float(np.angle(circle @ frame.mean(axis=1))) * n / (2.0 * np.pi))  # of the strip
        frame = np.roll(frame, n // 2 - middle_row, axis=0)[n // 5 : -(n // 5)]
        left.imshow(frame, cmap=FIELD_MAP, vmin=-1.0, vmax=1.0, interpolation="nearest")
        left.set(title="block spins", xticks=[], yticks=[])
        left.spines[:].set_visible(False)
        draw_waves(middle, record)
        draw_tensions(right, rows)
    target(RESULTS.parents[1] / "docs/figures/ising.png").write_bytes(render(figure, "png"))
    print("docs/figures/ising.png")


if __name__ == "__main__":
    main()

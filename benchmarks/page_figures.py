"""Draw the figures of the how-to pages: what the camera sees, and what it does to the force that comes back.

    python benchmarks/page_figures.py [NAME ...]

Each NAME of FIGURES writes docs/figures/NAME.png and its part of benchmarks/results/page_figures.json; all take some
minutes on one core. Movies are made by CNAB2 (that of a mobility by RK4), readings are the user's own calls with their
defaults.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import RESULTS, SMALL, sized, target, words

from doublewell.options import Observation
from doublewell.dynamics import CAHN_HILLIARD, AllenCahn, Anisotropy, Cnab2, Dynamics, Grid
from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.report.style import COLOURS, FIELD_MAP, new_figure, render, style
from doublewell.result import Result
from doublewell.simulate import add_noise, initial_field, simulate

NUMBERS = target(RESULTS / "page_figures.json")
FIGURES_FOLDER = RESULTS.parents[1] / "docs/figures"
CELLS, FRAMES, EPSILON, DT = sized((48, 25, 0.05, 2e-4), tiny=SMALL)
DX = 1 / CELLS
DRAWS = range(7300, sized(7304, tiny=7301))  # seeds of the noise
LAW = named_law("sixth")
U = np.linspace(-1.0, 1.0, 401)
TRUE = LAW.effective(EPSILON).force(U)
GOOD, POOR, OTHER = COLOURS["recovered"], COLOURS["noise"], "#009E73"
STYLES = {GOOD: "-", POOR: "--", OTHER: "-."}
Numbers = dict[str, Any]


def movie(
    cells: int = CELLS, geometry: str = "nonconvex", *, frames: int = FRAMES, dx: float = DX,
    dynamics: str | Dynamics = "allen-cahn", substeps: int = 12,
) -> Record:  # fmt: skip
    """Return a clean movie of the law."""
    start = initial_field(geometry, (cells, cells), dx, epsilon=EPSILON)
    return simulate(LAW, start, dx=dx, dt=DT, frames=frames, epsilon=EPSILON, dynamics=dynamics, substeps=substeps)


def error(result: Result) -> float:
    """Return the error of the force in percent."""
    return round(100.0 * float(np.linalg.norm(result.force(U) - TRUE) / np.linalg.norm(TRUE)), 3)


def inside(result: Result) -> float:
    """Return the share of phase values, in percent, at which the 95 % band holds the truth."""
    low, high = result.band("force", U[1:-1])
    return round(100.0 * float(np.mean((low <= TRUE[1:-1]) & (TRUE[1:-1] <= high))), 1)


def said(result: Result) -> Numbers:
    """Return the numbers of a reading that are kept."""
    return {"error": error(result), "inside": inside(result)}


def draw_forces(axis: Any, readings: dict[str, tuple[Result, str]]) -> None:
    """Draw forces that are far from the truth, which has no room left for an error."""
    unit = 1.0 / np.max(np.abs(TRUE))
    axis.plot(U, unit * TRUE, color=COLOURS["truth"], lw=5.0, label="truth")
    for name, (result, colour) in readings.items():
        axis.plot(U, unit * result.force(U), STYLES[colour], color=colour, lw=1.8, label=name)
    low, high = axis.get_ylim()
    axis.set(xlabel="phase value u", ylabel="G(u)  (of its maximum)", title="the force that comes back")
    axis.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    axis.set_ylim(low, high + 0.55 * (high - low))
    key(axis, fontsize=8)


def draw_errors(axis: Any, readings: dict[str, tuple[Result, str]], *, bands: int = 1) -> Numbers:
    """Draw the error of the force of some readings, with the 95 % bands of the first ones; return the errors."""
    unit = 100.0 / np.max(np.abs(TRUE))
    axis.axhline(0.0, color="0.5", lw=0.8)
    for k, (name, (result, colour)) in enumerate(readings.items()):
        if k < bands:
            low, high = (unit * (edge - TRUE) for edge in result.band("force", U))
            axis.fill_between(U, low, high, color=colour, alpha=0.25, lw=0, label="95 % band")
        axis.plot(U, unit * (result.force(U) - TRUE), STYLES[colour], color=colour, lw=1.8, label=name)
    axis.set(xlabel="phase value u", ylabel="force minus truth  (% of its maximum)", title="error of the force")
    axis.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.45 * (high - low))
    return {name: said(result) for name, (result, _) in readings.items()}


def draw_field(axis: Any, frame: np.ndarray, title: str, *, limit: float = 1.0) -> Any:
    """Draw one frame without axes."""
    drawn = axis.imshow(frame, cmap=FIELD_MAP, vmin=-limit, vmax=limit, origin="lower", interpolation="nearest")
    axis.set(title=title, xticks=[], yticks=[])
    for side in axis.spines.values():
        side.set_visible(False)
    return drawn


def key(axis: Any, **more: Any) -> None:
    """Put the legend above the curves."""
    axis.legend(frameon=False, **({"loc": "upper left"} | more))


def windows() -> tuple[Any, Numbers]:
    """A part of a larger domain, read as a window and as a whole domain."""
    from matplotlib.patches import Rectangle

    whole = add_noise(movie(72, dx=1 / 60), 0.02, seed=71)
    y, x = 6, 20
    part = np.ascontiguousarray(whole.slab()[:, y : y + CELLS, x : x + CELLS])
    found = {
        'boundary="open"': (identify(Record(part, dx=1 / 60, dt=DT, q=1.0), check=False), GOOD),
        'taken for "periodic"': (_read(part, "periodic"), POOR),
        'taken for "neumann"': (_read(part, "neumann"), OTHER),
    }
    figure = new_figure(9.6, 3.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.0, 1.1, 1.1])
    draw_field(left, whole.slab(0, 1)[0], "what there is, and the window")
    left.add_patch(Rectangle((x - 0.5, y - 0.5), CELLS, CELLS, fill=False, ec="k", lw=2.0))
    draw_forces(middle, found)
    numbers = {name: said(result) for name, (result, _) in found.items()}
    draw_errors(right, {'boundary="open"': found['boundary="open"']})
    key(right)
    return figure, numbers


def _read(values: np.ndarray, boundary: str) -> Result:
    return identify(Record(values, dx=1 / 60, dt=DT, q=1.0, boundary=boundary), check=False)


def optics() -> tuple[Any, Numbers]:
    """A movie through a blur of one pixel and pixels that average, made on a mesh three times finer."""
    fine = movie(3 * CELLS, dx=DX / 3).slab()
    k = 2 * np.pi * np.fft.fftfreq(3 * CELLS, DX / 3)
    passed = np.exp(-0.5 * DX**2 * (k[:, None] ** 2 + k**2))
    smooth = np.fft.ifft2(passed * np.fft.fft2(fine)).real
    pixels = smooth.reshape(FRAMES, CELLS, 3, CELLS, 3).mean(axis=(2, 4))
    record = add_noise(Record(pixels, dx=DX, dt=DT, q=1.0, boundary="periodic"), 0.01, seed=72)
    found = {
        "blur given": (identify(record, observation=Observation(blur=DX, pixel=True), check=False), GOOD),
        "blur estimated": (identify(record, observation=Observation(blur="estimated", pixel=True), check=False), OTHER),
        "blur ignored": (identify(record, check=False), POOR),
    }
    figure = new_figure(9.6, 3.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.15, 1.0, 1.0])
    row = 3 * CELLS // 4 - 1
    left.plot((np.arange(3 * CELLS) + 0.5) / 3, fine[0, 3 * row + 1], color="k", lw=1.6, label="the field")
    left.plot(np.arange(CELLS) + 0.5, record.slab()[0, row], "o", color=POOR, ms=3.5, label="what the pixels show")
    left.set(
        xlabel="place along a row  (pixels)", ylabel="phase value u", title="a row of the first frame", ylim=(-1.1, 1.6)
    )
    key(left, fontsize=8)
    numbers = draw_errors(middle, found, bands=0)
    key(middle, fontsize=8)
    draw_errors(right, {name: one for name, one in found.items() if name != "blur ignored"}, bands=2)
    right.set(title="the same, closer", ylabel="")
    key(right, fontsize=8, ncols=2)
    return figure, numbers


def noise() -> tuple[Any, Numbers]:
    """Noise that neighbours share, noise that grows with the phase value, and spikes with hot pixels."""
    clean = movie()
    figure = new_figure(10.8, 9.0)
    axes = figure.subplots(3, 3, width_ratios=[1.15, 1.6, 0.85])
    numbers = {}
    makers = {"correlated": _shared, "shot": _shot, "robust": _spiked}
    for (left, middle, right), (name, make) in zip(axes, makers.items(), strict=True):
        records = [make(clean, seed) for seed in DRAWS]
        _draw_noise(figure, left, name, clean.slab(), records[0].slab())
        kinds = {name: GOOD, "white": POOR}
        found = {
            kind: [identify(record, observation=Observation(noise=kind), check=False) for record in records]
            for kind in kinds
        }
        draw_errors(middle, {f'noise="{kind}"': (found[kind][0], colour) for kind, colour in kinds.items()}, bands=2)
        key(middle, fontsize=8, ncols=2)
        numbers[name] = draw_draws(right, {kind: (found[kind], colour) for kind, colour in kinds.items()})
    return figure, numbers


def _shared(clean: Record, seed: int) -> Record:
    return add_noise(clean, 0.03, seed=seed, correlation=1.5)


def _shot(clean: Record, seed: int) -> Record:
    u = clean.slab()
    size = 0.03 * np.sqrt(1.0 + 0.95 * np.clip(u, -1.0, 1.0))
    return clean.replace(u + size * np.random.default_rng(seed).standard_normal(u.shape))


def _spiked(clean: Record, seed: int) -> Record:
    rng, u = np.random.default_rng(seed), np.array(add_noise(clean, 0.02, seed=seed).slab())
    spikes = rng.random(u.shape) < 0.004
    u[spikes] += rng.choice([-0.6, 0.6], np.count_nonzero(spikes))
    u[:, rng.integers(0, CELLS, 8), rng.integers(0, CELLS, 8)] = 1.6
    return clean.replace(u)


def _draw_noise(figure: Any, axis: Any, name: str, clean: np.ndarray, seen: np.ndarray) -> None:
    """Draw what is special about the noise."""
    if name == "shot":
        _draw_sizes(axis, clean, seen - clean)
        return
    if name == "correlated":
        drawn = draw_field(axis, seen[12] - clean[12], "noise of one frame", limit=0.1)
    else:
        drawn = draw_field(axis, seen[12], "a frame, spikes and hot pixels", limit=1.6)
    bar = figure.colorbar(drawn, ax=axis, shrink=0.8)
    bar.set_label("noise" if name == "correlated" else "phase value u")


def _draw_sizes(axis: Any, u: np.ndarray, rest: np.ndarray) -> None:
    """Draw the noise against the phase value."""
    edges = np.linspace(-1.0, 1.0, 13)
    place = np.digitize(u, edges[1:-1])
    sizes = [float(np.std(rest[place == k])) for k in range(12)]
    axis.plot(0.5 * (edges[1:] + edges[:-1]), sizes, "o", color=GOOD, ms=5, label="of the record")
    axis.axhline(float(np.std(rest)), color=POOR, ls="--", label="one for all")
    axis.set(xlabel="phase value u", ylabel="noise (standard deviation)", title="bright is noisier", ylim=(0, 0.055))
    axis.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    key(axis, fontsize=8)


def draw_draws(axis: Any, readings: dict[str, tuple[list[Result], str]]) -> Numbers:
    """Draw the error of the force of several noise draws, a column for each reading; return means."""
    for place, (results, colour) in enumerate(readings.values()):
        errors = [error(one) for one in results]
        axis.plot(place + np.linspace(-0.15, 0.15, len(errors)), errors, "o", color=colour, ms=4.5, alpha=0.8)
        axis.plot([place - 0.3, place + 0.3], [np.mean(errors)] * 2, color=colour, lw=2.0)
    axis.set_xticks(range(len(readings)), list(readings))
    axis.set(xlim=(-0.6, len(readings) - 0.4), yscale="log", ylabel="error of the force  (%)")
    axis.set_title(f"{len(results)} draws, and mean")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("")
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.1), max(high, 1.0))
    return {
        name: {"mean error": round(float(np.mean([error(one) for one in results])), 3),
               "mean inside": round(float(np.mean([inside(one) for one in results])), 1)}
        for name, (results, _) in readings.items()
    }  # fmt: skip


def several() -> tuple[Any, Numbers]:
    """Three records of one law on different meshes, one by one and together."""
    coarse, fine, frames = sized((40, 56, 21), tiny=(CELLS, CELLS, FRAMES))
    kinds = {
        "circle": (movie(geometry="circle"), 0.03, POOR),
        "nonconvex": (movie(coarse, dx=1 / coarse), 0.05, OTHER),
        "dumbbell": (movie(fine, "dumbbell", dx=1 / fine, frames=frames), 0.03, "0.3"),
    }
    draws = [[add_noise(clean, sd, seed=seed + 100 * k) for k, (clean, sd, _) in enumerate(kinds.values())]
              for seed in DRAWS]  # fmt: skip
    found = {name: ([identify(draw[k], check=False) for draw in draws], kinds[name][2]) for k, name in enumerate(kinds)}
    found["together"] = ([identify(draw, check=False) for draw in draws], GOOD)
    figure = new_figure(9.6, 5.8)
    grid = figure.add_gridspec(2, 6, height_ratios=[1.0, 1.1])
    for k, (name, (clean, sd, _)) in enumerate(kinds.items()):
        axis = figure.add_subplot(grid[0, 2 * k : 2 * k + 2])
        draw_field(
            axis, draws[0][k].slab()[clean.frames // 2], f"{name}, {clean.mesh[0]} x {clean.mesh[1]}, noise {sd}"
        )
    left, right = figure.add_subplot(grid[1, :3]), figure.add_subplot(grid[1, 3:])
    for (name, (results, colour)), line in zip(found.items(), ("--", "-.", ":", "-"), strict=True):
        low, high = results[0].band("force", U)
        left.plot(U, 50.0 * (high - low) / np.max(np.abs(TRUE)), line, color=colour, lw=1.8, label=name)
    left.set(
        xlabel="phase value u", ylabel="half-width  (% of its maximum)", title="95 % band of the force, first draw"
    )
    left.set_ylim(0.0, 1.4 * left.get_ylim()[1])
    key(left, ncols=2)
    return figure, draw_draws(right, found)


def unknown_diffusion() -> tuple[Any, Numbers]:
    """q taken wrong, estimated, and known."""
    record = add_noise(movie(), 0.03, seed=78)
    free = Record(record.values, dx=DX, dt=DT, boundary="periodic")
    guesses = np.array([0.9, 0.95, 1.0, 1.05, 1.1])
    taken = [identify(record.replace(q=float(q)), check=False) for q in guesses]
    result = identify(free, check=False)
    start = identify(free, method="weak")
    low, high = result.interval("q")
    figure = new_figure(9.6, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.2])
    left.plot(guesses, [error(one) for one in taken], "s--", color=POOR, label="q taken as known")
    left.axvspan(low, high, color=GOOD, alpha=0.3, lw=0, label="95 % interval of q")
    left.plot(result.q, error(result), "o", color=GOOD, ms=8, label="q estimated")
    left.set(xlabel="q  (length$^2$ / time); the true one is 1", ylabel="error of the force (%)")
    left.set(title="a wrong q gives a wrong law", ylim=(0, 4.5))
    left.set_xticks(guesses)
    key(left)
    numbers = draw_errors(right, {"q estimated": (result, GOOD), "q taken 10 % too large": (taken[4], POOR)})
    key(right)
    numbers["q"] = {"estimated": result.q, "interval": [low, high], "weak": start.q}
    return figure, numbers


class Alloy:
    """A regular solution whose coexisting phases are +-0.85."""

    chi = 2.0 * np.arctanh(0.85) / 0.85

    def force(self, u: Any) -> Any:
        """G, with an interface of about eight cells."""
        return (np.arctanh(u) - 0.5 * self.chi * u) / 4.0

    def primitive(self, u: np.ndarray) -> np.ndarray:
        """H over the common tangent."""
        h = 0.5 * ((1 + u) * np.log(1 + u) + (1 - u) * np.log(1 - u)) - 0.25 * self.chi * u**2
        v = 0.85
        return (h - 0.5 * ((1 + v) * np.log(1 + v) + (1 - v) * np.log(1 - v)) + 0.25 * self.chi * v**2) / 4.0


def conserved() -> tuple[Any, Numbers]:
    """A spinodal pattern of an alloy by Cahn-Hilliard: the coexisting phases are found by the common tangent."""
    rng, alloy, waves = np.random.default_rng(75), Alloy(), np.fft.fftfreq(CELLS)
    passed = np.exp(-((4.0 * np.pi) ** 2) * (waves[:, None] ** 2 + waves**2))
    field = np.fft.ifft2(passed * np.fft.fft2(rng.standard_normal((CELLS, CELLS)))).real
    start = 0.1 + 0.4 * field / np.max(np.abs(field))
    frames = Cnab2(Grid((CELLS, CELLS), 1.0), 40.0, 1.0, 800, CAHN_HILLIARD).run(alloy, start, intervals=FRAMES - 1)
    clean = Record(np.stack([start, *frames]), dx=1.0, dt=40.0, q=1.0, boundary="periodic", origin="simulation")
    record = add_noise(clean, 0.02, seed=76)
    result = identify(record, dynamics="cahn-hilliard", law="wells=ideal", check=False)
    law, u = result.law, np.linspace(-0.95, 0.95, 301)
    true, shown = alloy.force(u), np.abs(u) < 0.85
    low, high = result.band("force", u)
    figure = new_figure(9.6, 3.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.0, 1.1, 1.1])
    draw_field(left, record.slab(FRAMES - 1, FRAMES)[0], "the last frame")
    middle.plot(u, alloy.primitive(u), color="k", lw=1.6, label="the truth")
    middle.plot(u, law.primitive(u), STYLES[GOOD], color=GOOD, lw=1.2, label="identified")
    middle.axhline(0.0, color=OTHER, lw=0.8, label="common tangent")
    middle.plot(law.phases, [0.0, 0.0], "o", color=GOOD, ms=5, label="coexisting phases")
    middle.plot(law.spinodal, law.primitive(np.array(law.spinodal)), "s", color=OTHER, ms=4, label="spinodal")
    middle.set(xlabel="u", ylabel="H = f/\u03ba over the tangent", ylim=(-0.002, 0.05))
    key(middle)
    size = 100.0 / float(np.max(np.abs(true[shown])))
    right.fill_between(u, size * (low - result.force(u)), size * (high - result.force(u)), color=GOOD, alpha=0.25, lw=0)
    right.plot(u[shown], size * (result.force(u) - true)[shown], color=GOOD)
    right.axhline(0.0, color="k", lw=0.6)
    right.set(xlabel="u", ylabel="error of G, % of its largest value", ylim=(-4.0, 4.0))
    error_of = float(np.linalg.norm((result.force(u) - true)[shown]) / np.linalg.norm(true[shown]))
    covered = float(np.mean(((low <= true) & (true <= high))[shown]))
    ends = {name: [round(x, 4) for x in result.interval(name)] for name in ("low", "high", "spinodal_low")}
    chi = float(law.family.interaction(law.coefficients)[0])
    numbers = {"error %": round(100 * error_of, 3), "inside %": round(100 * covered, 1), "chi": round(chi, 4), **ends}
    return figure, numbers | {"true chi": round(alloy.chi, 4)}


def mass_conserving() -> tuple[Any, Numbers]:
    """A lobed drop whose mean is conserved: it becomes round and keeps its area."""
    clean = movie(dynamics="mass-conserving", substeps=60)
    record = add_noise(clean, 0.02, seed=81)
    result = identify(record, dynamics="mass-conserving", check=False)
    law, frames = result.law, record.slab()
    figure = new_figure(9.6, 3.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.0, 1.1, 1.1])
    draw_field(left, frames[-1], "last frame; dashed: the first")
    left.contour(clean.slab()[0], levels=[0.0], colors="k", linestyles="--", linewidths=1.2)
    t, others = 1e3 * clean.times, (("mass-conserving", clean, GOOD), ("Allen-Cahn", movie(), POOR))
    for name, one, colour in others:
        middle.plot(t, one.slab().mean(axis=(1, 2)), STYLES[colour], color=colour, lw=1.8, label=name)
    middle.set(xlabel="time  (10$^{-3}$)", ylabel="mean of u", title="the mean")
    low, high = middle.get_ylim()
    middle.set_ylim(low, high + 0.35 * (high - low))
    key(middle)
    shift = np.mean(result.force(U) - TRUE)  # the constant that the movie does not contain
    unit = 100.0 / np.max(np.abs(TRUE))
    edges = [unit * (edge - TRUE - shift) for edge in result.band("force", U)]
    right.axhline(0.0, color="0.5", lw=0.8)
    right.fill_between(U, *edges, color=GOOD, alpha=0.25, lw=0, label="95 % band")
    right.plot(U, unit * (result.force(U) - TRUE - shift), color=GOOD, lw=1.8, label="but for a constant")
    right.set(xlabel="phase value u", ylabel="force minus truth  (% of its maximum)", title="error of the force")
    low, high = right.get_ylim()
    right.set_ylim(low, high + 0.35 * (high - low))
    key(right)
    left_over = np.linalg.norm(result.force(U) - TRUE - shift) / np.linalg.norm(TRUE)
    ends = {name: [round(x, 4) for x in result.interval(name)] for name in ("low", "high")}
    return figure, {"error %": round(100 * float(left_over), 3), "phases": [round(x, 4) for x in law.phases], **ends}


def anisotropy() -> tuple[Any, Numbers]:
    """A gradient energy that is larger along an oblique direction: estimated with the law, and ignored."""
    truth = Anisotropy(1.5, 30.0)
    record = add_noise(movie(dynamics=AllenCahn(anisotropy=truth), substeps=60), 0.03, seed=82)
    result = identify(record, dynamics="allen-cahn(anisotropy=estimated)", check=False)
    plain = identify(record, check=False)
    found = result.dynamics.anisotropy
    degrees = np.linspace(0.0, 180.0, 181)
    normal = np.stack([np.sin(np.deg2rad(degrees)), np.cos(np.deg2rad(degrees))])
    figure = new_figure(9.6, 3.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.0, 1.1, 1.1])
    draw_field(left, record.slab()[FRAMES // 2], "a frame, and the stiff direction")
    x, y = 0.4 * CELLS * np.cos(np.deg2rad(truth.angle)), 0.4 * CELLS * np.sin(np.deg2rad(truth.angle))
    c = 0.5 * (CELLS - 1)
    left.annotate("", (c + x, c + y), (c - x, c - y), arrowprops={"arrowstyle": "<->", "color": "k", "lw": 1.4})
    middle.plot(degrees, _tension(np.array(truth.tensor), normal), color="k", lw=4.0, alpha=0.35, label="truth")
    middle.plot(degrees, _tension(np.array(found.tensor), normal), color=GOOD, lw=1.6, label="estimated")
    middle.set(xlabel="direction of the normal  (degrees from x)", title="width and tension, over the mean")
    middle.set(ylabel="sqrt(n . A n)", xticks=[0, 45, 90, 135, 180], ylim=(0.85, 1.3))
    key(middle, ncols=2, fontsize=8)
    numbers = draw_errors(right, {"anisotropy estimated": (result, GOOD), "ignored": (plain, POOR)})
    key(right, fontsize=8)
    for name in ("ratio", "angle"):
        low, high = result.interval(name)
        numbers[name] = {"true": round(getattr(truth, name), 4), "estimated": round(getattr(found, name), 4),
                         "interval": [round(low, 4), round(high, 4)]}  # fmt: skip
    return figure, numbers


def _tension(tensor: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return sqrt(n . A n) of some directions."""
    return np.asarray(np.sqrt(np.einsum("an,ab,bn->n", normal, tensor, normal)))


def mobility() -> tuple[Any, Numbers]:
    """A phase that is three times as fast as the other: q(u) estimated, and taken for a constant that is unknown."""

    def rate(u: np.ndarray) -> np.ndarray:
        return 1.0 + 0.5 * np.clip(u, -1.0, 1.0)

    start = initial_field("nonconvex", (CELLS, CELLS), DX, epsilon=EPSILON)
    clean = Record(_rk4(rate, start), dx=DX, dt=DT, boundary="periodic", origin="simulation")
    record = add_noise(clean, 0.02, seed=83)
    results = {k: identify(record, dynamics=AllenCahn(mobility=k), check=False) for k in (2, 3)}
    plain = identify(record, check=False)
    figure = new_figure(9.6, 3.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.1, 1.1, 1.1])
    left.plot(U, rate(U), color="k", lw=4.0, alpha=0.35, label="truth")
    for (degree, result), colour in zip(results.items(), (OTHER, GOOD), strict=True):
        left.plot(U, result.mobility(U), STYLES[colour], color=colour, lw=1.5, label=f"degree {degree}")
        unit = 100.0 / rate(U)
        low, high = (unit * edge - 100.0 for edge in result.band("mobility", U))
        middle.fill_between(U, low, high, color=colour, alpha=0.25, lw=0)
        middle.plot(
            U, unit * result.mobility(U) - 100.0, STYLES[colour], color=colour, lw=1.5, label=f"degree {degree}"
        )
    left.axhline(plain.q, color=POOR, ls="--", lw=1.5, label="one for all")
    left.set(xlabel="phase value u", ylabel="q(u)", title="the mobility", ylim=(0.3, 2.3))
    key(left, ncols=2, fontsize=8)
    middle.axhline(0.0, color="0.5", lw=0.8)
    middle.set(xlabel="phase value u", ylabel="q(u) minus truth  (%)", title="its error, 95 % bands")
    low, high = middle.get_ylim()
    middle.set_ylim(low, high + 0.35 * (high - low))
    key(middle, fontsize=8)
    numbers = draw_errors(right, {"degree 3": (results[3], GOOD), "one for all": (plain, POOR)})
    key(right, fontsize=8)
    u = np.linspace(-1.0, 1.0, 201)
    for degree, result in results.items():
        low, high = result.band("mobility", u)
        chi2, freedom = result.posterior.constant_mobility()
        numbers[f"q(u), degree {degree}"] = {
            "error %": round(100 * float(np.sqrt(np.mean((result.mobility(u) / rate(u) - 1.0) ** 2))), 2),
            "inside %": round(100 * float(np.mean((low <= rate(u)) & (rate(u) <= high))), 1),
            "q": round(result.q, 4), "chi2 of a constant": round(chi2), "degrees of freedom": freedom,
        }  # fmt: skip
    weak = identify(record, dynamics=AllenCahn(mobility=3), method="weak")
    numbers["q(u), weak"] = {
        "error %": round(100 * float(np.sqrt(np.mean((weak.mobility(u) / rate(u) - 1.0) ** 2))), 2)
    }
    return figure, numbers | {"q of one for all": round(plain.q, 4)}


def _rk4(rate: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> np.ndarray:
    """Return frames of u_t = q(u) (Laplacian u - G(u)) by the explicit Runge-Kutta scheme."""
    laplacian, law, steps = Grid(u.shape, DX).laplacian, LAW.effective(EPSILON), 24
    h, frames = DT / steps, [u]

    def slope(u: np.ndarray) -> np.ndarray:
        return rate(u) * (np.fft.irfft2(laplacian * np.fft.rfft2(u), s=u.shape) - law.force(u))

    for step in range((FRAMES - 1) * steps):
        a = slope(u)
        b = slope(u + 0.5 * h * a)
        c = slope(u + 0.5 * h * b)
        u = u + h / 6.0 * (a + 2.0 * b + 2.0 * c + slope(u + h * c))
        if (step + 1) % steps == 0:
            frames.append(u)
    return np.stack(frames)


def driving() -> tuple[Any, Numbers]:
    """A drop that a force moves in and out, the force known and ignored; and one that drifts by a pixel."""
    period, size = (FRAMES - 1) * DT, 0.25 * float(np.max(np.abs(TRUE)))

    def force(t: Any) -> Any:
        return size * np.sin(2.0 * np.pi * t / period)

    pushed = movie(dynamics=AllenCahn(driving=force), substeps=60)
    record = add_noise(pushed, 0.02, seed=84)
    driven = {
        "h(t) known": (identify(record, dynamics=AllenCahn(driving=force), check=False), GOOD),
        "ignored": (identify(record, check=False), POOR),
    }
    free, speed = movie(), DX / period
    moved = add_noise(_drifting(free, speed), 0.02, seed=85)
    drifts = {"drift known": (0.0, speed), "estimated": "estimated", "ignored": "none"}
    carried = {
        name: (identify(moved, observation=Observation(drift=drift), check=False), colour)
        for (name, drift), colour in zip(drifts.items(), (GOOD, OTHER, POOR), strict=True)
    }
    figure = new_figure(9.6, 3.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.1, 1.1, 1.1])
    for name, one, colour in (("with a sine h(t)", pushed, GOOD), ("h = 0", free, POOR)):
        means = one.slab().mean(axis=(1, 2))
        left.plot(1e3 * record.times, means, STYLES[colour], color=colour, lw=1.8, label=name)
    left.set(xlabel="time  (10$^{-3}$)", ylabel="mean of u", title="what a force does")
    low, high = left.get_ylim()
    left.set_ylim(low, high + 0.35 * (high - low))
    key(left, fontsize=8)
    numbers: Numbers = {"driving": draw_errors(middle, driven)}
    key(middle, fontsize=8)
    numbers["drift"] = draw_errors(right, carried)
    right.set(title="error, a drift of one pixel", ylabel="")
    key(right, fontsize=8)
    numbers["drift x"] = [round(end, 4) for end in carried["estimated"][0].interval("drift x")]
    return figure, numbers


def _drifting(record: Record, speed: float) -> Record:
    """Return a record whose picture moves along x."""
    waves = 2j * np.pi * np.fft.fftfreq(CELLS, DX)
    factors = np.exp(-waves * speed * record.times[:, None])[:, None]
    return record.replace(np.fft.ifft(factors * np.fft.fft(record.slab())).real)


FIGURES: dict[str, Callable[[], tuple[Any, Numbers]]] = {
    make.__name__: make
    for make in (
        windows,
        optics,
        noise,
        several,
        unknown_diffusion,
        conserved,
        mass_conserving,
        anisotropy,
        mobility,
        driving,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(FIGURES)}; all by default")
    asked = parser.parse_args(words("several")).names or list(FIGURES)
    for name in asked:
        if name not in FIGURES:
            raise InputError(f"figure is {name!r}: expected one of {', '.join(FIGURES)}")
        began = time.time()
        with style():
            figure, numbers = FIGURES[name]()
        target(FIGURES_FOLDER / f"{name}.png").write_bytes(render(figure, "png"))
        kept = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
        NUMBERS.write_text(json.dumps(dict(sorted((kept | {name: numbers}).items())), indent=1) + "\n")
        print(name, f"{time.time() - began:.0f} s", json.dumps(numbers), flush=True)


if __name__ == "__main__":
    main()

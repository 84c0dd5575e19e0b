"""Figures: each is a function of the results. A new one is a line in FIGURES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doublewell_paper.cases import CONDITIONS, GEOMETRIES_256, LAWS
from doublewell_paper.control_tables import STRESS_CASES, under_condition
from doublewell_paper.core import (
    COLOURS,
    FIELD_MAP,
    Array,
    Bernstein,
    InputError,
    Law,
    approximation_floor,
    calibrate,
    even_family,
    named_law,
    new_figure,
    style,
)
from doublewell_paper.methods import NORMAL_DEGREES
from doublewell_paper.records import Sample, Spec
from doublewell_paper.results import Line, Results, mean
from doublewell_paper.table import paper_numbers

_CASE = "principal 0.03"
_PHASE_TICKS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_U = np.linspace(-1.0, 1.0, 201)
_LAST = 100  # last frame of a movie of 101
_METHOD_COLOURS = {  # Okabe and Ito, as in the report's style
    "weak LS m=2": "#999999",
    "STAC m=2": "#56B4E9",
    "weak LS m=5": "#D55E00",
    "STAC m=5": "#0072B2",
    "selected STAC": "#009E73",
    "trajectory m=5": "#E69F00",
    "trajectory auto": "#000000",
}


@dataclass(frozen=True)
class FigureKind:
    """How one figure is drawn: from the results of the named cases; ``caption`` is its sentence on the page."""

    name: str
    cases: tuple[str, ...]
    draw: Callable[[Results], Any]
    caption: str


def _placeholder(axis: Any, text: str) -> None:
    axis.set_axis_off()
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, wrap=True)


def _floor(_results: Results) -> Any:
    """Draw the law outside the cone and its best nonnegative approximation at degrees two and five; no data."""
    law = named_law("outside_cone")
    unit = float(np.max(np.abs(law.force(np.linspace(-1.0, 1.0, 2001)))))
    u = np.linspace(-1.0, 1.0, 401)
    with style():
        figure = new_figure(8.4, 3.5)
        for axis, degree in zip(figure.subplots(1, 2, sharey=True), (2, 5), strict=True):
            floor = approximation_floor(law, degree, constraint="bernstein")
            best = Law(Bernstein(degree), floor.coefficients)
            axis.axhline(0.0, color="0.7", lw=0.8)
            axis.plot(u, law.force(u) / unit, color=COLOURS["mark"], lw=1.8, label="law outside the cone")
            axis.plot(u, best.force(u) / unit, "--", color=COLOURS["recovered"], lw=1.8, label="best nonnegative fit")
            title = f"degree {degree}: floor {100 * floor.error:.2f} %"
            axis.set(title=title, xlabel="phase value u", xticks=_PHASE_TICKS)
        figure.axes[0].set_ylabel("force, in units of its maximum")
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, frameon=False, loc="outside upper center", ncols=2)
    return figure


def _geometries(results: Results) -> Any:
    """Draw three geometries at three times with the contour u = 0; movies are made again, because none is stored."""
    specs = {line.spec.geometry: line.spec for line in results.of("published", "STAC m=2")}
    with style():
        figure = new_figure(7.6, 7.2)
        axes = figure.subplots(3, len(GEOMETRIES_256), sharex=True, sharey=True)
        for column, name in zip(axes.T, GEOMETRIES_256, strict=True):
            if name in specs:
                _fields(column, name, specs[name])
            else:
                for axis in column:
                    _placeholder(axis, f"{name}: no record")
        for axis in axes[-1]:
            axis.set_xlabel("x (length)")
        for axis in axes[:, 0]:
            axis.set_ylabel("y (length)")
        drawn = [image for axis in axes.flat for image in axis.get_images()]
        if drawn:
            figure.colorbar(drawn[0], ax=list(axes.flat), shrink=0.7, pad=0.02).set_label("observed u")
    return figure


def _fields(axes: Any, name: str, spec: Spec) -> None:
    last = round(_LAST * (spec.frames - 1) / 60)
    record = Sample(replace(spec, frames=last + 1)).record
    points = (np.arange(spec.cells) + 0.5) / spec.cells
    for axis, frame in zip(axes, (0, spec.frames - 1, last), strict=True):
        u = record.slab(frame, frame + 1)[0]
        axis.imshow(u, cmap=FIELD_MAP, vmin=-1, vmax=1, origin="lower", extent=(0, 1, 0, 1))
        if u.min() < 0.0 < u.max():
            axis.contour(points, points, u, levels=[0.0], colors="black", linewidths=0.9)
        axis.set_title(f"{name}, t = {record.times[frame]:.3g}", fontsize=9)
        axis.set_xticks([0, 0.5, 1])
        axis.set_yticks([0, 0.5, 1])


_PAIRS = (
    ("positivity added to ridge", "ridge STAC m=5", "ridge LS m=5", "positivity added to ridge, m=5"),
    ("ridge added to positivity", "ridge STAC m=5", "STAC m=5", "ridge added to positivity, m=5"),
    ("ridge STAC m=5\nminus STAC m=2", "ridge STAC m=5", "STAC m=2", "ridge STAC m=5 minus STAC m=2"),
    ("trajectory auto\nminus STAC m=2", "trajectory auto", "STAC m=2", ""),
    ("trajectory auto\nminus ridge STAC m=5", "trajectory auto", "ridge STAC m=5", ""),
)


def _contrasts(results: Results) -> Any:
    """Draw means, clusters and percentile intervals, and the paper's where it has them."""
    paper = paper_numbers()["principal_contrasts_pp"]
    pairs = ((label, results.contrast(_CASE, a, b), paper.get(key)) for label, a, b, key in _PAIRS)
    rows = [(label, contrast, known) for label, contrast, known in pairs if contrast]
    with style():
        figure = new_figure(7.4, 1.2 + 0.75 * max(len(rows), 1))
        axis = figure.subplots()
        axis.axvline(0.0, color="0.6", lw=0.8)
        for y, (_, contrast, known) in zip(reversed(range(len(rows))), rows, strict=True):
            spread = y + 0.16 + 0.08 * (np.arange(len(contrast.values)) % 3 - 1)
            axis.plot(contrast.values, spread, ".", color=COLOURS["visited"], ms=6, label="seed clusters")
            interval = {"color": COLOURS["recovered"], "lw": 2.5, "label": "95 % percentile interval"}
            axis.plot(contrast.percentile, [y, y], **interval)
            axis.plot(contrast.mean, y, "D", color=COLOURS["recovered"], ms=6, label="mean")
            if known is not None:
                axis.plot(known[1:], [y - 0.22] * 2, color=COLOURS["noise"], lw=1.5, label="paper, mean and interval")
                axis.plot(known[0], y - 0.22, "D", color=COLOURS["noise"], ms=4, mfc="white")
        axis.set_yticks(range(len(rows)), [label for label, _, _ in reversed(rows)])
        axis.set(
            xlabel="change in mean force error (percentage points); negative favours the first",
            ylim=(-0.6, max(len(rows), 1) - 0.4),
        )
        handles, labels = axis.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        figure.legend(unique.values(), unique.keys(), frameon=False, fontsize=8, loc="outside upper center", ncols=4)
    return figure


def example(results: Results) -> Line | None:
    """Return the record shown: the first violation of the exponential law on the circle, else the nearest to one.

    Nearest means the smallest bracket p relative to its mean. The choice looks at structure alone, not at errors.
    """
    lines = results.of(_CASE, "weak LS m=5")
    wanted = [x for x in lines if (x.spec.law, x.spec.geometry) == ("exponential", "circle")] or lines
    for group in (wanted, lines):
        broken = [line for line in group if line.score("violation") == 1.0]
        if broken:
            return broken[0]
    return min(wanted, key=_least_bracket, default=None)


def _least_bracket(line: Line) -> float:
    law = line.law
    if law is None:
        return float("inf")
    bracket = even_family(law.family, "the figure").bracket(law.coefficients, np.linspace(0.0, 1.0, 201))
    return float(np.min(bracket) / np.mean(bracket))


def _structure(results: Results) -> Any:
    """Draw one structural violation: reference, unconstrained and constrained estimates, and an enlargement."""
    line = example(results)
    with style():
        figure = new_figure(8.6, 6.0)
        axes = figure.subplots(2, 2)
        if line is None or line.law is None:
            for axis in axes.flat:
                _placeholder(axis, "no record")
            return figure
        curves = _curves(results, line, line.law)
        zeros = [abs(point.u) for point in line.law.structure.stationary if point.u]
        reach = min(0.3, 2.0 * min(zeros)) if zeros else 0.2  # twice the innermost extra zero
        for column, (low, high, zoomed) in enumerate(((-1.0, 1.0, False), (-reach, reach, True))):
            u = np.linspace(low, high, 401)
            for label, law, colour, dash in curves:
                axes[0, column].plot(u, law.force(u), dash, color=colour, lw=1.6, label=label)
                base = law.primitive(0.0) if zoomed else 0.0
                axes[1, column].plot(u, law.primitive(u) - base, dash, color=colour, lw=1.6)
            for axis in axes[:, column]:
                axis.axhline(0.0, color="0.7", lw=0.8, zorder=0)
                axis.set_xlabel("phase value u")
        for axis in axes[:, 0]:
            axis.set_xticks(_PHASE_TICKS)
        titles = ("(a) force", "(b) force near the origin", "(c) primitive", "(d) change of the primitive from u = 0")
        labels = (r"G (length$^{-2}$)", r"G (length$^{-2}$)", r"H (length$^{-2}$)", r"H(u) - H(0) (length$^{-2}$)")
        for axis, title, label in zip(axes.flat, titles, labels, strict=True):
            axis.set(title=title, ylabel=label)
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, title=line.record, frameon=False, loc="outside upper center", ncols=4)
    return figure


def _curves(results: Results, line: Line, free: Law) -> list[tuple[str, Law, str, str]]:
    truth = named_law(line.spec.law).effective(line.spec.epsilon)
    curves = [("reference", truth, COLOURS["mark"], "-"), ("weak LS, m = 5", free, COLOURS["noise"], "--")]
    for method, label, colour, dash in (
        ("STAC m=5", "STAC, m = 5", "#0072B2", "-"),
        ("trajectory auto", "trajectory", "#009E73", ":"),
    ):
        same = results.of(_CASE, method, lambda other: other.record == line.record)
        curves += [(label, other.law, colour, dash) for other in same if other.law is not None]
    return curves


def _clean(results: Results) -> Any:
    """Draw clean recovery by degree with its condition number, and by mesh, on logarithmic scales."""
    with style():
        figure = new_figure(10.4, 3.5)
        left, middle, right = figure.subplots(1, 3)
        lines = {m: results.of("degrees", f"normal m={m}") for m in NORMAL_DEGREES}
        shown = [m for m in NORMAL_DEGREES if lines[m]]
        law = named_law("exponential")
        floors = [100 * approximation_floor(law, m, constraint="bernstein").error for m in NORMAL_DEGREES]
        errors = [lines[m][0].score("e_G") for m in shown]
        left.semilogy(shown, errors, "o-", color=COLOURS["recovered"], label="recovered")
        left.semilogy(NORMAL_DEGREES, floors, "s--", color=COLOURS["noise"], label="best nonnegative")
        left.set(title="(a) exponential law, clean", xlabel="degree m", ylabel="force error (%)")
        left.legend(frameon=False)
        middle.semilogy(shown, [lines[m][0].extra["gram_condition"] for m in shown], "o-", color=COLOURS["recovered"])
        middle.set(title="(b) conditioning", xlabel="degree m", ylabel="condition number of A'A")
        _refinement(right, results)
    return figure


def _refinement(axis: Any, results: Results) -> None:
    lines = results.of("refinement", "STAC m=2")
    looks = (("o-", COLOURS["recovered"]), ("s--", COLOURS["truth"]))
    for steps, (mark, colour) in zip(sorted({line.spec.substeps for line in lines}), looks, strict=False):
        part = sorted((x.spec.cells, x.score("e_G")) for x in lines if x.spec.substeps == steps)
        axis.loglog(*zip(*part, strict=True), mark, color=colour, label=f"{steps} substeps")
    known = paper_numbers()["refinement_sixth_clean_e_G"]
    axis.loglog([int(n) for n in known], list(known.values()), "x", color=COLOURS["mark"], ms=8, mew=2, label="paper")
    cells = sorted({line.spec.cells for line in lines} | {int(n) for n in known})
    axis.set_xticks(cells, [str(n) for n in cells], rotation=45)
    axis.minorticks_off()
    axis.set(title="(c) sixth law, clean, m = 2", xlabel="cells along a side", ylabel="force error (%)")
    axis.legend(frameon=False)


_STRESS_METHODS = (
    *("weak LS m=2", "STAC m=2", "weak LS m=5", "STAC m=5", "selected STAC"),
    *("trajectory m=5", "trajectory auto"),
)
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)


def _stress(results: Results) -> Any:
    """Draw grouped bars on a logarithmic scale; the reference is the principal set of the same laws."""
    names = ("reference", *CONDITIONS)
    with style():
        figure = new_figure(10.4, 4.2)
        axis = figure.subplots()
        width = 0.8 / len(_STRESS_METHODS)
        for k, method in enumerate(_STRESS_METHODS):
            means = (mean(under_condition(results, name, method), "e_G") for name in names)
            heights = [float("nan") if value is None else value for value in means]
            if not all(np.isnan(heights)):
                centres = np.arange(len(names)) + (k - 0.5 * (len(_STRESS_METHODS) - 1)) * width
                axis.bar(centres, heights, 0.92 * width, color=_METHOD_COLOURS[method], label=method)
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.set_yticks([tick for tick in _TICKS if low <= tick <= high], minor=False)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.minorticks_off()
        labels = [name.replace(" noise", "\nnoise").replace(" in ", "\nin ") for name in names]
        axis.set_xticks(range(len(names)), labels)
        axis.set_ylabel("mean force error (%), log scale")
        axis.grid(axis="y", color="0.9", zorder=0)
        axis.set_axisbelow(True)
        legend = {"frameon": False, "loc": "outside upper center", "ncols": len(_STRESS_METHODS), "fontsize": 8}
        figure.legend(*axis.get_legend_handles_labels(), **legend)
    return figure


_CALIBRATED_METHODS = ("STAC m=2", "weak LS m=5", "STAC m=5", "trajectory auto")


def _calibrated(results: Results) -> Any:
    """Draw deviations of the potential with their ranges, and below the signed errors of epsilon."""
    with style():
        figure = new_figure(9.2, 8.4)
        grid = figure.add_gridspec(3, 2, height_ratios=[1, 1, 1.15])
        for k, law in enumerate(LAWS):
            _potential(figure.add_subplot(grid[k // 2, k % 2]), results, law)
        _scales(figure.add_subplot(grid[2, :]), results)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, loc="outside upper center", ncols=4)
    return figure


def _potential(axis: Any, results: Results, law: str) -> None:
    for method in _CALIBRATED_METHODS:
        lines = results.of(_CASE, method, lambda line: line.spec.law == law)
        curves = [curve for line in lines if (curve := _deviation(line)) is not None]
        if curves:
            colour = _METHOD_COLOURS[method]
            axis.fill_between(_U, np.min(curves, axis=0), np.max(curves, axis=0), color=colour, alpha=0.18, lw=0)
            axis.plot(_U, np.mean(curves, axis=0), color=colour, lw=1.5, label=method)
    axis.axhline(0.0, color="0.7", lw=0.8, zorder=0)
    label = "potential deviation\n(% of max F)"
    axis.set(title=f"{law} law", xlabel="phase value u", ylabel=label, xticks=_PHASE_TICKS)


def _deviation(line: Line) -> Array | None:
    """Return F_hat - F in percent of max F; None where calibration fails."""
    law, truth = line.law, named_law(line.spec.law)
    if law is None:
        return None
    try:
        scale = calibrate(law, truth.surface_tension(epsilon=1.0)).epsilon
    except InputError:
        return None
    return np.asarray(100 * (law.potential(_U, epsilon=scale) - truth.primitive(_U)) / truth.barrier)


def _scales(axis: Any, results: Results) -> None:
    """Draw one dot per estimate, a cross where its structure is wrong."""
    rng = np.random.default_rng(0)  # dots side by side, not on top of each other
    for k, law in enumerate(LAWS):
        for j, method in enumerate(_CALIBRATED_METHODS):
            lines = [line for line in results.of(_CASE, method) if line.spec.law == law]
            for wrong, mark, size in ((0.0, ".", 5), (1.0, "x", 7)):
                values = [line.score("e_eps") for line in lines if line.score("violation") == wrong]
                centres = k + 0.2 * (j - 1.5) + rng.uniform(-0.05, 0.05, len(values))
                axis.plot(centres, values, mark, color=_METHOD_COLOURS[method], ms=size, alpha=0.8)
    axis.axhline(0.0, color=COLOURS["mark"], lw=0.8, zorder=0)
    axis.set_xticks(range(len(LAWS)), [f"{law} law" for law in LAWS])
    axis.set(ylabel="signed error of epsilon (%)", title="scale error of each estimate (cross: wrong well structure)")


_KINDS = (
    FigureKind(
        "floor",
        (),
        _floor,
        "Approximation floor: an admissible law and its best approximation with nonnegative coefficients.",
    ),
    FigureKind("geometries", ("published",), _geometries, "Observed fields of the 256 x 256 set; black: u = 0."),
    FigureKind(
        "contrasts", (_CASE,), _contrasts, "Paired changes in mean force error at noise 0.03, ours and the paper's."
    ),
    FigureKind(
        "structure", (_CASE,), _structure, "A structural violation of unconstrained least squares at degree five."
    ),
    FigureKind(
        "degree", ("degrees", "refinement"), _clean, "Clean recovery by degree, conditioning, and spatial refinement."
    ),
    FigureKind(
        "stress",
        (_CASE, *STRESS_CASES),
        _stress,
        "Mean force error under six observation conditions, noise 0.03.",
    ),
    FigureKind(
        "calibrated",
        (_CASE,),
        _calibrated,
        "Calibrated outputs at noise 0.03: potential deviations (mean, range) and scale errors.",
    ),
)
FIGURES: dict[str, FigureKind] = {kind.name: kind for kind in _KINDS}

"""Figure: the fields of the 256 x 256 set at the start, at the end of identification and at the last frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from doublewell.report.style import FIELD_MAP, new_figure, style
from doublewell_paper.cases.published import GEOMETRIES_256
from doublewell_paper.figures.kinds import FigureKind, placeholder
from doublewell_paper.results import Results
from doublewell_paper.sample import Sample
from doublewell_paper.spec import Spec

__all__ = ["KINDS"]

_LAST = 100  # last frame of a movie of 101


def draw(results: Results) -> Any:
    """Draw three geometries at three times with the contour u = 0; movies are made again, because none is stored."""
    specs = {line.spec.geometry: line.spec for line in results.of("published", "STAC m=2")}
    with style():
        figure = new_figure(7.6, 7.2)
        axes = figure.subplots(3, len(GEOMETRIES_256), sharex=True, sharey=True)
        for column, name in zip(axes.T, GEOMETRIES_256, strict=True):
            if name in specs:
                _column(column, name, specs[name])
            else:
                for axis in column:
                    placeholder(axis, f"{name}: no record")
        for axis in axes[-1]:
            axis.set_xlabel("x (length)")
        for axis in axes[:, 0]:
            axis.set_ylabel("y (length)")
        drawn = [image for axis in axes.flat for image in axis.get_images()]
        if drawn:
            figure.colorbar(drawn[0], ax=list(axes.flat), shrink=0.7, pad=0.02).set_label("observed u")
    return figure


def _column(axes: Any, name: str, spec: Spec) -> None:
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


KINDS = (FigureKind("geometries", ("published",), draw, "Observed fields of the 256 x 256 set; black: u = 0."),)

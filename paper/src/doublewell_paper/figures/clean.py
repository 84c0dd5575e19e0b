"""Figure: clean recovery by degree with its condition number, and by mesh."""

from __future__ import annotations

from typing import Any

from doublewell.inference import approximation_floor
from doublewell.law import named_law
from doublewell.report.style import COLOURS, new_figure, style
from doublewell_paper.figures.kinds import FigureKind
from doublewell_paper.methods.normal import DEGREES
from doublewell_paper.paper_numbers import paper_numbers
from doublewell_paper.results import Results

__all__ = ["KINDS"]


def draw(results: Results) -> Any:
    """Draw the three panels on logarithmic scales."""
    with style():
        figure = new_figure(10.4, 3.5)
        left, middle, right = figure.subplots(1, 3)
        found = {m: results.of("degrees", f"normal m={m}") for m in DEGREES}
        seen = [m for m in DEGREES if found[m]]
        floors = [100 * approximation_floor(named_law("exponential"), m, constraint="bernstein").error for m in DEGREES]
        left.semilogy(
            seen, [found[m][0].score("e_G") for m in seen], "o-", color=COLOURS["recovered"], label="recovered"
        )
        left.semilogy(DEGREES, floors, "s--", color=COLOURS["noise"], label="best nonnegative")
        left.set(title="(a) exponential law, clean", xlabel="degree m", ylabel="force error (%)")
        left.legend(frameon=False)
        middle.semilogy(seen, [found[m][0].extra["gram_condition"] for m in seen], "o-", color=COLOURS["recovered"])
        middle.set(title="(b) conditioning", xlabel="degree m", ylabel="condition number of A'A")
        _refinement(right, results)
    return figure


def _refinement(axis: Any, results: Results) -> None:
    lines = results.of("refinement", "STAC m=2")
    looks = (("o-", COLOURS["recovered"]), ("s--", COLOURS["truth"]))
    for steps, (mark, colour) in zip(sorted({line.spec.substeps for line in lines}), looks, strict=False):
        part = sorted((x.spec.cells, x.score("e_G")) for x in lines if x.spec.substeps == steps)
        axis.loglog(*zip(*part, strict=True), mark, color=colour, label=f"{steps} substeps")
    told = paper_numbers()["refinement_sixth_clean_e_G"]
    axis.loglog([int(n) for n in told], list(told.values()), "x", color=COLOURS["mark"], ms=8, mew=2, label="paper")
    cells = sorted({line.spec.cells for line in lines} | {int(n) for n in told})
    axis.set_xticks(cells, [str(n) for n in cells], rotation=45)
    axis.minorticks_off()
    axis.set(title="(c) sixth law, clean, m = 2", xlabel="cells along a side", ylabel="force error (%)")
    axis.legend(frameon=False)


KINDS = (
    FigureKind(
        "degree", ("degrees", "refinement"), draw, "Clean recovery by degree, conditioning, and spatial refinement."
    ),
)

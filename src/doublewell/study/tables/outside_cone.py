"""Recovery of an admissible law outside the positive cone."""

from __future__ import annotations

import numpy as np

from doublewell.estimate import approximation_floor
from doublewell.law import named_law
from doublewell.study.line import Line
from doublewell.study.paper_numbers import paper_numbers
from doublewell.study.results import Results, scores
from doublewell.study.table import Entry, Row, Table
from doublewell.study.tables.kinds import HALF, QUARTER, TableKind, count_text

__all__ = ["KINDS"]

_CASE = "outside cone"
_WHY = (
    "we do not know why. The paper sets this law's amplitude by an interface width that its main text does not define; "
    "another amplitude than ours is a possible reason, which this study does not test."
)


def outside_cone(results: Results) -> Table:
    """Return the paper's Table 4, with the trajectory reading beside it."""
    paper = paper_numbers()["outside_cone"]
    rows = []
    for degree in (2, 5):
        floor = 100 * approximation_floor(named_law("outside_cone"), degree).error
        for noise in (0.0, 0.01, 0.03):
            told = paper[f"m={degree} noise {noise:g}"]
            free, bound = (_at(results, f"{name} m={degree}", noise) for name in ("weak LS", "STAC"))
            factor = QUARTER if degree == 2 else HALF
            entries = (
                _spread(free, told[0], told[1], factor),
                _spread(bound, told[2], told[3], factor),
                Entry(floor, told[4], limit=0.006),
                _admissible(free, told[6]),
                _admissible(bound, told[7]),
                Entry(text=_sum(free, "in_cone"), paper=told[9]),
                _spread(_at(results, "trajectory free", noise), None, None, None),
                _spread(_at(results, "trajectory auto", noise), None, None, None),
            )
            rows.append(Row(f"m = {degree}, noise {noise:g}", entries, _WHY))
    columns = (
        "unconstrained e_G",
        "constrained e_G",
        "floor",
        "admissible, uncon.",
        "admissible, con.",
        "uncon. in cone",
        "trajectory unconstrained",
        "trajectory constrained",
    )
    remark = (
        "Mean and standard deviation in percent over two geometries and ten seeds. The trajectory columns average over "
        "degrees."
    )
    return Table("outside_cone", "A law outside the positive cone", columns, tuple(rows), (remark,))


def _at(results: Results, method: str, noise: float) -> list[Line]:
    return results.of(_CASE, method, lambda line: line.spec.noise == noise)


def _spread(lines: list[Line], paper: float | None, paper_sd: float | None, factor: float | None) -> Entry:
    values = scores(lines, "e_G")
    if values.size < 2:
        return Entry(float(values[0]) if values.size else None, paper, factor)
    ours = float(values.mean())
    known = "" if paper is None else f"{paper:.2f} ± {paper_sd:.2f}; {ours / paper:.2f}"
    return Entry(ours, paper, factor, text=f"{ours:.2f} ± {np.std(values, ddof=1):.2f}", paper_text=known)


def _admissible(lines: list[Line], paper: float | None) -> Entry:
    values = scores(lines, "violation")
    return Entry(text=count_text(int(len(values) - values.sum()), len(lines)) if lines else "", paper=paper)


def _sum(lines: list[Line], score: str) -> str:
    return count_text(int(scores(lines, score).sum()), len(lines)) if lines else ""


KINDS = (TableKind("outside_cone", (_CASE,), outside_cone),)

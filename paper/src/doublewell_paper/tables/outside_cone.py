"""Recovery of an admissible law outside the positive cone."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.inference import approximation_floor
from doublewell.law import named_law
from doublewell_paper.line import Line
from doublewell_paper.paper_numbers import paper_numbers
from doublewell_paper.results import Results, scores
from doublewell_paper.table import Entry, Row, Table
from doublewell_paper.tables.kinds import HALF, QUARTER, TableKind, count_text

__all__ = ["KINDS"]

_CASE, _STRONG = "outside cone", "outside cone strong"
_NOISES = (0.0, 0.01, 0.03)
_COLUMNS = ("unconstrained e_G", "constrained e_G", "admissible, uncon.", "admissible, con.", "uncon. in cone")
_MORE = ("admissible e_G", "trajectory unconstrained", "trajectory constrained", "trajectory admissible")
_WHY = (
    "the paper sets this law's amplitude by an interface width that its main text does not define; ours is the width "
    "between u = -0.9 and 0.9. With twice our amplitude these five come within 1.3 of the paper, but unconstrained "
    "m = 5 moves away from it clean and at 0.03: the amplitude explains most, not all. See the next table."
)


def outside_cone(results: Results) -> Table:
    """Return the paper's Table 4, with the trajectory reading beside it."""
    rows = []
    for degree in (2, 5):
        floor = 100 * approximation_floor(named_law("outside_cone"), degree, constraint="bernstein").error
        factor = QUARTER if degree == 2 else HALF
        for noise in _NOISES:
            told = _told(degree, noise)
            entries = (
                *_weak(results, _CASE, degree, noise, factor),
                Entry(floor, told[4], limit=0.006),
                *(_spread(_at(results, _CASE, name, noise), None, None, None) for name in _more(degree)),
            )
            rows.append(Row(_label(degree, noise), entries, _WHY))
    columns = (*_COLUMNS, "floor", *_MORE)
    remark = (
        "Mean and standard deviation in percent over two geometries and ten seeds. Constrained means positive "
        "coefficients, admissible every plain double well, whose floor is zero here. The trajectory columns average "
        "over degrees."
    )
    return Table("outside_cone", "A law outside the positive cone", columns, tuple(rows), (remark,))


def outside_cone_strong(results: Results) -> Table:
    """Return the same weak columns for twice the amplitude, which was chosen by the paper's errors."""
    told = [(degree, noise) for degree in (2, 5) for noise in _NOISES]
    rows = [Row(_label(*one), _weak(results, _STRONG, *one, None)) for one in told]
    remark = (
        "The factor two was chosen by these errors, so none of them is a prediction. It shows how far the amplitude "
        "alone moves them."
    )
    return Table(_STRONG.replace(" ", "_"), "The same law with twice the amplitude", _COLUMNS, tuple(rows), (remark,))


def _more(degree: int) -> tuple[str, ...]:
    """Return the methods that the paper does not have, in the order of their columns."""
    return f"STAC admissible m={degree}", "trajectory free", "trajectory auto", "trajectory admissible"


def _told(degree: int, noise: float) -> list[Any]:
    return list(paper_numbers()["outside_cone"][f"m={degree} noise {noise:g}"])


def _label(degree: int, noise: float) -> str:
    return f"m = {degree}, noise {noise:g}"


def _weak(results: Results, case: str, degree: int, noise: float, factor: float | None) -> tuple[Entry, ...]:
    told = _told(degree, noise)
    free, bound = (_at(results, case, f"{name} m={degree}", noise) for name in ("weak LS", "STAC"))
    return (
        _spread(free, told[0], told[1], factor),
        _spread(bound, told[2], told[3], factor),
        _admissible(free, told[6]),
        _admissible(bound, told[7]),
        Entry(text=_sum(free, "in_cone"), paper=told[9]),
    )


def _at(results: Results, case: str, method: str, noise: float) -> list[Line]:
    return results.of(case, method, lambda line: line.spec.noise == noise)


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


KINDS = (
    TableKind("outside_cone", (_CASE,), outside_cone),
    TableKind("outside_cone_strong", (_STRONG,), outside_cone_strong),
)

"""Clean tests: degrees of the exponential law, spatial refinement of the sixth."""

from __future__ import annotations

from doublewell.inference import approximation_floor
from doublewell.law import named_law
from doublewell_paper.case import LAWS
from doublewell_paper.methods.normal import DEGREES
from doublewell_paper.paper_numbers import paper_numbers
from doublewell_paper.results import Results, mean
from doublewell_paper.table import Entry, Row, Table
from doublewell_paper.tables.kinds import QUARTER, TableKind

__all__ = ["KINDS"]


def degrees(results: Results) -> Table:
    """Return recovery of the exponential force at degrees zero to five, beside the best that each degree can do."""
    rows = []
    for degree in DEGREES:
        lines = results.of("degrees", f"normal m={degree}")
        floor = 100 * approximation_floor(named_law("exponential"), degree, constraint="bernstein").error
        entries = (
            Entry(lines[0].scores["e_G"] if lines else None),
            Entry(floor),
            Entry(lines[0].extra["gram_condition"] if lines else None),
        )
        rows.append(Row(f"m = {degree}", entries))
    columns = ("recovered e_G", "best nonnegative", "condition of the Gram matrix")
    remark = (
        "Percent; clean circular record, normal equations. In the paper recovery is best at degree four (a figure, no "
        "numbers)."
    )
    return Table("degrees", "Clean recovery of the exponential law by degree", columns, tuple(rows), (remark,))


def refinement(results: Results) -> Table:
    """Return clean recovery of the sixth law on finer meshes."""
    told = paper_numbers()["refinement_sixth_clean_e_G"]
    lines = results.of("refinement", "STAC m=2")
    steps = sorted({line.spec.substeps for line in lines})
    rows = []
    for cells in sorted({line.spec.cells for line in lines}):
        found = {x.spec.substeps: x.scores["e_G"] for x in lines if x.spec.cells == cells}
        entries = [Entry(found.get(n), told.get(str(cells)) if n == steps[-1] else None, QUARTER) for n in steps]
        rows.append(
            Row(f"{cells} x {cells}", tuple(entries), "the number of substeps of the paper's figure is not said.")
        )
    columns = tuple(f"{n} substeps" for n in steps)
    return Table("refinement", "Clean e_G of the sixth law in percent, m = 2, circle", columns, tuple(rows))


def noiseless(results: Results) -> Table:
    """Return force errors of the principal records without noise, by law."""
    methods = ("STAC m=2", "weak LS m=5", "STAC m=5", "ridge STAC m=5", "analytic weak m=2", "smoothed FD4 m=2")
    rows = [
        Row(law, tuple(Entry(mean([x for x in results.of("clean", m) if x.spec.law == law], "e_G")) for m in methods))
        for law in LAWS
    ]
    remark = "Mean e_G in percent over both geometries. What is left is approximation and discretisation."
    return Table("noiseless", "Principal records without noise", methods, tuple(rows), (remark,))


KINDS = (
    TableKind("noiseless", ("clean",), noiseless),
    TableKind("degrees", ("degrees",), degrees),
    TableKind("refinement", ("refinement",), refinement),
)

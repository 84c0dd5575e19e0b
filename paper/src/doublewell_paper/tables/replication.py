"""The matched replication: full and short records on fresh seeds."""

from __future__ import annotations

from doublewell_paper.case import FIVE_BRANCHES
from doublewell_paper.paper_numbers import paper_numbers
from doublewell_paper.results import Results, mean, scores
from doublewell_paper.table import Entry, Row, Table
from doublewell_paper.tables.kinds import DEGREE_FIVE, HALF, QUARTER, SHORT, TableKind

__all__ = ["KINDS"]

_CONDITIONS = ("full 0.01", "full 0.03", "short 0.01", "short 0.03")


def replication(results: Results) -> Table:
    """Return the paper's Table 3: mean e_G with the number of violations."""
    paper = paper_numbers()["replication"]
    rows = []
    for condition in _CONDITIONS:
        told, entries = paper[condition], []
        for k, method in enumerate(FIVE_BRANCHES):
            lines = results.of(f"replication {condition}", method)
            factor = QUARTER if k == 0 and condition.startswith("full") else HALF
            entries.append(Entry(mean(lines, "e_G"), told["e_G"][k], factor))
        for k, method in enumerate(FIVE_BRANCHES[1:], start=1):
            lines = results.of(f"replication {condition}", method)
            count = f"{int(scores(lines, 'violation').sum())}/{len(lines)}" if lines else ""
            entries.append(Entry(text=count, paper=told["violations"][k]))
        for method in ("trajectory m=5", "trajectory auto"):
            entries.append(Entry(mean(results.of(f"replication {condition}", method), "e_G")))
        rows.append(Row(condition, tuple(entries), SHORT if condition.startswith("short") else DEGREE_FIVE))
    columns = (
        *FIVE_BRANCHES,
        *(f"violations, {name}" for name in FIVE_BRANCHES[1:]),
        "trajectory m=5",
        "trajectory auto",
    )
    remark = "Mean e_G in percent; four laws on the circle, ten seeds."
    return Table("replication", "Replication on fresh seeds", columns, tuple(rows), (remark,))


def selected(results: Results) -> Table:
    """Return the selected configurations of the replication with and without the constraint."""
    told = paper_numbers()["replication"][
        "selected configurations: unconstrained violations of 40, least to most difficult condition"
    ]
    known = {"full 0.01": told[0], "short 0.03": told[1]}
    rows = []
    for condition in _CONDITIONS:
        case = f"replication {condition}"
        free, bound = (results.of(case, name) for name in ("selected weak LS", "selected STAC"))
        found = results.contrast(case, "selected STAC", "selected weak LS")
        intervals = (
            ("", "")
            if found is None
            else tuple(f"{low:+.2f}, {high:+.2f}" for low, high in (found.percentile, found.student))
        )
        entries = (
            Entry(mean(free, "e_G")),
            Entry(mean(bound, "e_G")),
            Entry(
                text=f"{int(scores(free, 'violation').sum())}/{len(free)}" if free else "", paper=known.get(condition)
            ),
            Entry(text=f"{int(scores(bound, 'violation').sum())}/{len(bound)}" if bound else ""),
            Entry(None if found is None else found.mean),
            Entry(text=intervals[0]),
            Entry(text=intervals[1]),
        )
        rows.append(Row(condition, entries))
    columns = (
        "selected weak LS",
        "selected STAC",
        "violations, LS",
        "violations, STAC",
        "STAC - LS (pp)",
        "percentile 95 %",
        "cluster-t 95 %",
    )
    return Table("replication_selected", "Replication with selected degree and support", columns, tuple(rows))


_CASES = tuple(f"replication {condition}" for condition in _CONDITIONS)
KINDS = (TableKind("replication", _CASES, replication), TableKind("replication_selected", _CASES, selected))

"""The paper's main tables: the principal comparison, the replication, and the law outside the positive cone."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell_paper import calibration, control_tables
from doublewell_paper.cases import FIVE_BRANCHES, LAWS
from doublewell_paper.core import approximation_floor, named_law
from doublewell_paper.results import Line, Results, counted, mean, scores
from doublewell_paper.table import HALF, QUARTER, Entry, Row, Table, TableKind, paper_numbers

CASE = "principal 0.03"
_DEGREE_FIVE = (
    "degree five is weakly determined, so its errors move by about two with settings that the main text leaves open "
    "(outline of the nonconvex start, noise seeds, validation split)."
)
_BOTH = "the paper calls this row both 'degree two' and 'selected'."
_OPEN_CONTROL = "filter, widths and their choice are in the paper's supplement; ours are stated below the tables."
_METHODS = {  # ours: the paper's name, how near it is expected, why it may not be
    "STAC m=2": ("STAC m=2", QUARTER, ""),
    "ridge STAC m=2": ("ridge STAC m=2", QUARTER, ""),
    "weak LS m=5": ("weak LS m=5", HALF, _DEGREE_FIVE),
    "STAC m=5": ("STAC m=5", HALF, _DEGREE_FIVE),
    "ridge LS m=5": ("ridge LS m=5", HALF, _DEGREE_FIVE),
    "ridge STAC m=5": ("ridge STAC m=5", HALF, _DEGREE_FIVE),
    "analytic weak m=2": ("analytic weak", HALF, _BOTH),
    "analytic weak selected": ("analytic weak", HALF, _BOTH),
    "smoothed FD4 m=2": ("smoothed FD4 m=2", HALF, _OPEN_CONTROL),
    "trajectory m=2": ("", None, ""),
    "trajectory m=5": ("", None, ""),
    "trajectory auto": ("", None, ""),
}


def principal(results: Results) -> Table:
    """Return the paper's Table 1."""
    paper = paper_numbers()["principal_noise_0.03"]
    rows = []
    for method, (name, factor, why) in _METHODS.items():
        known = paper.get(name, [None] * 8)
        lines, fresh = results.of(CASE, method), results.of("fresh", method)
        bounded = [line for line in lines if line.active is not None]
        active = f"{sum(bool(line.active) for line in bounded)}/{len(bounded)}" if bounded else ""
        times = sorted(line.seconds for line in lines)
        entries = (
            *(_error(lines, key, known[k], factor) for k, key in enumerate(("e_G", "e_F", "e_eps", "e_u"))),
            Entry(text=active, paper=known[4]),
            Entry(text=counted(lines), paper=known[5]),
            _error(fresh, "e_G", known[6], factor),
            Entry(text=counted(fresh), paper=known[7]),
            Entry(times[len(times) // 2] if times else None),
        )
        rows.append(Row(method, entries, why))
    columns = ("e_G", "e_F", "|e_eps|", "e_u", "active", "violations", "fresh e_G", "fresh violations", "seconds")
    remark = "Means in percent; ours [paper; ratio]. Seconds are medians of one record on one core, moments included."
    return Table("principal", "Principal comparison at noise 0.03", columns, tuple(rows), (remark,))


def _error(lines: list[Line], score: str, paper: float | None, factor: float | None) -> Entry:
    values = abs(scores(lines, score))
    return Entry(float(values.mean()) if values.size else None, paper, factor)


_CONTRASTS = (
    ("positivity added to ridge, m=5", CASE, "ridge STAC m=5", "ridge LS m=5"),
    ("ridge added to positivity, m=5", CASE, "ridge STAC m=5", "STAC m=5"),
    ("ridge STAC m=5 minus STAC m=2", CASE, "ridge STAC m=5", "STAC m=2"),
    ("STAC m=2 minus smoothed FD4", CASE, "STAC m=2", "smoothed FD4 m=2"),
    ("positivity added to ridge, m=5, fresh seeds", "fresh", "ridge STAC m=5", "ridge LS m=5"),
    ("trajectory auto minus STAC m=2", CASE, "trajectory auto", "STAC m=2"),
    ("trajectory auto minus ridge STAC m=5", CASE, "trajectory auto", "ridge STAC m=5"),
)


def contrasts(results: Results) -> Table:
    """Return the paired contrasts of mean force errors with three intervals."""
    paper = paper_numbers()["principal_contrasts_pp"]
    rows = []
    for label, case, first, second in _CONTRASTS:
        contrast = results.contrast(case, first, second)
        known = paper.get(label, [None, None, None])
        if contrast is None:
            rows.append(Row(label, (Entry(paper=known[0]), Entry(), Entry(), Entry(), Entry())))
            continue
        entries = [Entry(contrast.mean, known[0], limit=max(1.0, 0.5 * abs(known[0] or 0.0)))]
        for k, (low, high) in enumerate((contrast.percentile, contrast.bca, contrast.student)):
            interval = f"{known[1]:+.2f}, {known[2]:+.2f}" if k == 0 and known[1] is not None else ""
            entries.append(Entry(text=f"{low:+.2f}, {high:+.2f}", paper_text=interval))
        entries.append(Entry(text="yes" if contrast.agrees else "no"))
        rows.append(Row(label, tuple(entries), _DEGREE_FIVE))
    columns = ("mean (pp)", "percentile 95 %", "BCa 95 %", "cluster-t 95 %", "the three agree on zero")
    remark = "Differences of mean e_G in percentage points over ten seed clusters; negative favours the first."
    return Table("contrasts", "Paired contrasts", columns, tuple(rows), (remark,))


def by_law(results: Results) -> Table:
    """Return the paper's Table 2: errors by law beside the approximation floor."""
    paper = paper_numbers()["by_law_noise_0.03"]
    methods = ("STAC m=2", "ridge STAC m=5", "trajectory m=2", "trajectory m=5", "trajectory auto")
    rows = []
    for law in LAWS:
        known = (*paper[law], None, None, None)
        entries = []
        for k, degree in enumerate((2, 5)):
            floor = 100 * approximation_floor(named_law(law), degree, constraint="bernstein").error
            entries.append(Entry(0.0 if floor < 0.005 else floor, known[k], limit=0.006))
        for method, theirs, factor in zip(methods, known[2:], (QUARTER, HALF, None, None, None), strict=True):
            lines = [line for line in results.of(CASE, method) if line.spec.law == law]
            why = _DEGREE_FIVE if method.endswith("m=5") else ""
            entries.append(Entry(mean(lines, "e_G"), theirs, factor, why=why))
        rows.append(Row(law, tuple(entries)))
    columns = ("floor m=2", "floor m=5", *methods)
    return Table("by_law", "Force error by law at noise 0.03", columns, tuple(rows))


def design(results: Results) -> Table:
    """Return the size and conditioning of the degree-five designs at noise 0.03."""
    paper = paper_numbers()["principal_design"]
    lines = results.of(CASE, "design m=5")
    conditions = [line.condition or 0.0 for line in lines]
    values: dict[str, tuple[list[float], Any]] = {
        "moment rows": ([float(line.rows or 0) for line in lines], paper["rows"]),
        "condition number, unit columns": (conditions, paper["column_scaled_condition_m5_noise_0.03"]),
        "noise-perturbation ratio": (
            [line.extra["noise_ratio"] for line in lines],
            paper["noise_perturbation_ratio"],
        ),
        "the same over s_min of the clean design": ([x.extra["clean_noise_ratio"] for x in lines], (None, None)),
    }
    rows = [
        Row(name, tuple(Entry(pick(ours) if ours else None, known[k]) for k, pick in enumerate((min, max))))
        for name, (ours, known) in values.items()
    ]
    remark = (
        "Rows and condition numbers are what the initial fields were chosen from, so they are not predictions. Neither "
        "is the noise-perturbation ratio: the paper does not print its formula. We tried five (over the smallest "
        "singular value of the clean or the noisy design, with raw or unit columns, and the relative change times the "
        "condition number) and kept the one that lies in the paper's range; the clean one, which the paper's bound "
        "would suggest, stands below it."
    )
    return Table("design", "The degree-five designs at noise 0.03", ("smallest", "largest"), tuple(rows), (remark,))


def phase_weighted(results: Results) -> Table:
    """Return degree-five errors over all phase values and over those that were observed."""
    paper = paper_numbers()["phase_weighted_e_G_m5"]
    rows = []
    for method, name in (("weak LS m=5", "LS"), ("STAC m=5", "STAC"), ("trajectory m=5", ""), ("trajectory auto", "")):
        known = paper.get(name, [None, None])
        lines = results.of(CASE, method)
        entries = [Entry(mean(lines, key), known[k], HALF) for k, key in enumerate(("e_G", "e_G_seen"))]
        rows.append(Row(method, tuple(entries), _DEGREE_FIVE))
    title = "Force error over all phase values, and weighted by the observed histogram"
    return Table("phase_weighted", title, ("uniform", "weighted"), tuple(rows))


_CONDITIONS = ("full 0.01", "full 0.03", "short 0.01", "short 0.03")


def replication(results: Results) -> Table:
    """Return the paper's Table 3: mean e_G with the number of violations."""
    paper = paper_numbers()["replication"]
    rows = []
    for condition in _CONDITIONS:
        known, case, full = paper[condition], f"replication {condition}", condition.startswith("full")
        entries = [
            Entry(results.mean(case, method), known["e_G"][k], QUARTER if full and k == 0 else HALF)
            for k, method in enumerate(FIVE_BRANCHES)
        ]
        entries += [
            Entry(text=counted(results.of(case, method)), paper=known["violations"][k])
            for k, method in enumerate(FIVE_BRANCHES[1:], start=1)
        ]
        entries += [Entry(results.mean(case, method)) for method in ("trajectory m=5", "trajectory auto")]
        rows.append(Row(condition, tuple(entries), _DEGREE_FIVE if full else control_tables.SHORT))
    violations = (f"violations, {name}" for name in FIVE_BRANCHES[1:])
    columns = (*FIVE_BRANCHES, *violations, "trajectory m=5", "trajectory auto")
    remark = "Mean e_G in percent; four laws on the circle, ten seeds."
    return Table("replication", "Replication on fresh seeds", columns, tuple(rows), (remark,))


def replication_selected(results: Results) -> Table:
    """Return the selected configurations of the replication with and without the constraint."""
    least, most = paper_numbers()["replication"][
        "selected configurations: unconstrained violations of 40, least to most difficult condition"
    ]
    known = {"full 0.01": least, "short 0.03": most}
    rows = []
    for condition in _CONDITIONS:
        case = f"replication {condition}"
        free, bound = (results.of(case, name) for name in ("selected weak LS", "selected STAC"))
        contrast = results.contrast(case, "selected STAC", "selected weak LS")
        intervals = [("", "")] if contrast is None else [contrast.percentile, contrast.student]
        texts = ("", "") if contrast is None else tuple(f"{low:+.2f}, {high:+.2f}" for low, high in intervals)
        entries = (
            Entry(mean(free, "e_G")),
            Entry(mean(bound, "e_G")),
            Entry(text=counted(free), paper=known.get(condition)),
            Entry(text=counted(bound)),
            Entry(None if contrast is None else contrast.mean),
            *(Entry(text=text) for text in texts),
        )
        rows.append(Row(condition, entries))
    columns = (
        *("selected weak LS", "selected STAC", "violations, LS", "violations, STAC"),
        *("STAC - LS (pp)", "percentile 95 %", "cluster-t 95 %"),
    )
    return Table("replication_selected", "Replication with selected degree and support", columns, tuple(rows))


_CONE, _STRONG = "outside cone", "outside cone strong"
_CONE_ROWS = [(degree, noise) for degree in (2, 5) for noise in (0.0, 0.01, 0.03)]
_CONE_COLUMNS = ("unconstrained e_G", "constrained e_G", "admissible, uncon.", "admissible, con.", "uncon. in cone")
_CONE_MORE = ("admissible e_G", "trajectory unconstrained", "trajectory constrained", "trajectory admissible")
_CONE_WHY = (
    "the paper sets this law's amplitude by an interface width that its main text does not define; ours is the width "
    "between u = -0.9 and 0.9. With twice our amplitude these five come within 1.3 of the paper, but unconstrained "
    "m = 5 moves away from it clean and at 0.03: the amplitude explains most, not all. See the next table."
)


def outside_cone(results: Results) -> Table:
    """Return the paper's Table 4, with the trajectory fit beside it."""
    rows = []
    for degree, noise in _CONE_ROWS:
        floor = 100 * approximation_floor(named_law("outside_cone"), degree, constraint="bernstein").error
        label, known, entries = _cone(results, _CONE, degree, noise, QUARTER if degree == 2 else HALF)
        more = (f"STAC admissible m={degree}", "trajectory free", "trajectory auto", "trajectory admissible")
        spreads = (_spread(_at(results, _CONE, name, noise), None, None, None) for name in more)
        rows.append(Row(label, (*entries, Entry(floor, known[4], limit=0.006), *spreads), _CONE_WHY))
    columns = (*_CONE_COLUMNS, "floor", *_CONE_MORE)
    remark = (
        "Mean and standard deviation in percent over two geometries and ten seeds. Constrained means positive "
        "coefficients, admissible every double well with a single barrier, whose floor is zero here. The "
        "trajectory columns average over degrees."
    )
    return Table("outside_cone", "A law outside the positive cone", columns, tuple(rows), (remark,))


def outside_cone_strong(results: Results) -> Table:
    """Return the same weak columns for twice the amplitude, which was chosen by the paper's errors."""
    rows = []
    for degree, noise in _CONE_ROWS:
        label, _, entries = _cone(results, _STRONG, degree, noise, None)
        rows.append(Row(label, entries))
    remark = (
        "The factor two was chosen by these errors, so none of them is a prediction. It shows how far the amplitude "
        "alone moves them."
    )
    title = "The same law with twice the amplitude"
    return Table("outside_cone_strong", title, _CONE_COLUMNS, tuple(rows), (remark,))


def _cone(
    results: Results, case: str, degree: int, noise: float, factor: float | None
) -> tuple[str, list[Any], tuple[Entry, ...]]:
    """Return the label of a row, the paper's numbers and the entries of the weak fits."""
    known = paper_numbers()["outside_cone"][f"m={degree} noise {noise:g}"]
    free, bound = (_at(results, case, f"{name} m={degree}", noise) for name in ("weak LS", "STAC"))
    entries = (
        _spread(free, known[0], known[1], factor),
        _spread(bound, known[2], known[3], factor),
        _admissible(free, known[6]),
        _admissible(bound, known[7]),
        Entry(text=counted(free, "in_cone"), paper=known[9]),
    )
    return f"m = {degree}, noise {noise:g}", known, entries


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
    return Entry(text=f"{int(len(values) - values.sum())}/{len(lines)}" if lines else "", paper=paper)


_REPLICATED = tuple(f"replication {condition}" for condition in _CONDITIONS)
_KINDS = (
    TableKind("principal", (CASE, "fresh"), principal),
    TableKind("contrasts", (CASE, "fresh"), contrasts),
    TableKind("by_law", (CASE,), by_law),
    TableKind("design", (CASE,), design),
    TableKind("phase_weighted", (CASE,), phase_weighted),
    TableKind("orderings", (CASE, "fresh", *_REPLICATED, "published clean"), control_tables.orderings),
    TableKind("replication", _REPLICATED, replication),
    TableKind("replication_selected", _REPLICATED, replication_selected),
    TableKind("outside_cone", (_CONE,), outside_cone),
    TableKind("outside_cone_strong", (_STRONG,), outside_cone_strong),
    *control_tables.KINDS,
    *calibration.KINDS,
)
TABLES: dict[str, TableKind] = {kind.name: kind for kind in _KINDS}

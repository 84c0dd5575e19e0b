"""Calibration: bias of the scale, supplied tensions, tension noise, and the finite bounds."""

from __future__ import annotations

import numpy as np

from doublewell_paper.calibration import bound_check, lognormal_errors, supplied_tension
from doublewell_paper.equilibrium import FINE, UNDER_RESOLVED
from doublewell_paper.paper_numbers import paper_numbers
from doublewell_paper.results import Results, scores
from doublewell_paper.table import Entry, Row, Table
from doublewell_paper.tables.kinds import HALF, QUARTER, TableKind, count_text

__all__ = ["KINDS"]

_VARIATIONS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
_CASES = ("principal 0.01", "principal 0.03")


def scale_bias(results: Results) -> Table:
    """Return signed, absolute and root mean square errors of epsilon."""
    told = paper_numbers()["calibration"]["signed e_eps STAC m=2"]
    rows = []
    for noise in ("0.01", "0.03"):
        for method in ("STAC m=2", "STAC m=5", "trajectory m=2", "trajectory auto"):
            values = scores(results.of(f"principal {noise}", method), "e_eps")
            known = told[noise] if method == "STAC m=2" else None
            found = (values.mean(), np.abs(values).mean(), np.sqrt(np.mean(values**2))) if values.size else (None,) * 3
            entries = [
                Entry(None if v is None else float(v), known if k == 0 else None, QUARTER) for k, v in enumerate(found)
            ]
            rows.append(Row(f"{method}, noise {noise}", tuple(entries), "the bias grows with the square of the noise."))
    columns = ("signed bias", "mean absolute", "root mean square")
    return Table("scale_bias", "Error of epsilon in percent, exact tension", columns, tuple(rows))


def tension(results: Results) -> Table:
    """Return the errors with a tension from a one-dimensional equilibrium."""
    paper = paper_numbers()["calibration"]
    fine = paper["tension from a 1-D equilibrium, finest mesh, relative error"]
    coarse = paper["under-resolved tension"]
    rows = []
    for method in ("STAC m=2", "trajectory auto"):
        lines = results.of("principal 0.03", method)
        for label, spacing, told, e_eps, e_f in (
            ("fine", FINE, fine, None, None),
            ("under-resolved", UNDER_RESOLVED, coarse["tension error"], coarse["mean e_eps"], coarse["mean e_F"]),
        ):
            found = supplied_tension(lines, spacing)
            mine = method == "STAC m=2"
            values = (
                (None,) * 4
                if found is None
                else (min(found.tension_errors), max(found.tension_errors), found.e_eps, found.e_F)
            )
            known = (*told, e_eps if mine else None, e_f if mine else None)
            entries = tuple(
                Entry(v, k, None if i < 2 else QUARTER) for i, (v, k) in enumerate(zip(values, known, strict=True))
            )
            rows.append(Row(f"{method}, {label} mesh", entries))
    columns = ("tension error, least", "tension error, most", "mean |e_eps|", "mean e_F")
    remark = f"Percent, noise 0.03. Meshes of {FINE:g} and {UNDER_RESOLVED:g} epsilon, from the paper's tension errors."
    return Table("tension", "Tension from an independent equilibrium", columns, tuple(rows), (remark,))


def tension_noise(results: Results) -> Table:
    """Return root mean square errors under lognormal tension factors."""
    told = paper_numbers()["calibration"]["tension factors lognormal cv 10%"]
    rows = []
    for variation in _VARIATIONS:
        entries = []
        for method in ("selected STAC", "trajectory auto"):
            found = lognormal_errors(results.of("principal 0.01", method), variation)
            place = {0.0: 0, 0.1: 1}.get(variation) if method == "selected STAC" else None
            for k, key in enumerate(("rms e_eps", "rms e_F")):
                known = None if place is None else told[key][place]
                entries.append(Entry(None if found is None else found[k], known, QUARTER if variation else HALF))
        why = "without tension noise this is the selected estimator's own error; its selection is ours (see below)."
        rows.append(Row(f"cv {100 * variation:g} %", tuple(entries), why))
    columns = ("selected STAC, rms e_eps", "rms e_F", "trajectory auto, rms e_eps", "rms e_F")
    remark = "Percent, noise 0.01, 200 draws a record of lognormal factors with mean one."
    return Table("tension_noise", "Uncertain tension", columns, tuple(rows), (remark,))


def bounds(results: Results) -> Table:
    """Return how the finite bounds compare with realised errors."""
    rows = []
    for case in _CASES:
        for method in ("STAC m=2", "STAC m=5", "trajectory auto"):
            found = bound_check(results.of(case, method))
            if found is None:
                rows.append(Row(f"{method}, {case}", (Entry(),) * 5))
                continue
            entries = (
                Entry(text=count_text(found.holds, found.total)),
                Entry(text=count_text(found.certified, found.total)),
                Entry(text=count_text(found.informative, found.total)),
                Entry(found.scale_slack),
                Entry(found.potential_slack),
            )
            rows.append(Row(f"{method}, {case}", entries))
    columns = ("bounds hold", "scale certified", "eta below 1", "scale bound / error", "potential bound / error")
    remark = "From the realised change of H; medians. A worst-case bound never fails and lies far above the error."
    return Table("bounds", "Finite calibration bounds against realised errors", columns, tuple(rows), (remark,))


KINDS = (
    TableKind("scale_bias", _CASES, scale_bias),
    TableKind("tension", ("principal 0.03",), tension),
    TableKind("tension_noise", ("principal 0.01",), tension_noise),
    TableKind("bounds", _CASES, bounds),
)

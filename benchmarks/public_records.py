"""Every public record with a known law, read with defaults, beside PySINDy: error, coverage, seconds, verdict.

Run: python benchmarks/public_records.py [FOLDER ...]
writes results/public_records.json, the table of docs/public_records.md and docs/figures/public_records.png; --page
makes these two again without a fit, --only NAME ... the rows of some records. Files are looked for in the folders and
below, else where DOUBLEWELL_PUBLIC_RECORD and DOUBLEWELL_FIELD_DATA point; the page names where each comes from. A file
that is missing ends the run.

Nothing is given but what the row states: neither q, nor the border, nor the contrast. A refusal is a row with its text.
PySINDy gets the weak form of polynomials to degree 3, which hold every law of the table, with second derivatives, least
squares on 1000 domains of the half-width that our weak form has, and the interval of 50 bags; q is one more unknown, or
given, and then the Laplacian is on the other side. Seconds are those of the processor, with all that is compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, ROOT, TINY, machine, markdown, renewed, sized, target, words, write_json
from moose import own_law, slope, solve

import doublewell as dw
from doublewell.baselines.method import chosen_supports
from doublewell.errors import InputError

PAGE = ROOT / "docs/public_records.md"
FIGURE = PAGE.parent / "figures/public_records.png"
LISTED = 2  # findings in a cell
STORED = RESULTS / "public_records.json"
POINTS, THIN = 401, 5  # of a curve, and of these the stored ones
MARKER = "benchmarks/results/public_records.json"
NOISE, SEED = 0.03, 2001
DRAWS = sized(5, tiny=1)  # of the random domains of PySINDy: that of the middle error is in the table
Force = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A record with its force between two phase values, and what is given beside it."""

    name: str
    file: str
    given: str = "nothing"
    force: Force | None = None  # None: not this equation
    q: float | None = None
    ends: tuple[float, float] = (-1.0, 1.0)
    open: dict[str, Any] = field(default_factory=dict)
    ask: dict[str, Any] = field(default_factory=dict)
    noise: float = 0.0
    own: bool = False  # whether the law that the movie itself obeys is known too
    pysindy: bool = True


def cubic(strength: float) -> Force:
    return lambda u: -strength * u * (1.0 - u**2)


def moose(scale: float) -> Force:
    return lambda u: slope(u) / scale


WELLS = {"law": "wells=unequal", "observation": "phases=estimated"}
AC, DEEPXDE = "AC.mat", "deepxde_Allen_Cahn.mat"
DROP, FRONT, SPLIT = "Nonconserved_1var_out.e", "AC_mobility_derivative_test_out.e", "SplitCH_out.e"
INSIDE = (0.06, 1.04)  # phase values between which the movies of MOOSE lie
CASES = (
    Case("AC.mat", AC, force=cubic(5e4), q=1e-4),
    Case("AC.mat, noise 0.03", AC, force=cubic(5e4), q=1e-4, noise=NOISE),
    Case("AC.mat, noise 0.03", AC, "q, the border", cubic(5e4), 1e-4, open={"q": 1e-4, "boundary": "periodic"},
         noise=NOISE, pysindy=False),
    Case("DeepXDE", DEEPXDE, force=cubic(5e3), q=1e-3),
    Case("DeepXDE, noise 0.03", DEEPXDE, force=cubic(5e3), q=1e-3, noise=NOISE),
    Case("DeepXDE, noise 0.03", DEEPXDE, "q", cubic(5e3), 1e-3, open={"q": 1e-3}, noise=NOISE, pysindy=False),
    Case("MOOSE, a drop", DROP, force=moose(2.0), q=2.0, ends=INSIDE, own=True),
    Case("MOOSE, a drop", DROP, "wells=unequal, phases=estimated", moose(2.0), 2.0, INSIDE, ask=WELLS, own=True,
         pysindy=False),
    Case("MOOSE, a drop", DROP, "q, wells=unequal, phases=estimated", moose(2.0), 2.0, INSIDE, open={"q": 2.0},
         ask=WELLS, own=True, pysindy=False),
    Case("MOOSE, a mobility", FRONT, force=moose(1.0), ends=INSIDE),
    Case("MOOSE, Cahn-Hilliard", SPLIT, "the variable c", open={"var": "c"}, pysindy=False),
    Case("MOOSE, Cahn-Hilliard", SPLIT, "c, the equation", cubic(0.5), 2.0, open={"var": "c"},
         ask={"dynamics": "cahn-hilliard"}, pysindy=False),
    Case("PySINDy's Burgers", "pysindy_burgers.mat", pysindy=False),
)  # fmt: skip


def files(folders: list[Path]) -> dict[str, Path]:
    """Return where each file is; end where one is missing."""
    if not folders:
        known = os.environ.get("DOUBLEWELL_PUBLIC_RECORD"), os.environ.get("DOUBLEWELL_FIELD_DATA")
        folders = [Path(place) for place in known if place]
    names = dict.fromkeys(case.file for case in CASES)
    found = {}
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if path.name in names:
                found.setdefault(path.name, path)
    if absent := [name for name in names if name not in found]:
        print(f"needs {', '.join(absent)}: pass the folders that hold them; docs/public_records.md names the sources")
        raise SystemExit(0 if TINY else 1)
    return found


# --- fits -------------------------------------------------------------------------------------------------------------


def opened(case: Case, path: Path) -> dw.Record:
    record = dw.open_record(path, **case.open)
    if TINY:
        record = dw.Record(record.slab()[::5], dx=record.dx, times=record.times[::5], origin="simulation")
    return dw.add_noise(record, case.noise, seed=SEED) if case.noise else record


def ours(case: Case, record: dw.Record) -> tuple[dict[str, Any], Force, Force | None]:
    """Fit with defaults; return the numbers, the force and its band."""
    result = dw.identify(record, **({"law": 0, "check": False} if TINY else case.ask))
    worst = [item for item in dw.findings(result) if str(item.severity) == "fail"]
    checks = [item for item in dw.findings(result) if str(item.severity) == "check"]
    verdict = "not tested" if result.adequacy is None else str(result.adequacy.verdict)
    excess = float(np.sqrt(result.diagnostics.likelihood.excess))
    row = {"q": result.q, "verdict": verdict, "fail": [item.code for item in worst], "excess": excess}
    row |= {"check": [item.code for item in checks], "phases": list(result.resolved.phases)}
    return row, result.force, lambda u: result.band("force", u)


def pysindy(record: dw.Record, q: float | None, seed: int) -> tuple[dict[str, Any], Force, Force]:
    """Return what PySINDy finds of u_t = q Laplacian u - q G(u), G of degree 3; without q that is unknown too."""
    import pysindy as ps

    support, axes = chosen_supports(record, None)[0], len(record.mesh)
    grids = [h * np.arange(n) for n, h in zip(record.mesh, record.dx, strict=True)]
    np.random.seed(seed)  # noqa: NPY002  the only random numbers that it knows
    library = ps.WeakPDELibrary(
        function_library=ps.PolynomialLibrary(degree=3, include_bias=True),
        derivative_order=2,
        spatiotemporal_grid=np.stack(np.meshgrid(*grids, record.times, indexing="ij"), axis=-1),
        include_interaction=False,
        K=sized(1000, tiny=50),
        H_xt=[*(support.length for _ in range(axes)), support.frames * record.dt],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        u = np.moveaxis(record.slab(), 0, -1)[..., None]
        columns, rate = np.asarray(library.fit_transform(u)), np.asarray(library.convert_u_dot_integral(u))[:, 0]
        names = library.get_feature_names()
        bend = columns[:, [names.index(f"x0_{2 * str(axis)}") for axis in range(1, axes + 1)]].sum(axis=1)
        powers = columns[:, [names.index(name) for name in ("1", "x0", "x0^2", "x0^3")]]
        unknown, wanted = (np.column_stack([powers, bend]), rate) if q is None else (powers, rate - q * bend)
        size = np.linalg.norm(unknown, axis=0)
        ensemble = ps.EnsembleOptimizer(ps.STLSQ(threshold=0.0, alpha=0.0), bagging=True, n_models=sized(50, tiny=5))
        ensemble.fit(unknown / size, wanted)
        bags = np.array([np.ravel(one) for one in ensemble.coef_list]) / size
    whole = np.linalg.lstsq(unknown / size, wanted, rcond=None)[0] / size

    def force(c: Any, u: Any) -> Any:
        return -c[..., :4] @ np.stack([u**k for k in range(4)]) / (q or c[..., 4:])

    def band(u: Any) -> Any:
        return np.percentile(force(bags, u), (2.5, 97.5), axis=0)

    return {"q": q or float(whole[4])}, lambda u: force(whole, u), band


def measured(case: Case, fit: Callable[[], Any], own: Force | None) -> dict[str, Any]:
    """Return the row of a fit with its curves; a refusal is its text."""
    began = time.process_time()
    try:
        row, force, band = fit()
    except InputError as error:
        return {"seconds": round(time.process_time() - began, 1), "refused": " ".join(str(error).split())}
    row["seconds"] = round(time.process_time() - began, 1)
    u = np.linspace(*case.ends, POINTS)
    found, (low, high) = np.asarray(force(u)), band(u)
    if case.ask.get("dynamics") == "cahn-hilliard":  # which leaves the constant of the force open
        found, low, high = (curve + np.mean(case.force(u) - found) for curve in (found, low, high))
    curves = {"u": u, "force": found, "low": low, "high": high}
    for name, law in (("", case.force), ("own ", own)):
        if law is not None:
            truth = np.asarray(law(u))
            inside = ((low <= truth) & (truth <= high))[np.abs(truth) > 1e-9 * np.max(np.abs(truth))]
            row[f"{name}error"] = 100 * float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
            row[f"{name}coverage"] = 100 * float(np.mean(inside))
            curves[f"{name}truth"] = truth
    return row | {"curves": {name: " ".join(f"{x:.5g}" for x in curve[::THIN]) for name, curve in curves.items()}}


def rows(found: dict[str, Path], cases: tuple[Case, ...]) -> Iterator[dict[str, Any]]:
    """Yield each row."""
    for case in cases:
        head = {"record": case.name, "given": case.given, "true q": case.q}
        try:
            record = opened(case, found[case.file])
        except InputError as error:
            text = " ".join(str(error).replace(str(found[case.file].parent), "").replace("/", "").split())
            yield head | {"method": "doublewell", "seconds": 0.0, "refused": text}
            continue
        own = None
        if case.own and not TINY:
            movie = record.slab()
            own = own_law(movie)
            head["scheme differs"] = float(np.max(np.abs(solve(movie[0], len(movie)) - movie)))
        yield head | {"method": "doublewell"} | measured(case, partial(ours, case, record), own)
        for q in [None, case.q][: (1 + (case.q is not None)) * case.pysindy]:
            draws = [measured(case, partial(pysindy, record, q, seed), own) for seed in range(DRAWS)]
            middle = sorted(draws, key=lambda row: row["error"])[DRAWS // 2]
            yield head | {"method": "PySINDy" if q is None else "PySINDy, q"} | middle


# --- the page ---------------------------------------------------------------------------------------------------------


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the page."""
    heads = ["record", "method, and what it is given", "force error (%)", "band holds (%)", "q found / true", "seconds"]
    lines, before = [[*heads, "verdict"]], ""
    for row in rows:
        given = row["given"] if row["method"] == "doublewell" else row["method"].partition(", ")[2] or "nothing"
        cells = ["" if row["record"] == before else row["record"], f"{row['method'].partition(',')[0]}: {given}"]
        before = row["record"]
        if "refused" in row:
            text = row["refused"].replace("|", "/")
            lines.append([*cells, "-", "-", "-", f"{row['seconds']:.0f}", f"refused: {text}"])
            continue
        numbers = [short(row["error"]), f"{row['coverage']:.0f}"] if "error" in row else ["-", "-"]
        if "own error" in row:
            numbers = [f"{numbers[0]}; {short(row['own error'])}", f"{numbers[1]}; {row['own coverage']:.0f}"]
        ratio = "-" if row["true q"] is None else f"{row['q'] / row['true q']:.4f}"
        lines.append([*cells, *numbers, ratio, f"{row['seconds']:.0f}", verdict(row)])
    return markdown(lines)


def verdict(row: dict[str, Any]) -> str:
    if "verdict" not in row:
        return "none"
    codes = row["fail"] or row["check"]
    listed = [f"`{code}`" for code in codes[:LISTED]] + [f"{len(codes) - LISTED} more"] * (len(codes) > LISTED)
    return row["verdict"] + (f"; {'fail' if row['fail'] else 'check'}: {', '.join(listed)}" if codes else "")


def short(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def kept() -> list[dict[str, Any]]:
    return json.loads(STORED.read_text())["rows"] if STORED.exists() else []


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the forces of our fits over the true ones, in units of the largest true one."""
    from doublewell.report.style import COLOURS, new_figure, style

    known = [
        (row, {name: np.array(curve.split(), float) for name, curve in row["curves"].items()})
        for row in rows
        if "error" in row
    ]
    fits = [(row, curves) for row, curves in known if row["method"] == "doublewell"]
    others = {(row["record"], row["given"]): curves for row, curves in known if row["method"] == "PySINDy"}
    with style():
        figure = new_figure(13.0, 3.1 * -(-len(fits) // 4))
        for k, (row, curves) in enumerate(fits):
            axis = figure.add_subplot(-(-len(fits) // 4), 4, k + 1)
            unit = float(np.max(np.abs(curves["truth"])))
            u = curves["u"]
            axis.plot(u, curves["truth"] / unit, color=COLOURS["truth"], lw=4.0, label="true")
            if "own truth" in curves:
                axis.plot(
                    u, curves["own truth"] / unit, color=COLOURS["noise"], ls=":", lw=2.0, label="the movie's own"
                )
            axis.fill_between(u, curves["low"] / unit, curves["high"] / unit, color=COLOURS["band"], label="95 % band")
            axis.plot(u, curves["force"] / unit, color=COLOURS["recovered"], lw=1.6, label="doublewell")
            if (other := others.get((row["record"], row["given"]))) is not None:
                axis.plot(u, other["force"] / unit, "--", color=COLOURS["mark"], lw=1.2, label="PySINDy")
            axis.set(ylim=(-1.6, 1.6), xlabel="phase value u", ylabel="" if k % 4 else "G / largest true G")
            axis.set_title(row["record"] + ("" if row["given"] == "nothing" else f"\n{row['given']}"), fontsize=9)
            if k == 0 or "own truth" in curves:
                axis.legend(frameon=False, fontsize=7)
        figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--page", action="store_true", help="make the table of the page from the stored rows")
    parser.add_argument(
        "--only", nargs="+", default=[], help="records of these names again; the others keep their rows"
    )
    asked = parser.parse_args(words())
    if not asked.page:
        cases = tuple(case for case in CASES if not asked.only or case.name in asked.only)
        stored = {key(row): row for row in kept() if asked.only and row["record"] not in asked.only}
        for row in rows(files(asked.folders), sized(cases, tiny=CASES[3:4])):
            print({name: value for name, value in row.items() if name != "curves"}, flush=True)
            stored[key(row)] = row
            if not TINY:  # a run that is stopped keeps what it has
                write_json(STORED, {"machine": machine(), "rows": sorted(stored.values(), key=place)})
        draw(list(stored.values()), target(FIGURE))
    if not TINY:
        draw(kept(), FIGURE)
        PAGE.write_text(renewed(PAGE.read_text(), MARKER, table(kept())))


def key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["record"], row["given"], row["method"]


def place(row: dict[str, Any]) -> tuple[int, str]:
    """Return where a row stands: in the order of the cases, ours first."""
    return [(case.name, case.given) for case in CASES].index(key(row)[:2]), row["method"].upper()


if __name__ == "__main__":
    main()

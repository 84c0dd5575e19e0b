"""Zoo of wrong models and settings: is each noticed, and is the right cause named first?

Run: python benchmarks/zoo.py [--seeds N] [--true N] [--first SEED] [--cases NAME,NAME] [--no-weak] [--out FILE.json]
The stored figures: --true 0 --first 71000, and --cases none --first 71000 for the records without a fault; --draw.
Those of the weak-form fit: --weak-only --first 111000, which takes a minute and replaces the "weak" fields alone.
Movies of 21 frames of 48 x 48 made by Runge-Kutta steps with sixth-order differences (Cahn-Hilliard: by convex
splitting in Fourier modes), none of it code of the package, from a nonconvex drop; law "sixth", epsilon 0.06, q = 1,
noise 0.003, 0.01 and 0.03. ``effect`` is how far the wrong movie is from that of the model, over how far the pattern
moves. A case is flagged where the verdict is not "adequate", where a finding on the model, the convergence, the
structure or the precision is of severity "fail", or where the fit is refused; it is named where the first cause is one
of ``right``, or one that the same sentence calls indistinguishable from it. A weak-form fit flags a case where a
finding on its moments, the model or the structure is not "ok", the bias of noise aside, or where it is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from common import RESULTS, print_table, sized, target, words, write_json

from doublewell.adequacy import check_adequacies
from doublewell.errors import InputError
from doublewell.findings import findings
from doublewell.identify import identify
from doublewell.law import Bernstein, named_law
from doublewell.likelihood import Batch
from doublewell.options import Observation
from doublewell.record import Record
from doublewell.report import inspect_record
from doublewell.simulate import initial_field

CELLS, FRAMES, EPSILON, DT = sized((48, 21, 0.06, 5e-4), tiny=(32, 15, 0.08, 8e-4))
LEVELS = sized((0.003, 0.01, 0.03), tiny=(0.01,))
THIN = sized(0.025, tiny=0.04)  # interface of backward Euler
DX, LAW = 1.0 / CELLS, named_law("sixth").effective(EPSILON)
SIXTH = (-49 / 18, 3 / 2, -3 / 20, 1 / 90)
FIRST = (3 / 4, -3 / 20, 1 / 60)
Y, X = np.meshgrid(np.arange(CELLS) * DX, np.arange(CELLS) * DX, indexing="ij")
OBSERVED = {"contrast": "exact"} if "contrast" in {item.name for item in fields(Observation)} else None
TOGETHER = 4  # records without a fault that are fitted together
FIGURE = RESULTS.parents[1] / "docs/figures/zoo.png"
SERIOUS = ("model", "convergence", "structure", "precision")
Rate = Callable[[np.ndarray, float], np.ndarray]


# --- a solver of its own --------------------------------------------------------------------------------------------


def second(u: np.ndarray, axis: int) -> np.ndarray:
    """Second difference of sixth order."""
    pairs = [w * (np.roll(u, k, axis) + np.roll(u, -k, axis)) for k, w in enumerate(SIXTH) if k]
    return (SIXTH[0] * u + sum(pairs)) / DX**2


def first(u: np.ndarray, axis: int) -> np.ndarray:
    """First difference of sixth order."""
    return sum(w * (np.roll(u, -k, axis) - np.roll(u, k, axis)) for k, w in enumerate(FIRST, 1)) / DX


def laplacian(u: np.ndarray) -> np.ndarray:
    return second(u, -1) + second(u, -2)


def motion(u: np.ndarray, _: float = 0.0) -> np.ndarray:
    """The model."""
    return laplacian(u) - LAW.force(u)


def start() -> np.ndarray:
    return initial_field("nonconvex", (CELLS, CELLS), DX, epsilon=EPSILON)


def movie(rate: Rate, u: np.ndarray, *, kick: float = 0.0, seed: int = 0) -> np.ndarray:
    """Fourth-order Runge-Kutta; `kick` is the strength of a white force in space and time."""
    steps = int(np.ceil(DT * 12.1 / DX**2 / 2.0))
    h, rng, frames = DT / steps, np.random.default_rng(seed), [u]
    for n in range((FRAMES - 1) * steps):
        t = n * h
        a = rate(u, t)
        b = rate(u + 0.5 * h * a, t + 0.5 * h)
        c = rate(u + 0.5 * h * b, t + 0.5 * h)
        u = u + h / 6 * (a + 2 * b + 2 * c + rate(u + h * c, t + h))
        if kick:
            u = u + kick * np.sqrt(h) / DX * rng.standard_normal(u.shape)
        if (n + 1) % steps == 0:
            frames.append(u)
    return np.stack(frames)


def conserved(u: np.ndarray, mobility: float) -> np.ndarray:
    """Cahn-Hilliard, u_t = -M Laplacian (Laplacian u - G): modes, linear part implicit, stabilised."""
    k2 = (2 * np.pi * np.fft.fftfreq(CELLS, DX)) ** 2
    k2 = k2[:, None] + k2[None, : CELLS // 2 + 1]
    steps, frames, stable = 400, [u], 2.0 * float(np.max(np.abs(np.diff(LAW.force(np.linspace(-1, 1, 99))) / (2 / 98))))
    h, modes = DT / steps, np.fft.rfft2(u)
    for _ in range(FRAMES - 1):
        for _ in range(steps):
            u = np.fft.irfft2(modes, s=u.shape)
            force = np.fft.rfft2(LAW.force(u)) - stable * modes
            modes = (modes - h * mobility * k2 * force) / (1.0 + h * mobility * k2 * (k2 + stable))
        frames.append(np.fft.irfft2(modes, s=u.shape))
    return np.stack(frames)


def implicit(_: int) -> np.ndarray:
    """Backward Euler, one step of 2 epsilon^2 per frame, a thin interface: Newton's method with conjugate gradients."""
    from scipy.sparse.linalg import LinearOperator, cg

    law, h = named_law("sixth").effective(THIN), 2.0 * THIN**2
    u = initial_field("nonconvex", (CELLS, CELLS), DX, epsilon=THIN)
    frames = [u]
    for _ in range(FRAMES - 1):
        old = u
        for _ in range(20):
            slope = (law.force(u + 1e-6) - law.force(u - 1e-6)) / 2e-6
            rest = old + h * (laplacian(u) - law.force(u)) - u

            def apply(v: np.ndarray, slope: np.ndarray = slope) -> np.ndarray:
                v = v.reshape(CELLS, CELLS)
                return (v - h * (laplacian(v) - slope * v)).ravel()

            du, _ = cg(LinearOperator((u.size, u.size), apply), rest.ravel(), rtol=1e-9)
            u = u + du.reshape(u.shape)
            if np.max(np.abs(du)) < 1e-10:
                break
        frames.append(u)
    return np.stack(frames)


def two_fields(u: np.ndarray) -> np.ndarray:
    """A second, unseen order parameter v with the coupling energy c u^2 v^2 / 2."""
    strength, other = 0.5 / EPSILON**2, initial_field("circle", (CELLS, CELLS), DX, epsilon=EPSILON)

    def rate(both: np.ndarray, _: float) -> np.ndarray:
        u, v = both
        return np.stack([motion(u) - strength * u * v**2, motion(v) - strength * v * u**2])

    return movie(rate, np.stack([u, 0.5 * (1.0 + np.roll(other, CELLS // 4, 0))]))[:, 0]


# --- the cases ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A wrong model or setting: what to add to the rate, what else makes the movie, and which causes are right."""

    name: str
    right: tuple[str, ...]
    make: Callable[[int], np.ndarray]
    size: str
    q: float = 1.0
    dt: float = DT


def rated(extra: Rate) -> Callable[[int], np.ndarray]:
    return lambda _: movie(lambda u, t: motion(u) + extra(u, t), start())


def shown(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[int], np.ndarray]:
    return lambda _: change(movie(motion, start()))


def mean_of_force(u: np.ndarray, _: float) -> np.ndarray:
    return np.mean(LAW.force(u), axis=(-2, -1), keepdims=True) + 0.0 * u


def reversed_movie(_: int) -> np.ndarray:
    return movie(motion, start())[::-1]


LARGEST = float(np.max(np.abs(LAW.force(np.linspace(-1, 1, 401)))))
WELL = 0.5 * LARGEST  # of the logistic force
CASES = (
    Case("true", (), lambda _: movie(motion, start()), "none"),
    Case("conserved", ("conserved",), lambda _: conserved(start(), EPSILON**2), "Cahn-Hilliard, M = epsilon^2 q"),
    Case("mass-conserving", ("mass",), rated(mean_of_force), "the mean force is taken off"),
    Case("M(u)", ("mobility(u)",), rated(lambda u, t: -0.3 * u**2 * motion(u, t)), "M = 1 - 0.3 u^2"),
    Case("M(x)", ("mobility(x)",), rated(lambda u, t: 0.2 * np.cos(2 * np.pi * X) * motion(u, t)), "M = 1 + 0.2 cos x"),
    Case("drift", ("advection",), rated(lambda u, _: -2.0 * first(u, -1)), "1 pixel over the record"),
    Case("thermal", ("thermal",), lambda s: movie(motion, start(), kick=0.03, seed=s), "white force, 0.03"),
    Case("anisotropic", ("anisotropy",), rated(lambda u, _: 0.1 * second(u, -1)), "kappa_x = 1.1 kappa_y"),
    Case("two order parameters", ("unknown",), lambda _: two_fields(start()), "coupling 0.5 u^2 v^2 / epsilon^2"),
    Case("logistic", ("tilt", "no-double-well"), lambda _: movie(
        lambda u, _: laplacian(u) + WELL * (1 - u**2), start()), "Fisher: G = c (u^2 - 1)"),
    Case("heat", ("no-force",), lambda _: movie(lambda u, _: laplacian(u), start()), "no force at all"),
    Case("force in time", ("force(t)",), rated(lambda u, t: -0.3 * t / (DT * (FRAMES - 1)) * LAW.force(u)),
         "the force grows by 30 %"),
    Case("reversed", ("reversed",), reversed_movie, "frames in reverse order"),
    Case("backward Euler", ("time step",), implicit, "steps of 2 epsilon^2, epsilon = 0.025", dt=2.0 * THIN**2),
    Case("gamma", ("response",), shown(lambda u: 2 * np.clip(0.5 + 0.5 * u, 0, None) ** 1.2 - 1), "exponent 1.2"),
    Case("q declared wrong", ("q",), lambda _: movie(motion, start()), "q 5 % too small (or dt, or dx^2)", q=1 / 1.05),
    Case("blur", ("blur",), shown(lambda u: blurred(u, 1.5)), "Gaussian of 1.5 pixels"),
    Case("contrast fades", ("gain drift",), shown(
        lambda u: u * np.linspace(1.0, 0.97, FRAMES)[:, None, None]), "3 % over the record"),
    Case("contrast 3 % large", ("gain",), shown(lambda u: 1.03 * u), "gain 1.03"),
    Case("contrast 3 % small", ("gain",), shown(lambda u: 0.97 * u), "gain 0.97"),
)  # fmt: skip


def blurred(u: np.ndarray, cells: float) -> np.ndarray:
    from scipy.ndimage import gaussian_filter

    return np.stack([gaussian_filter(frame, cells, mode="wrap") for frame in u])


# --- what is said of them -------------------------------------------------------------------------------------------


def record_of(case: Case, noise: float, seed: int) -> tuple[Record, float]:
    """Return the noisy record, and the deviation of the movie from the model's over how far the pattern moves."""
    values = case.make(seed)
    rng = np.random.default_rng([seed, int(1e4 * noise)])
    truth = movie(motion, start())
    effect = np.sqrt(np.mean((values - truth) ** 2) / np.mean((truth - truth[0]) ** 2))
    noisy = values + noise * rng.standard_normal(values.shape)
    return Record(noisy, dx=DX, dt=case.dt, q=case.q, boundary="periodic"), float(effect)


def trajectory(record: Record) -> dict:
    """Fit a record and return whether its fault is flagged, and which causes its first sentence names."""
    began, u = time.perf_counter(), np.linspace(-1.0, 1.0, 201)
    try:
        result = identify(record, observation=OBSERVED)
    except InputError as error:
        return {"flagged": True, "verdict": "refused", "first": ["refused"], "words": str(error)}
    items, answer = findings(result), result.adequacy
    serious = [item for item in items if item.severity == "fail" and item.topic in SERIOUS]
    named = [test.name for test in (*answer.significant[:1], *answer.rivals)]
    codes = [item.code for item in items if item.topic == "model" and item.severity != "ok"]
    if "time-reversed" in codes:
        named = ["reversed"]
    if not named or answer.verdict == "adequate":
        named = [item.code for item in serious] or named
    off = np.linalg.norm(result.force(u) - LAW.force(u)) / np.linalg.norm(LAW.force(u))
    return {
        "flagged": answer.verdict != "adequate" or bool(serious),
        "verdict": str(answer.verdict), "first": named or [""],
        "words": str(next((item for item in items if item.topic == "model"), "")), "force error": float(f"{off:.3g}"),
        "s": round(time.perf_counter() - began, 1),
    }  # fmt: skip


def weak(record: Record) -> dict:
    """Whether the weak-form fit flags a record: a finding on model, moments or structure, or a refusal.

    ``first`` are the causes that its first sentence names. A bias by noise is no fault of the record.
    """
    try:
        result = identify(record, method="weak")
    except InputError as error:
        return {"flagged": True, "codes": ["refused"], "first": ["refused"], "words": str(error)}
    items, answer = findings(result), result.adequacy
    codes = [item.code for item in items if item.severity != "ok" and item.topic in ("moments", "structure", "model")]
    codes = [code for code in codes if code not in ("noise-bias", "model-untested")]
    named = [] if answer is None else [test.name for test in (*answer.significant[:1], *answer.rivals)]
    named = ["reversed"] if "time-reversed" in codes else named or codes[:1]
    return {"flagged": bool(codes), "codes": codes, "first": named}


def seen_before_a_fit() -> list[dict]:
    """What `inspect` says of faults that need no fit: plateaus off +-1, swapped axes, borders that are not periodic."""
    truth, rng = movie(motion, start()), np.random.default_rng(1)
    noisy = truth + 0.01 * rng.standard_normal(truth.shape)
    cut = slice(CELLS // 3, None)
    cases = {
        "true": noisy,
        "contrast 1.4 times": 1.4 * noisy,
        "contrast 0.7 times": 0.7 * noisy,
        "swapped axes": np.swapaxes(noisy, 0, 1),
        "border not periodic": noisy[:, cut, cut],
        "ends of the period stored twice": np.pad(noisy, ((0, 0), (0, 1), (0, 1)), mode="wrap"),
    }
    rows = []
    for name, values in cases.items():
        record = Record(values, dx=DX, dt=DT, q=1.0, boundary="periodic")
        codes = [item.code for item in inspect_record(record).findings]
        rows.append({"case": name, "flagged": bool(codes), "codes": ", ".join(codes)})
    return rows


def one(case: Case, noise: float, seed: int, *, with_weak: bool) -> dict:
    record, effect = record_of(case, noise, seed)
    row = {"case": case.name, "effect size": case.size, "deviation": round(effect, 3), "noise": noise, "seed": seed}
    got = trajectory(record)
    row |= got | {
        "right": bool(set(got["first"]) & set(case.right)),
        "first alone": got["first"][:1] == [*case.right][:1],
    }
    return row | ({"weak": weak(record)} if with_weak else {})


def true_records(count: int, first_seed: int) -> Iterator[dict]:
    """Fit and check records without a fault, a few at a time, from the quartic law of the right width."""
    truth, begin = movie(motion, start()), np.full(3, 1.0 / EPSILON**2)
    for k in range(0, count, TOGETHER):
        noise, seeds = LEVELS[k // TOGETHER % len(LEVELS)], range(first_seed + k, first_seed + min(k + TOGETHER, count))
        noisy = [truth + noise * np.random.default_rng(seed).standard_normal(truth.shape) for seed in seeds]
        batch = Batch([Record(values, dx=DX, dt=DT, q=1.0, boundary="periodic") for values in noisy])
        fits = batch.fit(np.tile(begin, (len(noisy), 1)), family=Bernstein(8))
        for answer in check_adequacies(fits):
            named = [test.name for test in answer.significant[:1]]
            yield {
                "noise": noise,
                "verdict": str(answer.verdict),
                "flagged": answer.verdict != "adequate",
                "first": named,
            }


def weak_true_records(count: int, first_seed: int) -> Iterator[dict]:
    """Fit the weak moments of records without a fault."""
    truth = movie(motion, start())
    for k in range(count):
        noise, rng = LEVELS[k % len(LEVELS)], np.random.default_rng(first_seed + k)
        noisy = truth + noise * rng.standard_normal(truth.shape)
        yield {"noise": noise} | weak(Record(noisy, dx=DX, dt=DT, q=1.0, boundary="periodic"))


def totals(rows: list[dict], true: list[dict], weak_true: list[dict]) -> list[dict]:
    def share(values: list[bool]) -> str:
        return f"{sum(values)}/{len(values)} = {100 * np.mean(values):.1f} %" if values else "not run"

    looked = [row["weak"] for row in rows if "weak" in row]
    right = {case.name: set(case.right) for case in CASES}
    named = [bool(set(row["weak"].get("first", ())) & right[row["case"]]) for row in rows if "weak" in row]
    return [
        {"what": "wrong models and settings flagged, trajectory fit", "asked": "all",
         "got": share([row["flagged"] for row in rows])},
        {"what": "first cause right, with what cannot be told apart", "asked": "80 %",
         "got": share([row["right"] for row in rows])},
        {"what": "first cause right alone", "asked": "", "got": share([row["first alone"] for row in rows])},
        {"what": "flagged, weak-form fit", "asked": "all", "got": share([each["flagged"] for each in looked])},
        {"what": "first cause right, weak-form fit", "asked": "", "got": share(named)},
        {"what": "false alarms on true records", "asked": "at most 5 %", "got": share([r["flagged"] for r in true])},
        {"what": "false alarms on true records, weak-form fit", "asked": "at most 5 %",
         "got": share([r["flagged"] for r in weak_true])},
    ]  # fmt: skip


def draw() -> None:
    """Draw the stored results: which cause was named first, for each case and noise."""
    from doublewell.report.style import COLOURS, new_figure, render, style

    rows = json.loads((RESULTS / "zoo.json").read_text())["rows"]
    names, levels = list(dict.fromkeys(row["case"] for row in rows)), sorted({row["noise"] for row in rows})
    with style():
        figure = new_figure(9.6, 0.32 * len(names) + 1.0)
        axis = figure.subplots()
        for row in rows:
            x, y = levels.index(row["noise"]), -names.index(row["case"])
            colour = COLOURS["recovered"] if row["right"] else COLOURS["noise"]
            axis.barh(
                y, 0.94, 0.86, x - 0.47, color=colour, alpha=0.9 if row["first alone"] or not row["right"] else 0.5
            )
            axis.text(x, y, row["first"][0] or "not flagged", ha="center", va="center", fontsize=8, color="w")
        axis.set(
            yticks=[-k for k in range(len(names))], xticks=range(len(levels)), title="the cause that is named first"
        )
        axis.set_yticklabels([f"{name}: {next(r['effect size'] for r in rows if r['case'] == name)}" for name in names])
        axis.set_xticklabels([f"noise {level:g}" for level in levels])
        axis.tick_params(length=0)
        target(FIGURE).write_bytes(render(figure, "png"))


def weak_only(wanted: list[Case], first_seed: int, count: int, out: Path, before: list[dict]) -> None:
    """Fit the weak moments alone, and replace what is stored of them by case and noise."""
    stored = json.loads(out.read_text()) if out.exists() else {"rows": [], "true": []}
    rows = {(row["case"], row["noise"]): row for row in stored["rows"]}
    seed = first_seed
    for case in wanted:
        for noise in LEVELS:
            seed += 1
            record, effect = record_of(case, noise, seed)
            new = {"case": case.name, "effect size": case.size, "deviation": round(effect, 3), "noise": noise}
            row = rows.setdefault((case.name, noise), new | {"flagged": False, "right": False, "first alone": False})
            row["weak"] = {"seed": seed} | weak(record)
            print(f"{case.name}  {noise}  {row['weak']['first']}  {row['weak']['codes']}", flush=True)
    true = list(weak_true_records(count, first_seed + 20_000))
    print("\n".join(f"false alarm {row}" for row in true if row["flagged"]))
    stored |= {"rows": list(rows.values()), "weak true": true, "inspect": before}
    write_json(
        out,
        {"totals": totals(stored["rows"], stored["true"], true)} | {k: v for k, v in stored.items() if k != "totals"},
    )
    print_table("The zoo", totals(stored["rows"], stored["true"], true))
    print_table("Before a fit", before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="of each case and noise")
    parser.add_argument("--true", type=int, default=200, help="records without a fault")
    parser.add_argument("--first", type=int, default=70_000, help="first seed")
    parser.add_argument("--cases", default="", help="names, by commas; all by default")
    parser.add_argument("--no-weak", action="store_true")
    parser.add_argument("--weak-only", action="store_true", help="only the weak-form fit, into the stored results")
    parser.add_argument("--draw", action="store_true", help="only draw docs/figures/zoo.png from the stored results")
    parser.add_argument("--out", type=Path, default=RESULTS / "zoo.json")
    asked = parser.parse_args(words("--true 1 --cases true,M(u),thermal"))
    if asked.draw:
        draw()
        return
    wanted = [case for case in CASES[1:] if not asked.cases or case.name in asked.cases.split(",")]
    before = seen_before_a_fit()
    if asked.weak_only:
        weak_only(wanted, asked.first, asked.true, asked.out, before)
        return
    rows: list[dict] = []
    true: list[dict] = []
    weak_true = [] if asked.no_weak else list(weak_true_records(asked.true, asked.first + 20_000))

    def keep() -> None:
        lists = {"rows": rows, "true": true, "weak true": weak_true, "inspect": before}
        write_json(asked.out, {"totals": totals(rows, true, weak_true)} | lists)

    seed = asked.first
    for case in wanted:
        for noise in LEVELS:
            for _ in range(asked.seeds):
                seed += 1
                rows.append(one(case, noise, seed, with_weak=not asked.no_weak))
                print("  ".join(str(rows[-1].get(k)) for k in ("case", "noise", "verdict", "first", "s")), flush=True)
        keep()
    for row in true_records(asked.true, asked.first + 10_000):
        true.append(row)
        if row["flagged"]:
            print("false alarm", row, flush=True)
        if len(true) % 20 == 0:
            keep()
    keep()
    print_table("The zoo", totals(rows, true, weak_true))
    print_table("Before a fit", before)


if __name__ == "__main__":
    main()

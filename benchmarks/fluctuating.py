"""Fluctuating movies: theta = kT / kappa, the tension in kT, and the force from `identify(temperature=1.0)`.

    python benchmarks/fluctuating.py [KIND ...] [--first 1] [--records 2] [--out FILE]     # results/fluctuating.json
    python benchmarks/fluctuating.py --merge FILE ...                                      # joins runs in parts

u_t = q (L u - D G(u)) + sqrt(2 q theta D) times white noise by ETDRK2 with 40 steps a frame (the fits use ETDRK4), 41
frames of 48 x 48 after 8 that are left out, a star-shaped drop, four laws with an interface of about 12 cells, q known;
theta 1e-4 to 0.1, camera noise 0 (declared, but of blocks), 0.01 and 0.03. Kinds: allen-cahn; cahn-hilliard, its phases
found; blocks, 2 x 2 averages of a mesh twice as fine, declared as pixels; contrast, values 0.9 u + 0.05 with gain and
offset unknown.

The bound of theta is that of a state-space likelihood whose fields are linear, at the mean rate of the record, camera
noise unknown unless it is none; that of the tension adds the bound of C_H at the lowest degree that has the law. An
error is that of the logarithm; z is the error over the standard error that the fit states.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
from common import join_results, parser_in_parts, print_table, save_results, sized, words

import doublewell as dw
from doublewell.dynamics import Grid, dynamics_of, symbols

CELLS, FRAMES, BEFORE, WIDTH, STEPS = *sized((48, 41, 8), tiny=(24, 9, 2)), 3.0, sized(40, tiny=10)
DEGREES = sized({"quartic": 0, "sixth": 1, "outside_cone": 2, "bernstein3": 3}, tiny={"quartic": 0})
INTERVALS = {"allen-cahn": 1.0, "cahn-hilliard": 12.0}  # q = 1
CAMERAS = sized((0.0, 0.01, 0.03), tiny=(0.01,))
KINDS = {
    "allen-cahn": sized((1e-4, 1e-3, 1e-2, 0.1), tiny=(1e-3,)), "cahn-hilliard": (1e-4, 1e-3, 1e-2, 0.1),
    "blocks": (1e-3, 1e-2), "contrast": (1e-3, 1e-2),
}  # fmt: skip
U = np.linspace(-1.0, 1.0, 201)
_BOUNDS: dict[tuple[str, str, float, float], float] = {}
CASE = ("kind", "law", "theta", "camera", "seed")


def equation_of(kind: str) -> str:
    return kind if kind in INTERVALS else "allen-cahn"


def made(case: tuple[str, str, float, float, int]) -> dw.Record:
    """Return a movie; one seed gives one noise."""
    kind, law, theta, camera, seed = case
    rng, fine = np.random.default_rng([seed, *map(hash_of, case[:4])]), 2 if kind == "blocks" else 1
    cells, dx, equation = CELLS * fine, 1.0 / fine, equation_of(kind)
    first = dw.initial_field("nonconvex", (cells, cells), dx, epsilon=WIDTH)
    mesh = {"dx": dx, "dt": INTERVALS[equation], "frames": BEFORE + FRAMES, "epsilon": WIDTH, "substeps": STEPS}
    movie = dw.simulate(dw.named_law(law), first, **mesh, dynamics=equation, theta=theta, seed=rng).slab()[BEFORE:]
    values = movie.reshape(FRAMES, CELLS, fine, CELLS, fine).mean(axis=(2, 4))
    values = 0.9 * values + 0.05 if kind == "contrast" else values
    record = dw.Record(values, dx=1.0, dt=INTERVALS[equation], q=1.0, boundary="periodic")
    return dw.add_noise(record, camera, seed=rng) if camera else record


def hash_of(value: str | float) -> int:
    return sum(ord(letter) * 31**k for k, letter in enumerate(str(value))) % 2**31


def options_of(kind: str, camera: float) -> dict[str, Any]:
    seen: dict[str, Any] = {} if camera or kind == "blocks" else {"noise": "none"}
    if kind != "cahn-hilliard":
        seen["contrast"] = "estimated" if kind == "contrast" else "exact"
    return {"dynamics": equation_of(kind), "observation": seen | ({"pixel": True} if kind == "blocks" else {})}


def theta_bound(kind: str, law: str, theta: float, camera: float, record: dw.Record) -> float:
    """Return the smallest standard error of log theta where each mode is linear, with the mean rate of the record."""
    force, values = dw.named_law(law).effective(WIDTH), np.clip(record.slab(), -1.2, 1.2)
    values = (values - 0.05) / 0.9 if kind == "contrast" else values
    slope = float(np.mean((force.continued().force(values + 1e-4) - force.continued().force(values - 1e-4)) / 2e-4))
    grid = Grid(record.mesh, record.dx)
    linear, coupling = symbols(dynamics_of(equation_of(kind)), grid.waves)
    rate, tau = np.ravel(coupling * slope - linear), record.dt
    rate = np.where(rate == 0.0, 1e-9, rate)  # the mean of a conserved field, which has no noise
    counts, size = grid.multiplicity.ravel(), (np.ravel(coupling) + 0.0 * rate) * -np.expm1(-2.0 * rate * tau) / rate
    if not camera:
        return float(np.sqrt(2.0 / (np.sum(counts[size > 0.0]) * (FRAMES - 1))))
    passed = np.ones(grid.laplacian.shape)
    if kind == "blocks":
        for k in grid.waves:
            passed = passed * np.sinc(k / (2.0 * np.pi)) ** 2
    information, one, modes = np.zeros((2, 2)), np.eye(FRAMES), {}
    for key, weight in zip(zip(np.exp(-rate * tau), passed.ravel().round(9), size, strict=True), counts, strict=True):
        modes[key] = modes.get(key, 0.0) + weight
    for (d, c, v), weight in modes.items():
        if v <= 0.0:
            continue
        step = one - d * np.eye(FRAMES, k=-1)  # of u_0 nothing is known
        spread = np.linalg.solve(step, np.linalg.solve(step, np.diag([0.0] + [theta * v] * (FRAMES - 1))).T) * c
        start = np.linalg.solve(step, one[0])[:, None]
        keep = np.linalg.qr(start, mode="complete")[0][:, 1:]
        own, whole = keep.T @ spread @ keep, keep.T @ (spread + camera**2 * one) @ keep
        parts = [np.linalg.solve(whole, part) for part in (own, camera**2 * np.eye(FRAMES - 1))]
        information += 0.5 * weight * np.array([[np.sum(a * b.T) for a in parts] for b in parts])
    return float(np.sqrt(np.linalg.inv(information)[0, 0]))


def row_of(case: tuple[str, str, float, float, int], record: dw.Record, result: dw.Result) -> dict[str, Any]:
    kind, law, theta, camera, _ = case
    truth, posterior = dw.named_law(law).effective(WIDTH), result.posterior
    assert posterior is not None
    row: dict[str, Any] = dict(zip(CASE, case, strict=True))
    if case[:4] not in _BOUNDS:
        _BOUNDS[case[:4]] = theta_bound(kind, law, theta, camera, record)
    drawn, bound = posterior.joint_draws("theta"), _BOUNDS[case[:4]]
    low, high = result.interval("theta")
    row |= {
        "theta error": float(np.log(max(result.theta, 1e-12) / theta)), "theta sd": float(np.std(drawn) / theta),
        "theta bound": bound, "theta covered": low <= theta <= high,
    }  # fmt: skip
    integral = truth.tension_integral
    tensions = tension_draws(result)
    row |= {
        "tension error": float(np.log(result.law.tension_integral / max(result.theta, 1e-12) / (integral / theta))),
        "tension sd": float(np.std(tensions) / np.mean(tensions)),
        "tension covered": bool(np.quantile(tensions, 0.025) <= integral / theta <= np.quantile(tensions, 0.975)),
        "tension bound": float(np.hypot(bound, integral_bound(result, DEGREES[law]))),
    }  # fmt: skip
    lower, upper = result.band("force", U)
    exact = truth.force(U)
    size = 100.0 / np.linalg.norm(exact)
    row |= {
        "force error": float(size) * float(np.linalg.norm(result.force(U) - exact)),
        "force sd": float(size) * float(np.linalg.norm(upper - lower)) / 3.92,
        "force covered": float(np.mean((lower <= exact) & (exact <= upper))),
    }  # fmt: skip
    if kind == "contrast":
        ends = result.interval("gain")
        row["gain covered"] = ends[0] <= 0.9 <= ends[1]
    fit = result.diagnostics.likelihood
    assert fit is not None
    verdict = None if fit.adequacy is None else str(fit.adequacy.verdict)
    return row | {
        "camera found": fit.noise, "converged": fit.status.converged, "rounds": len(fit.steps), "verdict": verdict,
        "scale": result.scale is not None,
    }  # fmt: skip


def tension_draws(result: dw.Result) -> np.ndarray:
    """Return C_H / theta of the draws that have an interface."""
    from doublewell.inference.posterior import _tension_integrals, _thetas

    assert result.posterior is not None
    integrals, kept = _tension_integrals(result.posterior)
    return np.asarray(integrals / _thetas(result.posterior)[kept])


def integral_bound(result: dw.Result, degree: int) -> float:
    """Return the relative standard error of C_H where the law is known to have a degree, what is estimated with it too.

    Of a conserved field, whose phases are found, it is that of the fit.
    """
    from doublewell.inference.posterior import _tension_integrals

    posterior = result.posterior
    assert posterior is not None
    if posterior.family.found:
        return float(np.std(np.log(_tension_integrals(posterior)[0])))
    item = next(item for item in posterior.components if item.degree == degree)
    family, own = posterior.family.at(degree), np.asarray(item.free)
    base = dw.Law(family, own).tension_integral
    steps = 1e-4 * np.abs(own).max() * np.eye(own.size)
    slope = np.array([(dw.Law(family, own + step).tension_integral - base) / step.max() for step in steps]) / base
    return float(np.sqrt(slope @ item.covariance @ slope))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for kind, theta, camera in [*dict.fromkeys((r["kind"], r["theta"], r["camera"]) for r in rows), (None,) * 3]:
        own = [r for r in rows if kind is None or (r["kind"], r["theta"], r["camera"]) == (kind, theta, camera)]
        line: dict[str, Any] = {"kind": kind or "all", "theta": theta, "camera": camera, "records": len(own)}
        for name in ("theta", "tension"):
            ratio = np.array([r[f"{name} error"] / r[f"{name} bound"] for r in own])
            line |= {
                f"{name} / bound": round(float(np.sqrt(np.mean(ratio**2))), 2), "bias": round(float(np.mean(ratio)), 2),
                f"{name} covered %": round(100 * float(np.mean([r[f"{name} covered"] for r in own])), 1),
            }  # fmt: skip
            line[f"{name} bias"] = line.pop("bias")
        line["force covered %"] = round(100 * float(np.mean([r["force covered"] for r in own])), 1)
        line["force error %"] = round(float(np.median([r["force error"] for r in own])), 2)
        line["force sd %"] = round(float(np.median([r["force sd"] for r in own])), 2)
        line["converged %"] = round(100 * float(np.mean([r["converged"] for r in own])), 1)
        lines.append(line)
    return lines


def main() -> None:
    parser = parser_in_parts()
    parser.add_argument("kinds", nargs="*", default=[*KINDS])
    parser.add_argument("--records", type=int, default=sized(2, tiny=1), help="of each law, theta and camera")
    parser.add_argument("--batch", type=int, default=24, help="records that are fitted together on a GPU")
    parser.add_argument("--workers", type=int, default=1, help="processes that make movies")
    parser.add_argument("--thetas", nargs="+", type=float, help="only these")
    parser.add_argument("--cameras", nargs="+", type=float, default=CAMERAS, help="only these")
    parser.add_argument("--laws", nargs="+", default=[*DEGREES], help="only these")
    parser.add_argument("--check", action="store_true")
    asked, rows = parser.parse_args(words("allen-cahn")), list[dict[str, Any]]()
    if asked.merge:
        rows = join_results("fluctuating", asked.merge, lambda row: tuple(row[name] for name in CASE))
        print_table("fluctuating movies", summary(rows))
        return
    seeds = range(asked.first, asked.first + asked.records)
    for kind in asked.kinds:
        thetas = [theta for theta in KINDS[kind] if asked.thetas is None or theta in asked.thetas]
        cases = [(kind, *rest) for rest in product(asked.laws, thetas, asked.cameras, seeds)]
        with ProcessPoolExecutor(asked.workers, get_context("spawn")) as pool:
            movies = [*pool.map(made, cases)] if asked.workers > 1 else [made(case) for case in cases]
        for camera in asked.cameras:
            places = [k for k, case in enumerate(cases) if case[3] == camera]
            for start in range(0, len(places), asked.batch):
                some, began = places[start : start + asked.batch], time.perf_counter()
                options = {"check": asked.check, "batch": asked.batch, "compute": {"workers": 1}}
                options |= options_of(kind, camera)
                results = dw.identify_many([movies[k] for k in some], temperature=1.0, **options)
                seconds = (time.perf_counter() - began) / len(some)
                for k, result in zip(some, results, strict=True):
                    rows.append(row_of(cases[k], movies[k], result) | {"seconds": round(seconds, 1)})
                    print(rows[-1], flush=True)
                save_results("fluctuating", rows, asked.out)
    print_table("fluctuating movies", summary(rows))


if __name__ == "__main__":
    main()

"""Fluctuating movies: theta = kT / kappa, the tension in kT, and the force from `identify(temperature=1.0)`.

    python benchmarks/fluctuating.py [KIND ...] [--first 1] [--records 2] [--workers 2]     # results/fluctuating.json
    python benchmarks/fluctuating.py --merge FILE ...                                       # joins runs in parts

u_t = q (L u - D G(u)) + sqrt(2 q theta D) times white noise by the implicit midpoint rule, 40 or 400 steps a frame (the
fits use ETDRK4), 41 frames of 48 x 48 after 8 that are left out, a star-shaped drop, four laws for each equation with
an interface of about 12 cells, q known; theta 1e-4 to 0.1, camera noise 0 (declared), 0.01 and 0.03. Kinds: allen-cahn;
cahn-hilliard, its phases found; blocks, 3 x 3 averages of a mesh three times as fine, declared as such; contrast,
values 0.9 u + 0.05 with gain and offset unknown; exposure, each frame a mean over half the interval after it.

The bound of theta is that of a state-space likelihood whose fields are linear, at the mean rate of the record, camera
noise unknown unless it is none; that of the tension adds the bound of C_H at the lowest degree that has the law. An
error is that of the logarithm; z is the error over the standard error that the fit states.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
from common import join_results, markdown, parser_in_parts, print_table, save_results, sized, words

import doublewell as dw
from scipy import fft

from doublewell.dynamics import Grid, dynamics_of, symbols
from doublewell.dynamics.thermal import exposure_weights
from doublewell.errors import InputError
from doublewell.law import EqualWells

CELLS, FRAMES, BEFORE, WIDTH = *sized((48, 41, 8), tiny=(24, 9, 2)), 3.0
STEPS = sized({"allen-cahn": 40, "cahn-hilliard": 400}, tiny={"allen-cahn": 10, "cahn-hilliard": 100})
FINER = {"blocks": 3}
EXPOSED = {"exposure": 0.5}  # of the frame interval
_DEGREES = {"quartic": 0, "sixth": 1, "outside_cone": 2, "bernstein3": 3, "asymmetric": 1, "steep": 1}
_MADE = {  # conserved fields have laws with one spinodal interval
    "asymmetric": dw.Law(EqualWells(1), 4.0 * np.array([0.25, 0.2, 0.35])),
    "steep": dw.Law(dw.Bernstein(1), [0.6, 1.8]),
}
LAWS = {
    equation: sized(laws, tiny=("quartic",))
    for equation, laws in {
        "allen-cahn": ("quartic", "sixth", "outside_cone", "bernstein3"),
        "cahn-hilliard": ("quartic", "sixth", "asymmetric", "steep"),
    }.items()
}
INTERVALS = {"allen-cahn": 1.0, "cahn-hilliard": 12.0}  # q = 1
CAMERAS = sized((0.0, 0.01, 0.03), tiny=(0.01,))
KINDS = {
    "allen-cahn": sized((1e-4, 1e-3, 1e-2, 0.1), tiny=(1e-3,)), "cahn-hilliard": (1e-4, 1e-3, 1e-2, 0.1),
    "blocks": (1e-3, 1e-2), "contrast": (1e-3, 1e-2), "exposure": sized((1e-3, 1e-2), tiny=(1e-3,)),
}  # fmt: skip
U = np.linspace(-1.0, 1.0, 201)
_BOUNDS: dict[tuple[str, str, float, float], float] = {}
CASE = ("kind", "law", "theta", "camera", "seed")
Case = tuple[str, str, float, float, int]


def law_of(name: str) -> dw.Law:
    return _MADE[name] if name in _MADE else dw.named_law(name)


def equation_of(kind: str) -> str:
    return kind if kind in INTERVALS else "allen-cahn"


def made(case: Case) -> dw.Record:
    """Return a movie; one seed gives one noise."""
    kind, law, theta, camera, seed = case
    rng, fine = np.random.default_rng([seed, *map(hash_of, case[:4])]), FINER.get(kind, 1)
    cells, dx, equation = CELLS * fine, 1.0 / fine, equation_of(kind)
    first = dw.initial_field("nonconvex", (cells, cells), dx, epsilon=WIDTH)
    steps = STEPS[equation] * (1 if fine == 1 else 2)
    movie = fluctuating(law, first, dx, INTERVALS[equation], equation, theta, steps, rng, EXPOSED.get(kind, 0.0))
    values = movie.reshape(FRAMES, CELLS, fine, CELLS, fine).mean(axis=(2, 4))
    values = 0.9 * values + 0.05 if kind == "contrast" else values
    record = dw.Record(values, dx=1.0, dt=INTERVALS[equation], q=1.0, boundary="periodic")
    return dw.add_noise(record, camera, seed=rng) if camera else record


def fluctuating(
    law: str, u0: np.ndarray, dx: float, dt: float, equation: str, theta: float, steps: int, rng: np.random.Generator,
    exposure: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """Return FRAMES frames after BEFORE by the implicit midpoint rule, iterated twice; q = 1.

    With an exposure, a part of the interval, they are means over the steps of that time (trapezoidal rule).

    The linear part with the curvature m of the phases is implicit: a linear mode has the variance of its energy for
    steps of any length. It is another scheme than the one of the fits, ETDRK4, and than that of `simulate`, ETDRK2.
    """
    force = law_of(law).effective(WIDTH).continued()
    m = float(np.mean(law_of(law).effective(WIDTH).well_curvatures))
    linear, coupling = symbols(dynamics_of(equation), Grid(u0.shape, dx).waves)
    h, rate = dt / steps, coupling * m - linear
    explicit, implicit = 1.0 - 0.5 * h * rate, 1.0 / (1.0 + 0.5 * h * rate)
    spread, modes, frames = np.sqrt(2.0 * h * theta * coupling) / dx, fft.rfftn(u0), []
    open_for, count = round(exposure * steps), BEFORE + FRAMES + (1 if exposure else 0)
    for frame in range(1, count):
        total = 0.5 * modes
        for step in range(1, steps + 1):
            pushed = explicit * modes + spread * fft.rfftn(rng.standard_normal(u0.shape))
            middle = modes
            for _ in range(2):
                u = fft.irfftn(middle, s=u0.shape)
                after = implicit * (pushed - h * coupling * fft.rfftn(force.force(u) - m * u))
                middle = 0.5 * (modes + after)
            modes = after
            total = total + (1.0 if step < open_for else 0.5) * modes if step <= open_for else total
        if frame >= BEFORE + count - (BEFORE + FRAMES):
            frames.append(fft.irfftn(total / open_for if open_for else modes, s=u0.shape))
    return np.stack(frames)


def hash_of(value: str | float) -> int:
    return sum(ord(letter) * 31**k for k, letter in enumerate(str(value))) % 2**31


def options_of(kind: str, camera: float) -> dict[str, Any]:
    seen: dict[str, Any] = {} if camera else {"noise": "none"}
    if kind != "cahn-hilliard":
        seen["contrast"] = "estimated" if kind == "contrast" else "exact"
    seen |= {"pixel": FINER[kind]} if kind in FINER else {}
    seen |= {"exposure": EXPOSED[kind] * INTERVALS["allen-cahn"]} if kind in EXPOSED else {}
    return {"dynamics": equation_of(kind), "observation": seen}


def theta_bound(kind: str, law: str, theta: float, camera: float, record: dw.Record) -> float:
    """Return the smallest standard error of log theta where each mode is linear, with the mean rate of the record."""
    force, values = law_of(law).effective(WIDTH), np.clip(record.slab(), -1.2, 1.2)
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
            passed = passed * (np.sinc(k / (2.0 * np.pi)) / np.sinc(k / (2.0 * np.pi * FINER[kind]))) ** 2
    information, one, modes = np.zeros((2, 2)), np.eye(FRAMES), {}
    left, follows, alone = np.ones(rate.shape), 0.0 * rate, 0.0 * rate
    if kind in EXPOSED:
        left, follows, alone, _ = exposure_weights(rate, tau, EXPOSED[kind])
    each = np.exp(-rate * tau), passed.ravel().round(9), size, left, follows, alone
    for key, weight in zip(zip(*each, strict=True), counts, strict=True):
        modes[key] = modes.get(key, 0.0) + weight
    for (d, c, v, remains, shows, alone), weight in modes.items():
        if v <= 0.0:
            continue
        fields = remains * np.linalg.inv(one - d * np.eye(FRAMES, k=-1))  # of u_0 nothing is known
        own = np.full(FRAMES, alone)
        own[-1] += shows**2 * v
        start, fields = fields[:, :1], fields[:, 1:] + shows * one[:, :-1]
        spread = theta * c * (v * fields @ fields.T + np.diag(own))
        keep = np.linalg.qr(start, mode="complete")[0][:, 1:]
        own, whole = keep.T @ spread @ keep, keep.T @ (spread + camera**2 * one) @ keep
        parts = [np.linalg.solve(whole, part) for part in (own, camera**2 * np.eye(FRAMES - 1))]
        information += 0.5 * weight * np.array([[np.sum(a * b.T) for a in parts] for b in parts])
    return float(np.sqrt(np.linalg.inv(information)[0, 0]))


def row_of(case: Case, record: dw.Record, result: dw.Result) -> dict[str, Any]:
    kind, law, theta, camera, _ = case
    truth, posterior = law_of(law).effective(WIDTH), result.posterior
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
    integral = pixel_integral(law, theta, FINER[kind]) if kind in FINER else truth.tension_integral
    tensions = tension_draws(result)
    row |= {
        "tension error": float(np.log(result.law.tension_integral / max(result.theta, 1e-12) / (integral / theta))),
        "tension sd": float(np.std(tensions) / np.mean(tensions)),
        "tension covered": bool(np.quantile(tensions, 0.025) <= integral / theta <= np.quantile(tensions, 0.975)),
        "tension bound": float(np.hypot(bound, integral_bound(result, _DEGREES[law]))),
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


def pixel_integral(law: str, theta: float, fine: int) -> float:
    """Return C_H of the law of a pixel: the force is a mean over the waves that only the mesh of the cells has."""
    force, grid = law_of(law).effective(WIDTH), Grid((CELLS * fine,) * 2, 1.0 / fine)
    square = -grid.laplacian + float(np.mean(force.well_curvatures))
    beyond = np.maximum(*[np.abs(k) for k in np.broadcast_arrays(*grid.waves)]) > np.pi
    v = theta * float(np.sum((grid.multiplicity / square)[beyond])) / CELLS**2
    u, away = np.linspace(-1.1, 1.1, 4401), np.sqrt(3.0 * v)
    mean = sum(w * force.continued().force(u + shift) for shift, w in ((-away, 1 / 6), (0.0, 2 / 3), (away, 1 / 6)))
    energy = np.concatenate([[0.0], np.cumsum(0.5 * (mean[1:] + mean[:-1]) * np.diff(u))])
    low, high = (part[np.argmin(energy[part])] for part in (np.arange(2200), np.arange(2201, 4401)))
    between = slice(int(low), int(high) + 1)
    return float(np.trapezoid(np.sqrt(2.0 * np.maximum(energy - energy[low], 0.0))[between], u[between]))


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


GROUPS = {
    "Allen-Cahn, theta 1e-4 and 1e-3, exact frames": lambda r: r["theta"] < 0.01 and not r["camera"],
    "the same with camera noise 0.01 and 0.03": lambda r: r["theta"] < 0.01 and r["camera"],
    "theta 0.01": lambda r: r["theta"] == 0.01,
    "theta 0.1": lambda r: r["theta"] == 0.1,
}


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for each kind of movie, those of Allen-Cahn by theta and camera."""
    kinds = {"cahn-hilliard": "Cahn-Hilliard", "contrast": "gain and offset unknown", "blocks": "means of 3 x 3 cells"}
    kinds |= {"exposure": "means over half the interval"}
    groups = [(name, [r for r in rows if r["kind"] == "allen-cahn" and test(r)]) for name, test in GROUPS.items()]
    groups += [(name, [r for r in rows if r["kind"] == kind]) for kind, name in kinds.items()]
    lines = []
    for name, whole in [*groups, ("all", rows)]:
        own = [r for r in whole if "refused" not in r]
        if not own:
            continue
        line: dict[str, Any] = {"movies of": name, "number": len(own)}
        for what in ("theta", "tension"):
            ratio = np.array([r[f"{what} error"] / r[f"{what} bound"] for r in own])
            covered = 100 * float(np.mean([r[f"{what} covered"] for r in own]))
            line[f"{what}: error, bias, covered"] = (
                f"{np.sqrt(np.mean(ratio**2)):.2f}, {np.mean(ratio):+.2f}, {covered:.0f} %"
            )
        line["force covered"] = f"{100 * float(np.mean([r['force covered'] for r in own])):.0f} %"
        line["not converged"] = sum(not r["converged"] for r in own) + len(whole) - len(own)
        lines.append(line)
    return lines


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of docs/fluctuating.md."""
    lines = summary(rows)
    return markdown([[*lines[0]], *[[*map(str, line.values())] for line in lines]])


def rows_of(job: tuple[list[Case], int, bool]) -> list[dict[str, Any]]:
    """Return what is found of some movies of one kind and camera; a refusal is a row of its own."""
    cases, batch, check = job
    movies, rows = [made(case) for case in cases], []
    for start in range(0, len(cases), batch):
        some, began = range(start, min(start + batch, len(cases))), time.perf_counter()
        options = {"temperature": 1.0, "check": check} | options_of(cases[0][0], cases[0][3])
        try:
            if batch > 1:
                records = [movies[k] for k in some]
                results = dw.identify_many(records, batch=batch, compute={"workers": 1}, **options)
            else:
                results = [dw.identify(movies[start], **options)]
        except (InputError, np.linalg.LinAlgError) as error:
            rows += [dict(zip(CASE, cases[k], strict=True)) | {"refused": str(error)} for k in some]
            continue
        seconds = (time.perf_counter() - began) / len(some)
        for k, result in zip(some, results, strict=True):
            rows.append(row_of(cases[k], movies[k], result) | {"seconds": round(seconds, 1)})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = parser_in_parts()
    parser.add_argument("kinds", nargs="*", default=[*KINDS])
    parser.add_argument("--records", type=int, default=sized(2, tiny=1), help="of each law, theta and camera")
    parser.add_argument("--batch", type=int, default=1, help="records that are fitted together, on a GPU")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--thetas", nargs="+", type=float, help="only these")
    parser.add_argument("--cameras", nargs="+", type=float, default=CAMERAS, help="only these")
    parser.add_argument("--laws", nargs="+", help="only these")
    parser.add_argument("--check", action="store_true")
    asked, rows = parser.parse_args(words("allen-cahn")), list[dict[str, Any]]()
    if asked.merge:
        rows = join_results("fluctuating", asked.merge, lambda row: tuple(row[name] for name in CASE))
        print_table("fluctuating movies", summary(rows))
        return
    seeds, jobs = range(asked.first, asked.first + asked.records), []
    for kind, camera in product(asked.kinds, asked.cameras):
        if kind in EXPOSED and not camera:
            continue
        for law in [law for law in LAWS[equation_of(kind)] if asked.laws is None or law in asked.laws]:
            thetas = [theta for theta in KINDS[kind] if asked.thetas is None or theta in asked.thetas]
            jobs.append(
                ([(kind, law, theta, camera, seed) for theta, seed in product(thetas, seeds)], asked.batch, asked.check)
            )
    with ProcessPoolExecutor(asked.workers, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(rows_of, job) for job in jobs]):
            rows += done.result()
            save_results("fluctuating", rows, asked.out)
    print_table("fluctuating movies", summary(rows))


if __name__ == "__main__":
    main()

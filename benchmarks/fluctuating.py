"""Fluctuating movies: force, theta = kT / kappa and camera noise from a state-space likelihood, against the truth.

    python benchmarks/fluctuating.py [--first 1] [--records 4] [--out FILE]     # results/fluctuating.json
    python benchmarks/fluctuating.py --merge FILE ...                           # joins runs in parts

u_t = q (L u - D G(u)) + sqrt(2 q theta D) times white noise, by ETDRK2 with 20 steps a frame (the fits use ETDRK4), 41
frames of 48 x 48 after 10 that are left out, a star-shaped drop, quartic law with an interface of 12 cells, q known;
theta 1e-4 to 0.03, camera noise 0, 0.01 and 0.03. The method: unknown are the fields of all frames, which the camera
observes; from frame to frame they follow the equation up to thermal noise,

    v_t = u_t + s e_t,        u_(t+1) = Phi(u_t) + sqrt(theta) S^(1/2) w_t,        S = D (1 - exp(-2 r tau)) / (r V)

with r = D G'(u) - L the local rate (interpolated in G'), tau = q dt, V the volume of a cell. Fields and law are fitted
by Gauss-Newton at given theta and s; its preconditioner solves a tridiagonal system in time for each mode. theta and s
are where both residuals are as large as those of noise, which one solve of noise for each of them tells (Fisher
scoring, the same random numbers in all rounds). The force within a frame interval is that of a fluctuating field, G +
G'' v / 2, v the mean variance there. This is the design of a fit that the package does not have yet.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from common import join_results, parser_in_parts, print_table, save_results, sized, words

import doublewell as dw
from doublewell.dynamics import Grid, dynamics_of, symbols
from doublewell.dynamics.etdrk4 import roll, step_weights
from doublewell.dynamics.grid import jax_transforms
from doublewell.likelihood import gauss_newton
from doublewell.runtime import double_precision

CELLS, FRAMES, BEFORE, WIDTH = *sized((48, 41, 10), tiny=(16, 6, 2)), 3.0
EQUATIONS = {"allen-cahn": 1.0, "cahn-hilliard": 12.0}  # the frame interval of each, q = 1
THETAS, CAMERAS = sized((1e-4, 1e-3, 1e-2, 0.03), tiny=(1e-3,)), sized((0.0, 0.01, 0.03), tiny=(0.01,))
NODES, PINNED, SUBSTEPS = 4, 1e-2, 2  # of G'; exact frames have this much noise, in that of thermal noise; steps
U = np.linspace(-1.0, 1.0, 201)
POWERS = (1, 3, 5)


def force(c: Any, u: Any) -> Any:
    return sum(c[k] * u**n for k, n in enumerate(POWERS))


class Constants(NamedTuple):
    symbols: Any
    tau: Any
    volume: Any
    camera: Any
    theta: Any
    rates: Any  # nodes of G'
    shares: Any  # of each node at each cell of each interval
    usual: Any  # mean of G'
    variance: Any  # mean thermal variance within a frame interval
    prior: Any = ()
    reach: Any = ()


def link(c: Constants, slope: Any) -> Any:
    """Return S of each mode, and its decay over a frame interval."""
    rate = c.symbols.coupling * slope - c.symbols.linear
    x = 2.0 * rate * c.tau
    x = jnp.where(jnp.abs(x) < 1e-6, 1e-6, x)
    size = 2.0 * c.tau * c.symbols.coupling * -jnp.expm1(-x) / x / c.volume
    return jnp.where(size > 0.0, size, jnp.inf), jnp.exp(-0.5 * x)  # a mode that is conserved has no noise


@dataclass(frozen=True)
class Model:
    cells: tuple[int, ...]
    frames: int

    def predict(self, fields: Any, theta: Any, c: Constants) -> Any:
        """Return the fields, then how far each is from where the one before leads."""
        forward, backward = jax_transforms(self.cells, "periodic")

        def pull(modes: Any, _: Any) -> Any:
            u = backward(modes)
            bent = jax.jvp(lambda x: jax.jvp(partial(force, theta), (x,), (jnp.ones_like(x),))[1], (u,), (0 * u + 1,))
            return forward(force(theta, u) + 0.5 * c.variance * bent[1])

        def led(u: Any) -> Any:
            weights = step_weights(c.symbols, c.tau / SUBSTEPS)
            return roll(
                forward(u), lambda _: pull, lambda _: weights, lambda m, _: backward(m), None, frames=2,
                substeps=SUBSTEPS,
            )[0]  # fmt: skip

        return jnp.concatenate([fields, fields[1:] - jax.vmap(led)(fields[:-1])])

    def whiten(self, field: Any, c: Constants) -> Any:
        """Divide by the noise of the camera, and by the root of the thermal covariance."""
        forward, backward = jax_transforms(self.cells, "periodic")
        modes, total = jax.vmap(forward)(field[self.frames :]), 0.0
        for k in range(NODES):
            total = total + c.shares[k] * jax.vmap(backward)(modes / jnp.sqrt(link(c, c.rates[k])[0]))
        return jnp.concatenate([field[: self.frames] / c.camera, total / jnp.sqrt(c.theta)])

    def preconditioner(self, fields: Any, theta: Any, c: Constants) -> Any:
        """Solve the linear problem of a uniform rate: tridiagonal in time, mode by mode."""
        del fields, theta
        forward, backward = jax_transforms(self.cells, "periodic")
        size, decay = link(c, c.usual)
        stiff = 1.0 / (size * c.theta)
        last, first = jnp.arange(self.frames) == self.frames - 1, jnp.arange(self.frames) == 0
        of = [jnp.where(at, 0.0, 1.0).reshape(-1, *[1] * size.ndim) for at in (last, first)]
        diagonal, beside = c.camera**-2 + stiff * (of[0] * decay**2 + of[1]), -stiff * decay

        def down(carry: Any, row: Any) -> Any:
            pivot = row[0] - beside * carry[0]
            carry = beside / pivot, (row[1] - beside * carry[1]) / pivot
            return carry, carry

        def up(later: Any, row: Any) -> Any:
            now = row[1] - row[0] * later
            return now, now

        def apply(gradient: Any) -> Any:
            modes = jax.vmap(forward)(gradient)
            none = jnp.zeros_like(modes[0])
            _, rows = jax.lax.scan(down, (jnp.zeros_like(beside), none), (diagonal, modes))
            return jax.vmap(backward)(jax.lax.scan(up, none, rows, reverse=True)[1])

        return apply


@lru_cache
def compiled() -> Any:
    options = {"tolerance": 1e-2, "most": 200}
    each = {
        "begin": gauss_newton.begin, "advance": partial(gauss_newton.advance, **options),
        "basis": gauss_newton.tangent_basis, "project": partial(gauss_newton.project, **options),
        "sensitivity": partial(gauss_newton.sensitivity, together=1, **options),
        "residual": lambda model, u, g, data, c: model.whiten(data - model.predict(u, g, c), c),
    }  # fmt: skip
    return SimpleNamespace(**{name: jax.jit(function, static_argnums=0) for name, function in each.items()})


def trace(image: np.ndarray, noise: np.ndarray) -> float:
    """Return the trace of a projection from its image of noise, or of the rest where that is the smaller part."""
    if np.sum(image**2) < np.sum((noise - image) ** 2):
        return float(np.vdot(image, noise))
    return noise.size - float(np.vdot(noise - image, noise))


def shares(rates: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return Lagrange's polynomials of the nodes at some values."""
    others = [[b for b in rates if b != a] for a in rates]
    return np.stack([
        np.prod([(slopes - b) / (a - b) for b in rest], axis=0) for a, rest in zip(rates, others, strict=True)
    ])  # fmt: skip


def fit(
    record: dw.Record, equation: str, start: np.ndarray, theta: float, camera: float, exact: bool
) -> dict[str, Any]:
    """Return law, theta and camera noise with their standard errors; `exact` frames have no camera noise."""
    values, grid = record.slab(), Grid(record.mesh, record.dx)
    of, tau, model = symbols(dynamics_of(equation), grid.waves), float(record.q or 1.0) * record.dt, Model(
        record.mesh, record.frames
    )  # fmt: skip
    zeros, rng = np.zeros((record.frames - 1, *record.mesh)), np.random.default_rng(0)
    data, noise = np.concatenate([values, zeros]), [rng.normal(size=x.shape) for x in (values, zeros)]
    pads = [np.concatenate([noise[0], zeros]), np.concatenate([0.0 * values, noise[1]])]
    fields, law, code, runs, n = values, start, compiled(), 0, record.frames
    times = np.linspace(0.0, 1.0, 9)[1:] - 1.0 / 16.0
    for rounds in range(20):
        slope = sum(m * law[k] * fields ** (m - 1) for k, m in enumerate(POWERS))
        slope = 0.5 * (slope[1:] + slope[:-1])
        low, high = slope.min(), slope.max()
        rates = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
        c = Constants(of, tau, float(np.prod(record.dx)), camera, theta, rates, shares(rates, slope), slope.mean(), 0.0)
        sizes = [
            np.where(np.isfinite(s := np.asarray(link(c._replace(tau=t * tau), c.usual)[0])), s, 0.0) for t in times
        ]
        full = [np.concatenate([s, s[:, 1 : (record.mesh[-1] + 1) // 2]], axis=1) for s in sizes]
        c = c._replace(variance=theta * float(np.mean(full)))
        if exact:  # frames that are as good as exact, for the solver's sake
            c = c._replace(camera=(camera := PINNED * float(np.sqrt(theta * np.mean(sizes[-1])))))
        point = code.begin(model, fields, law, data, c)
        for _ in range(2):
            point = code.advance(model, point, data, c)
            runs += 2 * (int(point.iterations) + 2) + len(law)
        fields, law = np.asarray(point.nuisance), np.asarray(point.theta)
        left, basis = np.asarray(code.residual(model, fields, law, data, c)), code.basis(model, fields, law, c)
        parts = [np.asarray(code.project(model, fields, law, basis, pad, c)[0]) for pad in pads]
        squares = np.array([np.sum(part**2) for part in (left[:n], left[n:])])
        freedom = np.array([trace(parts[0][:n], noise[0]), trace(parts[1][n:], noise[1])])
        cross = np.sum(parts[1][:n] ** 2)
        information = 0.5 * np.array([[np.sum(parts[0][:n] ** 2), cross], [cross, np.sum(parts[1][n:] ** 2)]])
        if exact:
            information[0], information[:, 0] = (1.0, 0.0), (1.0, 0.0)
        covariance = np.linalg.inv(information)
        step = np.clip(covariance @ (0.5 * (squares - freedom) * [not exact, True]), -1.0, 1.0)
        camera, theta = camera * float(np.exp(0.5 * step[0])), theta * float(np.exp(step[1]))
        if rounds > 1 and np.all(np.abs(step) < 0.05 * np.sqrt(np.diag(covariance))):
            break
    root = np.asarray(code.sensitivity(model, fields, law, data, c).triangle)
    return {
        "law": law, "spread": np.linalg.inv(root), "theta": theta, "theta sd": float(np.sqrt(covariance[1, 1])),
        "camera": camera, "camera sd": 0.5 * float(np.sqrt(covariance[0, 0])), "rounds": rounds + 1, "runs": runs,
    }  # fmt: skip


def read(equation: str, theta: float, camera: float, seed: int) -> dict[str, Any]:
    truth, rng = dw.named_law("quartic"), np.random.default_rng([seed, [*EQUATIONS].index(equation), 20])
    first = dw.initial_field("nonconvex", (CELLS, CELLS), 1.0, epsilon=WIDTH)
    mesh = {"dx": 1.0, "dt": EQUATIONS[equation], "frames": BEFORE + FRAMES, "epsilon": WIDTH, "substeps": 20}
    movie = dw.simulate(truth, first, **mesh, dynamics=equation, theta=theta, seed=rng)
    movie = dw.Record(movie.slab()[BEFORE:], dx=1.0, dt=EQUATIONS[equation], q=1.0, boundary="periodic")
    record, began = dw.add_noise(movie, camera, seed=rng) if camera else movie, time.perf_counter()
    with double_precision():
        found = fit(record, equation, np.array([-1.2, 1.0, 0.1]) / WIDTH**2, 2.0 * theta, 1.3 * camera, camera == 0.0)
    features, exact = np.stack([U**n for n in POWERS]), (U**3 - U) / WIDTH**2
    sd = np.linalg.norm(found["spread"].T @ features, axis=0)
    away = found["law"] @ features - exact
    size = 100.0 / np.linalg.norm(exact)
    return {
        "equation": equation, "theta": theta, "camera": camera, "seed": seed,
        "theta error": float(np.log(found["theta"] / theta)), "theta sd": found["theta sd"],
        "camera error": float(np.log(found["camera"] / camera)) if camera else None, "camera sd": found["camera sd"],
        "force error": size * float(np.linalg.norm(away)), "force sd": size * float(np.linalg.norm(sd)),
        "force covered": float(np.mean(np.abs(away) < 1.96 * sd)), "rounds": found["rounds"], "runs": found["runs"],
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for equation, theta, camera in dict.fromkeys((row["equation"], row["theta"], row["camera"]) for row in rows):
        own = [row for row in rows if (row["equation"], row["theta"], row["camera"]) == (equation, theta, camera)]
        z = np.array([row["theta error"] / row["theta sd"] for row in own])
        errors = np.array([[row["force error"], row["force sd"]] for row in own])
        lines.append({
            "equation": equation, "theta": theta, "camera": camera, "records": len(own),
            "theta error %": round(100 * float(np.sqrt(np.mean([row["theta error"] ** 2 for row in own]))), 2),
            "over its sd": round(float(np.sqrt(np.mean(z**2))), 2), "mean of z": round(float(np.mean(z)), 2),
            "force error %": round(float(np.sqrt(np.mean(errors[:, 0] ** 2))), 2),
            "force sd %": round(float(np.sqrt(np.mean(errors[:, 1] ** 2))), 2),
            "covered %": round(100 * float(np.mean([row["force covered"] for row in own])), 1),
            "runs": round(float(np.mean([row["runs"] for row in own]))),
        })  # fmt: skip
    return lines


def main() -> None:
    parser = parser_in_parts()
    parser.add_argument("--records", type=int, default=sized(4, tiny=1), help="of each kind")
    parser.add_argument("--equations", nargs="+", default=[*EQUATIONS])
    asked, rows = parser.parse_args(words("--equations allen-cahn")), list[dict[str, Any]]()
    if asked.merge:
        rows = join_results("fluctuating", asked.merge, lambda row: (row["equation"], row["theta"], row["camera"]))
    else:
        seeds = range(asked.first, asked.first + asked.records)
        for seed, equation, theta, camera in product(seeds, asked.equations, THETAS, CAMERAS):
            rows.append(read(equation, theta, camera, seed))
            print(rows[-1], flush=True)
            save_results("fluctuating", rows, asked.out)
    print_table("fluctuating movies", summary(rows))


if __name__ == "__main__":
    main()

"""The inverse PINN by DeepXDE with its JAX backend, and ours, on one small record: does it train, how long, how near.

Run (in an environment with deepxde, optax and flax; they are no part of doublewell):
    DDE_BACKEND=jax PYTHONPATH=src python benchmarks/deepxde_pinn.py [--steps 1500] [--places 1000]
DeepXDE knows unknown numbers, not unknown functions of u: the weights of the force's network are handed to it as one
external variable each. Its JAX backend compiles the measured values in, so that the places are drawn once and not at
each step. Both methods have networks of the same sizes, the same rate and number of steps, and as many places a step.
The record is tuning's (sixth law, wobbled, noise 0.01, seed 24100), 32 x 32 cells. Writes results/deepxde_pinn.json.
"""

from __future__ import annotations

import argparse
import time
from importlib.metadata import version

import numpy as np
from common import need, save_results, words
from neural import PHASES, errors

from doublewell_paper.networks.network import Schedule, curve, force_of, initial, movie_of
from doublewell_paper.networks.pinn import Pinn
from doublewell_paper.records import Sample, Spec, tiny

FIELD = (32, 32, 32)
RATE = 0.003
PHYSICS = 0.003
WAVES = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--places", type=int, default=1000)
    asked = parser.parse_args(words("--steps 20 --places 100"))
    need("deepxde", "optax", "flax")
    spec = tiny(Spec("sixth", "wobbled", noise=0.01, seed=24_100), 32)
    record = Sample(spec).record
    rows = []
    for name, fit in {"DeepXDE": by_deepxde, "PINN": by_ours}.items():
        began, used = time.perf_counter(), time.process_time()
        force = fit(record, asked.steps, asked.places)
        spent = {"seconds": time.perf_counter() - began, "processor seconds": time.process_time() - used}
        raw, near = errors(force(PHASES), spec)
        row = {"method": name, "e_G raw": round(raw, 2), "e_G projected": round(near, 2)}
        row |= {kind: round(value, 1) for kind, value in spent.items()}
        rows.append(row | {"steps": asked.steps, "places": asked.places})
        print(rows[-1], flush=True)
    versions = ", ".join(f"{one} {version(one)}" for one in ("deepxde", "jax", "flax", "optax"))
    save_results("deepxde_pinn", [row | {"record": spec.record, "versions": versions} for row in rows])


def by_ours(record, steps, places):
    network = Pinn(
        field=FIELD, waves=WAVES, batch=places, physics=PHYSICS, schedule=Schedule(steps, RATE), resolution=None
    )
    return network.fit(record).force


def by_deepxde(record, steps, places):
    """Train with DeepXDE's model, data and optimiser; time and space in [0, 1], as ours."""
    import deepxde as dde
    import jax.numpy as jnp

    dde.config.set_random_seed(0)
    movie = movie_of(record, resolution=None, method="DeepXDE")
    shape, duration = movie.values.shape, movie.dt * (movie.frames - 1)
    odds = movie.weights.ravel().astype(float)
    drawn = np.random.default_rng(0).choice(odds.size, places, replace=False, p=odds / odds.sum())
    points = np.stack(np.unravel_index(drawn, shape), 1) / np.array([shape[0] - 1, *shape[1:]])
    start = initial((1, 32, 32, 1), 0)
    unknown = [dde.Variable(one) for layer in start for one in layer]

    def residual(x, y, unknowns=None):
        force = curve(list(zip(unknowns[::2], unknowns[1::2], strict=True)), y[0][:, 0])
        slope = dde.grad.jacobian(y, x, i=0, j=0)[0][:, 0] / (movie.q * duration)
        bends = sum(
            dde.grad.hessian(y, x, i=j, j=j)[0][:, 0] / length**2 for j, length in enumerate(movie.grid.extent, start=1)
        )
        return (slope - bends) / movie.size + force

    def waves(x):
        numbers = 2.0 * np.pi * np.arange(1, WAVES + 1)
        turns = (x[..., 1:, None] * numbers).reshape(*x.shape[:-1], -1)
        return jnp.concatenate([2.0 * x[..., :1] - 1.0, jnp.sin(turns), jnp.cos(turns)], -1)

    space = dde.geometry.Hypercube([0.0] * 3, [1.0] * 3)
    seen = dde.icbc.PointSetBC(points, movie.values.ravel()[drawn][:, None])
    data = dde.data.PDE(space, residual, seen, num_domain=0, anchors=points)
    net = dde.nn.FNN([3, *FIELD, 1], "tanh", "Glorot normal")
    net.apply_feature_transform(waves)
    model = dde.Model(data, net)
    model.compile(
        "adam", lr=RATE, decay=("cosine", steps, 0.01), loss_weights=[PHYSICS, 1.0],
        external_trainable_variables=unknown,
    )  # fmt: skip
    model.train(iterations=steps, display_every=max(1, steps // 4))
    found = [np.asarray(one.value) for one in unknown]
    return force_of(list(zip(found[::2], found[1::2], strict=True)), movie.size)


if __name__ == "__main__":
    main()

"""Segments: a record cut into pieces, each with an initial field of its own, held together by links.

An unstable start (spinodal decomposition, drops that merge) multiplies an error of the initial field by
exp(q |G'(0)| T). A whole trajectory from a rough start then lies nowhere near the record, and Gauss-Newton has nothing
to go by. Segments follow the record from the first step on, whatever the law; links that grow stiffer turn them into
one trajectory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from doublewell.dynamics.etdrk4 import predict, step_weights
from doublewell.dynamics.grid import jax_transforms
from doublewell.dynamics.protocol import Symbols
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood.iterate import RULE, Iteration, Rule, Step, Watch, iterate
from doublewell.record import Boundary, Record

UNSTABLE = 4.0  # growth of a record above which a shortened step means segments
_SEGMENT = 2.0  # growth in the time of a segment
_LINKS = (0.3, 1.0, 3.0, 10.0)  # weights of the links, one after the other; then one whole trajectory
_FIRST_STAGE, _LATER_STAGE = Rule(most=12, small=3.0), Rule(most=2, small=3.0)  # the first finds the law
_WHOLE = replace(RULE, least=2)


class Constants(NamedTuple):
    """Step weights, what frames and gaps count, the preconditioner's factor of each mode."""

    weights: Any
    root: Any
    damping: Any
    prior: Any = ()
    reach: Any = ()


@dataclass(frozen=True)
class SegmentModel:
    """Predict all frames and all gaps at the links; the nuisance is the first field of each segment.

    The predictions are the frames, then for each inner segment its first field minus where its predecessor ends, which
    is observed to be zero.
    """

    family: Family
    boundary: Boundary
    frames: int
    substeps: int
    length: int  # frame intervals in a segment
    contrast: bool = False  # whether theta begins with gain and offset; fields are in observed values

    @property
    def count(self) -> int:
        """The number of segments."""
        return -(-self.frames // self.length)

    def predict(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return the frames u[t, (z, y,) x], then the gaps."""
        import jax
        import jax.numpy as jnp

        gain, offset, coefficients = (theta[0], theta[1], theta[2:]) if self.contrast else (1.0, 0.0, theta)

        def run(first: Any) -> Any:
            fields = predict(
                (first - offset) / gain, coefficients, constants.weights,
                family=self.family, boundary=self.boundary, frames=self.length + 1, substeps=self.substeps,
            )  # fmt: skip
            return gain * fields + offset

        runs = jax.vmap(run)(nuisance)
        fields = runs[:, :-1].reshape(-1, *nuisance.shape[1:])[: self.frames]
        return jnp.concatenate([fields, nuisance[1:] - runs[:-1, -1]])

    def whiten(self, field: Any, constants: Constants) -> Any:
        """Weight frames and gaps."""
        return constants.root * field

    def preconditioner(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Divide each mode of each segment by what the linear part makes of its frames and its two links."""
        import jax

        del theta  # a segment is too short for its rate to count
        forward, backward = jax_transforms(nuisance.shape[1:], self.boundary)
        return jax.vmap(lambda field: backward(constants.damping * forward(field)))


def segment_constants(model: SegmentModel, of: Symbols, tau: float, link: float) -> Constants:
    """Return the constants of a record with tau = q dt whose links count `link` times as much as an observation."""
    decay = np.exp(2.0 * tau * of.linear)
    frames = sum((decay**k for k in range(model.length)), np.zeros_like(decay))
    root = np.concatenate([np.ones(model.frames), np.full(model.count - 1, link)])
    return Constants(
        step_weights(of, tau / model.substeps),
        root.reshape(-1, *(1 for _ in decay.shape)),
        1.0 / (frames + link**2 * (1.0 + decay**model.length)),
    )


def fit_by_segments(
    record: Record, family: Family, whole: tuple[Any, Any], data: Array, starts: Array, growth: float,
    watch: Watch | None,
) -> Iteration:  # fmt: skip
    """Fit segments whose links grow stiffer, then the whole record from there.

    `whole` is the model of the whole record with its constants, `growth` the logarithm by which an error of the initial
    field may grow over it.
    """
    length = max(2, int((record.frames - 1) / (growth / _SEGMENT)))
    contrast = "gain" in whole[0].free
    model = SegmentModel(family, whole[0].boundary, record.frames, whole[0].substeps, length, contrast)
    gaps = np.zeros((len(data), model.count - 1, *data.shape[2:]))
    extended, nuisance, theta = np.concatenate([data, gaps], axis=1), data[:, ::length], starts
    of, tau = Symbols(whole[1].linear, whole[1].coupling), float(record.q or 0.0) * record.dt
    steps: list[list[Step]] = [[] for _ in data]
    apart: Array | None = None
    for link in _LINKS:
        free = data[0].size - data[0, 0].size * (model.count if apart is None else 1)
        constants = segment_constants(model, of, tau, link)._replace(prior=whole[1].prior, reach=whole[1].reach)
        stage = iterate(
            model, constants, extended, nuisance, theta, freedom=free, watch=watch,
            rule=_FIRST_STAGE if apart is None else _LATER_STAGE, stage=f"segments, links {link:g}",
        )  # fmt: skip
        nuisance, theta = stage.nuisance, stage.theta
        steps = [old + new for old, new in zip(steps, stage.steps, strict=True)]
        if apart is None:
            apart = np.sqrt([taken[-1].after / free for taken in stage.steps])
    free = data[0].size - data[0, 0].size - theta.shape[1]
    last = iterate(*whole, data, nuisance[:, 0], theta, freedom=free, watch=watch, rule=_WHOLE)
    assert apart is not None
    last.steps = [old + new for old, new in zip(steps, last.steps, strict=True)]
    last.segments = [model.count] * len(data)
    last.status = [
        status if status.converged else replace(status, segments=model.count, apart=float(noise))
        for status, noise in zip(last.status, apart, strict=True)
    ]
    return last

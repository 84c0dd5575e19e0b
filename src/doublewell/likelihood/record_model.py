"""RecordModel: predict what is seen of a field from its first values, the law and what is estimated beside it.

On a whole domain the nuisance is the initial field, on a window the initial field and then its border at all later
frames, as one vector. theta is what the view estimates, then the coefficients of the law.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, border_mask, differentiable_force, jax_transforms, predict_window, roll
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood.view import Free
from doublewell.record import Boundary

__all__ = ["Constants", "RecordModel"]


_FLOOR = 1e-3  # of the largest: what the preconditioner makes of a mode that is hardly seen
_SMOOTH = 16.0  # exponent of the shortest mode: a Gaussian of about 1.3 cells in two dimensions
_TINY = 1e-300


class Constants(NamedTuple):
    """The arrays of a RecordModel; what a model does not use is empty."""

    taus: Any  # q times the frame intervals
    root: Any  # what each observation counts
    symbol: Any  # of the Laplacian, each mode
    gain: Any  # what optics and noise make of each mode, squared
    table: Any = ()  # of the steps, whole domains only
    curve: Any = ()  # of the border in time, windows only
    differences: Any = ()  # second differences along each axis, windows only
    finer: Any = ()  # one matrix for each axis, to a finer mesh
    transfer: Any = ()  # of each mode, by the optics
    passband: Any = ()  # of each mode: those of the initial field that the optics let through
    squares: Any = ()  # |kappa|^2 of each mode in units of 1 / dx^2, for an unknown blur
    average: Any = ()  # weight of the second difference in time, for an exposure
    colour: Any = ()  # of each cosine mode, for noise that is not white
    memory: Any = ()  # correlation of consecutive frames of the noise


@dataclass(frozen=True)
class RecordModel:
    """What the solver sees of a record; hashable, so that compiled code serves all records of one kind."""

    family: Family
    boundary: Boundary
    cells: tuple[int, ...]
    frames: int
    substeps: int
    free: tuple[Free, ...] = ()
    refine: int = 1

    def split(self, theta: Any) -> tuple[dict[str, Any], Any]:
        """Return what is estimated beside the law, by name, and the coefficients."""
        return {name: theta[k] for k, name in enumerate(self.free)}, theta[len(self.free) :]

    def first_field(self, nuisance: Any) -> Any:
        """Return the initial field on the record's mesh."""
        if self.boundary != "open":
            return nuisance
        return nuisance[: prod(self.cells)].reshape(self.cells)

    def predict(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return what is seen, u[t, (z, y,) x]."""
        beside, coefficients = self.split(theta)
        taus = constants.taus * beside.get("q", 1.0)
        run = self._window if self.boundary == "open" else self._whole
        fields = run(nuisance, coefficients, taus, beside, constants)
        return fields if isinstance(constants.average, tuple) else _exposed(fields, constants.average)

    def whiten(self, field: Any, constants: Constants) -> Any:
        """Weight the residual, and take the noise's correlations out of it."""
        field = constants.root * field
        if not isinstance(constants.colour, tuple):
            field = self._filtered(field, constants.colour, "neumann")  # noise does not know of a periodic border
        if not isinstance(constants.memory, tuple):
            field = self._without_memory(field, constants.memory)
        return field

    def _without_memory(self, field: Any, memory: Any) -> Any:
        """Take out of each frame what the noise of the one before says of its own."""
        import jax.numpy as jnp

        frames = jnp.moveaxis(jnp.asarray(field), -1 - len(self.cells), 0)
        later = (frames[1:] - memory * frames[:-1]) / jnp.sqrt(1.0 - memory**2)
        return jnp.moveaxis(jnp.concatenate([frames[:1], later]), 0, -1 - len(self.cells))

    def preconditioner(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return an approximate inverse of J_u' J_u: what diffusion and the local rate leave of each mode.

        A disturbance dies at the rate G' in a pure phase and lasts on an interface. So the field is split in two parts,
        shares whose squares add up to one, and each part has its own sum over the frames. A border is left as it is.
        """
        import jax.numpy as jnp

        forward, backward = jax_transforms(self.cells, self._modes)
        calm, rate = self._calm(nuisance, theta, constants)
        parts = [
            (jnp.sqrt(calm), _inverse_sum(rate, constants)),
            (jnp.sqrt(1.0 - calm), _inverse_sum(0.0, constants)),
        ]

        def apply(gradient: Any) -> Any:
            field = self.first_field(gradient)
            field = sum(share * backward(damping * forward(share * field)) for share, damping in parts)
            if self.boundary != "open":
                return field
            return jnp.concatenate([field.ravel(), gradient[prod(self.cells) :]])

        return apply

    def _calm(self, nuisance: Any, theta: Any, constants: Constants) -> tuple[Any, Any]:
        """Return which part of each cell is a pure phase, from 0 to 1, and the rate G' there."""
        import jax
        import jax.numpy as jnp

        forward, backward = jax_transforms(self.cells, self._modes)
        widest = jnp.max(-constants.symbol)
        smooth = backward(jnp.exp(_SMOOTH * constants.symbol / widest) * forward(self.first_field(nuisance)))
        force = differentiable_force(self.family)
        _, slope = jax.jvp(lambda u: force(self.split(theta)[1], u), (smooth,), (jnp.ones_like(smooth),))
        slope = jnp.maximum(slope, 0.0)
        rate = jnp.sum(slope**2) / jnp.maximum(jnp.sum(slope), _TINY)
        return jnp.clip(slope / jnp.maximum(rate, _TINY), 0.0, 1.0), rate

    @property
    def _modes(self) -> Boundary:
        return "neumann" if self.boundary == "open" else self.boundary

    def _whole(self, u0: Any, coefficients: Any, taus: Any, beside: dict[str, Any], constants: Constants) -> Any:
        import jax.numpy as jnp

        fine = u0
        for axis, matrix in enumerate(constants.finer):
            fine = jnp.moveaxis(jnp.tensordot(matrix, fine, axes=(1, axis)), 0, axis)
        forward, backward = jax_transforms(fine.shape, self.boundary)
        force = differentiable_force(self.family)
        seen = self._seen(beside, constants)
        start = 0 if self.boundary == "periodic" else self.refine // 2
        pick = tuple(slice(start, None, self.refine) for _ in self.cells)

        def emit(modes: Any) -> Any:
            return backward(modes if seen is None else seen * modes)[pick]

        modes = forward(fine) if isinstance(constants.passband, tuple) else constants.passband * forward(fine)
        table = constants.table
        shares = table.fractions(taus / self.substeps)
        later = roll(
            modes, lambda m: forward(force(coefficients, backward(m))), table.weigh, emit,
            shares, frames=self.frames, substeps=self.substeps,
        )  # fmt: skip
        first = u0 if seen is None else emit(modes)
        return jnp.concatenate([first[None], later])

    def _window(self, vector: Any, coefficients: Any, taus: Any, beside: dict[str, Any], constants: Constants) -> Any:
        border = vector[prod(self.cells) :].reshape(self.frames - 1, -1)
        fields = predict_window(
            self.first_field(vector), border, coefficients, taus, constants.curve, constants.differences,
            dynamics=ALLEN_CAHN, family=self.family, substeps=self.substeps,
        )  # fmt: skip
        seen = self._seen(beside, constants)
        return fields if seen is None else self._filtered(fields, seen, self._modes)

    def _seen(self, beside: dict[str, Any], constants: Constants) -> Any:
        """Return the factor of each mode between the field and its image; None where they are the same."""
        import jax.numpy as jnp

        seen = None if isinstance(constants.transfer, tuple) else constants.transfer
        if "blur" in beside:
            blur = jnp.exp(-0.5 * beside["blur"] * constants.squares)
            seen = blur if seen is None else seen * blur
        return seen

    def _filtered(self, fields: Any, factor: Any, modes: Boundary) -> Any:
        """Multiply the modes of every frame."""
        import jax
        import jax.numpy as jnp

        fields = jnp.asarray(fields)
        forward, backward = jax_transforms(self.cells, modes)
        flat = fields.reshape(-1, *self.cells)
        return jax.vmap(lambda one: backward(factor * forward(one)))(flat).reshape(fields.shape)

    def border_of(self, fields: Array) -> Array:
        """Return the nuisance of observed fields: the first one, and on a window the border of the others."""
        if self.boundary != "open":
            return np.asarray(fields[0])
        return np.concatenate([fields[0].ravel(), fields[1:][:, border_mask(self.cells)].ravel()])


def _inverse_sum(rate: Any, constants: Constants) -> Any:
    """Return 1 / sum_k exp(2 (symbol - rate) tau_k) of each mode, times what optics and noise make of it."""
    import jax
    import jax.numpy as jnp

    def add(total: Any, tau: Any) -> tuple[Any, None]:
        return total + jnp.exp(2.0 * (constants.symbol - rate) * tau), None

    total, _ = jax.lax.scan(add, jnp.ones_like(constants.symbol), jnp.cumsum(constants.taus))
    total = total * constants.gain
    return 1.0 / jnp.maximum(total, _FLOOR * jnp.max(total))


def _exposed(fields: Any, weight: Any) -> Any:
    """Average over an exposure, to fourth order: add a share of the second difference in time.

    The first and the last frame take theirs from the next one.
    """
    import jax.numpy as jnp

    second = fields[2:] - 2.0 * fields[1:-1] + fields[:-2]
    return fields + weight * jnp.concatenate([second[:1], second, second[-1:]])

"""RecordModel: predict what is observed of a field from its first values, the law and what is estimated jointly.

On a whole domain the nuisance is the initial field, on a window the initial field and then its border at all later
frames, as one vector. theta is what the view estimates jointly with the law, then the coefficients of the law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, border_mask, fastest_rate, steps_per_frame, symbols
from doublewell.dynamics.etdrk4 import BLOCK, differentiable_force, roll, step_weights
from doublewell.dynamics.grid import jax_transforms, refinement
from doublewell.dynamics.open_boundary import BORDER, Optics, border_times, predict_window, window_axes
from doublewell.dynamics.terms import Term
from doublewell.errors import InputError, NoStartError, option
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood.acting import Acting, acting_constants
from doublewell.likelihood.coarse import approximate_inverse, coarse_mesh
from doublewell.observation.view import (
    PLAIN,
    View,
    grey_of_light,
    joint_parameters,
    light_basis,
    light_of_grey,
    mode_gain,
    mode_grid,
    passband,
    transfer,
)
from doublewell.record import Boundary, Record

FEW_SUBSTEPS = 64  # up to here they need not be a number of blocks
_FARTHEST = 1000.0  # rate times frame interval: benchmarks/far_frames.py
_REACTION = 0.5  # largest rate times step of the force to begin with; the resolution is measured after the fit
_SPLIT = 0.125  # the same with a mobility of the phase, of which a part is not stepped exactly
_SMALLEST = 8  # cells of a window along an axis inside its border
_SMOOTH = 16.0  # exponent of the shortest mode: a Gaussian of about 1.3 cells in two dimensions
_FAINT = 0.05  # of a mode that is left in a picture: less is made sharp as if it were this much
_NEVER = 1e-9  # of the cells: a phase that is nowhere has no light either


class Constants(NamedTuple):
    """The arrays of a RecordModel, all of them run-time arguments; what a model does not use is empty."""

    taus: Any  # q times the frame intervals
    root: Any  # what each observation counts
    linear: Any  # L of the dynamics, each mode of the record's mesh
    coupling: Any  # D of the dynamics
    smoothing: Any  # of each mode: tells a pure phase from an interface without the noise
    gain: Any  # what optics and noise make of each mode, squared
    stepped: Any = ()  # L and D of the modes that are stepped
    products: Any = ()  # of the directions of the waves along two axes, for an unknown anisotropy
    mobility: Any = ()  # coefficients of its logarithm, where it is known and not constant
    driving: Any = ()  # known force at the half steps of each frame interval
    curve: Any = ()  # of the border in time, windows only
    axes: Any = ()  # stencils and modes along each axis, windows only
    finer: Any = ()  # one matrix for each axis, to a finer mesh
    transfer: Any = ()  # of each mode, by the optics
    passband: Any = ()  # of each mode: those of the initial field that the optics let through
    squares: Any = ()  # |kappa|^2 of each mode in units of 1 / dx^2, for an unknown blur
    average: Any = ()  # weight of the second difference in time, for an exposure
    colour: Any = ()  # of each cosine mode, for noise that is not white
    memory: Any = ()  # correlation of consecutive frames of the noise
    waves: Any = ()  # wave numbers along each axis of the modes that are stepped
    pushes: Any = ()  # a field for each frame interval, added to u_t / q there
    prior: Any = ()  # rows [W, t] of what is known of theta, W theta = t, for each record of a batch
    pixels: Any = ()  # dx along each axis, for pictures that move
    way: Any = ()  # along each axis over the record, of pictures that move by a known drift
    light: Any = ()  # terms of what may be left of a camera's light in a phase: in space, in time
    response: Any = ()  # exponent of grey values, where it is known and not 1
    dark: Any = ()  # grey value of the low phase over that of the high one
    reach: Any = ()  # of the first entries of theta: how far one step may move them
    links: Any = ()  # between fields of one record, for each record of a batch


@dataclass(frozen=True)
class RecordModel:
    """The static structure of a record's model; hashable, so that compiled code serves all records of one kind.

    The symbols of a dynamics are run-time arrays, and one program serves all. ``terms`` are what the equation may lack:
    theta ends with one amplitude for each. ``light``: whether something may be left of a camera's light. Its
    coefficients, of the low and of the high phase, are the end of the nuisance, one vector then on whole domains too.
    ``border`` is the width of a window's border.
    """

    family: Family
    boundary: Boundary
    cells: tuple[int, ...]
    frames: int
    substeps: int
    free: tuple[str, ...] = ()
    refine: int = 1
    terms: tuple[Term, ...] = ()
    light: bool = False
    border: int = BORDER
    coarse: tuple[int, ...] = ()
    rounds: ClassVar[bool] = True

    def split(self, theta: Any) -> tuple[dict[str, Any], Any]:
        """Return what is estimated jointly with the law, by name, and the coefficients."""
        start, end = len(self.free), len(theta) - len(self.terms)
        return {name: theta[k] for k, name in enumerate(self.free)} | {"terms": theta[end:]}, theta[start:end]

    def first_field(self, nuisance: Any) -> Any:
        """Return the initial field on the record's mesh."""
        return nuisance[: prod(self.cells)].reshape(self.cells) if self._vector else nuisance

    @property
    def _vector(self) -> bool:
        """Whether the nuisance is more than the initial field."""
        return self.boundary == "open" or self.light

    def predict(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return what is observed, u[t, (z, y,) x]."""
        import jax.numpy as jnp

        joint, coefficients = self.split(theta)
        taus = constants.taus * joint.get("q", 1.0)
        run = self._window if self.boundary == "open" else self._whole
        gain, offset = self._contrast(nuisance, joint, constants)
        given, power = self._unobserved(nuisance, joint, constants), joint.get("response", constants.response)
        fields = run(*given, coefficients, taus, joint, constants)
        if not isinstance(constants.average, tuple):
            # the average over an exposure, to fourth order; the first and the last frame take theirs from the next one
            second = fields[2:] - 2.0 * fields[1:-1] + fields[:-2]
            fields = fields + constants.average * jnp.concatenate([second[:1], second, second[-1:]])
        fields = fields if isinstance(power, tuple) else grey_of_light(fields, power, constants.dark)
        return fields if gain is None else gain * fields + offset

    def _contrast(self, nuisance: Any, joint: dict[str, Any], constants: Constants) -> tuple[Any, Any]:
        """Return gain and offset of each frame, with what is left of the light; None where the values are exact."""
        import jax.numpy as jnp

        if "gain" not in joint:
            return None, None
        clock = self._clock(constants).reshape(-1, *[1] * len(self.cells))
        gain, offset = [joint[name] + joint.get(f"{name} drift", 0.0) * clock for name in ("gain", "offset")]
        if not self.light:
            return gain, offset
        space, time = constants.light
        left = nuisance[-_light_size(constants) :].reshape(2, -1)
        fading = (left[:, len(space) :] @ time).reshape(2, *clock.shape)
        low, high = jnp.tensordot(left[:, : len(space)], space, axes=1)[:, None] + fading
        return gain * (1.0 + 0.5 * (high - low)), offset + gain * 0.5 * (high + low)

    def _clock(self, constants: Constants) -> Any:
        """Return the fraction of the record that has passed at each frame."""
        import jax.numpy as jnp

        return jnp.concatenate([jnp.zeros(1), jnp.cumsum(constants.taus)]) / jnp.sum(constants.taus)

    def _ways(self, joint: dict[str, Any], constants: Constants) -> Any:
        """Return how far the picture has moved at each frame, (frames, axes); None where it is at rest."""
        import jax.numpy as jnp

        letters, clock, ways = "zyx"[-len(self.cells) :], self._clock(constants), []
        if not isinstance(constants.way, tuple):
            return clock[:, None] * constants.way
        if f"drift {letters[0]}" not in joint:
            return None
        for letter, dx in zip(letters, constants.pixels, strict=True):
            bent = 4.0 * joint[f"bend {letter}"] * clock * (1.0 - clock)
            ways.append(dx * (joint[f"drift {letter}"] * clock + bent))
        return jnp.stack(ways, axis=1)

    def _unobserved(self, nuisance: Any, joint: dict[str, Any], constants: Constants) -> tuple[Any, Any]:
        """Return the nuisance, which is in observed values, as phase values: the initial field, and a window's border.

        In observed values it does not move with gain and offset, nor with the optics: frame 0 is the nuisance alone.
        """
        import jax.numpy as jnp

        first, edge, border = self.first_field(nuisance), np.flatnonzero(border_mask(self.cells, self.border)), None
        gain, offset = self._contrast(nuisance, joint, constants)
        if self.boundary == "open":
            n, size = prod(self.cells), (self.frames - 1) * edge.size
            border = nuisance[n : n + size].reshape(self.frames - 1, -1)
        if gain is not None:
            first = (first - offset[0]) / gain[0]
        if gain is not None and border is not None:
            shape = (self.frames, *self.cells)
            at = [jnp.broadcast_to(part, shape).reshape(self.frames, -1)[1:, edge] for part in (gain, offset)]
            border = (border - at[1]) / at[0]
        power = joint.get("response", constants.response)
        if isinstance(power, tuple):
            return first, border
        first, border = (x if x is None else light_of_grey(x, power, constants.dark) for x in (first, border))
        return first, border

    def whiten(self, field: Any, constants: Constants) -> Any:
        """Weight the residual, and take the noise's correlations out of it."""
        field = constants.root * field
        if not isinstance(constants.colour, tuple):
            field = self._filtered(field, constants.colour)  # noise does not know of a periodic border
        if isinstance(constants.memory, tuple):
            return field
        import jax.numpy as jnp

        # out of each frame comes what the noise of the previous one predicts of its own
        frames, memory = jnp.moveaxis(jnp.asarray(field), -1 - len(self.cells), 0), constants.memory
        later = (frames[1:] - memory * frames[:-1]) / jnp.sqrt(1.0 - memory**2)
        return jnp.moveaxis(jnp.concatenate([frames[:1], later]), 0, -1 - len(self.cells))

    def preconditioner(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return an approximate inverse of J_u' J_u: of the first field on a coarse mesh.

        A border is left as it is, and a coefficient of the light counts in all values.
        """
        import jax.numpy as jnp

        joint, coefficients = self.split(theta)
        field, _ = self._unobserved(nuisance, joint, constants)
        solve = approximate_inverse(self, field, coefficients, constants.taus * joint.get("q", 1.0), constants)
        forward, backward = jax_transforms(self.cells, self._modes)
        smooth = backward(constants.smoothing * forward(field))

        def of_light(gradient: Any) -> Any:
            space, solved = constants.light[0], []
            for part, sign in zip(gradient.reshape(2, -1), (-1.0, 1.0), strict=True):
                seen = (0.5 * (1.0 + sign * smooth)) ** 2  # how much of each cell is this phase
                gram = self.frames * jnp.tensordot(space * seen, space, axes=[tuple(range(1, space.ndim))] * 2)
                gram = gram + _NEVER * self.frames * seen.size * jnp.eye(len(space))
                solved += [jnp.linalg.solve(gram, part[: len(space)])]
                solved += [part[len(space) :] / (self.frames * (jnp.sum(seen) + _NEVER * seen.size))]
            return jnp.concatenate(solved)

        def apply(gradient: Any) -> Any:
            field = solve(self.first_field(gradient))
            if not self._vector:
                return field
            rest = gradient[field.size :]
            if not self.light:
                return jnp.concatenate([field.ravel(), rest])
            size = _light_size(constants)
            return jnp.concatenate([field.ravel(), rest[:-size], of_light(rest[-size:])])

        return apply

    def _law(self, constants: Constants) -> Any:  # noqa: ARG002 - that of linked fields takes them
        """Return the force that acts, a function of coefficients and field."""
        return differentiable_force(self.family)

    @property
    def _modes(self) -> Boundary:
        return "neumann" if self.boundary == "open" else self.boundary

    def _whole(self, u0: Any, _: None, coefficients: Any, taus: Any, joint: dict[str, Any], constants: Any) -> Any:
        import jax
        import jax.numpy as jnp

        fine = u0
        for axis, matrix in enumerate(constants.finer):
            fine = jnp.moveaxis(jnp.tensordot(matrix, fine, axes=(1, axis)), 0, axis)
        forward, backward = jax_transforms(fine.shape, self.boundary)
        force, image = self._law(constants), self._image(joint, constants)
        start = 0 if self.boundary == "periodic" else self.refine // 2
        pick = tuple(slice(start, None, self.refine) for _ in self.cells)

        def emit(modes: Any, known: Any) -> Any:
            modes = modes if image is None else image * modes
            if known[-1] is not None:  # the picture moves as a whole
                modes = modes * jnp.exp(-1j * sum(k * s for k, s in zip(constants.waves, known[-1], strict=False)))
            return backward(modes)[pick]

        def second(field: Any, one: int, other: int) -> Any:
            return backward(-constants.waves[one] * constants.waves[other] * forward(field))

        acting = Acting.of(self, joint, constants, taus)

        def reaction(known: Any) -> Any:
            def force_modes(m: Any, half: Any) -> Any:
                u = backward(m)
                pull = force(coefficients, u)
                if known[1] is None:
                    return forward(pull)

                def sloped(field: Any) -> Any:
                    return jax.jvp(lambda x: force(coefficients, x), (u,), (field,))[1]

                curved = backward(acting.symbols.linear * m) if acting.bends else None
                return forward(acting.pull(u, curved, pull, known[1], half, second, sloped))

            return force_modes

        modes = forward(fine) if image is None else constants.passband * _inverse(image) * forward(fine)
        ways = self._ways(joint, constants)
        given = acting.taus / self.substeps, acting.known, None if ways is None else ways[1:]
        later = roll(
            modes, reaction, lambda known: step_weights(acting.symbols, known[0]), emit, given, frames=self.frames,
            substeps=self.substeps,
        )  # fmt: skip
        first = u0 if image is None else emit(modes, (None,))
        return jnp.concatenate([first[None], later])

    def _window(
        self, u0: Any, border: Any, coefficients: Any, taus: Any, joint: dict[str, Any], constants: Constants
    ) -> Any:
        image, ways, optics = self._image(joint, constants), self._ways(joint, constants), None
        acting, axes = Acting.of(self, joint, constants, taus), constants.axes
        if acting.tensor is not None:
            axes = tuple(axis._replace(weight=acting.tensor[k][k]) for k, axis in enumerate(axes))
        smooth = 1.0 / sum(axis.weight * k**2 for axis, k in zip(axes, constants.waves, strict=True))
        if image is not None:
            optics = Optics(image, constants.passband * _inverse(image), smooth)
        return predict_window(
            u0, border, coefficients, acting.taus, constants.curve, axes, acting.symbols,
            family=self.family, substeps=self.substeps, pull=None if acting.known is None else acting.pull,
            known=acting.known, optics=optics,
            ways=None if ways is None else ways[1:] - ways[:-1], refine=self.refine, width=self.border, smooth=smooth,
        )  # fmt: skip

    def _image(self, joint: dict[str, Any], constants: Constants) -> Any:
        """Return the factor of each mode between the field and its image; None where they are the same."""
        import jax.numpy as jnp

        image = None if isinstance(constants.transfer, tuple) else constants.transfer
        if "blur" in joint:
            blur = jnp.exp(-0.5 * joint["blur"] * constants.squares)
            image = blur if image is None else image * blur
        return image

    def _filtered(self, fields: Any, factor: Any) -> Any:
        """Multiply the cosine modes of every frame."""
        import jax
        import jax.numpy as jnp

        fields = jnp.asarray(fields)
        forward, backward = jax_transforms(self.cells, "neumann")
        flat = fields.reshape(-1, *self.cells)
        return jax.vmap(lambda frame: backward(factor * forward(frame)))(flat).reshape(fields.shape)

    def nuisance_of(self, fields: Array, constants: Constants) -> Array:
        """Return the nuisance of fields[record, t, ...]: the first field, a window's border, no light that is left."""
        if not self._vector:
            return fields[:, 0]
        edge = border_mask(self.cells, self.border) if self.boundary == "open" else np.zeros(self.cells, dtype=bool)
        parts = [fields[:, 0], fields[:, 1:][:, :, edge], np.zeros((len(fields), _light_size(constants)))]
        return np.hstack([part.reshape(len(fields), -1) for part in parts])


def _light_size(constants: Constants) -> int:
    """Return the number of coefficients of a camera's light: those of the low phase, then those of the high one."""
    return 2 * sum(map(len, constants.light))


def _inverse(image: Any) -> Any:
    """Return what makes a picture sharp again; modes of which next to nothing is left only in part."""
    import jax.numpy as jnp

    return 1.0 / jnp.maximum(image, _FAINT)


def record_model(
    record: Record, family: Family, substeps: int, view: View = PLAIN, *, dynamics: Dynamics = ALLEN_CAHN,
    refine: int | None = None, terms: tuple[Term, ...] = (),
) -> tuple[RecordModel, Constants]:  # fmt: skip
    """Build the model of a record and its constants; `refine` replaces the view's.

    A Batch builds each of its models once: benchmarks/architecture.py counts the calls.
    """
    optics, whitening, window = view.optics, view.whitening, record.boundary == "open"
    refine = view.refine if refine is None else refine
    model = RecordModel(
        family, record.boundary or "open", record.mesh, record.frames, substeps, view.free, refine, terms,
        view.light is not None, dynamics.border or BORDER,
    )  # fmt: skip
    q, taus = float(record.q or 0.0), float(record.q or 0.0) * np.diff(record.times)
    grid, fine = mode_grid(record), mode_grid(record, refine)
    linear, coupling = symbols(dynamics, grid.waves, grid.crossed)
    model = replace(model, coarse=coarse_mesh(grid, linear, float(np.median(taus)), substeps))
    constants = Constants(
        taus=taus,
        root=1.0 if whitening.root is None else whitening.root,
        linear=linear,
        coupling=coupling,
        smoothing=np.exp(_SMOOTH * grid.laplacian / np.max(-grid.laplacian)),
        gain=mode_gain(grid, view),
        response=() if optics.response in (1.0, "estimated") else np.float64(optics.response),
        dark=np.float64(view.dark),
    )
    more: dict[str, Any] = {}
    waves = fine.waves
    if window:
        more["curve"] = border_times(record.times, substeps)
        more["axes"], waves = window_axes(record.mesh, record.dx, refine, width=model.border)
    crossed = None if window else fine.crossed
    more |= acting_constants(dynamics, view.equation, record.times, substeps, waves, crossed)
    more |= _motion(record, view)
    if terms or window or view.moving or view.velocity:
        more["waves"] = waves
    if record.uniform:
        more["taus"] = np.full(taus.shape, q * record.dt)
    if refine > 1 and not window:
        more["finer"] = tuple(refinement(n, refine, grid.boundary) for n in grid.cells)
    if view.blurs:
        more["transfer"], more["passband"] = (each(waves, record.dx, optics) for each in (transfer, passband))
    if "blur" in view.free:
        more["squares"] = sum(k**2 for k in waves) * record.dx[-1] ** 2
    if optics.exposure:
        more["average"] = (optics.exposure / record.dt) ** 2 / 24.0
    if whitening.colour is not None:
        more["colour"] = whitening.colour
    if view.light is not None:
        more["light"] = light_basis(view.light, record.shape)
    if view.contrast or "response" in view.free or view.equation:
        more["reach"] = np.array([parameter.prior for parameter in joint_parameters(view)])
    if whitening.memory:
        more["memory"] = np.float64(whitening.memory)
    return model, constants._replace(**more)


def _motion(record: Record, view: View) -> dict[str, Any]:
    """Return the constants of pictures that move."""
    if view.velocity:
        return {"way": np.array(view.velocity) * (record.times[-1] - record.times[0])}
    return {"pixels": np.array(record.dx)} if view.moving else {}


def check_record(record: Record, dynamics: Dynamics = ALLEN_CAHN) -> None:
    """Refuse a record that does not declare its boundary, or whose q is not known."""
    if record.boundary is None:
        raise InputError(
            f"the trajectory fit needs to know what happens at the border: pass {option('boundary', 'periodic')} or "
            f"'neumann' with the record, or 'open' for a field of view cut out of something larger; "
            f"{option('method', 'weak')} needs none"
        )
    if record.boundary == "open" and dynamics.border is None:
        raise InputError(
            f"boundary is 'open': {dynamics.name} has no rate on an open window, because it is not local; expected "
            "'periodic' or 'neumann'"
        )
    if record.q is None:
        raise InputError(
            f"the record has no diffusion coefficient: pass {option('q')} with the record (it sets the time scale)"
        )


def check_window(record: Record, dynamics: Dynamics = ALLEN_CAHN) -> None:
    """Refuse a window that is little more than its border."""
    border = dynamics.border or BORDER
    if min(record.mesh) < _SMALLEST + 2 * border:
        raise InputError(
            f"the window is {' x '.join(str(n) for n in record.mesh)}: expected at least {_SMALLEST + 2 * border} "
            f"cells along each axis, for {border} on each side serve as its border; take a larger part, or declare "
            f"{option('boundary', 'periodic')} or neumann"
        )


def growth(record: Record, slope: float, dynamics: Dynamics = ALLEN_CAHN) -> float:
    """Return the logarithm of how much an error of the initial field may grow: for Allen-Cahn q |G'| T.

    `slope` is the largest |G'|, at the wells; a disturbance grows where G falls, about half as steeply.
    """
    rate = float(record.q or 0.0) * fastest_rate(dynamics, mode_grid(record).waves, 0.5 * slope)
    return rate * float(record.times[-1] - record.times[0])


def first_substeps(record: Record, slope: float, dynamics: Dynamics = ALLEN_CAHN) -> int:
    """Return steps from frame to frame such that a force with |G'| up to `slope` changes little in each.

    Frames too far apart raise.
    """
    interval, q = float(np.max(np.diff(record.times))), float(record.q or 0.0)
    rate = q * fastest_rate(dynamics, mode_grid(record).waves, slope)
    if rate * interval > _FARTHEST:
        raise NoStartError(
            f"the frames are too far apart: from one to the next the law would act with q |G'| dt = "
            f"{rate * interval:.3g}, expected at most {_FARTHEST:g}; check the units of dt, dx and q, or record "
            "more often"
        )
    steps = steps_per_frame(rate, interval, _REACTION if dynamics.parts.mobility is None else _SPLIT)
    return steps if steps < FEW_SUBSTEPS else -(-steps // BLOCK) * BLOCK

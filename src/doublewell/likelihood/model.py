"""RecordModel: predict what is observed of a field from its first values, the law and what is estimated jointly.

On a whole domain the nuisance is the initial field, on a window the initial field and then its border at all later
frames, as one vector. theta is what the view estimates jointly with the law, then the coefficients of the law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, border_mask, fastest_rate, steps_per_frame, symbols
from doublewell.dynamics.etdrk4 import differentiable_force, roll, step_table
from doublewell.dynamics.grid import jax_transforms, refinement
from doublewell.dynamics.open_boundary import border_times, predict_window, window_axes
from doublewell.dynamics.terms import State, Term
from doublewell.errors import InputError, option
from doublewell.hints import Array, Bools
from doublewell.law import Family
from doublewell.observation.view import (
    PLAIN,
    View,
    filled,
    joint_parameters,
    mode_gain,
    mode_grid,
    modes_passed,
    noise_in_time,
    passband,
    transfer,
)
from doublewell.record import Boundary, Record

MOST_SUBSTEPS = 64
_REACTION = 0.5  # largest rate times step of the force to begin with; the resolution is measured after the fit
_SMALLEST = 12  # cells of a window along an axis
_ROUGH = 0.05  # noise of a record too short to measure it
_PRIOR = 1.0  # standard deviation of a phase value of which nothing was observed
_FLOOR = 1e-3  # of the largest: what the preconditioner makes of a mode that is hardly observed
_SMOOTH = 16.0  # exponent of the shortest mode: a Gaussian of about 1.3 cells in two dimensions
_TINY = 1e-300


class Constants(NamedTuple):
    """The arrays of a RecordModel, all of them run-time arguments; what a model does not use is empty."""

    taus: Any  # q times the frame intervals
    root: Any  # what each observation counts
    linear: Any  # L of the dynamics, each mode of the record's mesh
    coupling: Any  # D of the dynamics
    smoothing: Any  # of each mode: tells a pure phase from an interface without the noise
    gain: Any  # what optics and noise make of each mode, squared
    table: Any = ()  # of the steps
    curve: Any = ()  # of the border in time, windows only
    axes: Any = ()  # stencils and modes along each axis, windows only
    finer: Any = ()  # one matrix for each axis, to a finer mesh
    transfer: Any = ()  # of each mode, by the optics
    passband: Any = ()  # of each mode: those of the initial field that the optics let through
    squares: Any = ()  # |kappa|^2 of each mode in units of 1 / dx^2, for an unknown blur
    average: Any = ()  # weight of the second difference in time, for an exposure
    colour: Any = ()  # of each cosine mode, for noise that is not white
    memory: Any = ()  # correlation of consecutive frames of the noise
    waves: Any = ()  # wave numbers along each axis, then L: of the modes that are stepped, with terms only
    pushes: Any = ()  # a field for each frame interval, added to u_t / q there
    prior: Any = ()  # rows [W, t] of what is known of theta, W theta = t, for each record of a batch
    shifts: Any = ()  # for each axis, matrices of the powers of a displacement in cells
    reach: Any = ()  # of the first entries of theta: how far one step may move them


@dataclass(frozen=True)
class RecordModel:
    """The static structure of a record's model; hashable, so that compiled code serves all records of one kind.

    The symbols of a dynamics are run-time arrays, and one program serves all. ``terms`` are what the equation may lack:
    theta ends with one amplitude for each.
    """

    family: Family
    boundary: Boundary
    cells: tuple[int, ...]
    frames: int
    substeps: int
    free: tuple[str, ...] = ()
    refine: int = 1
    terms: tuple[Term, ...] = ()

    def split(self, theta: Any) -> tuple[dict[str, Any], Any]:
        """Return what is estimated jointly with the law, by name, and the coefficients."""
        start, end = len(self.free), len(theta) - len(self.terms)
        return {name: theta[k] for k, name in enumerate(self.free)} | {"terms": theta[end:]}, theta[start:end]

    def first_field(self, nuisance: Any) -> Any:
        """Return the initial field on the record's mesh."""
        if self.boundary != "open":
            return nuisance
        return nuisance[: prod(self.cells)].reshape(self.cells)

    def predict(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return what is observed, u[t, (z, y,) x]."""
        import jax.numpy as jnp

        joint, coefficients = self.split(theta)
        taus = constants.taus * joint.get("q", 1.0)
        run = self._window if self.boundary == "open" else self._whole
        gain, offset = self._contrast(joint, constants)
        fields = run(self._unobserved(nuisance, gain, offset), coefficients, taus, joint, constants)
        if not isinstance(constants.average, tuple):
            # the average over an exposure, to fourth order; the first and the last frame take theirs from the next one
            second = fields[2:] - 2.0 * fields[1:-1] + fields[:-2]
            fields = fields + constants.average * jnp.concatenate([second[:1], second, second[-1:]])
        if not isinstance(constants.shifts, tuple):
            fields = self._moved(fields, joint, constants)
        axes = (-1, *[1] * len(self.cells))
        return fields if gain is None else gain.reshape(axes) * fields + offset.reshape(axes)

    def _contrast(self, joint: dict[str, Any], constants: Constants) -> tuple[Any, Any]:
        """Return gain and offset of each frame; None where the values are exact."""
        if "gain" not in joint:
            return None, None
        clock = self._clock(constants)
        return tuple([joint[name] + joint.get(f"{name} drift", 0.0) * clock for name in ("gain", "offset")])

    def _clock(self, constants: Constants) -> Any:
        """Return the fraction of the record that has passed at each frame."""
        import jax.numpy as jnp

        return jnp.concatenate([jnp.zeros(1), jnp.cumsum(constants.taus)]) / jnp.sum(constants.taus)

    def _moved(self, fields: Any, joint: dict[str, Any], constants: Constants) -> Any:
        """Return frames as they are seen where the picture moves as a whole: u(x - s) along each axis."""
        import jax
        import jax.numpy as jnp

        clock = self._clock(constants)
        for axis, letter in enumerate("zyx"[-len(self.cells) :]):
            way = joint[f"drift {letter}"] * clock + 4.0 * joint[f"bend {letter}"] * clock * (1.0 - clock)
            powers = way[:, None] ** jnp.arange(len(constants.shifts[axis]))

            def shifted(frame: Any, power: Any, axis: int = axis) -> Any:
                matrix = jnp.tensordot(power, constants.shifts[axis], axes=1)
                return jnp.moveaxis(jnp.tensordot(matrix, frame, axes=(1, axis)), 0, axis)

            fields = jax.vmap(shifted)(fields, powers)
        return fields

    def _unobserved(self, nuisance: Any, gain: Any, offset: Any) -> Any:
        """Return the nuisance, which is in observed values, as phase values.

        In observed values it does not move with gain and offset, and frame 0 observes the nuisance alone.
        """
        import jax.numpy as jnp

        if gain is None:
            return nuisance
        if self.boundary != "open":
            return (nuisance - offset[0]) / gain[0]
        n = prod(self.cells)
        border = (nuisance[n:].reshape(self.frames - 1, -1) - offset[1:, None]) / gain[1:, None]
        return jnp.concatenate([(nuisance[:n] - offset[0]) / gain[0], border.ravel()])

    def whiten(self, field: Any, constants: Constants) -> Any:
        """Weight the residual, and take the noise's correlations out of it."""
        field = constants.root * field
        if not isinstance(constants.colour, tuple):
            field = self._filtered(field, constants.colour, "neumann")  # noise does not know of a periodic border
        if isinstance(constants.memory, tuple):
            return field
        import jax.numpy as jnp

        # out of each frame comes what the noise of the previous one predicts of its own
        frames, memory = jnp.moveaxis(jnp.asarray(field), -1 - len(self.cells), 0), constants.memory
        later = (frames[1:] - memory * frames[:-1]) / jnp.sqrt(1.0 - memory**2)
        return jnp.moveaxis(jnp.concatenate([frames[:1], later]), 0, -1 - len(self.cells))

    def preconditioner(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return an approximate inverse of J_u' J_u: what the linear part and the local rate leave of each mode.

        A disturbance of a pure phase dies at the rate D G' - L, one on an interface at -L. So the field is split in two
        parts, fractions whose squares add up to one, and each part has its own sum over the frames. A border is left
        as it is.
        """
        import jax
        import jax.numpy as jnp

        forward, backward = jax_transforms(self.cells, self._modes)
        joint, coefficients = self.split(theta)
        field = self.first_field(self._unobserved(nuisance, *self._contrast(joint, constants)))
        smooth, force = backward(constants.smoothing * forward(field)), differentiable_force(self.family)
        _, slope = jax.jvp(lambda u: force(coefficients, u), (smooth,), (jnp.ones_like(smooth),))
        slope = jnp.maximum(slope, 0.0)
        mean = jnp.sum(slope**2) / jnp.maximum(jnp.sum(slope), _TINY)
        calm = jnp.clip(slope / jnp.maximum(mean, _TINY), 0.0, 1.0)  # how much of each cell is a pure phase
        parts = [
            (jnp.sqrt(calm), _inverse_sum(mean, constants)),
            (jnp.sqrt(1.0 - calm), _inverse_sum(0.0, constants)),
        ]

        def apply(gradient: Any) -> Any:
            field = self.first_field(gradient)
            field = sum(part * backward(damping * forward(part * field)) for part, damping in parts)
            if self.boundary != "open":
                return field
            return jnp.concatenate([field.ravel(), gradient[prod(self.cells) :]])

        return apply

    @property
    def _modes(self) -> Boundary:
        return "neumann" if self.boundary == "open" else self.boundary

    def _whole(self, u0: Any, coefficients: Any, taus: Any, joint: dict[str, Any], constants: Constants) -> Any:
        import jax
        import jax.numpy as jnp

        fine = u0
        for axis, matrix in enumerate(constants.finer):
            fine = jnp.moveaxis(jnp.tensordot(matrix, fine, axes=(1, axis)), 0, axis)
        forward, backward = jax_transforms(fine.shape, self.boundary)
        force, image = differentiable_force(self.family), self._image(joint, constants)
        start = 0 if self.boundary == "periodic" else self.refine // 2
        pick = tuple(slice(start, None, self.refine) for _ in self.cells)

        def emit(modes: Any) -> Any:
            return backward(modes if image is None else image * modes)[pick]

        def second(field: Any, one: int, other: int) -> Any:
            return backward(-constants.waves[one] * constants.waves[other] * forward(field))

        def reaction(known: Any) -> Any:
            def force_modes(m: Any, _: Any) -> Any:
                u = backward(m)
                pull = force(coefficients, u)
                if self.terms or known[2] is not None:

                    def sloped(field: Any) -> Any:
                        return jax.jvp(lambda x: force(coefficients, x), (u,), (field,))[1]

                    curved = backward(constants.waves[-1] * m) if self.terms else None
                    pull = pull - self._extra(joint, u, curved, pull, known[1:], second, sloped)
                return forward(pull)

            return force_modes

        modes = forward(fine) if isinstance(constants.passband, tuple) else constants.passband * forward(fine)
        given = (constants.table.fractions(taus / self.substeps), *self._known(taus, constants))
        later = roll(
            modes, reaction, lambda known: constants.table.weigh(known[0]), emit, given, frames=self.frames,
            substeps=self.substeps,
        )  # fmt: skip
        first = u0 if image is None else emit(modes)
        return jnp.concatenate([first[None], later])

    def _window(self, vector: Any, coefficients: Any, taus: Any, joint: dict[str, Any], constants: Constants) -> Any:
        border = vector[prod(self.cells) :].reshape(self.frames - 1, -1)
        fields = predict_window(
            self.first_field(vector), border, coefficients, taus, constants.curve, constants.axes, constants.table,
            family=self.family, substeps=self.substeps,
            extra=partial(self._extra, joint) if self.terms or not isinstance(constants.pushes, tuple) else None,
            linear=constants.waves[-1] if self.terms else 0.0, known=self._known(taus, constants),
        )  # fmt: skip
        image = self._image(joint, constants)
        return fields if image is None else self._filtered(fields, image, self._modes)

    def _known(self, taus: Any, constants: Constants) -> tuple[Any, Any]:
        """Return the middle of each frame interval as a fraction of the record, and what is added to its rate."""
        import jax.numpy as jnp

        middle = (jnp.cumsum(taus) - 0.5 * taus) / jnp.sum(taus)
        return middle, None if isinstance(constants.pushes, tuple) else constants.pushes

    def _extra(self, joint: dict[str, Any], u: Any, curved: Any, force: Any, known: Any, *more: Any) -> Any:
        """Return what is added to u_t / q: the terms times their amplitudes, and the push of a frame interval."""
        state = State(u, curved, force, known[0], *more)
        total = 0.0 if known[1] is None else known[1]
        return sum((a * term(state) for a, term in zip(joint["terms"], self.terms, strict=True)), total)

    def _image(self, joint: dict[str, Any], constants: Constants) -> Any:
        """Return the factor of each mode between the field and its image; None where they are the same."""
        import jax.numpy as jnp

        image = None if isinstance(constants.transfer, tuple) else constants.transfer
        if "blur" in joint:
            blur = jnp.exp(-0.5 * joint["blur"] * constants.squares)
            image = blur if image is None else image * blur
        return image

    def _filtered(self, fields: Any, factor: Any, modes: Boundary) -> Any:
        """Multiply the modes of every frame."""
        import jax
        import jax.numpy as jnp

        fields = jnp.asarray(fields)
        forward, backward = jax_transforms(self.cells, modes)
        flat = fields.reshape(-1, *self.cells)
        return jax.vmap(lambda frame: backward(factor * forward(frame)))(flat).reshape(fields.shape)

    def nuisance_of(self, fields: Array) -> Array:
        """Return the nuisance of fields[record, t, ...]: the first field, and on a window the border of the others."""
        if self.boundary != "open":
            return fields[:, 0]
        border = fields[:, 1:][:, :, border_mask(self.cells)]
        return np.hstack([part.reshape(len(fields), -1) for part in (fields[:, 0], border)])


def _inverse_sum(slope: Any, constants: Constants) -> Any:
    """Return 1 / sum_k exp(2 (L - D slope) tau_k) of each mode, times what optics and noise make of it."""
    import jax
    import jax.numpy as jnp

    def add(total: Any, tau: Any) -> tuple[Any, None]:
        return total + jnp.exp(2.0 * (constants.linear - constants.coupling * slope) * tau), None

    total, _ = jax.lax.scan(add, jnp.ones_like(constants.linear), jnp.cumsum(constants.taus))
    total = total * constants.gain
    return 1.0 / jnp.maximum(total, _FLOOR * jnp.max(total))


def record_model(
    record: Record, family: Family, substeps: int, view: View = PLAIN, *, dynamics: Dynamics = ALLEN_CAHN,
    refine: int | None = None, order: int = 8, terms: tuple[Term, ...] = (),
) -> tuple[RecordModel, Constants]:  # fmt: skip
    """Build the model of a record and its constants; `refine` and `order` replace the view's and the default.

    A Batch builds each of its models once: benchmarks/architecture.py counts the calls.
    """
    optics, whitening, window = view.optics, view.whitening, record.boundary == "open"
    refine = optics.refine if refine is None else refine
    model = RecordModel(
        family, record.boundary or "open", record.mesh, record.frames, substeps, view.free, refine, terms
    )
    q, taus = float(record.q or 0.0), float(record.q or 0.0) * np.diff(record.times)
    grid, fine = mode_grid(record), mode_grid(record, refine)
    linear, coupling = symbols(dynamics, grid)
    constants = Constants(
        taus=taus,
        root=1.0 if whitening.root is None else whitening.root,
        linear=linear,
        coupling=coupling,
        smoothing=np.exp(_SMOOTH * grid.laplacian / np.max(-grid.laplacian)),
        gain=mode_gain(grid, view),
    )
    more: dict[str, Any] = {}
    stepped = symbols(dynamics, fine)
    if window:
        more["curve"] = border_times(record.times, substeps)
        more["axes"], stepped = window_axes(record.mesh, record.dx, dynamics, order)
    if terms:
        more["waves"] = (*fine.waves, stepped.linear)
    if record.uniform:
        more["taus"] = taus = np.full(taus.shape, q * record.dt)
    low, high = dynamics.joint[0].bounds if view.q_free else (1.0, 1.0)  # of q in units of the record's
    more["table"] = step_table(stepped, low * float(np.min(taus)) / substeps, high * float(np.max(taus)) / substeps)
    if refine > 1:
        more["finer"] = tuple(refinement(n, refine, grid.boundary) for n in grid.cells)
    if view.blurs:
        more["transfer"] = transfer(fine, grid, optics)
    if view.blurs and not window:
        more["passband"] = passband(fine, grid, optics)
    if "blur" in view.free:
        more["squares"] = -fine.laplacian * record.dx[-1] ** 2
    if optics.exposure:
        more["average"] = (optics.exposure / record.dt) ** 2 / 24.0
    if whitening.colour is not None:
        more["colour"] = whitening.colour
    if view.moving:
        more["shifts"] = [shift_powers(n, periodic=record.boundary == "periodic") for n in record.mesh]
    if view.contrast:
        more["reach"] = np.array([parameter.prior for parameter in joint_parameters(view, dynamics)])
    if whitening.memory:
        more["memory"] = np.float64(whitening.memory)
    return model, constants._replace(**more)


def shift_powers(cells: int, *, periodic: bool, points: int = 8) -> Array:
    """Return matrices D_m with u(x - s) = sum_m s^m D_m u, s in cells: interpolation through the nearest cells."""
    matrices = np.zeros((points, cells, cells))
    for row in range(cells):
        first = row - points // 2 if periodic else min(max(row - points // 2, 0), cells - points)
        offsets = np.arange(first, first + points)
        lagrange = np.linalg.inv(np.vander((offsets - row).astype(np.float64), increasing=True).T)  # of powers of x
        matrices[:, row, offsets % cells] = lagrange.T * (-1.0) ** np.arange(points)[:, None]
    return matrices


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


def check_window(record: Record) -> None:
    """Refuse a window that is little more than its border."""
    if min(record.mesh) < _SMALLEST:
        raise InputError(
            f"the window is {' x '.join(str(n) for n in record.mesh)}: expected at least {_SMALLEST} cells along each "
            "axis, for two on each side serve as its border; take a larger part, or declare "
            f"{option('boundary', 'periodic')} or neumann"
        )


def growth(record: Record, coefficients: Array, dynamics: Dynamics = ALLEN_CAHN) -> float:
    """Return the logarithm of how much an error of the initial field may grow: for Allen-Cahn q |G'| T."""
    slope = float(np.max(np.abs(coefficients)))
    rate = float(record.q or 0.0) * fastest_rate(dynamics, mode_grid(record).waves, slope)
    return rate * float(record.times[-1] - record.times[0])


def first_substeps(record: Record, start: Array, dynamics: Dynamics = ALLEN_CAHN) -> int:
    """Return steps from frame to frame such that the force changes little in each; frames too far apart raise."""
    interval, q = float(np.max(np.diff(record.times))), float(record.q or 0.0)
    slope = 2.0 * float(np.max(np.abs(start)))  # bounds |G'| at both the wells and the centre
    rate = q * fastest_rate(dynamics, mode_grid(record).waves, slope)
    if rate * interval > _REACTION * MOST_SUBSTEPS:
        raise InputError(
            f"the frames are too far apart: from one to the next the law would act with q |G'| dt = "
            f"{rate * interval:.3g}, expected at most {_REACTION * MOST_SUBSTEPS:g}; check the units of dt, dx and q, "
            "or record more often"
        )
    return steps_per_frame(rate, interval, _REACTION)


@dataclass(frozen=True, eq=False)
class Observed:
    """The values of a record, filled where nothing was observed, what each counts, and how many are informative.

    ``mask`` is True where a value was observed, None where all were. ``rows`` is the number of observed values less
    that of the nuisance's values that they determine.
    """

    values: Array
    root: Array | float
    mask: Bools | None
    rows: int


def observed(record: Record, view: View = PLAIN) -> Observed:
    """Return the values of a record with their weights.

    What was not observed is filled in from its surroundings. Where the model needs a value there (of the initial field,
    of a border), the filling counts like one observation with an error as large as the phases are apart.
    """
    values, own = record.slab(), view.whitening.root
    edge = border_mask(record.mesh) if record.boundary == "open" else np.zeros(record.mesh, dtype=bool)
    root = 1.0 if own is None else own
    if record.mask is None:
        first = modes_passed(mode_grid(record), view) if record.boundary != "open" else prod(record.mesh)
        nuisance = first + (record.frames - 1) * int(np.count_nonzero(edge))
        return Observed(values, root, None, values.size - nuisance)
    if view.whitening.colour is not None or view.whitening.memory:
        raise InputError(
            "correlated noise and missing values do not go together: expected complete frames; cut the record to a "
            f"part without gaps, or use {option('noise', 'white')}"
        )
    mask = np.asarray(record.observed())
    needed = np.zeros(values.shape, dtype=bool)
    needed[0] = True
    needed[:, edge] = True
    rough = noise_in_time(values, mask)
    root = np.where(mask, root, np.where(needed, (_ROUGH if rough is None else rough) / _PRIOR, 0.0))
    # The values determine a cell of the first field if it was ever observed; a value of a window's border that was
    # observed, and one that was not if it lies next to a cell inside that ever was: the motion of that cell needs it.
    ever = np.any(mask, axis=0)
    inside = np.pad(ever & ~edge, 1)
    next_to = np.zeros_like(inside)
    for axis in range(edge.ndim):
        next_to |= np.roll(inside, 1, axis=axis) | np.roll(inside, -1, axis=axis)
    known = (mask | next_to[(slice(1, -1),) * edge.ndim]) & edge
    determined = int(np.count_nonzero(ever & ~edge)) + int(np.count_nonzero(known))
    return Observed(filled(values, mask), root, mask, int(np.count_nonzero(mask)) - determined)

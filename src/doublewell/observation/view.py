"""View: how a record is observed. Optics, the noise's shape, what is estimated jointly with the law, and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doublewell.dynamics import Grid, JointParameter, border_mask, joint_parameter, numpy_transforms
from doublewell.dynamics.open_boundary import BORDER
from doublewell.errors import InputError, option
from doublewell.hints import Array, Bools
from doublewell.law.family import namespace
from doublewell.options import Noise, Observation
from doublewell.record import Record
from doublewell.record.levels import smooth_basis
from doublewell.record.pixels import differences, noise_line

SHARP = Observation(contrast="exact", blur=0.0, pixel=False, drift="none", exposure=0.0)
FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_FLOOR = 0.01  # of the mean level: white noise that is added to a measured spectrum
BLUR = JointParameter("blur", start=0.25, unit="dx^2")  # a variance; starts at half a cell
SOME_BLUR = JointParameter("blur", start=0.08, unit="dx^2", prior=0.1)  # not declared
DRIFT = tuple(  # displacement from the first frame to the last, and how far from even it is, in cells along each axis
    JointParameter(f"{name} {axis}", start=0.0, unit="u", prior=2.0) for axis in "zyx" for name in ("drift", "bend")
)
CONTRAST = tuple(  # values = gain u + offset; drifts are the changes from the first frame to the last
    JointParameter(name, start=float(name == "gain"), unit="u", prior=0.15)
    for name in ("gain", "offset", "gain drift", "offset drift")
)
RESPONSE = JointParameter("response", start=1.0, unit="u", prior=0.5)  # exponent of grey values
_DARK = 2e-3  # grey value of the low phase over that of the high one, where no levels are known
_PASSED = 0.2  # of a mode
_SMOOTH = 1.5  # modes over which a spectrum is averaged
_EARLY = 0.2  # fraction of the frames in which the initial field takes much of the noise
_MEMORY = 4.0  # standard errors of a correlation in time that counts
_BINS = 12  # of phase values, for noise that varies with them
_SHARED = 2.6  # differences that share frames, in independent ones
_FAR = 5.0  # standard deviations of an outlier
_ROUGH = 0.05  # noise of a record too small to measure it
_PRIOR = 1.0  # standard deviation of a phase value of which nothing was observed
_OFTEN = 0.2  # fraction of frames in which a cell is an outlier, above which it is left out altogether


@dataclass(frozen=True, eq=False)
class Whitening:
    """The shape of the noise, its level aside.

    ``root`` is what each value counts, shape (frames, ...) or one that broadcasts; ``colour`` the factor of each
    cosine mode of a frame, one over the root of the noise's spectrum, None for white noise; ``memory`` the correlation
    of consecutive frames. ``level`` is the noise where these are one; None: it is what the fit leaves.
    """

    root: Array | None = None
    colour: Array | None = None
    memory: float = 0.0
    level: float | None = None


@dataclass(frozen=True, eq=False)
class View:
    """Optics and noise of a record, and what is estimated jointly with the law.

    ``free`` are the names of the entries of theta that come before the coefficients: one for q is its ratio to the
    record's q; one for the blur is its variance in units of dx^2 of the last axis; gain and offset are those of the
    values of the record as it is fitted, with its declared phases at -1 and +1. ``parts`` is the number of parts of a
    record that what is known of these is divided among, ``equation`` names what is estimated of the equation beside q,
    ``moving`` the letters of the axes along which pictures drift,
    ``light`` the degrees in space and time of what may be left of a camera's light, 0 where there is none, ``dark`` the
    grey value of the low phase over that of the high one.
    """

    optics: Observation = SHARP
    whitening: Whitening = Whitening()
    q_free: bool = False
    equation: tuple[str, ...] = ()
    parts: int = 1
    moving: str = ""
    light: tuple[int, int] | None = None
    dark: float = _DARK

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the entries of theta that come before the coefficients."""
        named = [("q", self.q_free), *[(name, True) for name in self.equation]]
        named += [("blur", self.optics.blur in ("estimated", "some"))]
        named += [(name, self.contrast) for name in ("gain", "offset")]
        named += [(name, self.optics.contrast == "drifting") for name in ("gain drift", "offset drift")]
        named += [(known.name, known.name[-1] in self.moving) for known in DRIFT]
        named += [("response", self.optics.response == "estimated")]
        return tuple([name for name, free in named if free])

    @property
    def contrast(self) -> bool:
        """Whether gain and offset are estimated."""
        return self.optics.contrast in ("estimated", "drifting")

    @property
    def velocity(self) -> tuple[float, ...]:
        """A known drift along each axis, in length over time; empty where there is none."""
        return () if isinstance(self.optics.drift, str) else self.optics.drift

    @property
    def blurs(self) -> bool:
        """Whether a picture is not the field at its points."""
        return self.optics.blur not in (0.0, "auto") or bool(self.optics.pixel)

    @property
    def imaged(self) -> bool:
        """Whether there are optics: blur, pixels, exposure or a finer mesh."""
        return self.blurs or bool(self.optics.exposure) or self.refine > 1

    @property
    def refine(self) -> int:
        """How many times finer the model's mesh is than the record's."""
        return 1 if isinstance(self.optics.refine, str) else self.optics.refine

    def finer(self, boundary: str | None) -> View:
        """Return the view with a finer mesh, one that holds the points of this one."""
        return replace(self, optics=replace(self.optics, refine=self.refine + (2 if boundary == "neumann" else 1)))

    @property
    def plain(self) -> bool:
        """Whether fields are observed as they are but for contrast and offset, with white noise and known q."""
        noise = self.whitening
        free = (
            self.imaged
            or self.q_free
            or self.equation
            or self.moving
            or self.velocity
            or self.light
            or self.optics.response != 1.0
        )
        return not (free or noise.memory) and noise.root is noise.colour is None


PLAIN = View()


def light_basis(orders: tuple[int, int], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return smooth terms in space, (terms, (z, y,) x), and in time, (terms, frames), each of mean square 1.

    Uneven, stray and fading light was taken off grey values, and a dark value. What an error of these leaves moves the
    values of each phase by a sum of such terms; of a dark value that is a little off it is the light that was removed.
    """
    space = smooth_basis(shape[1:], orders[0]).reshape(-1, *shape[1:])
    time = smooth_basis(shape[:1], min(orders[1], shape[0] - 1)).reshape(-1, shape[0])
    size = [np.sqrt(np.mean(terms**2, axis=tuple(range(1, terms.ndim)), keepdims=True)) for terms in (space, time)]
    return space / size[0], time / size[1]


def middle_half(phases: tuple[float, float]) -> tuple[float, float]:
    """Return the middle of two phases, and half the distance between them."""
    return 0.5 * (phases[0] + phases[1]), 0.5 * (phases[1] - phases[0])


def joint_parameters(view: View) -> list[JointParameter]:
    """Return the parameters that a view estimates jointly with the law."""
    blur = BLUR if view.optics.blur == "estimated" else SOME_BLUR
    known = {parameter.name: parameter for parameter in (blur, *CONTRAST, *DRIFT, RESPONSE)}
    return [known[name] if name in known else joint_parameter(name) for name in view.free]


def joint_start(view: View) -> Array:
    """Return where these parameters start."""
    return np.array([parameter.start for parameter in joint_parameters(view)])


def check_view(record: Record, view: View) -> None:
    """Refuse optics that a record does not allow, before anything is read."""
    optics = view.optics
    if view.refine % 2 == 0 and record.boundary == "neumann":
        raise InputError(
            f"refine is {optics.refine}: expected an odd one with {option('boundary', 'neumann')}, so that a cell of "
            "the record is the centre of a cell of the model"
        )
    if view.velocity and len(view.velocity) != len(record.mesh):
        raise InputError(
            f"drift has {len(view.velocity)} numbers: expected a velocity for each of the {len(record.mesh)} axes, in "
            "the order (z, y,) x"
        )
    if (view.moving or view.velocity) and record.boundary == "neumann":
        raise InputError(
            f"a picture that drifts has no fixed wall at its border: leave out {option('boundary')}, or use "
            f"{option('drift', 'none')}"
        )
    if optics.exposure and not (record.uniform and optics.exposure <= record.dt * (1.0 + 1e-9)):
        raise InputError(
            f"exposure is {optics.exposure:g}: expected evenly spaced frames and an exposure no longer than their "
            "interval; give the exposure in the unit of the times"
        )


def mode_grid(record: Record, refine: int = 1) -> Grid:
    """Return the mesh whose modes serve a record, or a finer one: cosines for a window, which has none of its own."""
    boundary = "neumann" if record.boundary in (None, "open") else record.boundary
    return Grid((refine * np.array(record.mesh)).tolist(), (np.array(record.dx) / refine).tolist(), boundary)


def transfer(waves: Sequence[Array], dx: Sequence[float], optics: Observation) -> Array:
    """Return what is left of modes with these wave numbers in pictures with pixels of the sizes `dx`."""
    left = np.ones(np.broadcast_shapes(*[k.shape for k in waves]))
    for k, h in zip(waves, dx, strict=True):
        if not isinstance(optics.blur, str) and optics.blur:
            left = left * np.exp(-0.5 * (optics.blur * k) ** 2)
        if optics.pixel:
            left = left * np.sinc(k * h / (2.0 * np.pi))
        if optics.pixel and optics.pixel is not True:  # a mean of so many values, not an integral
            left = left / np.sinc(k * h / (2.0 * np.pi * optics.pixel))
    return left


def grey_of_light(u: Any, power: Any, dark: Any) -> Any:
    """Return what a camera whose grey values are a power of the light makes of phase values; those of the phases stay.

    `dark` is the grey value of the low phase over that of the high one.
    """
    low = dark ** (1.0 / power)
    return 2.0 * (_raised(low + 0.5 * (1.0 - low) * (1.0 + u), power, 0.5 * low) - dark) / (1.0 - dark) - 1.0


def light_of_grey(values: Any, power: Any, dark: Any) -> Any:
    """Invert ``grey_of_light``."""
    low, grey = dark ** (1.0 / power), dark + 0.5 * (1.0 - dark) * (1.0 + values)
    return 2.0 * (_raised(grey, 1.0 / power, (0.5 * low) ** power) - low) / (1.0 - low) - 1.0


def _raised(light: Any, power: Any, least: Any) -> Any:
    """Return a power of light, continued by a straight line below the least."""
    safe = namespace(light).maximum(light, least)
    return safe**power + power * safe ** (power - 1.0) * (light - safe)


def passband(waves: Sequence[Array], dx: Sequence[float], optics: Observation) -> Array:
    """Return 1 for the modes of the initial field that the optics let through well enough, else 0.

    A mode of which less than a fifth is observed would be fitted to noise, five times as large, and the law is not
    linear. A resolved interface has next to nothing there.
    """
    likely = optics if optics.blur != "estimated" else replace(optics, blur=min(dx))
    return (transfer(waves, dx, likely) > _PASSED).astype(np.float64)


def modes_passed(grid: Grid, view: View) -> int:
    """Return how many modes of the initial field the optics let through; all of them without optics."""
    if not view.blurs:
        return int(np.prod(grid.cells))
    return int(np.sum(passband(grid.waves, grid.dx, view.optics) * grid.multiplicity))


def mode_gain(grid: Grid, view: View) -> Array:
    """Return what the noise makes of the square of each mode of a picture; the optics may let none of it through."""
    passed, colour = passband(grid.waves, grid.dx, view.optics), view.whitening.colour
    if colour is None:
        return passed
    if grid.boundary == "periodic":  # a wave that fits m times is the cosine 2 m of the mirrored axis
        sides = zip(grid.waves, grid.extent, grid.cells, strict=True)
        cosines = [np.minimum(np.rint(np.abs(k) * length / np.pi).astype(int), n - 1) for k, length, n in sides]
        colour = colour[tuple(np.broadcast_arrays(*cosines))]
    return np.asarray(passed * colour**2)


def noisy(record: Record, width: int = BORDER) -> Bools:
    """Return the values whose residual is noise: those observed, less the border of a window, which is estimated."""
    mask = record.observed()
    return np.asarray(mask & ~border_mask(record.mesh, width)) if record.boundary == "open" else mask


def camera_noise(record: Record, view: View) -> View:
    """Return the view with shot noise where the values of a camera show it, before any fit.

    The variance of fourth differences in time is a line in the phase value. Weights follow the smoothed field: noise
    must not weigh itself. Motion makes them less exact than those of a first fit, which ``noise="shot"`` takes.
    """
    from scipy.ndimage import gaussian_filter

    if view.optics.noise != "auto" or record.origin != "camera" or record.frames < len(FOURTH):
        return view
    values, known = complete(record).slab(), record.observed()
    rest, means = differences(values)
    kept = np.all([known[k : k + len(rest)] for k in range(len(known) - len(rest) + 1)], axis=0)
    line = noise_line(means[kept], rest[kept], shared=_SHARED)
    if not line.shot:
        return view
    smooth = np.clip(gaussian_filter(values, (1.5, *[0.5] * len(record.mesh)), mode="nearest"), -1.0, 1.0)
    fitted = np.maximum(line.level + line.slope * smooth, 0.02 * line.level)
    return replace(view, whitening=Whitening(root=np.asarray(np.sqrt(np.mean(fitted) / fitted))))


def noise_view(record: Record, residual: Array, view: View, noise: Noise, width: int = BORDER) -> View:
    """Return the view with the noise's shape as the residual of a fit shows it; a window's border has a `width`."""
    if noise == "correlated":
        return replace(view, whitening=_correlated(record, residual, width))
    return replace(view, whitening=Whitening(root=_shot(record, residual, width))) if noise == "shot" else view


def spectrum(record: Record, residual: Array, width: int = BORDER) -> Array:
    """Return the mean power of each cosine mode of a frame, smoothed over neighbours; white noise has its variance.

    Cosines, whatever the boundary: noise does not know that a domain is periodic, and would be torn at its ends.
    """
    from scipy.ndimage import gaussian_filter

    forward, _ = numpy_transforms(record.mesh, "neumann")
    power = np.mean(forward(residual[int(_EARLY * len(residual)) :]) ** 2, axis=0) / np.mean(noisy(record, width))
    return np.asarray(gaussian_filter(power, _SMOOTH, mode="reflect"))


def _correlated(record: Record, residual: Array, width: int) -> Whitening:
    """Return colour and memory; their level is known, so it is not estimated a second time.

    Modes that hold nearly no noise would count without bound, and the model is not exact to that degree: the floor
    is how exactly it is taken. It only makes the errors larger. Noise that is correlated in space has fewer independent
    values than pixels: their number is read off the scatter of the correlation in time from frame to frame.
    """
    early = int(_EARLY * len(residual))
    late = residual[early:].reshape(len(residual) - early, -1)
    level = float(np.mean(residual[early:][noisy(record, width)[early:]] ** 2))
    each = np.sum(late[1:] * late[:-1], axis=1) / np.mean(np.sum(late**2, axis=1))
    mean, error = float(np.mean(each)), float(np.std(each) / np.sqrt(each.size))
    return Whitening(
        colour=1.0 / np.sqrt(spectrum(record, residual, width) / level + _FLOOR),
        memory=mean if abs(mean) > _MEMORY * error else 0.0,
        level=float(np.sqrt(level)),
    )


def _shot(record: Record, residual: Array, width: int) -> Array:
    """Return one over the noise's standard deviation as a line in the phase value; the mean variance is 1."""
    predicted = record.slab() - residual
    kept = np.array(noisy(record, width))
    kept[np.arange(record.frames) < _EARLY * record.frames] = False
    u, r = predicted[kept], residual[kept]
    edges = np.quantile(u, np.linspace(0.0, 1.0, _BINS + 1))
    bins = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS).astype(float)
    full = counts > 1
    centres = np.bincount(bins, u, _BINS)[full] / counts[full]
    variances = np.bincount(bins, r**2, _BINS)[full] / counts[full]
    root = np.sqrt(counts[full]) / variances  # the error of a variance is in proportion to it
    slope, level = np.linalg.lstsq(root[:, None] * np.stack([centres, np.ones_like(centres)], 1), root * variances)[0]
    fitted = np.maximum(level + slope * np.clip(predicted, -1.0, 1.0), 0.05 * float(np.mean(variances)))
    return np.asarray(np.sqrt(np.mean(fitted) / fitted))


def outlier_mask(record: Record, residual: Array, width: int = BORDER) -> Bools:
    """Return what is left of a record without values far from a fit, and without cells that often are."""
    far = np.abs(residual) > _FAR * 1.4826 * float(np.median(np.abs(residual[noisy(record, width)])))
    return np.asarray(record.observed() & ~far & ~(np.mean(far, axis=0) > _OFTEN))


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


def observed(record: Record, view: View = PLAIN, width: int = BORDER) -> Observed:
    """Return the values of a record with their weights.

    What was not observed is filled in from its surroundings. Where the model needs a value there (of the initial field,
    of a border), the filling counts like one observation with an error as large as the phases are apart.
    """
    values, own = record.slab(), view.whitening.root
    edge = border_mask(record.mesh, width) if record.boundary == "open" else np.zeros(record.mesh, dtype=bool)
    root = 1.0 if own is None else own
    if record.mask is None:
        first = modes_passed(mode_grid(record), view) if record.boundary != "open" else int(np.prod(record.mesh))
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


def noise_in_time(values: Array, mask: Bools | None = None) -> float | None:
    """Return the noise from fourth differences in time where all five values are known; None where there are none."""
    if len(values) < len(FOURTH):
        return None
    starts = len(values) - len(FOURTH) + 1
    rest = sum(c * values[k : k + starts] for k, c in enumerate(FOURTH)) / np.linalg.norm(FOURTH)
    if mask is not None:
        rest = rest[np.all([mask[k : k + starts] for k in range(len(FOURTH))], axis=0)]
    return 1.4826 * float(np.median(np.abs(rest))) if rest.size else None


def rough_noise(values: Array, mask: Bools | None = None) -> float:
    """Return the noise from fourth differences in time, of few frames along x."""
    noise = noise_in_time(values, mask)
    return float(noise_in_time(np.moveaxis(values, -1, 0)) or _ROUGH) if noise is None else noise


def complete(record: Record) -> Record:
    """Return a record with its missing values filled in: to start from, not to fit."""
    return record if record.mask is None else record.replace(filled(record.slab(), record.observed()), mask=None)


def filled(values: Array, mask: Bools) -> Array:
    """Fill missing values: from the nearest frame in which the cell is known, else from the cells around it."""
    from scipy.ndimage import gaussian_filter

    u = np.where(mask, values, np.nan)
    for k in range(1, len(u)):
        u[k] = np.where(np.isnan(u[k]), u[k - 1], u[k])
    for k in range(len(u) - 2, -1, -1):
        u[k] = np.where(np.isnan(u[k]), u[k + 1], u[k])
    for frame in u:
        gaps, width = np.isnan(frame), 1.0
        known = np.where(gaps, 0.0, frame)
        while gaps.any():
            weight = gaussian_filter((~np.isnan(frame)).astype(float), width, mode="nearest")
            mean = gaussian_filter(known, width, mode="nearest") / np.maximum(weight, 1e-300)
            ready = gaps & (weight > 0.05)
            frame[ready] = mean[ready]
            gaps, width = gaps & ~ready, 1.5 * width
    return u

"""View: how a record is observed. Optics, the noise's shape, and what is estimated jointly with the law."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, Grid, JointParameter
from doublewell.errors import InputError, shown
from doublewell.hints import Array
from doublewell.record import Record

Free = Literal["q", "blur"]
BLUR = JointParameter("blur", start=0.25, unit="dx^2", bounds=(0.0, np.inf))  # a variance; starts at half a cell
_PASSED = 0.2  # of a mode


@dataclass(frozen=True)
class Optics:
    """What lies between the phase field and its image.

    Parameters
    ----------
    blur
        Standard deviation of a Gaussian point-spread function, in the unit of dx; "estimated" when it is not known.
    pixel
        Whether a pixel is the mean over its area; without it, the value at its centre.
    exposure
        Time over which a frame is averaged, in the unit of the times, centred at the time of the frame.
    refine
        How many times finer the model's mesh is than the record's: for records coarser than their interface. With a
        no-flux wall it must be odd.

    >>> Optics(blur=0.01, pixel=True)
    Optics(blur=0.01, pixel=True, exposure=0.0, refine=1)
    """

    blur: float | Literal["estimated"] = 0.0
    pixel: bool = False
    exposure: float = 0.0
    refine: int = 1

    def __post_init__(self) -> None:
        if not (self.blur == "estimated" or _length(self.blur)):
            raise InputError(f"blur is {shown(self.blur)}: expected a length of at least 0, or 'estimated'")
        if not _length(self.exposure):
            raise InputError(f"exposure is {shown(self.exposure)}: expected a time of at least 0")
        if not (isinstance(self.refine, int) and not isinstance(self.refine, bool) and 1 <= self.refine <= 8):
            raise InputError(f"refine is {shown(self.refine)}: expected an integer from 1 to 8")

    @property
    def transfers(self) -> bool:
        """Whether an image differs from the field."""
        return self.blur != 0.0 or self.pixel


def _length(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < np.inf


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
    """Optics and noise of a record, and which of q and blur are estimated jointly with the law.

    An entry of theta for q is its ratio to the record's q; one for the blur is its variance in units of dx^2 of the
    last axis.
    """

    optics: Optics = Optics()
    whitening: Whitening = Whitening()
    q_free: bool = False

    @property
    def free(self) -> tuple[Free, ...]:
        """Names of the entries of theta that come before the coefficients."""
        q: tuple[Free, ...] = ("q",) if self.q_free else ()
        return (*q, "blur") if self.optics.blur == "estimated" else q

    @property
    def plain(self) -> bool:
        """Whether fields are observed as they are, with white noise and known q."""
        noise = self.whitening
        return self.optics == Optics() and not self.q_free and noise.root is noise.colour is None and not noise.memory


PLAIN = View()


def joint_start(view: View, dynamics: Dynamics = ALLEN_CAHN) -> Array:
    """Return where the parameters that a view estimates jointly with the law start."""
    return np.array([joint_parameter(name, dynamics).start for name in view.free])


def joint_parameter(name: str, dynamics: Dynamics) -> JointParameter:
    """Return a parameter of the dynamics or of the optics by its name."""
    return next(parameter for parameter in (*dynamics.joint, BLUR) if parameter.name == name)


def check_view(record: Record, view: View) -> None:
    """Refuse optics that a record does not allow, before anything is read."""
    optics = view.optics
    if optics.refine > 1 and record.boundary in (None, "open"):
        raise InputError("refine is for whole domains: a window has no finer mesh of its own; leave refine out")
    if optics.refine % 2 == 0 and record.boundary == "neumann":
        raise InputError(
            f"refine is {optics.refine}: expected an odd number where boundary='neumann', so that a cell of the record "
            "is the centre of a cell of the model"
        )
    if optics.exposure and not (record.uniform and optics.exposure <= record.dt * (1.0 + 1e-9)):
        raise InputError(
            f"exposure is {optics.exposure:g}: expected evenly spaced frames and an exposure no longer than their "
            "interval; give the exposure in the unit of the times"
        )


def mode_grid(record: Record) -> Grid:
    """Return the mesh whose modes serve a record: cosines for a window, which has no modes of its own."""
    return Grid(record.mesh, record.dx, "neumann" if record.boundary in (None, "open") else record.boundary)


def transfer(fine: Grid, grid: Grid, optics: Optics) -> Array:
    """Return what is left of each mode in the image; the mesh may be finer than that of the pixels."""
    left = np.ones_like(fine.laplacian)
    if isinstance(optics.blur, float | int) and optics.blur:
        left = left * np.exp(0.5 * float(optics.blur) ** 2 * fine.laplacian)
    if optics.pixel:
        sides = zip(fine.waves, grid.dx, strict=True)
        left = left * reduce(np.multiply, [np.sinc(k * h / (2.0 * np.pi)) for k, h in sides])
    return np.asarray(left)


def passband(fine: Grid, grid: Grid, optics: Optics) -> Array:
    """Return 1 for the modes of the initial field that the optics let through well enough, else 0.

    A mode of which less than a fifth is observed would be fitted to noise, five times as large, and the law is not
    linear. A resolved interface has next to nothing there.
    """
    likely = optics if optics.blur != "estimated" else replace(optics, blur=min(grid.dx))
    return (transfer(fine, grid, likely) > _PASSED).astype(np.float64)


def modes_passed(grid: Grid, optics: Optics) -> int:
    """Return how many modes of the initial field the optics let through; all of them without optics."""
    if not optics.transfers:
        return int(np.prod(grid.cells))
    passed = passband(grid, grid, optics)
    if grid.boundary == "neumann":
        return int(np.sum(passed))
    count = np.full(passed.shape[-1], 2.0)  # a mode of the last axis stands for its mirror image too
    count[0] = 1.0
    if grid.cells[-1] % 2 == 0:
        count[-1] = 1.0
    return int(np.sum(passed * count))


def mode_gain(grid: Grid, view: View) -> Array:
    """Return what optics and noise make of the square of each mode."""
    passed, colour = transfer(grid, grid, view.optics), view.whitening.colour
    if colour is None:
        return np.asarray(passed**2)
    if grid.boundary == "periodic":  # a wave that fits m times is the cosine 2 m of the mirrored axis
        units = [2 * np.pi / length for length in grid.extent]
        indices = [
            np.minimum(np.rint(2 * np.abs(kappa) / unit).astype(int), n - 1)
            for kappa, unit, n in zip(grid.waves, units, grid.cells, strict=True)
        ]
        colour = colour[tuple(np.broadcast_arrays(*indices))]
    return np.asarray(passed**2 * colour**2)

"""Experiment: a movie that has not been recorded yet, and the changes that could make it better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from doublewell.checks import numbers, positive, whole
from doublewell.dynamics import Grid
from doublewell.hints import Array
from doublewell.law import Law, check_law
from doublewell.record import Boundary, Record
from doublewell.simulate import simulate

__all__ = ["Experiment", "faster", "finer", "longer", "quieter", "sparser"]

_SUBSTEPS = 12  # of CNAB2 from frame to frame, at least
_REACTION = 0.03  # largest q |G'| of one CNAB2 step: its error is then far below the noise


@dataclass(frozen=True, eq=False)
class Experiment:
    """Describe a movie: what will be seen, how often, how long and with what noise.

    Parameters
    ----------
    law
        The law that is expected, read as F'. An effective force G, such as a recovered one, goes with epsilon = 1.
    initial
        The initial field u0[(z, y,) x], pure phases at -1 and +1; ``initial_field`` makes some.
    dx, dt, frames
        Pixel size, time from frame to frame, number of frames with the first one.
    noise
        Standard deviation of the noise of one pixel in one frame.
    epsilon, q, boundary
        Interface scale, diffusion coefficient, and what happens at the border.
    """

    law: Law
    initial: Array
    dx: float | Sequence[float]
    dt: float
    frames: int
    noise: float
    epsilon: float = 1.0
    q: float = 1.0
    boundary: Boundary = "periodic"

    def __init__(
        self,
        law: Law,
        initial: ArrayLike,
        *,
        dx: float | Sequence[float],
        dt: float,
        frames: int,
        noise: float,
        epsilon: float = 1.0,
        q: float = 1.0,
        boundary: Boundary = "periodic",
    ) -> None:
        field = numbers(initial, "initial").copy()
        field.flags.writeable = False
        grid = Grid(field.shape, dx, boundary)
        checked = {
            "law": check_law(law),
            "initial": field,
            "dx": grid.dx,
            "dt": positive(dt, "dt", "the frame interval"),
            "frames": whole(frames, "frames", least=2),
            "noise": positive(noise, "noise", "the standard deviation of the noise of one pixel"),
            "epsilon": positive(epsilon, "epsilon", "the interface scale"),
            "q": positive(q, "q", "the diffusion coefficient"),
            "boundary": grid.boundary,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def duration(self) -> float:
        """Time from the first frame to the last."""
        return (self.frames - 1) * self.dt

    @property
    def force(self) -> Law:
        """The effective force G = F'/epsilon^2."""
        return self.law.effective(self.epsilon)

    @cached_property
    def movie(self) -> Record:
        """The movie without noise, by CNAB2."""
        return simulate(
            self.law, self.initial, dx=self.dx, dt=self.dt, frames=self.frames, epsilon=self.epsilon, q=self.q,
            boundary=self.boundary, substeps=self._substeps,
        )  # fmt: skip

    @property
    def _substeps(self) -> int:
        u = np.linspace(-1.0, 1.0, 401)
        steepest = float(np.max(np.abs(np.gradient(self.force.force(u), u))))
        return max(_SUBSTEPS, ceil(self.q * steepest * self.dt / _REACTION))

    def __str__(self) -> str:
        mesh = " x ".join(str(n) for n in self.initial.shape)
        return (
            f"{self.law.name or 'a'} law, {self.frames} frames of {mesh}, dt = {self.dt:.6g} (to t = "
            f"{self.duration:.6g}), noise {self.noise:.4g}, epsilon = {self.epsilon:.6g}, q = {self.q:.6g}, "
            f"{self.boundary}"
        )


def longer(experiment: Experiment) -> Experiment:
    """Return the experiment with twice the frames at the same interval."""
    return replace(experiment, frames=2 * experiment.frames - 1)


def faster(experiment: Experiment) -> Experiment:
    """Return the experiment with twice the frames in the same time."""
    return replace(experiment, frames=2 * experiment.frames - 1, dt=0.5 * experiment.dt)


def sparser(experiment: Experiment) -> Experiment:
    """Return the experiment with the same frames over twice the time."""
    return replace(experiment, dt=2.0 * experiment.dt)


def quieter(experiment: Experiment) -> Experiment:
    """Return the experiment with half the noise."""
    return replace(experiment, noise=0.5 * experiment.noise)


def finer(experiment: Experiment) -> Experiment:
    """Return the experiment with about twice the pixels, on a mesh 2^(1/d) times finer along each of d axes.

    The domain stays, and so does the noise of a pixel. The initial field is interpolated by its modes.
    """
    cells = experiment.initial.shape
    fine = tuple(round(n * 2.0 ** (1.0 / len(cells))) for n in cells)
    grid = Grid(cells, experiment.dx, experiment.boundary)
    spacing = [length / n for length, n in zip(grid.extent, fine, strict=True)]
    return replace(experiment, initial=_interpolate(experiment.initial, fine, experiment.boundary), dx=spacing)


def _interpolate(field: Array, cells: tuple[int, ...], boundary: Boundary) -> Array:
    """Evaluate the modes of a field at the points of a finer mesh of the same domain, axis by axis."""
    from scipy import fft

    for axis, (n, fine) in enumerate(zip(field.shape, cells, strict=True)):
        if boundary == "neumann":
            field = fft.idct(fft.dct(field, axis=axis), n=fine, axis=axis) * (fine / n)
            continue
        modes = np.moveaxis(fft.rfft(field, axis=axis), axis, -1)
        if n % 2 == 0:
            modes[..., -1] *= 0.5  # the highest mode of an even mesh stands for two of a finer one
        field = np.moveaxis(fft.irfft(modes, n=fine), -1, axis) * (fine / n)
    return np.asarray(field)

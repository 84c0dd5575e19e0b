"""Experiment: a movie that is not recorded yet, changes that could make it better, and the errors to expect from it.

Under the linearised likelihood the most likely coefficients of degree 8 are normal with a known covariance, so the
estimate of `identify` can be drawn many times without any record: each draw goes through the same average over
degrees, or the same fit of one degree, and is compared with the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache, cached_property
from math import ceil
from typing import Any, Literal

import numpy as np

from doublewell.dynamics import Grid
from doublewell.errors import not_negative, numbers, positive, whole
from doublewell.hints import Array
from doublewell.inference import fit_rows, mixture_mean, weigh_terms
from doublewell.inference.estimate import check_rank, column_scale
from doublewell.law import MAX_DEGREE, Bernstein, Constraint, Family, Law, check_constraint, check_law
from doublewell.likelihood import first_substeps, record_model
from doublewell.likelihood.iterate import compiled
from doublewell.record import Boundary, Record
from doublewell.runtime import double_precision
from doublewell.simulate import simulate

Degree = int | Literal["auto"]
DRAWS = 4000  # a predicted error then moves by 1 to 2 % from seed to seed; ratios by less, all share the draws
_SUBSTEPS = 12  # of CNAB2 from frame to frame, at least
_REACTION = 0.03  # largest q |G'| of one CNAB2 step: its error is then far below the noise
_SEED = 20_260_103
_TOP = Bernstein(MAX_DEGREE)
_PHASES = np.linspace(-1.0, 1.0, 401)
_SHOWN = np.linspace(0.0, 1.0, 11)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, eq=False)
class Experiment:
    """Describe a movie: what will be recorded, how often, how long and with what noise.

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
    _: KW_ONLY
    dx: float | Sequence[float]
    dt: float
    frames: int
    noise: float
    epsilon: float = 1.0
    q: float = 1.0
    boundary: Boundary = "periodic"

    def __post_init__(self) -> None:
        field = numbers(self.initial, "initial").copy()
        field.flags.writeable = False
        grid = Grid(field.shape, self.dx, self.boundary)
        meanings = {
            "dt": "the frame interval",
            "noise": "the standard deviation of the noise of one pixel",
            "epsilon": "the interface scale",
            "q": "the diffusion coefficient",
        }
        checked: dict[str, Any] = {
            name: positive(getattr(self, name), name, meaning) for name, meaning in meanings.items()
        }
        checked |= {"law": check_law(self.law), "frames": whole(self.frames, "frames", least=2)}
        for name, value in (checked | {"initial": field, "dx": grid.dx, "boundary": grid.boundary}).items():
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
        steepest = float(np.max(np.abs(np.gradient(self.force.force(_PHASES), _PHASES))))
        return simulate(
            self.law, self.initial, dx=self.dx, dt=self.dt, frames=self.frames, epsilon=self.epsilon, q=self.q,
            boundary=self.boundary, substeps=max(_SUBSTEPS, ceil(self.q * steepest * self.dt / _REACTION)),
        )  # fmt: skip

    def __str__(self) -> str:
        mesh = " x ".join(str(n) for n in self.initial.shape)
        return (
            f"{self.law.name or 'a'} law, {self.frames} frames of {mesh}, dt = {self.dt:.6g} (to t = "
            f"{self.duration:.6g}), noise {self.noise:.4g}, epsilon = {self.epsilon:.6g}, q = {self.q:.6g}, "
            f"{self.boundary}"
        )


CHANGES = ("half the noise", "twice as long", "twice as often", "twice the pixels", "same frames, twice the time")


def changed(experiment: Experiment, change: str) -> Experiment:
    """Return the experiment with one of CHANGES.

    About twice the pixels are a mesh 2^(1/d) times finer along each of d axes: the domain stays, and so does the noise
    of a pixel. The initial field is interpolated by its modes.
    """
    frames, dt, cells = experiment.frames, experiment.dt, experiment.initial.shape
    if change == "half the noise":
        return replace(experiment, noise=0.5 * experiment.noise)
    if change == "twice as long":
        return replace(experiment, frames=2 * frames - 1)
    if change == "twice as often":
        return replace(experiment, frames=2 * frames - 1, dt=0.5 * dt)
    if change == "same frames, twice the time":
        return replace(experiment, dt=2.0 * dt)
    fine = tuple(round(n * 2.0 ** (1.0 / len(cells))) for n in cells)
    spacing = [h * n / m for h, n, m in zip(Grid(cells, experiment.dx).dx, cells, fine, strict=True)]
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


@dataclass(frozen=True)
class Analysis:
    """How the record will be fitted: the options of ``identify``, and the relative error of the surface tension."""

    degree: Degree = "auto"
    constraint: Constraint = "admissible"
    tension_error: float = 0.0

    def __post_init__(self) -> None:
        if self.degree != "auto":
            whole(self.degree, "degree", least=0, most=MAX_DEGREE, meaning="'auto', or the degree of the law")
        check_constraint(self.constraint)
        not_negative(self.tension_error, "tension_error", "the relative standard deviation of the surface tension")


@dataclass(frozen=True, eq=False)
class Prediction:
    """The errors to expect, as root mean squares over the noise; fractions, not percent.

    ``force`` and ``potential`` are relative L2 errors of G and F over [-1, 1], ``epsilon`` that of epsilon;
    the last two are None where the law has no surface tension. ``bias`` is the part of ``force`` that no averaging
    over records removes. ``refused`` is the fraction of records whose law could not be calibrated; they are left out of
    ``potential`` and ``epsilon``. ``pointwise`` is the error of G at ``phases`` (and at their mirror images), in units
    of the largest |G|. ``bound`` is the Cramer-Rao bound of ``force`` for one fixed degree without a constraint, None
    for an average over degrees.
    """

    force: float
    potential: float | None
    epsilon: float | None
    bias: float
    refused: float
    phases: Array
    pointwise: Array
    bound: float | None


@dataclass(frozen=True, eq=False)
class Information:
    """R of the projected sensitivities for noise 1, and the coefficients that a fit without noise ends in.

    The estimate from a record with noise s is normal with mean ``best`` and covariance s^2 (R' R)^-1. ``rows`` counts
    the values less those of the initial field. ``solve`` is the worst relative residual of the solves behind R: R is
    too large, by its square, where it is not small.
    """

    family: Family
    triangle: Array
    best: Array
    rows: int
    solve: float


def record_information(clean: Record, family: Family, coefficients: Array, *, frames: int | None = None) -> Information:
    """Linearise the likelihood of a clean record at its law and its first frame.

    `coefficients` are those of the law, or of one close to it in the family: one Gauss-Newton step from there gives
    ``best``. With `frames` only so many first ones count, and one compilation serves every such number.
    """
    frames = clean.frames if frames is None else whole(frames, "frames", least=2, most=clean.frames)
    model, constants = record_model(clean, family, first_substeps(clean, family.steepness(coefficients)))
    root = (np.arange(clean.frames) < frames).astype(np.float64).reshape(-1, *[1] * len(clean.mesh))
    data = clean.slab()
    with double_precision():
        last = compiled().sensitivity(
            model, data[:1], coefficients[None], data[None], constants._replace(root=root)
        )  # a batch of one
        triangle, shift, solve = (np.asarray(part)[0] for part in (last.triangle, last.shift, last.residuals))
    signs = np.where(np.diag(triangle) < 0.0, -1.0, 1.0)
    rows = (frames - 1) * data[0].size
    return Information(family, signs[:, None] * triangle, coefficients + shift, rows, float(np.max(solve)))


def experiment_information(experiment: Experiment, *, frames: int | None = None) -> Information:
    """Return the information of the planned movie, or of its first frames, about the coefficients of degree 8."""
    return record_information(experiment.movie, _TOP, experiment.force.projected(_TOP), frames=frames)


def predict(experiment: Experiment, information: Information, analysis: Analysis) -> Prediction:
    """Return the errors to expect from a record of the experiment that is fitted as in the analysis.

    The noise is the experiment's; `information` is that of its movie for noise 1, so one serves every noise level.
    """
    triangle = information.triangle / experiment.noise
    check_rank(column_scale(triangle)[2])
    law, draws = experiment.force, _draws()
    most_likely = information.best + np.linalg.solve(triangle, draws[:, :-1].T).T
    fits = _fitted(triangle, most_likely, analysis)
    force = law.force(_PHASES)
    gap = fits @ _TOP.features(_PHASES) - force
    near = fits @ _TOP.features(_SHOWN) - law.force(_SHOWN)
    size = float(np.linalg.norm(force))
    potential, epsilon, refused = _scaled_errors(law, fits, analysis.tension_error * draws[:, -1])
    return Prediction(
        force=_rms(np.linalg.norm(gap, axis=1)) / size,
        potential=potential,
        epsilon=epsilon,
        bias=float(np.linalg.norm(np.mean(gap, axis=0))) / size,
        refused=refused,
        phases=_SHOWN,
        pointwise=np.sqrt(np.mean(near**2, axis=0)) / float(np.max(np.abs(force))),
        bound=None if analysis.degree == "auto" else _bound(triangle, analysis.degree) / size,
    )


def _fitted(triangle: Array, most_likely: Array, analysis: Analysis) -> Array:
    """Return the coefficients of degree 8 that the estimator makes of each draw."""
    targets = most_likely @ triangle.T
    if analysis.degree == "auto":
        return mixture_mean(weigh_terms(triangle, targets, _TOP, constraint=analysis.constraint), _TOP)
    family = Bernstein(analysis.degree)
    lift = family.elevation(_TOP)
    return fit_rows(triangle @ lift, targets, family, constraint=analysis.constraint).coefficients @ lift.T


def _scaled_errors(law: Law, fits: Array, tension: Array) -> tuple[float | None, float | None, float]:
    """Return the errors of F and epsilon after calibration by a tension with these errors, and the refusals."""
    if law.lowest < 0.0 or law.tension_integral == 0.0:
        return None, None, 1.0
    heights = fits @ _TOP.primitives(_NODES)
    kept = np.min(heights, axis=1) > 0.0
    if not np.any(kept):
        return None, None, 1.0
    integrals = np.sqrt(2.0 * heights[kept]) @ _WEIGHTS
    ratio = law.tension_integral * (1.0 + tension[kept]) / integrals  # epsilon_hat / epsilon, energy E
    true = law.primitive(_PHASES)
    gap = ratio[:, None] ** 2 * (fits[kept] @ _TOP.primitives(_PHASES)) - true
    potential = _rms(np.linalg.norm(gap, axis=1)) / float(np.linalg.norm(true))
    return potential, _rms(ratio - 1.0), 1.0 - float(np.mean(kept))


def _bound(triangle: Array, degree: int) -> float:
    """Return the root of the summed variances of G at the phases, for an unbiased estimate of one degree."""
    lift = Bernstein(degree).elevation(_TOP)
    root = np.linalg.inv(np.linalg.qr(triangle @ lift, mode="r"))
    return float(np.linalg.norm(root.T @ (lift.T @ _TOP.features(_PHASES))))


@cache
def _draws() -> Array:
    """Return normal draws, one column for each coefficient and one for the tension.

    Their sample mean is made 0 and their sample covariance 1: errors that are linear in the noise are then exact, and
    only the nonlinear part of the estimator is left to sampling.
    """
    draws = np.random.default_rng(_SEED).standard_normal((DRAWS, _TOP.size + 1))
    draws -= draws.mean(axis=0)
    root = np.linalg.cholesky(draws.T @ draws / DRAWS)
    draws = np.linalg.solve(root, draws.T).T
    draws.flags.writeable = False
    return draws


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))

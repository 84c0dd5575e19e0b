"""Experiment: a movie that is not recorded yet, changes that could make it better, and the errors to expect from it.

Under the linearised likelihood the most likely coefficients of the highest degree are normal with a known covariance,
so the estimate of `identify` can be drawn many times without any record: each draw goes through the same average over
degrees, or the same fit of one degree, and is compared with the law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, Grid, cnab2_steps, dynamics_of
from doublewell.errors import InputError, not_negative, numbers, positive, whole
from doublewell.hints import Array
from doublewell.inference import fit_rows, mixture_mean, weigh_terms
from doublewell.inference.estimate import check_rank, column_scale
from doublewell.law import MAX_DEGREE, Bernstein, Constraint, Family, Law, Mixture, check_constraint, check_law
from doublewell.likelihood import first_substeps, record_model
from doublewell.likelihood.programs import compiled
from doublewell.problem import Problem
from doublewell.record import Boundary, Record
from doublewell.record.arrays import PhaseScale
from doublewell.simulate import simulate

Degree = int | Literal["auto"]
DRAWS = 4000  # a predicted error then moves by 1 to 2 % from seed to seed; ratios by less, all share the draws
_FEWER = 1000  # where laws are held in their class one by one
_SUBSTEPS = 12  # of CNAB2 from frame to frame, at least
_REACTION = 0.03  # largest rate of the force times one CNAB2 step: its error is then far below the noise
_SEED = 20_260_103
_TOP = Bernstein(MAX_DEGREE)
_POINTS, _SHOWN = 401, 11  # phase values of the errors, and of those that are shown
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
    dynamics
        The equation of motion, by its name or as a value.
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
    dynamics: str | Dynamics = ALLEN_CAHN

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
        object.__setattr__(self, "dynamics", dynamics_of(self.dynamics))
        if self.found and self.law.tilt != 0.0:
            raise InputError(
                f"the law has wells of unequal depth, and {self.equation.name} knows a force only up to a constant: "
                "expected equal depths, or the law of a conserved field"
            )

    @property
    def duration(self) -> float:
        """Time from the first frame to the last."""
        return (self.frames - 1) * self.dt

    @property
    def force(self) -> Law:
        """The effective force G = F'/epsilon^2."""
        return self.law.effective(self.epsilon)

    @property
    def equation(self) -> Dynamics:
        """The equation of motion."""
        return dynamics_of(self.dynamics)

    @property
    def found(self) -> bool:
        """Whether the coexisting phases follow from the law: those of a conserved field do."""
        return self.equation.gauge == "constant"

    @cached_property
    def movie(self) -> Record:
        """The movie without noise, by CNAB2."""
        u, waves = np.linspace(*self.force.phases, _POINTS), Grid(self.initial.shape, self.dx, self.boundary).waves
        steepest = float(np.max(np.abs(np.gradient(self.force.force(u), u))))
        substeps = cnab2_steps(self.equation, waves, steepest, self.q * self.dt, _REACTION)
        return simulate(
            self.law, self.initial, dx=self.dx, dt=self.dt, frames=self.frames, epsilon=self.epsilon, q=self.q,
            boundary=self.boundary, substeps=max(_SUBSTEPS, substeps),
            dynamics=self.equation,
        )  # fmt: skip

    def __str__(self) -> str:
        mesh = " x ".join(str(n) for n in self.initial.shape)
        return (
            f"{self.law.name or 'a'} law, {self.frames} frames of {mesh}, dt = {self.dt:.6g} (to t = "
            f"{self.duration:.6g}), noise {self.noise:.4g}, epsilon = {self.epsilon:.6g}, q = {self.q:.6g}, "
            f"{self.boundary}" + ("" if self.equation is ALLEN_CAHN else f", {self.equation.name}")
        )


def _finer(experiment: Experiment) -> Experiment:
    """Return the experiment with about twice the pixels: a mesh 2^(1/d) times finer along each of d axes.

    The domain stays, and so does the noise of a pixel. The initial field is interpolated by its modes, axis by axis.
    """
    from scipy import fft

    field, cells = experiment.initial, experiment.initial.shape
    mesh = tuple(round(n * 2.0 ** (1.0 / len(cells))) for n in cells)
    spacing = [h * n / m for h, n, m in zip(Grid(cells, experiment.dx).dx, cells, mesh, strict=True)]
    for axis, (n, fine) in enumerate(zip(cells, mesh, strict=True)):
        if experiment.boundary == "neumann":
            field = fft.idct(fft.dct(field, axis=axis), n=fine, axis=axis) * (fine / n)
            continue
        modes = np.moveaxis(fft.rfft(field, axis=axis), axis, -1)
        if n % 2 == 0:
            modes[..., -1] *= 0.5  # the highest mode of an even mesh stands for two of a finer one
        field = np.moveaxis(fft.irfft(modes, n=fine), -1, axis) * (fine / n)
    return replace(experiment, initial=field, dx=spacing)


CHANGES: dict[str, tuple[Callable[[Experiment], Experiment], Callable[[Experiment], str]]] = {  # and its numbers
    "half the noise": (lambda old: replace(old, noise=0.5 * old.noise), lambda new: f"{new.noise:.3g}"),
    "twice as long": (lambda old: replace(old, frames=2 * old.frames - 1), lambda new: f"{new.frames} frames"),
    "twice as often": (
        lambda old: replace(old, frames=2 * old.frames - 1, dt=0.5 * old.dt),
        lambda new: f"{new.frames} frames, dt = {new.dt:.3g}",
    ),
    "twice the pixels": (_finer, lambda new: " x ".join(map(str, new.initial.shape))),
    "same frames, twice the time": (lambda old: replace(old, dt=2.0 * old.dt), lambda new: f"dt = {new.dt:.3g}"),
}


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

    ``force`` and ``potential`` are relative L2 errors of G and F between the phases, ``epsilon`` that of epsilon;
    the last two are None where the law has no surface tension. ``bias`` is the part of ``force`` that no averaging
    over records removes. ``refused`` is the fraction of records whose law could not be calibrated; they are left out of
    ``potential`` and ``epsilon``. ``pointwise`` is the error of G at ``phases`` (and, of symmetric wells, at their
    mirror images), in units of the largest |G|. ``bound`` is the Cramer-Rao bound of ``force`` for one fixed degree
    without a constraint, None for an average over degrees. Of a conserved field a constant of G is not an error, and
    ``wells`` are the errors of the low and the high coexisting phase.
    """

    force: float
    potential: float | None
    epsilon: float | None
    bias: float
    refused: float
    phases: Array
    pointwise: Array
    bound: float | None
    wells: tuple[float, float] | None = None


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


def record_information(
    clean: Record, family: Family, coefficients: Array, *, dynamics: Dynamics = ALLEN_CAHN, frames: int | None = None
) -> Information:
    """Linearise the likelihood of a clean record at its law and its first frame.

    `coefficients` are those of the law, or of one close to it in the family: one Gauss-Newton step from there gives
    ``best``. With `frames` only so many first ones count, and one compilation serves every such number.
    """
    frames = clean.frames if frames is None else whole(frames, "frames", least=2, most=clean.frames)
    clean, plain = clean.replace(PhaseScale(*family.phases)(clean.slab())), family.placed((-1.0, 1.0))
    substeps = first_substeps(clean, family.steepness(coefficients), dynamics)
    model, constants = record_model(clean, plain, substeps, dynamics=dynamics)
    root = (np.arange(clean.frames) < frames).astype(np.float64).reshape(-1, *[1] * len(clean.mesh))
    data = clean.slab()
    constants = constants._replace(root=root)
    last = compiled().sensitivity(model, data[:1], coefficients[None], data[None], constants)  # a batch of one
    triangle, shift, solve = (np.asarray(part)[0] for part in (last.triangle, last.shift, last.residuals))
    signs = np.where(np.diag(triangle) < 0.0, -family.half, family.half)
    rows = (frames - 1) * data[0].size
    return Information(family, signs[:, None] * triangle, coefficients + shift, rows, float(np.max(solve)))


def experiment_information(experiment: Experiment, *, frames: int | None = None) -> Information:
    """Return the information of the planned movie, or of its first frames, about the law of the highest degree.

    The laws of a conserved field are written over a range around the values of the movie, as in a fit.
    """
    movie, law = experiment.movie, experiment.force
    if not experiment.found:
        return record_information(movie, _TOP, law.projected(_TOP), dynamics=experiment.equation, frames=frames)
    values = movie.slab(0, frames)
    family = Mixture(Mixture.average_degree, Problem.range_of((float(np.min(values)), float(np.max(values)))))
    return record_information(movie, family, family.fitted(law.force), dynamics=experiment.equation, frames=frames)


def predict(experiment: Experiment, information: Information, analysis: Analysis) -> Prediction:
    """Return the errors to expect from a record of the experiment that is fitted as in the analysis.

    The noise is the experiment's; `information` is that of its movie for noise 1, so one serves every noise level.
    """
    triangle, family = information.triangle / experiment.noise, information.family
    check_rank(column_scale(triangle)[2])
    law, draws = experiment.force, _draws(family.size, _FEWER if family.found else DRAWS)
    most_likely = information.best + np.linalg.solve(triangle, draws[:, :-1].T).T
    fits = _fitted(triangle, most_likely, family, analysis)
    u, shown = np.linspace(*law.phases, _POINTS), np.linspace(*(law.phases if family.found else (0.0, 1.0)), _SHOWN)
    force = law.force(u)
    gap, near = (fits @ family.features(x) - law.force(x) for x in (u, shown))
    if family.found:  # a constant has no effect
        near, gap = (x - np.mean(gap, axis=1, keepdims=True) for x in (near, gap))
    size = float(np.linalg.norm(force))
    potential, epsilon, refused = _scaled_errors(law, fits, family, analysis.tension_error * draws[:, -1])
    return Prediction(
        force=_rms(np.linalg.norm(gap, axis=1)) / size,
        potential=potential,
        epsilon=epsilon,
        bias=float(np.linalg.norm(np.mean(gap, axis=0))) / size,
        refused=refused,
        phases=shown,
        pointwise=np.sqrt(np.mean(near**2, axis=0)) / float(np.max(np.abs(force))),
        bound=None if analysis.degree == "auto" else _bound(triangle, family, analysis.degree, u) / size,
        wells=_well_errors(law, fits, family) if family.found else None,
    )


def _fitted(triangle: Array, most_likely: Array, family: Family, analysis: Analysis) -> Array:
    """Return the coefficients of the highest degree that the estimator makes of each draw."""
    targets = most_likely @ triangle.T
    if analysis.degree == "auto":
        return mixture_mean(weigh_terms(triangle, targets, family, constraint=analysis.constraint), family)
    if analysis.degree > family.degree:
        raise InputError(
            f"degree is {analysis.degree}: expected at most {family.degree} for a plan of a conserved field, whose law "
            "is linearised at that degree"
        )
    part = family.at(analysis.degree)
    lift = part.elevation(family)
    return fit_rows(triangle @ lift, targets, part, constraint=analysis.constraint).coefficients @ lift.T


def _scaled_errors(law: Law, fits: Array, family: Family, tension: Array) -> tuple[float | None, float | None, float]:
    """Return the errors of F and epsilon after calibration by a tension with these errors, and the refusals."""
    if law.lowest < 0.0 or law.tension_integral == 0.0:
        return None, None, 1.0
    heights = family.heights(fits, _NODES)
    kept = np.min(heights, axis=1) > 0.0  # not where a law has no phases
    if not np.any(kept):
        return None, None, 1.0
    fits, half = fits[kept], 0.5 * np.diff(family.ends(fits[kept]), axis=1)[:, 0]
    integrals = half * (np.sqrt(2.0 * heights[kept]) @ _WEIGHTS)
    ratio = law.tension_integral * (1.0 + tension[kept]) / integrals  # epsilon_hat / epsilon, energy E
    u = np.linspace(*law.phases, _POINTS)
    true, lines = law.primitive(u), family.tangents(fits)
    gap = ratio[:, None] ** 2 * (fits @ family.primitives(u) - lines.under(u)) - true
    potential = _rms(np.linalg.norm(gap, axis=1)) / float(np.linalg.norm(true))
    return potential, _rms(ratio - 1.0), 1.0 - float(np.mean(kept))


def _well_errors(law: Law, fits: Array, family: Family) -> tuple[float, float] | None:
    """Return the errors of both coexisting phases; None where the law, or what is recovered of it, has none."""
    lines = family.tangents(fits)
    if not np.any(lines.known) or (law.family.found and not law.coexists):
        return None
    low, high = (_rms(x[lines.known] - end) for x, end in zip((lines.low, lines.high), law.phases, strict=True))
    return low, high


def _bound(triangle: Array, family: Family, degree: int, u: Array) -> float:
    """Return the root of the summed variances of G at the phases u, for an unbiased estimate of one degree."""
    lift = family.at(degree).elevation(family)
    root = np.linalg.inv(np.linalg.qr(triangle @ lift, mode="r"))
    spread = root.T @ (lift.T @ family.features(u))
    return float(np.linalg.norm(spread - np.mean(spread, axis=1, keepdims=True) if family.found else spread))


@cache
def _draws(size: int, count: int) -> Array:
    """Return normal draws, one column for each coefficient and one for the tension.

    Their sample mean is made 0 and their sample covariance 1: errors that are linear in the noise are then exact, and
    only the nonlinear part of the estimator is left to sampling.
    """
    draws = np.random.default_rng(_SEED).standard_normal((count, size + 1))
    draws -= draws.mean(axis=0)
    root = np.linalg.cholesky(draws.T @ draws / count)
    draws = np.linalg.solve(root, draws.T).T
    draws.flags.writeable = False
    return draws


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))

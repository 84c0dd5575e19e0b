"""Compare: the installed methods on one record, and how far they agree; no truth is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import entry_points
from itertools import chain
from types import SimpleNamespace
from typing import Any, cast, get_args

import numpy as np

from doublewell.baselines.method import Baseline, BaselineFit, Cost, Force, admissible, known_q, measured, missing
from doublewell.baselines.regression import Analytic, DirectFD4, SmoothedFD4, Stac, Wsindy
from doublewell.baselines.sindy import PySindy, Rows, Solver
from doublewell.dynamics import ALLEN_CAHN, Cnab2, Dynamics, Grid, cnab2_steps, dynamics_of
from doublewell.errors import InputError, option, shown
from doublewell.hints import Array, Report
from doublewell.identify import identify
from doublewell.law import Constraint
from doublewell.options import DoubleWell
from doublewell.progress import reporting
from doublewell.record import Record
from doublewell.record.arrays import PhaseScale
from doublewell.report.style import COLOURS, new_figure, style
from doublewell.result import Result
from doublewell.runtime import device_names, on_gpu

_MESH = 2001  # phase values of the distances
_STEEPNESS_MESH = 401
_STEP = 0.05  # largest rate of the force times one internal step
_GROWTH = 10.0  # over the larger of 1 and max |u0|: beyond it the solution blows up
_LEVEL = 0.95
_ROOM = 4.0  # of the band's or the median method's largest difference: more is cut off
_LINES = ("#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#8C8C8C")  # Okabe and Ito; grey for yellow
_DASHES = ("-", "--", ":", "-.")  # another one for each, so that curves that lie on each other can be seen
_HEAD = ("method", "seconds", "memory MB", "distance %", "deviations", "residual", "double well")


@dataclass(frozen=True)
class Trajectory(Baseline):
    """The trajectory fit with the library's own choices: the average over degrees, every double well."""

    constraint: Constraint = "admissible"
    name: str = "trajectory"
    dynamics: Dynamics = ALLEN_CAHN

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force, with its 95 % band, from the likelihood of a record."""
        known_q(record, self.name)
        with measured() as cost:
            law = DoubleWell(constraint=self.constraint)
            result = identify(record, dynamics=self.dynamics, law=law, method="trajectory", check=False)
        return _own_fit(result, cost)


def _own_fit(result: Result, cost: Cost) -> BaselineFit:
    """Return a result of ours as a fit: the mean law and, where it has one, the band of the force."""
    likelihood = result.diagnostics.likelihood
    notes = () if likelihood is None or likelihood.status.converged else (f"not converged: {likelihood.status.text}",)
    band = None if result.posterior is None else partial(result.band, "force")
    device = device_names()[0]
    return BaselineFit("trajectory", result.force, cost.seconds, cost.memory, device, notes, band, result.law)


_ALL: tuple[Baseline, ...] = (
    *(Trajectory(), Stac(), Analytic(), Wsindy(), SmoothedFD4(), DirectFD4()),
    *(PySindy(rows, solver) for rows in get_args(Rows)[::-1] for solver in get_args(Solver)),
)


def methods() -> dict[str, Baseline]:
    """Return all methods by name: ours, and those of installed packages (entry points "doublewell.baselines")."""
    others = (point.load()() for point in entry_points(group="doublewell.baselines"))
    return {method.name: method for method in (*_ALL, *others)}


def baseline(name: str) -> Baseline:
    """Return a method by its name, or raise with the names there are; lower case and hyphens do.

    >>> baseline("smoothed-fd4").name
    'smoothed FD4'
    """
    known = {key.lower().replace(" ", "-"): method for key, method in methods().items()}
    plain = name.strip().lower().replace(" ", "-") if isinstance(name, str) else ""
    if plain not in known:
        raise InputError(f"method is {shown(name)}: expected one of {', '.join(known)}")
    return known[plain]


@dataclass(frozen=True, eq=False)
class Row:
    """One method on the record, with its distance to our law and the misfit of its movie.

    ``distance`` is the relative L2 distance of the force to ours between the phases, ``deviations`` the same at each
    phase value in standard deviations of our band, root mean square. ``residual`` is the rms of record minus movie over
    the noise, for the movie that the force makes from our fitted first frame: 1 is a perfect fit. None where it blows
    up or where no movie could be made, with the reason in ``notes``.
    """

    fit: BaselineFit
    distance: float
    deviations: float
    residual: float | None
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of a row of the table."""
        fit, memory = self.fit, "-" if self.fit.memory is None else f"{self.fit.memory / 1e6:.0f}"
        residual = "-" if self.residual is None else f"{self.residual:.4f}"
        distance, well = f"{100 * self.distance:.2f}", "yes" if admissible(fit) else "no"
        return fit.name, f"{fit.seconds:.2f}", memory, distance, f"{self.deviations:.1f}", residual, well


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of `compare`: our own result, a row for every method that ran, and why others did not.

    ``distances`` holds the relative distance of the force of each method, in the order of the rows, to that of each
    other, in units of the first one's size.
    """

    result: Result
    rows: tuple[Row, ...]
    left_out: tuple[tuple[str, str], ...]
    distances: Array
    noise: float

    def __str__(self) -> str:
        """Return the table, the methods that did not run, and what the columns mean."""
        lines = [_HEAD, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text, reference = ["Methods on the same record"], self.rows[0].fit.name
        for name, *numbers in lines:
            cells = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))
            text.append("  ".join(["  " + name.ljust(widths[0]), *cells]).rstrip())
        text += [
            "",
            f"distance: of the force to that of {reference}, relative, over all phase values",
            f"deviations: the same in standard deviations of the band of {reference}, root mean square",
            f"residual: rms of record minus the movie that the force makes, over the noise {self.noise:.4g}; 1 is a "
            "perfect fit",
            "A small residual tests a force where the record has values; it cannot distinguish two forces whose movies "
            "agree.",
        ]
        if notes := [f"  {row.fit.name}: {note}" for row in self.rows for note in row.notes]:
            text += ["", "Notes", *notes]
        if self.left_out:
            text += ["", "Not run", *(f"  {name}: {reason}" for name, reason in self.left_out)]
        return "\n".join(text)

    def document(self) -> dict[str, Any]:
        """Return the numbers as JSON takes them."""
        return {
            "reference": self.rows[0].fit.name,
            "noise": self.noise,
            "methods": [
                {"method": row.fit.name}
                | {name: getattr(row.fit, name) for name in ("seconds", "memory", "device")}
                | {name: getattr(row, name) for name in ("distance", "deviations", "residual")}
                | {"coefficients": None if row.fit.law is None else row.fit.law.coefficients.tolist()}
                | {"double_well": admissible(row.fit), "notes": [*row.fit.notes, *row.notes]}
                for row in self.rows
            ],
            "distances": self.distances.tolist(),
            "not_run": [{"method": name, "reason": reason} for name, reason in self.left_out],
        }

    def figure(self) -> Any:
        """Return the figure of G by every method over our 95 % band, and of the differences to our G in percent."""
        u = np.linspace(*self.result.law.phases, 401)
        ours, side = np.asarray(self.result.force(u)), 0.025 * float(np.ptp(self.result.law.phases))
        ends = u[0] - side, u[-1] + side
        low, high = self.result.band("force", u, level=_LEVEL)
        largest = float(np.max(np.abs(ours)))
        unit = 100.0 / largest
        with style():
            figure = new_figure(8.6, 6.4)
            grid = figure.add_gridspec(2, 2, width_ratios=[3.4, 1.0], height_ratios=[1.5, 1.0])
            top, below = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
            top.fill_between(u, low, high, color=COLOURS["band"], lw=0, label="our 95 % band", zorder=2)
            below.fill_between(u, unit * (low - ours), unit * (high - ours), color=COLOURS["band"], lw=0, zorder=2)
            top.plot(u, ours, color=COLOURS["recovered"], lw=2.2, label=self.rows[0].fit.name, zorder=5)
            below.axhline(0.0, color=COLOURS["recovered"], lw=1.6, zorder=5)
            gaps = []
            for k, row in enumerate(self.rows[1:]):
                line = {"color": _LINES[k % len(_LINES)], "ls": _DASHES[k % len(_DASHES)], "lw": 1.4}
                curve = levelled(np.asarray(row.fit.force(u)), self.result.dynamics, ours)
                gaps.append(unit * float(np.max(np.abs(curve - ours))))
                top.plot(u, curve, label=f"{row.fit.name}\n{100 * row.distance:.2g} %", zorder=3, **line)
                below.plot(u, unit * (curve - ours), zorder=3, **line)
            top.axhline(0.0, color="0.6", lw=0.8, zorder=1)
            size = 1.6 * largest
            top.set(title="effective force G by every method", ylabel="G(u)", xlim=ends, ylim=(-size, size))
            band = unit * float(np.max(high - low))
            usual = float(np.median(gaps)) if gaps else band  # one far off presses no other flat
            room = _ROOM * max(band, usual, 1e-6)
            room = min(room, 1.1 * max([*gaps, band]))
            below.set(xlabel="phase value u", ylabel="difference to ours\n(% of max)", xlim=ends, ylim=(-room, room))
            corner = figure.add_subplot(grid[:, 1])
            corner.set_axis_off()
            corner.legend(*top.get_legend_handles_labels(), loc="upper left", frameon=False, borderaxespad=0.0)
        return figure


def compare(
    record: Record,
    *,
    methods: Sequence[str | Baseline] | None = None,
    result: Result | None = None,
    dynamics: str | Dynamics | None = None,
    seed: int = 0,
    progress: Report | bool | None = None,
) -> Comparison:
    """Run other methods on a record and report how far they agree with the trajectory fit and with each other.

    Parameters
    ----------
    record
        The observed phase field with its q, wells at -1 and +1. Where contrast and offset are estimated, the other
        methods read its values corrected for them.
    methods
        Names such as "STAC", "smoothed FD4" or "PySINDy LS masked", or methods with settings of their own; all by
        default, slow ones only where there is a GPU. A method whose library is missing is listed with the command that
        installs it, one that refuses the record with its reason.
    result
        A trajectory result of this record, where there is one already; else it is made.
    dynamics
        The equation, by default that of the result, or Allen-Cahn. Of a conserved field a constant of the force is not
        a distance, and methods that read Allen-Cahn only are listed as such.
    seed
        Of the methods that draw random numbers.
    progress
        True shows a bar; a function is called with (what is being done, methods done, methods).
    """
    chosen = _chosen(methods)
    q = known_q(record, "compare")
    with reporting(progress) as report:
        show = report or (lambda *_: None)
        show("fitting the trajectory", 0, len(chosen) + 1)
        result, ours = _reference(record, result, dynamics)
        equation = result.dynamics
        plateaus = (-1.0, 1.0) if result.contrast is None else result.contrast.plateaus
        scale = PhaseScale(*plateaus)  # no other method knows of a contrast: all read the values that ours finds
        record = record if result.contrast is None else record.replace(scale(record.slab()))
        fits, left_out = [ours], []
        for k, method in enumerate(chosen, start=1):
            show(method.name, k, len(chosen) + 1)
            waits = methods is None and method.slow and not on_gpu()
            long = f"takes many minutes on a CPU: name it in {option('methods')} to run it all the same"
            fit = long if waits else _tried(method, record, seed, equation)
            if isinstance(fit, str):
                left_out.append((method.name, fit))
            else:
                fits.append(fit)
    u = np.linspace(*result.law.phases, _MESH)
    first = np.asarray(ours.force(u))
    curves = np.stack([levelled(np.asarray(fit.force(u)), equation, first) for fit in fits])
    gaps = np.linalg.norm(curves[:, None] - curves[None], axis=2) / np.linalg.norm(curves, axis=1)[:, None]
    posterior, quality = result.posterior, result.diagnostics.likelihood
    assert posterior is not None
    assert quality is not None
    spread = np.std(levelled(posterior.draws @ posterior.family.features(u), equation, first), axis=0)
    inner = spread > 1e-9 * float(np.max(spread))  # where every law is zero there is nothing to compare
    deviations = np.sqrt(np.mean(((curves - curves[0])[:, inner] / spread[inner]) ** 2, axis=1))
    initial, rows = None if quality.initial is None else scale(quality.initial.astype(np.float64)), []
    reason = cannot_run(record)
    if reason is None and (initial is None or initial.shape != record.mesh):
        reason = "no forward run: the result holds no fitted first frame"
    for fit, distance, deviation in zip(fits, gaps[0], deviations, strict=True):
        rms = None if reason or initial is None else forward_rms(fit.force, record, initial, q, equation)
        notes = () if rms is not None else (reason or "its movie blows up",)
        residual = None if rms is None else 0.5 * float(np.ptp(plateaus)) * rms / quality.noise
        rows.append(Row(fit, float(distance), float(deviation), residual, notes))
    return Comparison(result, tuple(rows), tuple(left_out), gaps, quality.noise)


def _chosen(names: Sequence[str | Baseline] | None) -> list[Baseline]:
    given = methods().values() if names is None else [names] if isinstance(names, str) else names
    chosen = [name if isinstance(name, Baseline) else baseline(name) for name in given]
    if not chosen:
        raise InputError(f"methods is empty: expected some of {', '.join(methods())}, or None for all")
    return [m for k, m in enumerate(chosen) if m.name != Trajectory.name and m not in chosen[:k]]


def levelled(curves: Array, dynamics: Dynamics, like: Array) -> Array:
    """Return forces with the mean of another where the equation leaves their constant open, else as they are."""
    if dynamics.gauge != "constant":
        return curves
    return np.asarray(curves - np.mean(curves, axis=-1, keepdims=True) + np.mean(like))


def _reference(record: Record, result: Result | None, dynamics: Any) -> tuple[Result, BaselineFit]:
    if result is not None and dynamics not in (None, result.dynamics, result.dynamics.name):
        raise InputError(
            f"the result is of {result.dynamics.name}, and dynamics is {shown(dynamics)}: expected one equation; leave "
            "out one of them"
        )
    equation = ALLEN_CAHN if dynamics is None else dynamics_of(dynamics)
    with measured() as cost:
        result = result or identify(record, dynamics=equation, method="trajectory", check=False)
    if result.posterior is None or result.diagnostics.likelihood is None:
        raise InputError(
            "the result has no band, and distances are measured in it: expected a result of "
            f"{option('method', 'trajectory')}; leave result out and it is made"
        )
    shape = result.problem.records[0].shape
    if shape != record.shape:
        raise InputError(
            f"the result belongs to a record of shape {shape}, and this one has {record.shape}: expected the record "
            "that the result came from"
        )
    return result, _own_fit(result, cost)


def _tried(method: Baseline, record: Record, seed: int, dynamics: Dynamics) -> BaselineFit | str:
    """Return the fit of a method, or why there is none."""
    if (reason := missing(method)) is not None:
        return reason
    if dynamics is not ALLEN_CAHN:
        if not hasattr(method, "dynamics"):
            return f"reads the Allen-Cahn equation only, and this is {dynamics.name}"
        method = replace(cast("Any", method), dynamics=dynamics)
    try:
        return method.fit(record, seed=seed)
    except InputError as error:
        return str(error)


def cannot_run(record: Record) -> str | None:
    """Return why no force can be run forward from the first frame of a record, or None."""
    if record.boundary in (None, "open"):
        return "no forward run: the record declares no boundary"
    if not record.uniform:
        return "no forward run: the frames are not evenly spaced"
    return None


def forward_rms(
    force: Force, record: Record, initial: Array, q: float, dynamics: Dynamics = ALLEN_CAHN
) -> float | None:
    """Run a force from an initial field by CNAB2; return the rms of record minus movie, None where it blows up."""
    assert record.boundary is not None
    u, grid = np.linspace(-1.0, 1.0, _STEEPNESS_MESH), Grid(record.mesh, record.dx, record.boundary)
    if dynamics.gauge == "constant":  # whose values need not lie between -1 and +1
        u = np.linspace(float(np.min(initial)), float(np.max(initial)), _STEEPNESS_MESH)
    steepness = float(np.max(np.abs(np.gradient(np.asarray(force(u), dtype=np.float64), u))))
    substeps = cnab2_steps(dynamics, grid.waves, steepness, q * record.dt, _STEP)
    stepper = Cnab2(grid, record.dt, q, substeps, dynamics)
    limit = _GROWTH * max(1.0, float(np.max(np.abs(initial))))
    driven = SimpleNamespace(force=lambda u: np.asarray(force(u), dtype=np.float64))
    squares, count = 0.0, 0
    with np.errstate(all="ignore"):  # a blow-up is an answer
        movie = stepper.run(driven, initial, intervals=record.frames - 1)
        for frame, u in enumerate(chain([initial], movie)):
            if not float(np.max(np.abs(u))) <= limit:
                return None
            observed = record.observed(frame, frame + 1)[0]
            squares += float(np.sum((record.slab(frame, frame + 1)[0] - u) ** 2, where=observed))
            count += int(np.count_nonzero(observed))
    return float(np.sqrt(squares / count))

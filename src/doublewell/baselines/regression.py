"""Linear regression on a record: weak moments (STAC, analytic, WSINDy's test functions, PySINDy) and pixels (FD4).

All solve for positive Bernstein coefficients g in  sum_k g_k phi_k(u) = Lap u - u_t / q,  tested with smooth functions
or at every pixel.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import ceil, floor, log, pi
from typing import ClassVar, Literal

import numpy as np

from doublewell.baselines.method import (
    PAPER_DEGREE,
    Baseline,
    BaselineFit,
    Supports,
    chosen_supports,
    complete,
    cores,
    known_q,
    measured,
    missing,
)
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, lower, system
from doublewell.hints import Array
from doublewell.inference import estimate
from doublewell.inference.estimate import Solution, solve
from doublewell.law import Bernstein, Law
from doublewell.record import Record
from doublewell.weak.assembly import PHASE_CUT, weak_evidence
from doublewell.weak.noise import Smoother
from doublewell.weak.weights import MARGIN, Derivative, Support, axis_weights, split_folds

WIDTHS = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the filter of smoothed FD4: standard deviations, in cells and in frames
_FAMILY = Bernstein(PAPER_DEGREE)
# WSINDy's choice of test functions
_LEAST_POWER = 3  # one more than the highest derivative
_LEAST_CELLS = 2
_EDGE = 3  # points at either end of the spectrum that are not candidates for its corner
_TINY = 1e-12
_CENTRES = 5  # centres that a test function must leave along every axis
# FD4
_TRAINING = 0.6  # of the frames, that candidates are fitted on
_REACH = 3.0  # half-width of the filter in standard deviations
_STENCIL = 2  # cells that a difference reaches
_MODES = {"periodic": "wrap", "neumann": "reflect"}  # what lies beyond an edge; of a window the edges are left out
_FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
# PySINDy
Rows = Literal["all", "masked"]
Solver = Literal["least squares", "NNLS"]
_POWER = 5  # of the test function, as ours
_TRIES = 40  # batches for each batch that is wanted, before the record is given up as one of pure phases
_LEVEL = (2.5, 97.5)  # percentiles of the band


class _Regression(Baseline):
    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force of a record by least squares."""
        with measured() as cost:
            law, notes = self._solve(record)
        return BaselineFit(self.name, law.force, cost.seconds, cost.memory, cores(), notes, law=law)

    @abstractmethod
    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        """Return the law and notes on what was chosen."""


@dataclass(frozen=True)
class Stac(_Regression):
    """The weak-form fit of the paper: discrete derivatives, positive coefficients, no intervals."""

    supports: Supports = None
    degree: int = PAPER_DEGREE
    name: str = "STAC"
    derivative: Derivative = "discrete"

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        q = known_q(record, self.name)
        supports = chosen_supports(record, self.supports, self.derivative)
        evidence = weak_evidence(record, Bernstein(self.degree), supports, derivative=self.derivative)
        fit = estimate(evidence, q, constraint="bernstein")
        return fit.law, (f"supports {', '.join(map(str, supports))}", f"{fit.rows} rows")


@dataclass(frozen=True)
class Analytic(Stac):
    """STAC with samples of the test function's derivatives, the paper's control.

    Its summation by parts is not exact on the mesh.
    """

    name: str = "analytic weak"
    derivative: Derivative = "analytic"


@dataclass(frozen=True)
class Bump:
    """(1 - x^2)^power with a half-width in cells or frames; `cut` where the record had no room for the chosen one."""

    cells: int
    power: int
    cut: bool

    def __str__(self) -> str:
        return f"{self.cells} (power {self.power}{', cut to what fits' if self.cut else ''})"


@dataclass(frozen=True)
class Wsindy(_Regression):
    """STAC with test functions chosen from the spectrum.

    Messenger and Bortz (2021) choose the width and the power of (1 - x^2)^p along each axis so that the test function's
    spectrum falls off where that of the data turns into noise. That corner is where two lines fit the cumulative
    spectrum best. Only the choice differs from STAC: our features, our mask, known diffusion, positive coefficients.
    `decay` is the value of the test function one cell inside its edge; `spread` is how many standard deviations of its
    spectrum lie below the corner of the data's.
    """

    decay: float = 1e-10
    spread: float = 1.0
    name: str = "WSINDy test functions"

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        q = complete(record, self.name)
        u = record.slab()
        bumps = [chosen_bump(u, axis, decay=self.decay, spread=self.spread) for axis in range(u.ndim)]
        fit = estimate(_bump_evidence(record, u, bumps), q, constraint="bernstein")
        return fit.law, (f"half-widths in frames and cells {', '.join(map(str, bumps))}", f"{fit.rows} rows")


def chosen_bump(u: Array, axis: int, *, decay: float, spread: float) -> Bump:
    """Return the test function along one axis of a field."""
    from scipy.optimize import brentq

    length = u.shape[axis]
    most = (length - _CENTRES) // 2 - MARGIN
    if most < _LEAST_CELLS:
        raise InputError(
            f"axis {axis} of the record has {length} points, too few for a test function: expected at least "
            f"{2 * (_LEAST_CELLS + MARGIN) + _CENTRES}; record longer, or a larger field of view"
        )
    waves, low, high = corner(u, axis), 1.0 + 1e-9, float(length)

    def gap(m: float) -> float:
        """Vanish where the power that the decay sets puts the corner at `spread` deviations of the spectrum."""
        slope, room = log((2 * m - 1) / m**2), (2 * pi * waves * m) ** 2 - 3 * (length * spread) ** 2
        return float(slope * room - 2 * (length * spread) ** 2 * log(decay))

    wanted = length if gap(low) * gap(high) > 0.0 else ceil(float(brentq(gap, low, high)))  # or more than there is
    cells = max(_LEAST_CELLS, min(wanted, most))
    power = floor(log(decay) / log((2 * cells - 1) / cells**2))  # falls to `decay` one cell inside the edge
    return Bump(cells, max(_LEAST_POWER, power), wanted > most)


def corner(u: Array, axis: int) -> int:
    """Return the wave number, in waves over the record, where two lines meet that fit the cumulative spectrum."""
    length = u.shape[axis]
    size = np.abs(np.fft.fft(u, axis=axis))
    mean = np.mean(np.moveaxis(size, axis, 0).reshape(length, -1), axis=1)
    spectrum = np.cumsum(np.fft.fftshift(mean))[: length // 2 + 1]  # from the highest wave number to zero
    spectrum = np.maximum(spectrum, _TINY * spectrum[-1])  # relative misfits of a field without small waves
    x = np.arange(spectrum.size, dtype=np.float64)

    def misfit(k: int) -> float:
        """Return the relative misfit of the two chords that meet at point k."""
        line = np.interp(x, [x[0], x[k], x[-1]], [spectrum[0], spectrum[k], spectrum[-1]])
        return float(np.sum(((line - spectrum) / spectrum) ** 2))

    candidates = range(_EDGE, spectrum.size - _EDGE)
    return max(1, int(spectrum.size) - 1 - min(candidates, key=misfit)) if candidates else 1


def _bump_evidence(record: Record, u: Array, bumps: list[Bump]) -> Evidence:
    time, *space = (
        axis_weights(bump.cells, spacing, "analytic", power=bump.power)
        for bump, spacing in zip(bumps, (record.dt, *record.dx), strict=True)
    )
    smoother = Smoother([time, *space])
    keep = np.abs(smoother.temporal_mean(u)) < PHASE_CUT
    if np.count_nonzero(keep) <= PAPER_DEGREE:
        raise InputError(
            f"the test functions of half-widths {', '.join(map(str, bumps))} leave no centre between the pure phases: "
            "expected an interface farther from the border than a half-width; lower spread, or use STAC"
        )
    columns = smoother.columns(list(_FAMILY.features(u)), keep)
    rows = np.column_stack([columns, smoother.rate(u)[keep], smoother.laplacian(u)[keep]])
    return Evidence(_FAMILY, (Block(Key("record", "spectrum", "all"), compact(rows), len(rows)),))


@dataclass(frozen=True)
class DirectFD4(_Regression):
    """Fourth-order differences of the record as it is: exact on clean, fine records and lost in noise."""

    name: str = "direct FD4"

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        fit = pointwise_fit(record, complete(record, self.name), 0.0)
        return fit.law, (f"{fit.rows} rows",)


@dataclass(frozen=True)
class SmoothedFD4(_Regression):
    """Differences of the record after a Gaussian filter in space and time.

    Held-out weak moments choose its width, a yardstick that does not change with the width.
    """

    supports: Supports = None
    name: str = "smoothed FD4"

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        q = complete(record, self.name)
        supports = chosen_supports(record, self.supports)
        longest = max(support.frames for support in supports)
        try:
            folds = split_folds(record.frames, longest, _TRAINING)
        except InputError as error:
            needs = round((2 * (longest + MARGIN) + 1) / (1.0 - _TRAINING))
            raise InputError(
                f"smoothed FD4 chooses its filter on the last {100 * (1 - _TRAINING):.0f} % of the frames: expected "
                f"about {needs} frames for a support of {longest} intervals, and the record has {record.frames}; "
                "record longer, or pass shorter supports"
            ) from error
        moments = weak_evidence(record, _FAMILY, supports, folds=folds)
        width = smoothing_width(record, q, moments, round(_TRAINING * record.frames))
        fit = pointwise_fit(record, q, width)
        return fit.law, (f"filter of {width:g} cells and frames", f"{fit.rows} rows")


def smoothing_width(record: Record, q: float, moments: Evidence, frames: int) -> float:
    """Return the width whose fit to the first frames has the smallest residual on the moments of fold "validation"."""
    matrix, target = system(lower(moments.select(fold="validation"), _FAMILY.degree), q)

    def residual(width: float) -> float:
        triangle, _ = _pixel_rows(record, q, width, frames)
        solution, _ = solve(triangle[:, :-1], triangle[:, -1], _FAMILY, constraint="bernstein")
        return float(np.linalg.norm(matrix @ solution.coefficients - target))

    return min(WIDTHS, key=residual)


@dataclass(frozen=True, eq=False)
class PointwiseFit:
    """Positive coefficients of degree two from pixels, the condition of the design with unit columns, and the rows."""

    solution: Solution
    condition: float
    rows: int

    @property
    def law(self) -> Law:
        """The law with these coefficients."""
        return Law(_FAMILY, self.solution.coefficients)


def pointwise_fit(record: Record, q: float, width: float) -> PointwiseFit:
    """Solve for positive coefficients from every pixel between the pure phases; a width of 0 does not smooth."""
    triangle, rows = _pixel_rows(record, q, width, record.frames)
    matrix, target = triangle[:, :-1] / np.sqrt(rows), triangle[:, -1] / np.sqrt(rows)
    solution, _ = solve(matrix, target, _FAMILY, constraint="bernstein")
    return PointwiseFit(solution, float(np.linalg.cond(matrix / np.linalg.norm(matrix, axis=0))), rows)


def _pixel_rows(record: Record, q: float, width: float, frames: int) -> tuple[Array, int]:
    """Return R of [features | Lap u - u_t / q] over the pixels of the first frames that lie between the pure phases."""
    from scipy.ndimage import correlate1d, gaussian_filter1d

    u: Array = record.slab(0, frames)
    beyond = _MODES.get(record.boundary or "open", "nearest")
    if width:
        for axis in range(u.ndim):
            u = gaussian_filter1d(u, width, axis=axis, mode=beyond if axis else "nearest", truncate=_REACH)

    def inside(n: int) -> slice:
        """Return the points whose filter and stencil lie inside an axis of n points."""
        margin = min(_STENCIL + round(_REACH * width), (n - 1) // 2)
        return slice(margin, n - margin)

    time = inside(frames)
    target = -correlate1d(u, _FIRST, axis=0, mode="nearest")[time] / record.dt / q
    for axis, h in enumerate(record.dx, start=1):
        target += correlate1d(u[time], _SECOND, axis=axis, mode=beyond) / h**2
    space = (slice(None), *(slice(None) if record.boundary in _MODES else inside(n) for n in record.mesh))
    values, target = u[time][space], target[space]
    keep = np.abs(values) < PHASE_CUT
    if not keep.any():
        raise InputError("no pixel lies between the pure phases: expected a record that shows an interface")
    columns = [*_FAMILY.features(values[keep]), target[keep]]
    return compact(np.stack(columns, axis=1)), int(np.count_nonzero(keep))


@dataclass(frozen=True)
class PySindy(Baseline):
    """Weak rows of PySINDy, fitted by least squares or with nonnegative coefficients, and the intervals of its bagging.

    PySINDy draws its test domains at random and keeps their weights, about a megabyte per row, so rows are made a few
    at a time, which saves memory and changes no row. Its library has no fixed coefficients: the known diffusion goes to
    the other side, because a free one comes out too small where supports are short. Library functions with default
    arguments would vanish silently (they count as functions of two fields), so the number of columns is checked.

    `rows` are all of its domains, or those whose centre lies between the pure phases. `support` is the half-width of a
    domain as (frames, length), the shorter of our own by default, which did better than longer ones. `count` is the
    number of rows that are kept, `batch` how many are made at a time, `models` the number of bagged fits behind the
    band, 0 for no band.
    """

    rows: Rows = "masked"
    solver: Solver = "least squares"
    support: tuple[int, float] | None = None
    count: int = 1000
    batch: int = 250
    models: int = 50
    degree: int = 2
    needs: ClassVar[tuple[str, ...]] = ("pysindy", "sklearn")

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"PySINDy {'NNLS' if self.solver == 'NNLS' else 'LS'}{' masked' if self.rows == 'masked' else ''}"

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:
        """Estimate the force; the seed places the domains and draws the bags."""
        if (reason := missing(self)) is not None:
            raise InputError(reason)
        q = complete(record, self.name)
        support = chosen_supports(record, None if self.support is None else [self.support])[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in self.needs:
                import_module(name)  # not a part of its time
        with _own_noise(seed), measured() as cost:
            matrix, target = _gathered(self, record, q, support)
            coefficients, bags = _fitted(self, matrix, target)
        family = Bernstein(self.degree)
        law = Law(family, coefficients)
        notes = (f"domain {support}", f"{len(target)} rows", f"{self.models} bags")
        band = partial(_band, family, bags) if len(bags) else None
        return BaselineFit(self.name, law.force, cost.seconds, cost.memory, cores(), notes, band, law)


def _gathered(method: PySindy, record: Record, q: float, support: Support) -> tuple[Array, Array]:
    """Return the design and the target of the wanted number of rows."""
    u = np.moveaxis(record.slab(), 0, -1)
    axes = [h * np.arange(n) for n, h in zip(record.mesh, record.dx, strict=True)]
    grid = np.stack(np.meshgrid(*axes, record.times, indexing="ij"), axis=-1)
    sizes = [*(support.length for _ in record.mesh), support.frames * record.dt]
    rows = np.empty((0, Bernstein(method.degree).size + 1))
    for _ in range(_TRIES * -(-method.count // method.batch)):
        rows = np.vstack([rows, _batch(method, u, grid, sizes, q)])
        if len(rows) >= method.count:
            return rows[: method.count, :-1], rows[: method.count, -1]
    raise InputError(
        f"{method.name} found {len(rows)} domains between the pure phases where {method.count} were wanted: "
        "expected a record that shows an interface; lower count, or use rows='all'"
    )


def _batch(method: PySindy, u: Array, grid: Array, sizes: list[float], q: float) -> Array:
    """Return rows [features, Lap u - u_t / q] of new random domains, those of the mask."""
    import pysindy

    family = Bernstein(method.degree)
    library = pysindy.WeakPDELibrary(
        function_library=pysindy.CustomLibrary(library_functions=[_feature(family, j) for j in range(family.size)]),
        derivative_order=2,
        spatiotemporal_grid=grid,
        include_interaction=False,
        K=method.batch,
        H_xt=sizes,
        p=_POWER,
    )
    columns = np.asarray(library.fit_transform(u[..., None]))
    _check_columns(columns, family.size, len(library.multiindices))
    second = [family.size + j for j, orders in enumerate(library.multiindices) if max(orders) == 2]
    rate = np.asarray(library.convert_u_dot_integral(u[..., None]))[:, 0]
    rows = np.column_stack([columns[:, : family.size], np.sum(columns[:, second], axis=1) - rate / q])
    if method.rows == "all":
        return rows
    centres = [(tuple(int(axis[len(axis) // 2]) for axis in space), time) for *space, time in library.inds_k]
    means = [float(np.mean(u[centre][np.asarray(time)])) for centre, time in centres]  # of the central pixel, in time
    return np.asarray(rows[np.abs(means) < PHASE_CUT])


def _check_columns(columns: Array, features: int, derivatives: int) -> None:
    if columns.shape[1] != features + derivatives:
        raise InputError(
            f"PySINDy made {columns.shape[1]} columns: expected {features} features and {derivatives} derivatives; use "
            "the version that the extra doublewell[baselines] names"
        )


def _feature(family: Bernstein, j: int) -> Callable[[Array], Array]:
    """Return one feature as a function of one argument and no default, or PySINDy leaves it out."""
    return lambda u: np.asarray(family.features(np.asarray(u))[j])


def _fitted(method: PySindy, matrix: Array, target: Array) -> tuple[Array, Array]:
    """Return the coefficients of all rows and of each bag, by PySINDy's own optimisers."""
    import pysindy
    from sklearn.linear_model import LinearRegression

    scale = np.linalg.norm(matrix, axis=0)
    plain = LinearRegression(fit_intercept=False, positive=method.solver == "NNLS")
    whole = pysindy.WrappedOptimizer(plain)
    whole.fit(matrix / scale, target)
    coefficients = np.ravel(whole.coef_) / scale
    if not method.models:
        return coefficients, np.empty((0, len(scale)))
    bagged = pysindy.EnsembleOptimizer(pysindy.WrappedOptimizer(plain), bagging=True, n_models=method.models)
    bagged.fit(matrix / scale, target)
    bags = np.asarray([np.ravel(one) for one in bagged.coef_list])
    return coefficients, bags / scale


def _band(family: Bernstein, bags: Array, u: Array) -> tuple[Array, Array]:
    low, high = np.percentile(bags @ family.features(np.asarray(u, dtype=np.float64)), _LEVEL, axis=0)
    return low, high


@contextmanager
def _own_noise(seed: int) -> Iterator[None]:
    """Set NumPy's global random numbers, the only ones PySINDy knows, and give them back; its warnings are its own."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002

"""PySINDy's weak rows of a record, with its own optimisers and bags."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import factorial, prod
from typing import ClassVar, Literal

import numpy as np

from doublewell.baselines.method import (
    Baseline,
    BaselineFit,
    chosen_supports,
    complete,
    cores,
    in_family,
    measured,
    missing,
)
from doublewell.dynamics import ALLEN_CAHN, Column, Dynamics
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law import Family, Law
from doublewell.record import Record
from doublewell.weak.assembly import PHASE_CUT
from doublewell.weak.weights import Support, bends, check_centred

Rows = Literal["all", "masked"]
Solver = Literal["least squares", "NNLS"]
_POWER = 5  # of the test function, as ours
_TRIES = 40  # batches for each batch that is wanted, before the record is given up as one of pure phases
_LEVEL = (2.5, 97.5)  # percentiles of the band


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
    band, 0 for no band. Of a conserved field the features are further fields, of which PySINDy takes the derivatives.
    """

    rows: Rows = "masked"
    solver: Solver = "least squares"
    support: tuple[int, float] | None = None
    count: int = 1000
    batch: int = 250
    models: int = 50
    degree: int = 2
    dynamics: Dynamics = ALLEN_CAHN
    needs: ClassVar[tuple[str, ...]] = ("pysindy", "sklearn")

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"PySINDy {'NNLS' if self.solver == 'NNLS' else 'LS'}{' masked' if self.rows == 'masked' else ''}"

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:
        """Estimate the force; the seed places the domains and draws the bags."""
        if (reason := missing(self)) is not None:
            raise InputError(reason)
        q, order = complete(record, self.name), self.dynamics.order
        if self.dynamics.gauge == "constant" and (self.rows, self.solver) != ("all", "least squares"):
            raise InputError(
                f"{self.name} knows where the pure phases are, and those of {self.dynamics.name} are found: expected "
                "all rows and least squares; use PySINDy LS"
            )
        check_centred(self.dynamics.weak_form, record)
        support = chosen_supports(record, None if self.support is None else [self.support], order=order)[0]
        scaled, family, plain = in_family(record, self.dynamics, self.degree)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in self.needs:
                import_module(name)  # not a part of its time
        with _own_noise(seed), measured() as cost:
            matrix, target = _gathered(self, scaled, plain, q, support)
            coefficients, bags = _fitted(self, matrix, target)
        law = Law(family, coefficients)
        notes = (f"domain {support}", f"{len(target)} rows", f"{self.models} bags")
        band = partial(_band, family, bags) if len(bags) and not family.found else None
        return BaselineFit(self.name, law.force, cost.seconds, cost.memory, cores(), notes, band, law)


def _gathered(method: PySindy, record: Record, family: Family, q: float, support: Support) -> tuple[Array, Array]:
    """Return the design and the target of the wanted number of rows."""
    u = np.moveaxis(record.slab(), 0, -1)
    axes = [h * np.arange(n) for n, h in zip(record.mesh, record.dx, strict=True)]
    grid = np.stack(np.meshgrid(*axes, record.times, indexing="ij"), axis=-1)
    sizes = [*(support.length for _ in record.mesh), support.frames * record.dt]
    rows = np.empty((0, family.size + 1))
    for _ in range(_TRIES * -(-method.count // method.batch)):
        rows = np.vstack([rows, _batch(method, family, u, grid, sizes, q)])
        if len(rows) >= method.count:
            return rows[: method.count, :-1], rows[: method.count, -1]
    raise InputError(
        f"{method.name} found {len(rows)} domains between the pure phases where {method.count} were wanted: "
        "expected a record that shows an interface; lower count, or use rows='all'"
    )


def _batch(method: PySindy, family: Family, u: Array, grid: Array, sizes: list[float], q: float) -> Array:
    """Return rows [features, target - rate / q] of new random domains, those of the mask."""
    import pysindy

    force, rate, target = method.dynamics.weak_form
    features = family.features(u)
    if force.centred:
        features = features - features.mean(axis=tuple(range(1, u.ndim)), keepdims=True)
    further = bool(force.space or force.centred)
    fields = np.stack([u, *features] if further else [u], axis=-1)
    functions = [lambda u: u] if further else [_feature(family, j) for j in range(family.size)]
    library = pysindy.WeakPDELibrary(
        function_library=pysindy.CustomLibrary(library_functions=functions),
        derivative_order=2 * bends(method.dynamics.weak_form),
        spatiotemporal_grid=grid,
        include_interaction=False,
        K=method.batch,
        H_xt=sizes,
        p=_POWER,
    )
    columns, kinds, width = np.asarray(library.fit_transform(fields)), library.multiindices, fields.shape[-1]
    made = width if further else family.size
    _check_columns(columns, made, width * len(kinds))

    def column(which: Column, field: int) -> Array:
        """Return a column of one of the fields: its function, or the power of the Laplacian of it."""
        if not which.space:
            return np.asarray(which.factor * columns[:, field])
        powers = [(j, np.asarray(orders) // 2) for j, orders in enumerate(kinds) if not np.any(np.asarray(orders) % 2)]
        parts = [
            factorial(which.space) / prod(map(factorial, half.tolist())) * columns[:, made + j * width + field]
            for j, half in powers
            if half.sum() == which.space
        ]
        return np.asarray(which.factor * sum(parts))

    moved = rate.factor * np.asarray(library.convert_u_dot_integral(fields))[:, 0]
    first = int(further)  # of the features among the fields, or among the functions
    forces = [column(force, first + j) for j in range(family.size)]
    rows = np.column_stack([*forces, column(target, 0) - moved / q])
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


def _feature(family: Family, j: int) -> Callable[[Array], Array]:
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


def _band(family: Family, bags: Array, u: Array) -> tuple[Array, Array]:
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

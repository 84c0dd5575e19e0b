"""Setting: the model of a record with its arrays, and the observations with what each of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

import numpy as np

from doublewell.dynamics import (
    ALLEN_CAHN,
    Grid,
    border_mask,
    border_times,
    refinement,
    second_differences,
    stable_substeps,
    step_table,
    symbols,
)
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood.record_model import Constants, RecordModel
from doublewell.likelihood.view import PLAIN, Optics, View
from doublewell.record import Record, Seen

__all__ = [
    "Observed",
    "check_record",
    "check_view",
    "check_window",
    "complete",
    "least_substeps",
    "mode_grid",
    "observed",
    "observed_values",
    "one_mask",
    "record_model",
]

_AROUND = 1.7  # range of q that a table of steps covers, as a factor either way
_PASSED = 0.2  # of a mode
_SMALLEST = 12  # cells of a window along an axis
_PRIOR = 1.0  # standard deviation of a phase value that nothing was seen of
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])


@dataclass(frozen=True, eq=False)
class Observed:
    """The values of a record, filled where nothing was seen, what each counts, and how many say something.

    ``rows`` is the number of seen values less that of the nuisance's values that were seen at all.
    """

    values: Array
    root: Array | float
    seen: Seen | None
    rows: int


def record_model(
    record: Record, family: Family, substeps: int, view: View = PLAIN, *, refine: int | None = None, order: int = 8
) -> tuple[RecordModel, Constants]:
    """Return the model of a record and its constants; `refine` and `order` replace the view's and the default."""
    check_record(record)
    optics = view.optics
    refine = optics.refine if refine is None else refine
    model = RecordModel(family, record.boundary or "open", record.mesh, record.frames, substeps, view.free, refine)
    q, taus = float(record.q or 0.0), float(record.q or 0.0) * np.diff(record.times)
    grid = mode_grid(record)
    fine = Grid([refine * n for n in grid.cells], [h / refine for h in grid.dx], grid.boundary)
    passed = _transfer(grid, grid, optics)
    whitening = view.whitening
    constants = Constants(
        taus=taus,
        root=1.0 if whitening.root is None else whitening.root,
        symbol=grid.laplacian,
        gain=_gain(grid, passed, whitening.colour),
    )
    if record.boundary == "open":
        meshes = zip(record.mesh, record.dx, strict=True)
        constants = constants._replace(
            curve=border_times(record.times, substeps),
            differences=tuple(second_differences(n, h, order) for n, h in meshes),
        )
    else:
        around = _AROUND if view.q_free else 1.0
        low, high = float(np.min(taus)) / substeps, float(np.max(taus)) / substeps
        if record.uniform:
            taus = np.full(taus.shape, q * record.dt)
            low = high = float(taus[0]) / substeps
        constants = constants._replace(
            taus=taus, table=step_table(symbols(ALLEN_CAHN, fine), low / around, high * around)
        )
    if refine > 1:
        constants = constants._replace(finer=tuple(refinement(n, refine, grid.boundary) for n in grid.cells))
    if optics.transfers:
        constants = constants._replace(transfer=_transfer(fine, grid, optics))
    if optics.transfers and record.boundary != "open":
        constants = constants._replace(passband=_passband(fine, grid, optics))
    if optics.blur == "estimated":
        constants = constants._replace(squares=-fine.laplacian * record.dx[-1] ** 2)
    if optics.exposure:
        constants = constants._replace(average=(optics.exposure / record.dt) ** 2 / 24.0)
    if whitening.colour is not None:
        constants = constants._replace(colour=whitening.colour)
    if whitening.memory:
        constants = constants._replace(memory=np.float64(whitening.memory))
    return model, constants


def mode_grid(record: Record) -> Grid:
    """Return the mesh whose modes serve a record: cosines for a window, which has no modes of its own."""
    return Grid(record.mesh, record.dx, "neumann" if record.boundary in (None, "open") else record.boundary)


def least_substeps(record: Record, view: View) -> int:
    """Return the fewest steps from frame to frame; a window has an explicit scheme, and a limit."""
    if record.boundary != "open":
        return 1
    around = _AROUND if view.q_free else 1.0
    return stable_substeps(ALLEN_CAHN, record.dx, float(record.q or 0.0) * around, float(np.max(np.diff(record.times))))


def observed(record: Record, view: View = PLAIN) -> Observed:
    """Return the values of a record with their weights.

    What was not seen is filled in from its surroundings. Where the model needs a value there (of the initial field, of
    a border), the filling counts like one observation with an error as large as the phases are apart.
    """
    values, cells = record.slab(), prod(record.mesh)
    own = view.whitening.root
    if getattr(record, "mask", None) is None:
        nuisance = (
            _let_through(record, view) if record.boundary != "open" else cells + (record.frames - 1) * _border(record)
        )
        return Observed(values, 1.0 if own is None else own, None, values.size - nuisance)
    seen = np.asarray(record.seen())
    if view.whitening.colour is not None or view.whitening.memory:
        raise InputError(
            "correlated noise and missing values do not go together: expected complete frames; cut the record to a "
            "part without gaps, or use noise='white'"
        )
    needed = np.zeros(values.shape, dtype=bool)
    needed[0] = True
    if record.boundary == "open":
        needed[:, border_mask(record.mesh)] = True
    noise = _rough_noise(values, seen)
    root = np.where(seen, 1.0 if own is None else own, np.where(needed, noise / _PRIOR, 0.0))
    return Observed(_filled(values, seen), root, seen, int(np.count_nonzero(seen)) - _determined(record, seen))


def _let_through(record: Record, view: View) -> int:
    """Return how many modes of the initial field the optics let through; all of them without optics."""
    grid = mode_grid(record)
    if not view.optics.transfers:
        return prod(grid.cells)
    passed = _passband(grid, grid, view.optics)
    if grid.boundary == "neumann":
        return int(np.sum(passed))
    count = np.full(passed.shape[-1], 2.0)  # a mode of the last axis stands for its mirror image too
    count[0] = 1.0
    if grid.cells[-1] % 2 == 0:
        count[-1] = 1.0
    return int(np.sum(passed * count))


def _determined(record: Record, seen: Seen) -> int:
    """Return how many values of the nuisance the seen values determine.

    A cell of the first field is, if it was ever seen. So is a value of a window's border that was seen, and one that
    was not if it lies beside a cell inside that ever was: the motion of that cell needs it.
    """
    ever = np.any(seen, axis=0)
    if record.boundary != "open":
        return int(np.count_nonzero(ever))
    edge = border_mask(record.mesh)
    beside = edge & _next_to(ever & ~edge)
    return int(np.count_nonzero(ever & ~edge)) + int(np.count_nonzero((seen | beside) & edge))


def _next_to(cells: Seen) -> Seen:
    """Return the cells that have a neighbour along an axis among the given ones."""
    wide = np.pad(cells, 1)
    inner = tuple(slice(1, -1) for _ in cells.shape)
    shifts = [np.roll(wide, step, axis=axis)[inner] for axis in range(cells.ndim) for step in (-1, 1)]
    return np.asarray(reduce(np.logical_or, shifts))


def complete(record: Record) -> Record:
    """Return a record with its missing values filled in: to start from, not to read."""
    if record.mask is None:
        return record
    values = _filled(record.slab(), np.asarray(record.seen()))
    return Record(
        values, dx=record.dx, times=record.times, q=record.q, boundary=record.boundary,
        length_unit=record.length_unit, time_unit=record.time_unit,
    )  # fmt: skip


def check_window(record: Record) -> None:
    """Refuse a window that is little more than its border."""
    if min(record.mesh) < _SMALLEST:
        raise InputError(
            f"the window is {' x '.join(str(n) for n in record.mesh)}: expected at least {_SMALLEST} cells along each "
            "axis, for two on each side serve as its border; take a larger part, or declare boundary='periodic' or "
            "'neumann'"
        )


def one_mask(records: Sequence[Record]) -> bool:
    """Say whether records miss the same values, so that they can be read together."""
    first = records[0].mask
    return all(
        record.mask is first
        or (record.mask is not None and first is not None and np.array_equal(record.seen(), records[0].seen()))
        for record in records[1:]
    )


def observed_values(records: Sequence[Record], view: View, first: Observed) -> Array:
    """Return the values of a batch, filled where nothing was seen; those of the first record are known."""
    return np.stack([first.values, *(observed(record, view).values for record in records[1:])])


def check_record(record: Record) -> None:
    """Refuse a record that does not declare its boundary, or whose q is not known."""
    if record.boundary is None:
        raise InputError(
            "the trajectory reading needs to know what happens at the border: pass boundary='periodic' or 'neumann' to "
            "Record, or 'open' for a field of view cut out of something larger; method='weak' needs none"
        )
    if record.q is None:
        raise InputError(
            "the record has no diffusion coefficient: pass q= to Record (q sets the time scale of the law)"
        )


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


def _border(record: Record) -> int:
    return int(np.count_nonzero(border_mask(record.mesh)))


def _transfer(fine: Grid, grid: Grid, optics: Optics) -> Array:
    """Return what is left of each mode in the image; the mesh may be finer than that of the pixels."""
    left = np.ones_like(fine.laplacian)
    if isinstance(optics.blur, float | int) and optics.blur:
        left = left * np.exp(0.5 * float(optics.blur) ** 2 * fine.laplacian)
    if optics.pixel:
        waves = fine.waves
        left = left * reduce(np.multiply, [np.sinc(k * h / (2.0 * np.pi)) for k, h in zip(waves, grid.dx, strict=True)])
    return np.asarray(left)


def _passband(fine: Grid, grid: Grid, optics: Optics) -> Array:
    """Return 1 for the modes of the initial field that the optics let through well enough, else 0.

    A mode of which less than a fifth is seen would be fitted to noise, five times as large, and the law is not linear.
    A resolved interface has next to nothing there.
    """
    likely = optics if optics.blur != "estimated" else replace(optics, blur=min(grid.dx))
    return (_transfer(fine, grid, likely) > _PASSED).astype(np.float64)


def _gain(grid: Grid, passed: Array, colour: Array | None) -> Array:
    """Return what optics and noise make of the square of each mode."""
    return passed**2 if colour is None else passed**2 * _on_modes(colour, grid) ** 2


def _on_modes(colour: Array, grid: Grid) -> Array:
    """Return a factor of cosine modes at the modes of a grid: a wave that fits twice into a mirrored axis."""
    if grid.boundary == "neumann":
        return colour
    step = [2 * np.pi / length for length in grid.extent]
    places = [
        np.minimum(np.rint(2 * np.abs(kappa) / unit).astype(int), n - 1)
        for kappa, unit, n in zip(grid.waves, step, grid.cells, strict=True)
    ]
    return np.asarray(colour[tuple(np.broadcast_arrays(*places))])


def _rough_noise(values: Array, seen: Seen) -> float:
    """Return the noise from fourth differences in time where all five values were seen; 0.05 where there are none."""
    count = len(values) - len(_FOURTH) + 1
    if count < 1:
        return 0.05
    rest = sum(c * values[k : k + count] for k, c in enumerate(_FOURTH)) / np.linalg.norm(_FOURTH)
    whole = reduce(np.logical_and, [seen[k : k + count] for k in range(len(_FOURTH))])
    return 1.4826 * float(np.median(np.abs(rest[whole]))) if whole.any() else 0.05


def _filled(values: Array, seen: Seen) -> Array:
    """Fill what was not seen: from the nearest frame in which the cell was, else from the cells around it."""
    filled = np.where(seen, values, np.nan)
    for k in range(1, len(filled)):
        filled[k] = np.where(np.isnan(filled[k]), filled[k - 1], filled[k])
    for k in range(len(filled) - 2, -1, -1):
        filled[k] = np.where(np.isnan(filled[k]), filled[k + 1], filled[k])
    return np.stack([_smooth_fill(frame) for frame in filled]) if np.isnan(filled).any() else filled


def _smooth_fill(frame: Array) -> Array:
    from scipy.ndimage import gaussian_filter

    gaps = np.isnan(frame)
    known, width = np.where(gaps, 0.0, frame), 1.0
    while gaps.any():
        weight = gaussian_filter((~np.isnan(frame)).astype(float), width, mode="nearest")
        mean = gaussian_filter(known, width, mode="nearest") / np.maximum(weight, 1e-300)
        ready = gaps & (weight > 0.05)
        frame = np.where(ready, mean, frame)
        gaps, width = gaps & ~ready, 1.5 * width
    return np.asarray(frame)

"""Film: the frames of a record that a page shows, thinned where there are too many, with what the law predicts."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array, Progress
from doublewell.record import Record
from doublewell.report.unit_words import after, length_axis, time_axis
from doublewell.result import Result
from doublewell.validate import Validation, replay, validate

__all__ = ["Film", "make_film", "predicted"]

_FRAMES = 61  # at most: with _SIDE this keeps a page below 7 MB, noise included
_SIDE = 160  # pixels along an axis, at most
_LINES = 400  # frames, and pixels, of a movie with one space axis, which is one picture
_VALUES = 40_000_000  # of a prediction, at most: 320 MB


@dataclass(frozen=True, eq=False)
class Film:
    """Fields to look at, [frame, y, x] (one space axis: [t, x]), with their frame numbers and times.

    ``told`` and ``rest`` (predicted, and observed - predicted) are None where nothing could be predicted. ``notes`` say
    why, or what was predicted from what, and what was left out. ``extent`` and ``names`` are of the axes across and up.
    """

    frames: tuple[int, ...]
    times: Array
    seen: Array
    told: Array | None
    notes: tuple[str, ...]
    extent: tuple[float, float]
    names: tuple[str, str] = ("x (length)", "y (length)")
    time_unit: str | None = None

    @property
    def rest(self) -> Array | None:
        """What the prediction leaves: observed - predicted."""
        return None if self.told is None else self.seen - self.told

    @property
    def flat(self) -> bool:
        """Whether the whole movie is one picture of position and time."""
        return self.seen.ndim == 2


def predicted(result: Result, record: Record, *, progress: Progress | None = None) -> Validation | str:
    """Evolve the recovered law from the fitted initial field, or say why that cannot be done.

    Without that field the first frame serves, noise and all; of a record too large to evolve, the last part.
    """
    if record.boundary in (None, "open"):
        return (
            "the record is a window, and what comes in over its border is not known: the law cannot be evolved alone. "
            "The fit follows the border frame by frame; its residual is shown below"
        )
    if result.settings.optics is not None:
        return "the picture is not the field itself (optics), so the evolved law is not compared with it"
    start = max(0, record.frames - max(2, _VALUES // prod(record.mesh)))
    if 2 * prod(record.mesh) > _VALUES:
        return f"frames of {prod(record.mesh)} pixels are too large to be evolved for a page: use validate"
    try:
        if start == 0 and _has_initial(result):
            found = replay(result, record, progress=progress)
        else:
            found = validate(result, record, start=start, progress=progress)
    except InputError as error:
        return f"the law could not be evolved: {error}"
    if not np.all(np.isfinite(found.error)):
        return "the evolution of the law left the range of numbers: this law cannot be evolved from the first frame"
    return found


def _has_initial(result: Result) -> bool:
    fit = result.diagnostics.likelihood
    return fit is not None and fit.initial is not None


def make_film(result: Result, record: Record, found: Validation | str) -> Film:
    """Read the frames that are shown, one at a time."""
    start = 0 if isinstance(found, str) else found.start
    flat = len(record.mesh) == 1
    picks = _picks(start, record.frames, _LINES if flat else _FRAMES)
    steps = tuple(ceil(n / (_LINES if flat else _SIDE)) for n in record.mesh[-2:])
    seen = np.stack([_thin(record.slab(k, k + 1)[0], steps) for k in picks])
    told = None
    if not isinstance(found, str):
        told = np.stack([_thin(found.predicted.slab(k - start, k - start + 1)[0], steps) for k in picks])
    return Film(
        frames=tuple(picks),
        times=record.times[picks],
        seen=seen,
        told=told,
        notes=(*_origin(result, found), *_notes(record, picks, steps, start)),
        extent=_extent(record),
        names=(length_axis("x", record), time_axis("time", record) if flat else length_axis("y", record)),
        time_unit=record.time_unit,
    )


def _origin(result: Result, found: Validation | str) -> list[str]:
    """Say what the prediction was evolved from."""
    if isinstance(found, str):
        return [f"No prediction: {found}."]
    if found.origin == "fitted initial field":
        return [
            "Predicted: the fit itself, the recovered law evolved from the initial field that was fitted with it. What "
            "the difference shows is what the fit leaves; it should look like noise alone, less of it in the first "
            "frame, whose noise is taken up in part."
        ]
    said = f"Predicted: the recovered law evolved from the observed frame {found.start}, whose noise it keeps."
    if result.diagnostics.likelihood is None:
        return [f"{said} The weak reading fits no initial field."]
    if (fit := result.diagnostics.likelihood) is not None and fit.tiles is not None:
        return [f"{said} The movie was read in tiles, and each has an initial field of its own."]
    if not _has_initial(result):
        return [f"{said} This result holds no fitted initial field: identify again to see the fields of the fit."]
    return [said]


def _picks(start: int, frames: int, most: int) -> list[int]:
    count = min(frames - start, most)
    return [int(k) for k in np.unique(np.linspace(start, frames - 1, count).round().astype(int))]


def _thin(field: Array, steps: tuple[int, ...]) -> Array:
    """Take every n-th pixel: a mean would hide the noise. Of three axes the middle slice."""
    flat = field[field.shape[0] // 2] if field.ndim == 3 else field
    return np.asarray(flat[tuple(slice(None, None, step) for step in steps)])


def _notes(record: Record, picks: list[int], steps: tuple[int, ...], start: int) -> list[str]:
    said = []
    if len(record.mesh) == 3:
        place = f"{record.mesh[0] // 2 * record.dx[0]:.4g}{after(record.length_unit)}"
        said.append(f"Three space axes: the middle slice is shown, z = {place}.")
    if start:
        said.append(f"The record is large: the law was evolved, and frames are shown, from frame {start} on.")
    if len(picks) < record.frames - start:
        said.append(f"{len(picks)} of {record.frames - start} frames are shown, evenly spread.")
    if max(steps) > 1:
        axes = "zyx"[-len(steps) :]
        kept = " and ".join(f"every {_ordinal(n)} pixel along {a}" for n, a in zip(steps, axes, strict=True) if n > 1)
        said.append(f"Of each frame {kept} is shown; nothing is averaged, so the noise looks as it is.")
    return said


def _extent(record: Record) -> tuple[float, float]:
    """Return the sizes across and upwards: lengths, or of one axis length and time."""
    if len(record.mesh) == 1:
        return record.extent[0], float(record.times[-1] - record.times[0])
    return record.extent[-1], record.extent[-2]


def _ordinal(n: int) -> str:
    """Return a number as an order.

    >>> _ordinal(2), _ordinal(3), _ordinal(4), _ordinal(12), _ordinal(22)
    ('2nd', '3rd', '4th', '12th', '22nd')
    """
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"

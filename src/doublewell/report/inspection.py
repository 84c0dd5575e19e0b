"""Inspection: a record in words, before any law is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Progress
from doublewell.observation import Survey, coarse_note, pace_notes, resolved, survey, survey_notes
from doublewell.record import Record
from doublewell.report.unit_words import q_unit
from doublewell.result.text import percent
from doublewell.weak import Support, default_supports

__all__ = ["Inspection", "inspect_record"]

_WIDTH = 96
_PICTURE = 1024  # frames of a 1-D movie that are looked at
_ALIKE = 0.8  # change from frame to frame over that from cell to cell of what may be one picture
_BAR = 40  # characters of the longest bar


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a record offers: its survey, the default supports or why there are none, and what to watch.

    ``print(inspection)`` gives it in words.
    """

    record: Record
    survey: Survey
    supports: tuple[Support, ...]
    refusal: str | None
    watch: tuple[str, ...]

    def __str__(self) -> str:
        sections = [
            ("Mesh and time", _mesh(self.record, self.survey)),
            ("Noise", _noise(self.survey)),
            ("Phase values", _phases(self.survey)),
            ("Interface", _interface(self.survey, self.record.length_unit)),
            ("Test functions", _supports(self)),
            ("Look at", _watch(self.watch)),
        ]
        mesh = " x ".join(str(n) for n in self.record.mesh)
        line = len(self.record.mesh) == 1
        head = f"{'read as a 1-D movie: ' if line else ''}{self.record.frames} frames of {mesh} pixels"
        return "\n".join([head, *(f"\n{title}\n" + "\n".join(f"  {x}" for x in lines) for title, lines in sections)])


def inspect_record(record: Record, *, progress: Progress | None = None) -> Inspection:
    """Survey a record and say what a fit would meet; nothing is fitted. `progress` gets (frames read, frames).

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 64)
    >>> u = np.tanh((x + 0.3 * np.linspace(0, 1, 30)[:, None]) / 0.1)
    >>> inspect_record(Record(u, dx=x[1] - x[0], dt=0.1, q=1.0)).watch
    ()
    """
    seen = survey(record, progress=progress)
    try:
        supports, refusal = default_supports(record, seen.interface_width), None
    except InputError as error:
        supports, refusal = (), str(error)
    stops = [*_missing(record), *([refusal] if refusal else [])]  # what stands in the way comes first
    notes = (*survey_notes(seen), *pace_notes(seen, record), *_one_picture(record))
    weak = (
        coarse_note(seen) if record.boundary in (None, "open") else ()
    )  # without a closed boundary the weak reading is the one to come
    return Inspection(record, seen, supports, refusal, (*stops, *notes, *weak))


def _missing(record: Record) -> Iterator[str]:
    if record.q is None:
        yield "the diffusion coefficient q is not known: it will be estimated from the movie, which must show motion"


def _one_picture(record: Record) -> Iterator[str]:
    """Say that a 1-D movie looks like one picture: its frames differ as neighbouring cells do."""
    if len(record.mesh) != 1 or record.mask is not None:
        return
    u = record.slab(0, min(record.frames, _PICTURE))
    steps = [float(np.sqrt(np.mean(np.diff(u, axis=axis) ** 2))) for axis in (0, 1)]
    if steps[0] > _ALIKE * steps[1]:
        yield (
            f"read as a 1-D movie with {record.frames} frames of {record.mesh[0]} cells, but one frame differs from "
            "the next as much as one cell from its neighbour: if this is one picture (y, x), no law can be read from "
            "it; record a movie (t, y, x)"
        )


def _mesh(record: Record, seen: Survey) -> Iterator[str]:
    view = " x ".join(f"{length:.4g}" for length in record.extent)
    pixel = " x ".join(f"{h:.6g}" for h in (record.dx if len(set(record.dx)) > 1 else record.dx[:1]))
    length, time, both = (f" {unit}" if unit else "" for unit in (record.length_unit, record.time_unit, q_unit(record)))
    yield f"pixel size {pixel}{length}, field of view {view}{length or ' (no unit is known)'}"
    start, end = (f"{t:.6g}" for t in (record.times[0], record.times[-1]))
    pace = f"one frame every {record.dt:.6g}{time}" if record.uniform else "frames at uneven times"
    yield f"{pace}, from t = {start} to {end}{time}"
    if seen.missing > 0.0:
        yield f"{100 * seen.missing:.3g} % of the values are missing; the numbers below are of the others"
    q = "not known" if record.q is None else f"{record.q:.6g}{both}"
    boundary = record.boundary or "not declared (nothing is assumed about the outside)"
    yield f"diffusion coefficient q: {q}; boundary: {boundary}"


def _noise(seen: Survey) -> Iterator[str]:
    share = percent(0.5 * seen.noise)
    yield f"{seen.noise:.2g} per pixel, {share} of the step between the phases ({seen.noise_method})"


def _phases(seen: Survey) -> Iterator[str]:
    yield f"values from {seen.low:.3g} to {seen.high:.3g}; the pure phases should lie at -1 and +1"
    yield from wrap(resolved(seen), _WIDTH)
    yield f"{100 * seen.coverage:.0f} % of the phase range is visited"
    pairs = [a + b for a, b in zip(seen.histogram[::2], seen.histogram[1::2], strict=True)]
    top = max(*pairs, 1e-12)
    for k, share in enumerate(pairs):
        low = -1.0 + 2.0 * k / len(pairs)
        bar = "#" * max(round(_BAR * share / top), int(share >= 1e-3))
        yield f"  {low:4.1f} to {low + 2.0 / len(pairs):4.1f} {100 * share:5.1f} % {bar}".rstrip()
    outside = max(1.0 - sum(pairs), 0.0)
    yield f"  beyond -1 and +1: {100 * outside:.1f} % (noise carries about half of each pure phase there)"


def _interface(seen: Survey, unit: str | None) -> Iterator[str]:
    if seen.interface_width is None:
        yield "none seen"
    else:
        size = f"{seen.interface_width:.4g}{f' {unit}' if unit else ''}"
        yield f"{size} wide from u = -0.9 to 0.9, that is {seen.cells:.1f} pixels"
    yield f"the picture changes by {seen.change:.2g} (root mean square) from first to last"


def _supports(inspection: Inspection) -> Iterator[str]:
    if inspection.supports:
        yield f"half-widths in time and space that fit: {', '.join(str(support) for support in inspection.supports)}"
    else:
        yield "none of the default ones fits"


def _watch(watch: tuple[str, ...]) -> Iterator[str]:
    if not watch:
        yield "nothing unusual"
    for line in watch:
        first, *rest = wrap(line, _WIDTH)
        yield f"- {first}"
        yield from (f"  {more}" for more in rest)

"""Inspection: a record in words, before any law is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Progress
from doublewell.observation import MASK, TOO_FEW_CELLS, TOO_LARGE, Survey, survey
from doublewell.record import Record
from doublewell.record_findings import Finding, Severity, pace_findings, survey_findings
from doublewell.report.text import NOTHING, Sections, bullets, joined
from doublewell.units import unit_text
from doublewell.weak import Support, default_supports
from doublewell.wording import WIDTH, after, percent

_PICTURE = 1024  # frames of a 1-D movie that are looked at
_SIMILAR = 0.8  # change from frame to frame over that from cell to cell of what may be one picture
_BAR = 40  # characters of the longest bar


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a record offers: its survey, the default supports or why there are none, and the warnings.

    ``print(inspection)`` gives it in words.
    """

    record: Record
    survey: Survey
    supports: tuple[Support, ...]
    refusal: str | None
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        unit = self.record.length_unit
        sections: Sections = [
            ("Mesh and time", _mesh(self.record, self.survey)),
            ("Noise", _noise(self.survey)),
            ("Phase values", _phases(self.survey)),
            ("Interface", _interface(self.survey, unit)),
            ("Test functions", _supports(self)),
            ("Warnings", bullets(map(str, self.findings)) if self.findings else [NOTHING]),
        ]
        mesh = " x ".join(str(n) for n in self.record.mesh)
        line = len(self.record.mesh) == 1
        head = f"{'read as a 1-D movie: ' if line else ''}{self.record.frames} frames of {mesh} pixels"
        return f"{head}\n{joined(sections)}"


def inspect_record(record: Record, *, progress: Progress | None = None) -> Inspection:
    """Survey a record and tell what a fit would meet; nothing is fitted. `progress` gets (frames read, frames).

    >>> x = np.linspace(-1, 1, 64)
    >>> u = np.tanh((x + 0.3 * np.linspace(0, 1, 30)[:, None]) / 0.1)
    >>> inspect_record(Record(u, dx=x[1] - x[0], dt=0.1, q=1.0)).findings
    ()
    """
    seen = survey(record, progress=progress)
    items: list[Finding] = []
    supports: tuple[Support, ...] = ()
    refusal = None
    try:
        supports = default_supports(record, seen.interface_width)
    except InputError as error:
        refusal = str(error)
        items.append(Finding("supports-too-large", Severity.CHECK, "movie", refusal))
    items += [*survey_findings(seen), *pace_findings(seen, record.q, record.dt if record.uniform else None)]
    items += _one_picture(record)
    return Inspection(record, seen, supports, refusal, tuple(items))


def _one_picture(record: Record) -> Iterator[Finding]:
    """Yield that a 1-D movie looks like one picture: its frames differ as neighbouring cells do."""
    if len(record.mesh) != 1 or record.mask is not None:
        return
    u = record.slab(0, min(record.frames, _PICTURE))
    steps = [float(np.sqrt(np.mean(np.diff(u, axis=axis) ** 2))) for axis in (0, 1)]
    if steps[0] > _SIMILAR * steps[1]:
        yield Finding(
            "one-picture",
            Severity.CHECK,
            "movie",
            f"read as a 1-D movie with {record.frames} frames of {record.mesh[0]} cells, but one frame differs from "
            "the next as much as one cell from its neighbour",
            "if this is one picture (y, x), no law can be identified from it; record a movie (t, y, x)",
        )


def _mesh(record: Record, seen: Survey) -> Iterator[str]:
    view = " x ".join(f"{length:.4g}" for length in record.extent)
    pixel = " x ".join(f"{h:.6g}" for h in (record.dx if len(set(record.dx)) > 1 else record.dx[:1]))
    length, time = after(record.length_unit), after(record.time_unit)
    known = record.length_unit is not None and record.time_unit is not None
    both = f" {unit_text(((record.length_unit or '', 2), (record.time_unit or '', -1)))}" if known else ""
    yield f"pixel size {pixel}{length}, field of view {view}{length or ' (no unit is known)'}"
    start, end = (f"{t:.6g}" for t in (record.times[0], record.times[-1]))
    pace = f"one frame every {record.dt:.6g}{time}" if record.uniform else "frames at uneven times"
    yield f"{pace}, from t = {start} to {end}{time}"
    if seen.missing > 0.0:
        yield f"{100 * seen.missing:.3g} % of the values are missing; the numbers below are of the others"
    q = "not given, a fit estimates it (the movie must show motion)" if record.q is None else f"{record.q:.6g}{both}"
    yield f"diffusion coefficient q: {q}"
    yield f"boundary: {record.boundary or 'not declared, the movie is fitted as a window (needed to evolve the law)'}"


def _noise(seen: Survey) -> Iterator[str]:
    share = percent(0.5 * seen.noise)
    yield f"{seen.noise:.2g} per pixel, {share} of the step between the phases ({seen.noise_method})"


def _phases(seen: Survey) -> Iterator[str]:
    yield f"values from {seen.low:.3g} to {seen.high:.3g}; the pure phases should lie at -1 and +1"
    yield from wrap(_order_parameter(seen), WIDTH - 2)
    yield f"{100 * seen.coverage:.0f} % of the phase range is visited"
    pairs = [a + b for a, b in zip(seen.histogram[::2], seen.histogram[1::2], strict=True)]
    top = max(*pairs, 1e-12)
    for k, share in enumerate(pairs):
        low = -1.0 + 2.0 * k / len(pairs)
        bar = "#" * max(round(_BAR * share / top), int(share >= 1e-3))
        yield f"  {low:4.1f} to {low + 2.0 / len(pairs):4.1f} {100 * share:5.1f} % {bar}".rstrip()
    outside = max(1.0 - sum(pairs), 0.0)
    yield f"  beyond -1 and +1: {100 * outside:.1f} % (noise carries about half of each pure phase there)"


def _order_parameter(seen: Survey) -> str:
    """Return whether the values look like a resolved order parameter at all."""
    if seen.two_valued:
        return f"not an order parameter: the picture holds {seen.distinct} different values, like a mask; {MASK}"
    if max(-seen.low, seen.high) > TOO_LARGE:
        return "not an order parameter yet: these look like intensities; convert them with phase_from_intensity"
    if seen.cells is None:
        return f"not an order parameter: no interface is detected, one phase or steps sharper than a pixel; {MASK}"
    if seen.cells < TOO_FEW_CELLS:
        return (
            f"hardly an order parameter: the step from phase to phase takes {seen.cells:.1f} pixels, as it does in a "
            f"mask that was smoothed; {MASK}"
        )
    share = f"{100 * seen.interface_share:.1f} % of the pixels lie between -0.9 and 0.9"
    return f"these look like a resolved order parameter: {share}, inside interfaces"


def _interface(seen: Survey, unit: str | None) -> Iterator[str]:
    if seen.interface_width is None:
        yield "none detected"
    else:
        size = f"{seen.interface_width:.4g}{after(unit)}"
        yield f"{size} wide from u = -0.9 to 0.9, that is {seen.cells:.1f} pixels"
    yield f"the picture changes by {seen.change:.2g} (root mean square) from first to last"


def _supports(inspection: Inspection) -> Iterator[str]:
    if inspection.supports:
        yield f"half-widths in time and space that fit: {', '.join(str(support) for support in inspection.supports)}"
    else:
        yield "none of the default ones fits"

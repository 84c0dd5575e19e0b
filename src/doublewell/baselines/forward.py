"""Forward: how well the movie that a force makes meets the one that was seen."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from doublewell.baselines.protocol import Force
from doublewell.dynamics import Cnab2, Grid
from doublewell.hints import Array
from doublewell.record import Record

__all__ = ["cannot_run", "forward_rms"]

_STEP = 0.05  # largest q |G'| dt of one internal step
_GROWTH = 10.0  # over the larger of 1 and max |u0|: beyond it the solution blows up
_MESH = 401


@dataclass(frozen=True)
class _Driven:
    """A force alone, which is all that a step needs."""

    given: Force

    def force(self, u: Any) -> Any:
        return np.asarray(self.given(u), dtype=np.float64)


def cannot_run(record: Record) -> str | None:
    """Return why no force can be run forward from the first frame of a record, or None."""
    if record.boundary in (None, "open"):
        return "no forward run: the record declares no boundary"
    if not record.uniform:
        return "no forward run: the frames are not evenly spaced"
    return None


def forward_rms(force: Force, record: Record, initial: Array, q: float) -> float | None:
    """Run a force from an initial field by CNAB2; return the rms of record minus movie, None where it blows up."""
    assert record.boundary is not None
    stepper = Cnab2(Grid(record.mesh, record.dx, record.boundary), record.dt, q, _substeps(force, record.dt, q))
    limit = _GROWTH * max(1.0, float(np.max(np.abs(initial))))
    squares, count = _misfit(record, 0, initial)
    with np.errstate(all="ignore"):  # a blow-up is an answer
        for frame, u in enumerate(stepper.run(_Driven(force), initial, intervals=record.frames - 1), start=1):
            if not float(np.max(np.abs(u))) <= limit:
                return None
            more, values = _misfit(record, frame, u)
            squares, count = squares + more, count + values
    return float(np.sqrt(squares / count))


def _misfit(record: Record, frame: int, u: Array) -> tuple[float, int]:
    """Return the sum of squares over the values of a frame that were observed, and their number."""
    seen = record.seen(frame, frame + 1)[0]
    return float(np.sum((record.slab(frame, frame + 1)[0] - u) ** 2, where=seen)), int(np.count_nonzero(seen))


def _substeps(force: Force, dt: float, q: float) -> int:
    u = np.linspace(-1.0, 1.0, _MESH)
    steep = float(np.max(np.abs(np.gradient(np.asarray(force(u), dtype=np.float64), u))))
    return max(1, ceil(q * steep * dt / _STEP))

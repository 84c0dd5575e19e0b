"""What every other method takes and returns, so that all are judged alike."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from doublewell.hints import Array
from doublewell.law import Law
from doublewell.record import Record

__all__ = ["Band", "Baseline", "BaselineFit", "Cost", "Force", "cores", "measured", "missing"]

Force = Callable[[Array], Array]
Band = Callable[[Array], tuple[Array, Array]]
_PAUSE = 0.02  # seconds between two looks at the memory


@dataclass(frozen=True)
class BaselineFit:
    """A force G(u) as a method left it, before any projection, with what it cost.

    `memory` is the peak of the process over its size at the start, in bytes, None where it was not measured (a GPU).
    `band` gives (low, high) of the method's own 95 % intervals, where it has any. `law` is the same force with its
    coefficients, where the method has some: its structure is then decided exactly, not on a mesh.
    """

    name: str
    force: Force
    seconds: float
    memory: int | None
    device: str
    notes: tuple[str, ...] = ()
    band: Band | None = None
    law: Law | None = None


class Baseline(Protocol):
    """A method: a frozen dataclass whose fields are its settings."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The modules that have to be installed."""

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:
        """Estimate the effective force of a record with known q."""


def missing(baseline: Baseline) -> str | None:
    """Return why a method cannot run here, or None."""
    absent = [name for name in baseline.needs if find_spec(name) is None]
    if not absent:
        return None
    return f"{baseline.name} needs {', '.join(absent)}: pip install 'doublewell[baselines]'"


def cores() -> str:
    """Return the device of a method that computes on the processor."""
    return f"cpu: {os.cpu_count()} cores"


@dataclass
class Cost:
    """Seconds and bytes, filled in when the measurement ends."""

    seconds: float = 0.0
    memory: int = 0
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the time of a block and how far the process grows in it."""
    cost, start = Cost(), _resident()
    watch = threading.Thread(target=_watch, args=(cost, start), daemon=True)
    watch.start()
    began = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - began
        cost._ended.set()
        watch.join()


def _watch(cost: Cost, start: int) -> None:
    while True:
        ended = cost._ended.wait(_PAUSE)
        cost.memory = max(cost.memory, _resident() - start)
        if ended:
            return


def _resident() -> int:
    """Return the bytes of the process that are in memory; 0 where the system does not say."""
    try:
        words = Path("/proc/self/status").read_text().split()
        return 1024 * int(words[words.index("VmRSS:") + 1])
    except (OSError, ValueError):
        return 0

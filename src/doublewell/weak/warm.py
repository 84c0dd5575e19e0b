"""Compile the kernels once and leave them in the cache: `python -m doublewell.weak.warm`."""

from __future__ import annotations

import numpy as np

from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak.assembly import weak_evidence


def warm() -> None:
    """Assemble a tiny record, which compiles every kernel or loads it from the cache."""
    u = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 10, 10))
    weak_evidence(Record(u, dx=1.0, dt=1.0, q=1.0), Bernstein(0), [(2, 2.0)])


if __name__ == "__main__":
    warm()

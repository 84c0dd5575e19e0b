"""How far the recovered force is from the true one: over all phase values, and over those that were seen."""

from __future__ import annotations

import numpy as np

from doublewell_paper.outcome import Outcome
from doublewell_paper.sample import Sample

__all__ = ["force_error", "weighted_force_error"]

_BINS = 200


def force_error(sample: Sample, outcome: Outcome) -> float | None:
    """Return e_G in percent, the relative L2 error of the force on uniform phase values."""
    if outcome.law is None:
        return None
    u = np.linspace(-1.0, 1.0, sample.spec.phases)
    truth = sample.truth.force(u)
    return 100 * float(np.linalg.norm(outcome.law.force(u) - truth) / np.linalg.norm(truth))


def weighted_force_error(sample: Sample, outcome: Outcome) -> float | None:
    """Return the same with each phase value weighted by how often the record shows it."""
    if outcome.law is None:
        return None
    counts, edges = np.histogram(sample.record.slab(), bins=_BINS, range=(-1.0, 1.0))
    u = 0.5 * (edges[1:] + edges[:-1])
    truth = sample.truth.force(u)
    rest = outcome.law.force(u) - truth
    return 100 * float(np.sqrt(np.sum(counts * rest**2) / np.sum(counts * truth**2)))

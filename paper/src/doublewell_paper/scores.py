"""Scores: how good an outcome is, as functions of a sample and an outcome; None where a score is not defined."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from doublewell_paper.core import InputError, Law, calibrate
from doublewell_paper.methods import Outcome
from doublewell_paper.records import Sample, evolve

_BINS = 200


def scores_of(sample: Sample, outcome: Outcome) -> dict[str, float | None]:
    """Return every score of an outcome."""
    law = outcome.law
    return {name: None if law is None else score(sample, law) for name, score in SCORES.items()}


def _force_error(sample: Sample, law: Law) -> float:
    """Return e_G in percent, the relative L2 error of the force on uniform phase values."""
    u = np.linspace(-1.0, 1.0, sample.spec.phases)
    truth = sample.truth.force(u)
    return 100 * float(np.linalg.norm(law.force(u) - truth) / np.linalg.norm(truth))


def _weighted_force_error(sample: Sample, law: Law) -> float:
    """Return the same with each phase value weighted by how often the record shows it."""
    counts, edges = np.histogram(sample.record.slab(), bins=_BINS, range=(-1.0, 1.0))
    u = 0.5 * (edges[1:] + edges[:-1])
    truth = sample.truth.force(u)
    rest = law.force(u) - truth
    return 100 * float(np.sqrt(np.sum(counts * rest**2) / np.sum(counts * truth**2)))


def _field_error(sample: Sample, law: Law) -> float | None:
    """Return e_u in percent at the end of the horizon; None without a horizon, or where the solution blows up."""
    if sample.spec.horizon is None:
        return None
    try:
        final = evolve(law, sample)
    except InputError:
        return None
    truth = sample.final_field
    return 100 * float(np.linalg.norm(final - truth) / np.linalg.norm(truth))


def _scale_error(sample: Sample, law: Law, *, which: int) -> float | None:
    """Return the signed relative error of epsilon (0) or the relative L2 error of the potential (1), in percent."""
    spec = sample.spec
    try:
        return scale_errors(law, sample.truth, sample.tension, epsilon=spec.epsilon, phases=spec.phases)[which]
    except InputError:  # the potential dips below the wells: an outcome, kept in the counts
        return None


def scale_errors(law: Law, truth: Law, tension: float, *, epsilon: float, phases: int) -> tuple[float, float]:
    """Return the signed error of epsilon and e_F, in percent, of a force calibrated with a tension."""
    scale = calibrate(law, tension).epsilon
    u = np.linspace(-1.0, 1.0, phases)
    potential = truth.potential(u, epsilon=epsilon)
    rest = law.potential(u, epsilon=scale) - potential
    return 100 * (scale / epsilon - 1.0), 100 * float(np.linalg.norm(rest) / np.linalg.norm(potential))


SCORES: dict[str, Callable[[Sample, Law], float | None]] = {
    "e_G": _force_error,
    "e_G_seen": _weighted_force_error,
    "e_F": lambda sample, law: _scale_error(sample, law, which=1),
    "e_eps": lambda sample, law: _scale_error(sample, law, which=0),
    "e_u": _field_error,
    "violation": lambda _, law: float(not law.structure.ok),  # decided in exact arithmetic
    "in_cone": lambda _, law: float(np.all(law.coefficients > 0.0)),
}

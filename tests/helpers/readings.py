"""A reading of a record by its likelihood, of one degree, and how far the truth is from it.

Only the fit: no weak start, no measured resolution, no bands. It compiles a third of what `identify` does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.evidence import joint_given_law, system
from doublewell.law import Bernstein, Family, Law
from doublewell.likelihood import Batch, Trajectory
from doublewell.observation import PLAIN, View
from doublewell.record import Record

RARE = {2: 13.8, 4: 18.5}  # chi-square of so many degrees that is larger once in a thousand
PHASES = np.linspace(-1.0, 1.0, 201)
ONE = Bernstein(1)


@dataclass(frozen=True)
class Reading:
    """``error`` and ``width`` are the error of the force and its standard error, both relative.

    ``chi2`` is how far the truth is off in standard errors, squared; nan where the family does not hold it.
    """

    found: Trajectory
    error: float
    width: float
    chi2: float

    @property
    def holds(self) -> bool:
        """Whether the fit converged, and the truth is where its errors allow it to be."""
        return self.found.status.converged and self.chi2 < RARE[self.found.evidence.family.size]


def read_law(record: Record, truth: Law, start: Law, *, family: Family = ONE, view: View = PLAIN) -> Reading:
    """Read a record for the laws of a family, from the one nearest to `start`."""
    features = family.features(PHASES)
    begin = np.linalg.lstsq(features.T, start.force(PHASES), rcond=None)[0]
    found = read_trajectory(record, begin, fitted=family, view=view)
    matrix, target = system(found.evidence, 1.0)
    best = np.linalg.lstsq(matrix, target, rcond=None)[0]
    exact, covariance = truth.force(PHASES), np.linalg.inv(matrix.T @ matrix)
    size = np.linalg.norm(exact)
    chi2 = np.sum((matrix @ (best - truth.coefficients)) ** 2) if family == truth.family else np.nan
    return Reading(
        found=found,
        error=float(np.linalg.norm(best @ features - exact) / size),
        width=float(np.sqrt(np.sum(features * (covariance @ features))) / size),
        chi2=float(chi2),
    )


def read_trajectories(records, starts, *, view: View = PLAIN, **options) -> list[Trajectory]:
    """Fit records of one kind together."""
    return Batch(records, view=view).fit(starts, **options)


def read_trajectory(record: Record, start, **options) -> Trajectory:
    """Fit one record."""
    return read_trajectories([record], np.asarray(start)[None], **options)[0]


def q_of(found: Trajectory, unit: float) -> tuple[float, float]:
    """Return an estimated q and its standard deviation, what is not known of the law within; `unit` is the record's."""
    beside, (matrix, _) = joint_given_law(found.evidence), system(found.evidence, 1.0)
    follows = np.linalg.lstsq(matrix.T, beside.slope[0], rcond=None)[0]
    return unit * float(beside.best[0]), unit * float(np.sqrt(beside.root[0, 0] ** -2 + follows @ follows))

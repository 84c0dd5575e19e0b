"""STAC: the paper's own weak moments with positive coefficients of degree two."""

from __future__ import annotations

from dataclasses import dataclass, field

from doublewell.baselines.inputs import Supports, chosen_supports, known_q
from doublewell.baselines.protocol import BaselineFit, cores, measured
from doublewell.evidence import Evidence, lower
from doublewell.inference import Estimate, estimate
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak import Derivative, weak_evidence

__all__ = ["Stac", "positive_fit", "weak_baseline"]

DEGREE = 2  # the paper's


@dataclass(frozen=True)
class Stac:
    """The weak reading of the paper: discrete derivatives, positive coefficients, no intervals."""

    supports: Supports = None
    degree: int = DEGREE
    name: str = "STAC"
    needs: tuple[str, ...] = field(default=(), init=False)

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force from the weak moments of a record."""
        return weak_baseline(self.name, record, self.supports, self.degree, "discrete")


def weak_baseline(name: str, record: Record, supports: Supports, degree: int, derivative: Derivative) -> BaselineFit:
    """Read the weak moments of one degree and solve for positive coefficients."""
    q = known_q(record, name)
    with measured() as cost:
        chosen = chosen_supports(record, supports, derivative)
        evidence = weak_evidence(record, Bernstein(degree), chosen, derivative=derivative)
        found = estimate(evidence, q, constraint="bernstein")
    notes = (f"supports {', '.join(map(str, chosen))}", f"{found.rows} rows")
    return BaselineFit(name, found.law.force, cost.seconds, cost.memory, cores(), notes, law=found.law)


def positive_fit(evidence: Evidence, q: float, degree: int = DEGREE) -> Estimate:
    """Return positive coefficients of a degree from moments of that or a higher one."""
    return estimate(lower(evidence, degree), q, constraint="bernstein")

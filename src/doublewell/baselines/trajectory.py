"""Trajectory: our own likelihood of the whole record, as one of the methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from doublewell.baselines.inputs import known_q
from doublewell.baselines.protocol import BaselineFit, measured
from doublewell.dynamics import device_names
from doublewell.identify import identify
from doublewell.inference import Constraint
from doublewell.record import Record
from doublewell.result import Result

__all__ = ["Trajectory", "fit_of"]


@dataclass(frozen=True)
class Trajectory:
    """The trajectory reading with the library's own choices: the average over degrees, every plain double well."""

    constraint: Constraint = "admissible"
    name: str = "trajectory"
    needs: tuple[str, ...] = field(default=(), init=False)

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force, with its 95 % band, from the likelihood of a record."""
        known_q(record, self.name)
        with measured() as cost:
            result = identify(record, method="trajectory", constraint=self.constraint, check=False)
        return fit_of(result, self.name, cost.seconds, cost.memory)


def fit_of(result: Result, name: str, seconds: float, memory: int | None) -> BaselineFit:
    """Return a result of ours as every method's: the mean law and, where it has one, the band of the force."""
    seen = result.diagnostics.likelihood
    notes = () if seen is None or seen.converged else (f"not converged: {seen.status}",)
    band = None if result.posterior is None else partial(result.band, "force")
    return BaselineFit(name, result.force, seconds, memory, device_names()[0], notes, band, result.law)

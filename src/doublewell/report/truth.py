"""Truth: a law that is known, and how far a recovered one is from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doublewell.law import Law
from doublewell.result import Result

__all__ = ["Truth"]

_POINTS = 2001  # uniform phase values of the paper's force error


@dataclass(frozen=True)
class Truth:
    """A known law, read as F', with its epsilon: what a recovered one is compared with.

    >>> from doublewell.law import named_law
    >>> Truth(named_law("quartic"), 0.5).force.coefficients.tolist()
    [4.0]
    """

    law: Law
    epsilon: float

    @cached_property
    def force(self) -> Law:
        """The effective force F'/epsilon^2."""
        return self.law.effective(self.epsilon)

    def force_error(self, result: Result) -> float:
        """Return e_G = |G_hat - G| / |G| in L2 between the phases, by 2001 uniform phase values."""
        u = np.linspace(*self.law.phases, _POINTS)
        true = self.force.force(u)
        return float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true))

    def epsilon_error(self, result: Result) -> float | None:
        """Return e_eps = epsilon_hat / epsilon - 1, None when the result has no scale."""
        return None if result.scale is None else result.scale.epsilon / self.epsilon - 1.0

"""Allen-Cahn: u_t = q (Laplacian u - G(u)), the gradient flow of a free energy in L2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from doublewell.dynamics.anisotropy import Anisotropy
from doublewell.dynamics.driving import Driving
from doublewell.dynamics.mobility import Mobility
from doublewell.dynamics.parts import Estimated, WithParts
from doublewell.dynamics.protocol import DYNAMICS, Column, Gauge, WeakForm
from doublewell.hints import Array


@dataclass(frozen=True)
class AllenCahn(WithParts):
    """The Allen-Cahn equation: L(k) = -|k|^2, D = 1. With E = integral of kappa/2 |grad u|^2 + f, L = q / kappa.

    Parameters
    ----------
    anisotropy
        Of the gradient energy: an ``Anisotropy``, or "estimated".
    mobility
        A rate that depends on the phase, q(u) = q m(u): a ``Mobility``, "estimated", or the degree of its logarithm
        where it is estimated; otherwise the data choose it, 1 to 6. q is its mean between the phases.
    driving
        A known force h(t): a ``Driving``, or a function of the time.
    thermal
        Whether the field fluctuates: noise sqrt(2 q theta), theta = kT / kappa, is added to the equation.
    """

    name: ClassVar[str] = "allen-cahn"
    gauge: ClassVar[Gauge] = "nothing"
    order: ClassVar[int] = 2
    symbol: ClassVar[str] = "L"
    border: ClassVar[int | None] = 2  # what the stencils of open_boundary need
    weak_form: ClassVar[WeakForm] = (  # sum_j g_j S[B_j] + (1/q) D S[u] = Lap S[u]
        Column("force", "features"),
        Column("rate", "field", time=1),
        Column("target", "field", space=1),
    )

    anisotropy: Anisotropy | Estimated | None = None
    mobility: Mobility | int | Estimated | None = None
    driving: Driving | Callable[[Any], Any] | None = None
    thermal: bool = False

    @property
    def equation(self) -> str:
        """The equation as text."""
        rate, driving = "q" if self.mobility is None else "q(u)", "" if self.driving is None else " + h(t)"
        return f"u_t = {rate} ({self.parts.bend} - G(u){driving}){self.parts.noise}"

    def linear(self, waves: Sequence[Array]) -> Array:
        """Return -|k|^2."""
        return np.asarray(-sum(map(np.square, waves)))

    def coupling(self, waves: Sequence[Array]) -> float:  # noqa: ARG002 - the same for all modes
        """Return 1."""
        return 1.0


ALLEN_CAHN = DYNAMICS["allen-cahn"] = AllenCahn()

"""Cahn-Hilliard: u_t = q Laplacian (G(u) - Laplacian u), the gradient flow of a free energy that conserves the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from doublewell.dynamics.anisotropy import Anisotropy
from doublewell.dynamics.parts import Estimated, WithParts
from doublewell.dynamics.protocol import DYNAMICS, Column, Gauge, WeakForm
from doublewell.hints import Array


@dataclass(frozen=True)
class CahnHilliard(WithParts):
    """The Cahn-Hilliard equation: L(k) = -|k|^4, D = |k|^2. u_t = M Laplacian (f'(u) - kappa Laplacian u), q = M kappa.

    A constant of G = f'/kappa has no effect. With E = integral of kappa/2 |grad u|^2 + f, M = q / kappa.

    Parameters
    ----------
    anisotropy, flux
        Of the gradient energy, and of the mobility: an ``Anisotropy``, or "estimated".
    thermal
        Whether the field fluctuates: noise sqrt(2 q theta) div, theta = kT / kappa, is added to the equation.
    """

    name: ClassVar[str] = "cahn-hilliard"
    gauge: ClassVar[Gauge] = "constant"
    order: ClassVar[int] = 4
    symbol: ClassVar[str] = "M"
    border: ClassVar[int | None] = 6  # what open_boundary needs for a potential next to the inside
    weak_form: ClassVar[WeakForm] = (  # sum_j g_j Lap S[B_j] - (1/q) D S[u] = Lap^2 S[u]
        Column("force", "features", space=1),
        Column("rate", "field", time=1, factor=-1.0),
        Column("target", "field", space=2),
    )

    anisotropy: Anisotropy | Estimated | None = None
    flux: Anisotropy | Estimated | None = None
    thermal: bool = False

    @property
    def equation(self) -> str:
        """The equation as text."""
        if self.flux is None:
            return f"u_t = q Laplacian (G(u) - {self.parts.bend}){self.parts.noise}"
        return f"u_t = q div(B grad (G(u) - {self.parts.bend})){self.parts.noise}"

    def linear(self, waves: Sequence[Array]) -> Array:
        """Return -|k|^4."""
        return np.asarray(-np.square(self.coupling(waves)))

    def coupling(self, waves: Sequence[Array]) -> Array:
        """Return |k|^2."""
        return np.asarray(sum(map(np.square, waves)))


CAHN_HILLIARD = DYNAMICS["cahn-hilliard"] = CahnHilliard()

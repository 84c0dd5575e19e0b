"""Allen-Cahn with a conserved mean: u_t = q (Laplacian u - G(u) + mean G(u)), by a uniform Lagrange multiplier."""

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
class MassConserving(WithParts):
    """The mass-conserving Allen-Cahn equation: L(k) = -|k|^2, D = 1 but 0 at k = 0: a constant of G has no effect."""

    name: ClassVar[str] = "mass-conserving"
    gauge: ClassVar[Gauge] = "constant"
    order: ClassVar[int] = 2
    symbol: ClassVar[str] = "L"
    border: ClassVar[int | None] = None  # the mean over the whole domain is not seen in a part of it
    weak_form: ClassVar[WeakForm] = (  # sum_j g_j S[B_j - mean B_j] + (1/q) D S[u] = Lap S[u]
        Column("force", "features", centred=True),
        Column("rate", "field", time=1),
        Column("target", "field", space=1),
    )

    anisotropy: Anisotropy | Estimated | None = None
    thermal: bool = False

    @property
    def equation(self) -> str:
        """The equation as text."""
        return f"u_t = q ({self.parts.bend} - G(u) + mean G(u)){self.parts.noise}"

    def linear(self, waves: Sequence[Array]) -> Array:
        """Return -|k|^2."""
        return np.asarray(-sum(map(np.square, waves)))

    def coupling(self, waves: Sequence[Array]) -> Array:
        """Return 1, and 0 for the mean."""
        return np.where(self.linear(waves) == 0.0, 0.0, 1.0)


MASS_CONSERVING = DYNAMICS["mass-conserving"] = MassConserving()

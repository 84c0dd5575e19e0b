"""A toy Cahn-Hilliard dynamics, u_t = q Laplacian (G(u) - Laplacian u), written against the protocol alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import NDArray

from doublewell.dynamics import Column, JointParameter


@dataclass(frozen=True)
class CahnHilliard:
    """L(k) = -|k|^4 and D(k) = |k|^2: the mean of u is kept, and a constant of G has no effect."""

    name: ClassVar[str] = "cahn-hilliard"
    equation: ClassVar[str] = "u_t = q Laplacian (G(u) - Laplacian u)"
    gauge: ClassVar[str] = "constant"
    order: ClassVar[int] = 4
    mobility: ClassVar[str] = "M"
    border: ClassVar[int | None] = None
    weak_form: ClassVar[tuple[Column, ...]] = (  # sum_j g_j Lap S[B_j] - (1/q) D S[u] = Lap^2 S[u]
        Column("force", "features", space=1),
        Column("rate", "field", time=1, factor=-1.0),
        Column("target", "field", space=2),
    )
    joint: ClassVar[tuple[JointParameter, ...]] = (JointParameter("q", start=1.0, unit="q", bounds=(0.5, 2.0)),)

    def linear(self, waves: Sequence[NDArray]) -> NDArray:
        return -(self.coupling(waves) ** 2)

    def coupling(self, waves: Sequence[NDArray]) -> NDArray:
        return sum(k**2 for k in waves)

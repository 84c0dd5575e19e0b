"""A toy mass-conserving Allen-Cahn dynamics, u_t = q (Laplacian u - G(u) + mean G(u)), against the protocol alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics import Column, JointParameter


@dataclass(frozen=True)
class MassConserving:
    """L(k) = -|k|^2 and D(k) = 1, zero at k = 0: a uniform multiplier keeps the mean of u."""

    name: ClassVar[str] = "mass-conserving-allen-cahn"
    equation: ClassVar[str] = "u_t = q (Laplacian u - G(u) + mean G(u))"
    gauge: ClassVar[str] = "constant"
    order: ClassVar[int] = 2
    mobility: ClassVar[str] = "L"
    border: ClassVar[int | None] = None
    weak_form: ClassVar[tuple[Column, ...]] = (  # sum_j g_j S[B_j - mean B_j] + (1/q) D S[u] = Lap S[u]
        Column("force", "features", centred=True),
        Column("rate", "field", time=1),
        Column("target", "field", space=1),
    )
    joint: ClassVar[tuple[JointParameter, ...]] = (JointParameter("q", start=1.0, unit="q", bounds=(0.5, 2.0)),)

    def linear(self, waves: Sequence[NDArray]) -> NDArray:
        return -sum(k**2 for k in waves)

    def coupling(self, waves: Sequence[NDArray]) -> NDArray:
        return np.where(self.linear(waves) == 0.0, 0.0, 1.0)

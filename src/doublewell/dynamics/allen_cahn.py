"""Allen-Cahn: u_t = q (Laplacian u - G(u)), the gradient flow of a free energy in L2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from doublewell.dynamics.protocol import DYNAMICS, Column, Gauge, JointParameter, WeakForm
from doublewell.hints import Array


@dataclass(frozen=True)
class AllenCahn:
    """The Allen-Cahn equation: L(k) = -|k|^2, D = 1. With E = integral of kappa/2 |grad u|^2 + f, L = q / kappa."""

    name: ClassVar[str] = "allen-cahn"
    equation: ClassVar[str] = "u_t = q (Laplacian u - G(u))"
    gauge: ClassVar[Gauge] = "nothing"
    order: ClassVar[int] = 2
    mobility: ClassVar[str] = "L"
    border: ClassVar[int | None] = 2  # what the stencils of open_boundary need
    weak_form: ClassVar[WeakForm] = (  # sum_j g_j S[B_j] + (1/q) D S[u] = Lap S[u]
        Column("force", "features"),
        Column("rate", "field", time=1),
        Column("target", "field", space=1),
    )
    joint: ClassVar[tuple[JointParameter, ...]] = (JointParameter("q", start=1.0, unit="q"),)

    def linear(self, waves: Sequence[Array]) -> Array:
        """Return -|k|^2."""
        return np.asarray(-sum(map(np.square, waves)))

    def coupling(self, waves: Sequence[Array]) -> float:  # noqa: ARG002 - the same for all modes
        """Return 1."""
        return 1.0


ALLEN_CAHN = DYNAMICS["allen-cahn"] = AllenCahn()

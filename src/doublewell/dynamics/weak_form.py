"""The weak form of an equation as a table of columns: what the moment assembly needs to know of a dynamics.

With S the smoothing by the test weights, D its time derivative and Lap its Laplacian, a row of the moment matrix says

    sum_j g_j column_j + (1/q) rate = target,

and every column is factor * D^time Lap^space S[source].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Column:
    """One column of the weak form, or with the source "features" one column for each feature of the force.

    ``time`` is the order of the time derivative (0 or 1), ``space`` the power of the Laplacian (0, 1 or 2).
    ``centred`` subtracts from the source its mean over the domain in each frame: a uniform multiplier.
    """

    name: str
    source: Literal["features", "field"]
    time: int = 0
    space: int = 0
    factor: float = 1.0
    centred: bool = False


WeakForm = tuple[Column, ...]

"""Type hints that several rooms share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Progress", "Report"]

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]  # called with (steps done, steps)
Report = Callable[[str, int, int], None]  # called with (what is being done, steps done, steps); steps 0: not known

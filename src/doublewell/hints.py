"""Type hints that several modules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]  # of either precision
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
Progress = Callable[[int, int], None]  # called with (steps done, steps)
Report = Callable[[str, int, int], None]  # called with (what is being done, steps done, steps); steps 0: not known
STATED = -1  # in place of steps: the words are no stage but something that is known now

"""Result: what was found, as a value that prints as a report."""

from doublewell.result.comparison import Comparison, Difference, compare
from doublewell.result.physical import Measured, Physical, physical
from doublewell.result.result import (
    Agreement,
    Diagnostics,
    FitQuality,
    LevelErrors,
    Likelihood,
    Result,
    Settings,
    Tiling,
    without_levels,
)

__all__ = [
    "Agreement",
    "Comparison",
    "Diagnostics",
    "Difference",
    "FitQuality",
    "LevelErrors",
    "Likelihood",
    "Measured",
    "Physical",
    "Result",
    "Settings",
    "Tiling",
    "compare",
    "physical",
    "without_levels",
]

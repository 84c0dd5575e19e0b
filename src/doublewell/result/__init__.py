"""Result: what was found, as a value that prints as a report."""

from doublewell.result.comparison import Comparison, Difference, compare
from doublewell.result.physical import Measured, Physical, check_units, physical
from doublewell.result.result import Agreement, Diagnostics, Likelihood, Result, Settings, Source
from doublewell.result.text import equation

__all__ = [
    "Agreement",
    "Comparison",
    "Diagnostics",
    "Difference",
    "Likelihood",
    "Measured",
    "Physical",
    "Result",
    "Settings",
    "Source",
    "check_units",
    "compare",
    "equation",
    "physical",
]

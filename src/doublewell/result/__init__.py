"""Result: what was found, as a value that prints as a report."""

from doublewell.result.physical import Measured, Physical, check_units, physical
from doublewell.result.result import Diagnostics, Likelihood, Result, Settings
from doublewell.result.text import equation

__all__ = [
    "Diagnostics",
    "Likelihood",
    "Measured",
    "Physical",
    "Result",
    "Settings",
    "check_units",
    "equation",
    "physical",
]

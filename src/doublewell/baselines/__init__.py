"""Baselines: other methods for the same records, behind one protocol."""

from doublewell.baselines.compare import Comparison, Row, compare
from doublewell.baselines.methods import METHODS, baseline
from doublewell.baselines.projection import admissible, project
from doublewell.baselines.protocol import Baseline, BaselineFit, measured, missing

__all__ = [
    "METHODS",
    "Baseline",
    "BaselineFit",
    "Comparison",
    "Row",
    "admissible",
    "baseline",
    "compare",
    "measured",
    "missing",
    "project",
]

"""Baselines: other methods for the same records, behind one protocol."""

from doublewell.baselines.comparison import Comparison, Row, Trajectory, baseline, compare, methods
from doublewell.baselines.method import (
    EXACT_DEGREE,
    PAPER_DEGREE,
    Baseline,
    BaselineFit,
    Force,
    admissible,
    complete,
    cores,
    measured,
    missing,
    project,
)
from doublewell.baselines.pysindy import PySindy
from doublewell.baselines.regression import Analytic, DirectFD4, SmoothedFD4, Stac, Wsindy

__all__ = [
    "EXACT_DEGREE",
    "PAPER_DEGREE",
    "Analytic",
    "Baseline",
    "BaselineFit",
    "Comparison",
    "DirectFD4",
    "Force",
    "PySindy",
    "Row",
    "SmoothedFD4",
    "Stac",
    "Trajectory",
    "Wsindy",
    "admissible",
    "baseline",
    "compare",
    "complete",
    "cores",
    "measured",
    "methods",
    "missing",
    "project",
]

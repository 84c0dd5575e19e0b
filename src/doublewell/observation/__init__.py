"""Observation: how a record is observed (optics, noise), and what it looks like before any law is fitted."""

from doublewell.observation.survey import (
    COVERED,
    FEW_CELLS,
    MASK,
    TOO_FEW_CELLS,
    TOO_LARGE,
    Survey,
    check_survey,
    survey,
)
from doublewell.observation.view import PLAIN, View, check_view, complete, joint_start

__all__ = [
    "COVERED",
    "FEW_CELLS",
    "MASK",
    "PLAIN",
    "TOO_FEW_CELLS",
    "TOO_LARGE",
    "Survey",
    "View",
    "check_survey",
    "check_view",
    "complete",
    "joint_start",
    "survey",
]

"""Observation: how a record is observed (optics, noise), and what it looks like before any law is fitted."""

from doublewell.observation.noise import NOISES, Noise, complete, noise_view, outlier_mask
from doublewell.observation.optics import PLAIN, Optics, View, Whitening, check_view, joint_start
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

__all__ = [
    "COVERED",
    "FEW_CELLS",
    "MASK",
    "NOISES",
    "PLAIN",
    "TOO_FEW_CELLS",
    "TOO_LARGE",
    "Noise",
    "Optics",
    "Survey",
    "View",
    "Whitening",
    "check_survey",
    "check_view",
    "complete",
    "joint_start",
    "noise_view",
    "outlier_mask",
    "survey",
]

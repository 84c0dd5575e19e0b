"""Observation: how a record is observed (optics, noise), and what it looks like before any law is fitted."""

from doublewell.observation.noise import NOISES, Noise, complete, noise_view, outlier_mask
from doublewell.observation.notes import (
    COVERED,
    FEW_CELLS,
    check_survey,
    coarse_note,
    pace_notes,
    resolved,
    survey_notes,
)
from doublewell.observation.optics import PLAIN, Optics, View, Whitening, check_view, joint_start
from doublewell.observation.survey import Survey, survey

__all__ = [
    "COVERED",
    "FEW_CELLS",
    "NOISES",
    "PLAIN",
    "Noise",
    "Optics",
    "Survey",
    "View",
    "Whitening",
    "check_survey",
    "check_view",
    "coarse_note",
    "complete",
    "joint_start",
    "noise_view",
    "outlier_mask",
    "pace_notes",
    "resolved",
    "survey",
    "survey_notes",
]

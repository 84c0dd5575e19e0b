"""Survey: what a record looks like before any law is fitted, and what in it stands in the way of a fit."""

from doublewell.observation.notes import (
    COVERED,
    FEW_CELLS,
    check_survey,
    coarse_note,
    pace_notes,
    resolved,
    survey_notes,
)
from doublewell.observation.survey import Survey, survey

__all__ = [
    "COVERED",
    "FEW_CELLS",
    "Survey",
    "check_survey",
    "coarse_note",
    "pace_notes",
    "resolved",
    "survey",
    "survey_notes",
]

"""Record: a movie of a phase field with its mesh and times, and the way to it from grey values."""

from doublewell.record.digest import checksum, line_sum, lines_checksum
from doublewell.record.lazy import LazyArray
from doublewell.record.metadata import Boundary, Cells
from doublewell.record.phase import GreyQuality, Phase, phase_from_intensity
from doublewell.record.record import Record, check_record

__all__ = [
    "Boundary",
    "Cells",
    "GreyQuality",
    "LazyArray",
    "Phase",
    "Record",
    "check_record",
    "checksum",
    "line_sum",
    "lines_checksum",
    "phase_from_intensity",
]

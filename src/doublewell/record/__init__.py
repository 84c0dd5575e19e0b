"""Record: a movie of a phase field with its mesh and times, and the way to it from grey values."""

from doublewell.record.arrays import LazyArray
from doublewell.record.phase import GreyQuality, Phase, phase_from_intensity
from doublewell.record.record import Boundary, Cells, Record, check_record, checksum, line_sum, lines_checksum

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

"""Record: a movie of a phase field with its mesh and times, and the way to it from grey values."""

from doublewell.record.arrays import LazyArray as LazyArray
from doublewell.record.digest import checksum as checksum
from doublewell.record.digest import line_sum as line_sum
from doublewell.record.digest import lines_checksum as lines_checksum
from doublewell.record.levels import Found as Found
from doublewell.record.phase import GreyQuality as GreyQuality
from doublewell.record.phase import Phase as Phase
from doublewell.record.phase import phase_from_intensity as phase_from_intensity
from doublewell.record.record import Boundary as Boundary
from doublewell.record.record import Cells as Cells
from doublewell.record.record import Note as Note
from doublewell.record.record import Origin as Origin
from doublewell.record.record import Record as Record
from doublewell.record.record import check_record as check_record

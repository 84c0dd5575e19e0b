"""Laws: families of forces, one law, and the named laws."""

from doublewell.law.bernstein import MAX_DEGREE, Bernstein
from doublewell.law.family import Family, LinearFamily
from doublewell.law.law import Law, check_law
from doublewell.law.reference import LAW_NAMES, named_law
from doublewell.law.structure import StationaryPoint, Structure

__all__ = [
    "LAW_NAMES",
    "MAX_DEGREE",
    "Bernstein",
    "Family",
    "Law",
    "LinearFamily",
    "StationaryPoint",
    "Structure",
    "check_law",
    "named_law",
]

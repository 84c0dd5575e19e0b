"""Laws: families of forces, one law, and the named laws."""

from doublewell.law.bernstein import MAX_DEGREE, Bernstein
from doublewell.law.family import Family
from doublewell.law.law import Law
from doublewell.law.reference import LAW_NAMES, named_law
from doublewell.law.structure import StationaryPoint, Structure

__all__ = [
    "LAW_NAMES",
    "MAX_DEGREE",
    "Bernstein",
    "Family",
    "Law",
    "StationaryPoint",
    "Structure",
    "named_law",
]

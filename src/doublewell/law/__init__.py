"""Laws: families of forces, one law, and the named laws."""

from doublewell.law.bernstein import MAX_DEGREE, Bernstein
from doublewell.law.family import EvenFamily, Family, LinearFamily, even_family
from doublewell.law.law import Law, check_law
from doublewell.law.placed import Placed, check_phases, embedding, place
from doublewell.law.reference import LAW_NAMES, named_law
from doublewell.law.structure import StationaryPoint, Structure
from doublewell.law.wells import EqualWells, Wells

__all__ = [
    "LAW_NAMES",
    "MAX_DEGREE",
    "Bernstein",
    "EqualWells",
    "EvenFamily",
    "Family",
    "Law",
    "LinearFamily",
    "Placed",
    "StationaryPoint",
    "Structure",
    "Wells",
    "check_law",
    "check_phases",
    "embedding",
    "even_family",
    "named_law",
    "place",
]

"""Laws: families of forces, one law, and the named laws."""

from doublewell.law.asymmetric import EqualWells, Wells
from doublewell.law.bernstein import Bernstein, legendre_to_bernstein
from doublewell.law.chebyshev import Chebyshev
from doublewell.law.family import (
    CONSTRAINTS,
    MAX_DEGREE,
    Constraint,
    EvenFamily,
    Family,
    Held,
    Tangents,
    WellsKind,
    check_constraint,
    check_phases,
    even_family,
)
from doublewell.law.ideal import Ideal
from doublewell.law.law import LAW_NAMES, Law, check_law, family_of, gauss_legendre, named_law
from doublewell.law.mixture import INNER, Mixture
from doublewell.law.structure import Entropy, StationaryPoint, Structure

FAMILIES: dict[str, type[Family]] = {
    kind.name: kind for kind in (Bernstein, Chebyshev, Wells, EqualWells, Mixture, Ideal)
}

__all__ = [
    "CONSTRAINTS",
    "FAMILIES",
    "INNER",
    "LAW_NAMES",
    "MAX_DEGREE",
    "Bernstein",
    "Chebyshev",
    "Constraint",
    "Entropy",
    "EqualWells",
    "EvenFamily",
    "Family",
    "Held",
    "Ideal",
    "Law",
    "Mixture",
    "StationaryPoint",
    "Structure",
    "Tangents",
    "Wells",
    "WellsKind",
    "check_constraint",
    "check_law",
    "check_phases",
    "even_family",
    "family_of",
    "gauss_legendre",
    "legendre_to_bernstein",
    "named_law",
]

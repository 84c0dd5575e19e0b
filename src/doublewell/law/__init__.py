"""Laws: families of forces, one law, and the named laws."""

from doublewell.law.asymmetric import EqualWells as EqualWells
from doublewell.law.asymmetric import Wells as Wells
from doublewell.law.bernstein import Bernstein as Bernstein
from doublewell.law.bernstein import legendre_to_bernstein as legendre_to_bernstein
from doublewell.law.chebyshev import Chebyshev as Chebyshev
from doublewell.law.family import CONSTRAINTS as CONSTRAINTS
from doublewell.law.family import MAX_DEGREE as MAX_DEGREE
from doublewell.law.family import Constraint as Constraint
from doublewell.law.family import Family as Family
from doublewell.law.family import WellsKind as WellsKind
from doublewell.law.family import check_constraint as check_constraint
from doublewell.law.family import check_phases as check_phases
from doublewell.law.family import even_family as even_family
from doublewell.law.ideal import Ideal as Ideal
from doublewell.law.law import LAW_NAMES as LAW_NAMES
from doublewell.law.law import Law as Law
from doublewell.law.law import check_law as check_law
from doublewell.law.law import family_of as family_of
from doublewell.law.law import gauss_legendre as gauss_legendre
from doublewell.law.law import named_law as named_law
from doublewell.law.mixture import INNER as INNER
from doublewell.law.mixture import Mixture as Mixture
from doublewell.law.structure import Entropy as Entropy
from doublewell.law.structure import StationaryPoint as StationaryPoint
from doublewell.law.structure import Structure as Structure
from doublewell.law.structure import Tangents as Tangents

FAMILIES: dict[str, type[Family]] = {
    kind.name: kind for kind in (Bernstein, Chebyshev, Wells, EqualWells, Mixture, Ideal)
}

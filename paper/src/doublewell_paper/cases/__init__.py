"""Cases: each file holds a few; a new one is a file with CASES and one line here."""

from doublewell_paper.case import Case
from doublewell_paper.cases import clean, large, outside_cone, principal, published, replication, stress

__all__ = ["CASES"]

_ROOMS = (principal, replication, outside_cone, stress, large, published, clean)
CASES: dict[str, Case] = {case.name: case for room in _ROOMS for case in room.CASES}

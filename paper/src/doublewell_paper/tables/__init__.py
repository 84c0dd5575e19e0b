"""Tables: each file holds a few; a new one is a file with KINDS and one line here."""

from doublewell_paper.tables import (
    calibration,
    clean,
    orderings,
    outside_cone,
    principal,
    published,
    replication,
    selection,
    stress,
)
from doublewell_paper.tables.kinds import TableKind

__all__ = ["TABLES"]

_ROOMS = (principal, orderings, replication, outside_cone, selection, stress, published, clean, calibration)
TABLES: dict[str, TableKind] = {kind.name: kind for room in _ROOMS for kind in room.KINDS}

"""Methods: each file holds a few; a new one is a file with METHODS and one line here."""

from doublewell_paper.methods import analytic, design, fd4, hermite, normal, selection, trajectory, weak
from doublewell_paper.outcome import Method

__all__ = ["METHODS"]

_ROOMS = (weak, selection, analytic, fd4, hermite, design, normal, trajectory)
METHODS: dict[str, Method] = {method.name: method for room in _ROOMS for method in room.METHODS}

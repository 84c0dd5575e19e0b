"""Methods: each file holds a few; a new one is a file with PEERS and one line here."""

from __future__ import annotations

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.peers import analytic, fd4, pysindy, trajectory, weak, wsindy
from doublewell.peers.protocol import Peer

__all__ = ["METHODS", "peer"]

_ROOMS = (trajectory, weak, analytic, wsindy, fd4, pysindy)
METHODS: dict[str, Peer] = {one.name: one for room in _ROOMS for one in room.PEERS}


def peer(name: str) -> Peer:
    """Return a method by its name, or say which there are; small letters and hyphens do.

    >>> peer("smoothed-fd4").name
    'smoothed FD4'
    """
    known = {_plain(one): METHODS[one] for one in METHODS}
    if not isinstance(name, str) or _plain(name) not in known:
        raise InputError(f"method is {shown(name)}: expected one of {', '.join(known)}")
    return known[_plain(name)]


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "-")

"""Methods: all there are, by name; a new one is a file and one line here."""

from __future__ import annotations

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.peers.analytic import Analytic
from doublewell.peers.fd4 import DirectFD4, SmoothedFD4
from doublewell.peers.pfwnn import Pfwnn
from doublewell.peers.pinn import Pinn
from doublewell.peers.protocol import Peer
from doublewell.peers.pysindy import PySindy
from doublewell.peers.spinn import Spinn
from doublewell.peers.trajectory import Trajectory
from doublewell.peers.weak import Stac
from doublewell.peers.wsindy import Wsindy

__all__ = ["METHODS", "NETWORKS", "peer"]

_NETWORKS: tuple[Peer, ...] = (Spinn(), Pfwnn(), Pinn())
_ALL: tuple[Peer, ...] = (
    Trajectory(),
    Stac(),
    Analytic(),
    Wsindy(),
    SmoothedFD4(),
    DirectFD4(),
    PySindy("masked", "least squares"),
    PySindy("masked", "NNLS"),
    PySindy("all", "least squares"),
    PySindy("all", "NNLS"),
    *_NETWORKS,
)
METHODS: dict[str, Peer] = {one.name: one for one in _ALL}
NETWORKS = tuple(one.name for one in _NETWORKS)  # they train for a minute on a GPU, for many on a CPU


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

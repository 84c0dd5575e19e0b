"""Peers: other methods for the same records, behind one protocol."""

from doublewell.peers.compare import Comparison, Row, compare
from doublewell.peers.methods import METHODS, peer
from doublewell.peers.projection import admissible, project
from doublewell.peers.protocol import Peer, PeerFit, measured, missing

__all__ = [
    "METHODS",
    "Comparison",
    "Peer",
    "PeerFit",
    "Row",
    "admissible",
    "compare",
    "measured",
    "missing",
    "peer",
    "project",
]

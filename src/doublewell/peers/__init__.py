"""Peers: other methods for the same records, behind one protocol."""

from doublewell.peers.protocol import Peer, PeerFit, measured, missing

__all__ = ["Peer", "PeerFit", "measured", "missing"]

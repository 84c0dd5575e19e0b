"""Neural: trained weights become fits."""

from __future__ import annotations

from collections.abc import Sequence

from doublewell.dynamics import device_names, on_gpu
from doublewell.peers.network import Layers, force_of
from doublewell.peers.protocol import Cost, PeerFit
from doublewell.peers.training import Trained

__all__ = ["fits"]


def fits(
    name: str, layers: Layers, size: float, *, trained: Trained, seeds: Sequence[int], cost: Cost
) -> tuple[PeerFit, ...]:
    """Return one fit for each seed; `layers` are those of the force, stacked over seeds."""
    memory = None if on_gpu() else cost.memory
    return tuple(
        PeerFit(
            name=name,
            force=force_of([(w[k], b[k]) for w, b in layers], size),
            seconds=cost.seconds,
            memory=memory,
            device=device_names()[0],
            notes=_notes(trained, k, len(seeds)),
        )
        for k in range(len(seeds))
    )


def _notes(trained: Trained, k: int, together: int) -> tuple[str, ...]:
    notes = (f"float32, {trained.steps} steps of Adam, last loss {trained.loss[k]:.4g}, terminal weights",)
    return notes if together == 1 else (*notes, f"{together} initialisations trained together in the seconds given")

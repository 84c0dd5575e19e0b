"""Spec: everything that makes one record of the study, as plain numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

__all__ = ["PAPER_SUPPORTS", "Spec", "spec_of", "tiny"]

PAPER_SUPPORTS = ((5, 1 / 16), (8, 1 / 8))
_TINY_FACTOR = 3  # a mesh of 96 becomes 32
_TINY_FRAMES = 23
_TINY_SUPPORTS = ((2, 1 / 8), (3, 3 / 16))


@dataclass(frozen=True)
class Spec:
    """One record: law, geometry, noise and how it is observed.

    The movie is made on ``cells`` x ``cells`` by CNAB2 with ``substeps`` steps a frame. Every ``stride``-th frame and
    every ``coarsen``-th pixel is seen, ``frames`` frames in all. ``seed`` is None for a clean record. ``horizon`` are
    the movie's frames between which a recovered force is evolved for e_u. ``phases`` is the number of phase values of
    the norms. ``training`` is the share of frames that validated choices are fitted on.
    """

    law: str
    geometry: str
    noise: float = 0.0
    seed: int | None = None
    cells: int = 96
    frames: int = 61
    stride: int = 1
    coarsen: int = 1
    correlation: float = 0.0
    epsilon: float = 0.03
    dt: float = 5e-5
    substeps: int = 12
    supports: tuple[tuple[int, float], ...] = PAPER_SUPPORTS
    training: float = 0.6
    horizon: tuple[int, int] | None = None
    phases: int = 2001

    @property
    def movie_frames(self) -> int:
        """Frames that the movie needs: what is seen, and the horizon where there is one."""
        seen = (self.frames - 1) * self.stride + 1
        return seen if self.horizon is None else max(seen, self.horizon[1] + 1)

    @property
    def record(self) -> str:
        """The name of the record: what differs from the principal set is spelled out."""
        name = f"{self.law} {self.geometry} noise {self.noise:g}"
        if self.seed is not None:
            name += f" seed {self.seed}"
        for field in fields(self)[4:]:
            value = getattr(self, field.name)
            if value != field.default and field.name not in ("supports", "training", "horizon", "phases"):
                name += f" {field.name} {value:g}"
        return name

    def document(self) -> dict[str, Any]:
        """Return the spec as JSON takes it."""
        return asdict(self)


def spec_of(document: dict[str, Any]) -> Spec:
    """Return the spec of a document read from a file."""
    lists = {
        "supports": tuple((int(n), float(x)) for n, x in document["supports"]),
        "horizon": None if document["horizon"] is None else (int(document["horizon"][0]), int(document["horizon"][1])),
    }
    return Spec(**(document | lists))


def tiny(spec: Spec, most: int) -> Spec:
    """Return a small record of the same kind: 96 cells become 32, 23 frames, the interface as many cells wide.

    No side is longer than `most` cells.

    Time is stretched with the square of the width, so that the interface moves as far in its own widths.
    """
    cells = min(most, spec.cells // _TINY_FACTOR) * spec.coarsen
    return replace(
        spec,
        cells=cells,
        frames=_TINY_FRAMES,
        epsilon=spec.epsilon * _TINY_FACTOR,
        dt=spec.dt * _TINY_FACTOR**2,
        substeps=min(spec.substeps, 12),
        supports=_TINY_SUPPORTS,
        training=0.5,
        horizon=None if spec.horizon is None else (_TINY_FRAMES, _TINY_FRAMES + 4),
    )

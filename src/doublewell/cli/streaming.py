"""Streaming: the options that say with how much memory, and on which workers, a movie is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cyclopts import Parameter

from doublewell.cli.values import Whole

__all__ = ["Streaming"]


@Parameter(name="*")
@dataclass(frozen=True)
class Streaming:
    """What a movie is read with; with one of the first four options part by part, whatever its size.

    Parameters
    ----------
    memory
        The most that one worker may take, such as 2GB; the movie may be larger.
    workers
        How many processes read the movie.
    scheduler
        Address of a Dask scheduler whose workers read the movie, such as tcp://10.0.0.1:8786.
    checkpoint
        Keep what was read in this file; after an end of any kind the same command goes on from there.
    device
        gpu or cpu; without it the one that is found.
    precision
        Of weak moments on a GPU: double, or single, which is faster and has six digits in place of twelve.
    """

    memory: str | None = None
    workers: Whole | None = None
    scheduler: str | None = None
    checkpoint: Path | None = None
    device: Literal["cpu", "gpu"] | None = None
    precision: Literal["double", "single"] | None = None

    def compute(self) -> Any:
        """Return what the library may use."""
        from doublewell.options import Compute

        return Compute(self.workers, self.scheduler, self.checkpoint, self.device)

"""Neural: what all networks do, from a record to fits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from doublewell.baselines import Baseline, BaselineFit, measured
from doublewell.baselines.method import Cost
from doublewell.jax_runtime import device_names, on_gpu
from doublewell.record import Record
from doublewell_paper.networks.movie import Movie, movie_of
from doublewell_paper.networks.network import Layers, force_of
from doublewell_paper.networks.training import Loss, Schedule, Trained, train

__all__ = ["Network", "Problem"]


class Problem(NamedTuple):
    """What is trained: a loss, weights stacked over the seeds, and the data."""

    loss: Loss
    start: Any
    data: Any


class Network(Baseline):
    """What the networks share: a record becomes a movie, the movie a problem, and trained weights become fits."""

    resolution: float | None
    schedule: Schedule
    needs: ClassVar[tuple[str, ...]] = ("jax",)
    slow: ClassVar[bool] = True

    @abstractmethod
    def problem(self, movie: Movie, seeds: Sequence[int]) -> Problem:
        """Return what is trained on a movie; refuse one that does not fit."""

    def force_layers(self, weights: Any) -> Layers:
        """Return those of the trained weights that are the force."""
        layers: Layers = weights
        return layers

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:
        """Estimate the force of a record with known q."""
        return self.fit_many(record, seeds=(seed,))[0]

    def fit_many(self, record: Record, *, seeds: Sequence[int]) -> tuple[BaselineFit, ...]:
        """Estimate with several initialisations, trained together; `seconds` of each are those of all."""
        with measured() as cost:
            movie = movie_of(record, resolution=self.resolution, method=self.name)
            trained = train(*self.problem(movie, seeds), schedule=self.schedule, seeds=seeds)
        layers = self.force_layers(trained.weights)
        return _fits(self.name, layers, movie.size, trained=trained, seeds=seeds, cost=cost)


def _fits(
    name: str, layers: Layers, size: float, *, trained: Trained, seeds: Sequence[int], cost: Cost
) -> tuple[BaselineFit, ...]:
    """Return one fit for each seed; `layers` are those of the force, stacked over seeds."""
    memory = None if on_gpu() else cost.memory
    return tuple(
        BaselineFit(
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

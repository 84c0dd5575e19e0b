"""Rounds: a few tiles lead to a law, then all tiles are read at it; their tasks may run anywhere, their sum is one.

The tiles with most interface are the pilot. One of them goes ahead, at the weak estimate; then all of them are read at
its law and lead to their common one, until that is near. Then every tile is read at the pilot's law, the pilot once
more, and the pilot is asked for what step, mesh and model lack. Pieces of all rounds are kept in one ledger, one after
the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from doublewell.compute import Clock, Ledger, Pool, Region, most_common, tile_name, tile_shape
from doublewell.errors import InputError
from doublewell.hints import Array, Report
from doublewell.identify.tile_task import Tile, TileReading, Tiles, read_tiles
from doublewell.identify.tile_total import Total, add_up
from doublewell.inference import DegreeAverage
from doublewell.jax_runtime import on_gpu

__all__ = ["Rounds", "TileFit", "batch_width", "choose_pilot", "read_all"]

_NEAR = 3.0  # standard errors of a tile: a step of eleven of them was right to a fiftieth of one
_WORSE = 1.05  # growth of the residual at which a point of linearisation is not taken
_MOST_ROUNDS = 5
_PILOT = 4  # tiles
_EMPTY = 0.01  # share of a tile's cells between the phases below which it says next to nothing
_DEVICE = 0.3  # of a GPU's memory that a batch of tiles may take
_SOLVES = 60  # copies more, where the solves of all coefficients run together
_BATCH = 16  # most tiles of a batch

Summary = Callable[..., DegreeAverage]
Batch = tuple[list[Region], bool]  # tiles of one shape, and whether they are asked for what the model lacks


@dataclass(frozen=True, eq=False)
class TileFit:
    """What the rounds end in: the tiles that were read, where each lies, their sum, and the point they were read at."""

    tiles: tuple[Tile, ...]
    regions: tuple[Region, ...]
    names: tuple[str, ...]
    total: Total
    theta: Array
    substeps: int
    rounds: int
    distance: float
    lost: tuple[str, ...]


def batch_width(regions: Sequence[Region], copies: int) -> int:
    """Return how many tiles are read at once: what a GPU has room for, one on a processor."""
    if not on_gpu():
        return 1
    import jax

    room = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", 0)
    values = max(prod(tile_shape(region)) for region in regions)
    return int(np.clip(_DEVICE * room // (8 * values * (copies + _SOLVES)), 1, _BATCH))


def choose_pilot(regions: Sequence[Region], shares: Sequence[float], width: int = 1) -> tuple[list[int], list[int]]:
    """Return the places of the pilot's tiles, most interface first, and of the others that hold one, in order.

    The pilot is a few tiles, or a full batch of `width`. They are of the shape that most tiles have, so that few shapes
    are compiled for it.
    """
    kept = [k for k, share in enumerate(shares) if share >= _EMPTY]
    if not kept:
        raise InputError(
            f"none of the {len(regions)} tiles of the record holds an interface: expected phase values between the two "
            "phases; record a part with an interface, or give more memory for larger tiles"
        )
    shape = most_common([tile_shape(regions[k]) for k in kept])
    alike = [k for k in kept if tile_shape(regions[k]) == shape]
    pilot = sorted(alike, key=lambda k: -shares[k])[: max(_PILOT, width)]
    return pilot, [k for k in kept if k not in pilot]


@dataclass(eq=False)
class Rounds:
    """Reads tiles on a pool, round after round, and keeps every piece."""

    pool: Pool
    ledger: Ledger[Tiles]
    reading: TileReading
    report: Report | None
    _places: int = 0
    _tiles: int = 0

    def read(self, batches: Sequence[Batch], theta: Array) -> tuple[Tile, ...]:
        """Read tiles at a law: batches of one shape, each with whether its tiles are asked for what the model lacks."""
        places = range(self._places, self._places + len(batches))
        left, record = self.ledger.left(places), self.reading.record
        regions = [region for batch, _ in batches for region in batch]
        size = sum(prod(tile_shape(region)) for region in regions) * np.dtype(record.values.dtype).itemsize
        clock = Clock(size, len(batches) - len(left), len(batches), self.report, "tiles")
        items: list[tuple[Any, ...]] = [
            (self.reading, batches[k - places.start][0], theta, batches[k - places.start][1]) for k in left
        ]
        done = len(batches) - len(left)
        for k, piece in self.pool.completed(read_tiles, items):
            self.ledger.add(left[k], piece)
            done += 1
            clock.done(done)
        found = self.ledger.pieces.merged
        assert found is not None
        tiles = found.tiles[self._tiles : self._tiles + len(regions)]
        self._places, self._tiles = places.stop, self._tiles + len(regions)
        return tiles

    def batches(self, regions: Sequence[Region], asked: bool) -> list[Batch]:
        """Put tiles of one shape and slab together, as many as are read at once."""
        alike: dict[tuple[Any, ...], list[Region]] = {}
        for region in regions:
            alike.setdefault((region.frames, tile_shape(region)), []).append(region)
        width = self.reading.width
        return [(group[k : k + width], asked) for group in alike.values() for k in range(0, len(group), width)]


def read_all(
    rounds: Rounds, regions: Sequence[Region], chosen: tuple[list[int], list[int]], theta: Array, summarise: Summary
) -> TileFit:
    """Find the pilot's law, then read all tiles at it; again where what they say is far from it.

    The first of the pilot goes ahead alone (on a GPU, a batch of them): its law is closer by far than that of weak
    moments, which noise makes err. Where there are no other tiles than the pilot's, these are the answer.
    """
    pilot, rest = ([regions[k] for k in places] for places in chosen)
    batches = rounds.batches(pilot, asked=not rest)
    theta = _step(rounds, rounds.batches(pilot[: rounds.reading.width], asked=False), theta, summarise).place
    found = _find_law(rounds, batches, theta, summarise)
    if rest:
        batches = [*rounds.batches(pilot, asked=True), *rounds.batches(rest, asked=False)]
        found = replace(found, near=False)
    while not found.near and found.count <= _MOST_ROUNDS:
        fresh = _step(rounds, batches, found.place, summarise)
        found = replace(fresh, count=found.count + 1)
    order = [region for batch, _ in batches for region in batch]
    return _fit(rounds, regions, order, found)


@dataclass(frozen=True, eq=False)
class _Round:
    """What a round gave: where tiles were read, what they said and add up to, where that leads, whether it is near."""

    theta: Array
    tiles: tuple[Tile, ...]
    total: Total
    place: Array
    far: float
    near: bool
    count: int = 1


def _step(rounds: Rounds, batches: list[Batch], theta: Array, summarise: Summary) -> _Round:
    """Read tiles at a law; tiles that cannot be followed there say nothing."""
    tiles, (family, free) = rounds.read(batches, theta), (rounds.reading.family, rounds.reading.view.free)
    good = [tile for tile in tiles if tile.sound]
    if not good:
        raise InputError(
            "no tile of the record could be followed by the law that its weak moments give: expected a movie of an "
            "Allen-Cahn field; look at the units of dx, dt and q, or use method='weak'"
        )
    total = add_up(good, family, free)
    place = total.best(summarise(total.evidence, 1.0, constraint="none").free)
    far = max(float(np.linalg.norm(tile.rows[:, :-1] @ (place - theta))) for tile in good)
    return _Round(theta, tiles, total, place, far, far <= _NEAR)


def _find_law(rounds: Rounds, batches: list[Batch], theta: Array, summarise: Summary) -> _Round:
    """Move with the pilot until it stays near; a law at which its residual grows is approached in smaller steps."""
    found = _step(rounds, batches, theta, summarise)
    share = 1.0
    while not found.near and found.count < _MOST_ROUNDS:
        fresh = _step(rounds, batches, found.theta + share * (found.place - found.theta), summarise)
        count = found.count + 1
        if fresh.total.noise <= _WORSE * found.total.noise:
            found = replace(fresh, count=count)
        else:
            found, share = replace(found, count=count), 0.25 * share
    return found


def _fit(rounds: Rounds, regions: Sequence[Region], order: Sequence[Region], found: _Round) -> TileFit:
    numbers = [regions.index(region) for region in order]
    names = [tile_name(number + 1, region) for number, region in zip(numbers, order, strict=True)]
    good = sorted((k for k, tile in enumerate(found.tiles) if tile.sound), key=lambda k: numbers[k])
    return TileFit(
        tiles=tuple(found.tiles[k] for k in good),
        regions=tuple(order[k] for k in good),
        names=tuple(names[k] for k in good),
        total=found.total,
        theta=found.theta,
        substeps=rounds.reading.substeps,
        rounds=found.count,
        distance=found.far,
        lost=tuple(
            f"{name}: {tile.status.text}" for name, tile in zip(names, found.tiles, strict=True) if not tile.sound
        ),
    )

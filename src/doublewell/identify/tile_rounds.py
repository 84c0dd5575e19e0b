"""Rounds: a few tiles lead to a law, then all tiles are read at it; their tasks may run anywhere, their sum is one.

The tiles with most interface are the pilot. From the weak estimate on, each round reads them at a law and moves to what
they say together, until that is near. Then every tile is read at the pilot's law, the pilot once more, and asked for
what step, mesh and model lack. Pieces of all rounds are kept in one ledger, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from doublewell.dynamics import on_gpu
from doublewell.errors import InputError
from doublewell.estimate import DegreeAverage
from doublewell.estimate.least_squares import Array
from doublewell.evidence import Region
from doublewell.hints import Report
from doublewell.identify.tile_task import Tile, TileReading, Tiles, read_tiles
from doublewell.identify.tile_total import Total, add_up
from doublewell.stream import Clock, Ledger, Pool, most_common, tile_name, tile_shape

__all__ = ["Rounds", "TileFit", "choose_pilot", "read_all"]

_NEAR = 3.0  # standard errors of a tile: a step of eleven of them was right to a fiftieth of one
_WORSE = 1.05  # growth of the residual at which a point of linearisation is not taken
_MOST_ROUNDS = 5
_PILOT = 4  # tiles
_EMPTY = 0.01  # share of a tile's cells between the phases below which it says next to nothing
_DEVICE = 0.3  # of a GPU's memory that a batch of tiles may take
_SOLVES = 60  # copies more, where the solves of all coefficients run together
_BATCH = 16  # most tiles of a batch

Summary = Callable[..., DegreeAverage]


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


def choose_pilot(regions: Sequence[Region], shares: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the places of the pilot's tiles and of the others that hold an interface, both in the order of the plan.

    The pilot's are of the shape that most tiles have, so that few shapes are compiled for it.
    """
    kept = [k for k, share in enumerate(shares) if share >= _EMPTY]
    if not kept:
        raise InputError(
            f"none of the {len(regions)} tiles of the record holds an interface: expected phase values between the two "
            "phases; record a part with an interface, or give more memory for larger tiles"
        )
    shape = most_common([tile_shape(regions[k]) for k in kept])
    alike = [k for k in kept if tile_shape(regions[k]) == shape]
    pilot = sorted(sorted(alike, key=lambda k: -shares[k])[:_PILOT])
    return pilot, [k for k in kept if k not in pilot]


@dataclass(eq=False)
class Rounds:
    """Reads tiles on a pool, round after round, and keeps every piece. ``copies`` is what reading holds of a tile."""

    pool: Pool
    ledger: Ledger[Tiles]
    reading: TileReading
    copies: int
    report: Report | None
    _places: int = 0
    _tiles: int = 0

    def read(self, batches: Sequence[tuple[list[Region], bool]], theta: Array) -> tuple[Tile, ...]:
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

    def batches(self, regions: Sequence[Region], asked: bool) -> list[tuple[list[Region], bool]]:
        """Put tiles of one shape and slab together, as many as a GPU holds at once; one by one on a processor."""
        alike: dict[tuple[Any, ...], list[Region]] = {}
        for region in regions:
            alike.setdefault((region.frames, tile_shape(region)), []).append(region)
        most = {key: self._most(prod(key[1])) for key in alike}
        return [
            (group[k : k + most[key]], asked) for key, group in alike.items() for k in range(0, len(group), most[key])
        ]

    def _most(self, values: int) -> int:
        if not on_gpu():
            return 1
        import jax

        room = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", 0)
        return int(np.clip(_DEVICE * room // (8 * values * (self.copies + _SOLVES)), 1, _BATCH))


def read_all(
    rounds: Rounds, regions: Sequence[Region], chosen: tuple[list[int], list[int]], theta: Array, summarise: Summary
) -> TileFit:
    """Find the pilot's law, then read all tiles at it; again where what they say is far from it."""
    pilot, rest = ([regions[k] for k in places] for places in chosen)
    ahead = rounds.batches(pilot, asked=False)
    theta, count = _find_law(rounds, ahead, theta, summarise)
    batches = [*rounds.batches(pilot, asked=True), *rounds.batches(rest, asked=False)]
    order = [region for batch, _ in batches for region in batch]
    names = [tile_name(regions.index(region) + 1, region) for region in order]
    while True:
        count += 1
        tiles = rounds.read(batches, theta)
        good = [k for k, tile in enumerate(tiles) if _sound(tile)]
        total, place, far = _next(rounds, [tiles[k] for k in good], theta, summarise)
        if far <= _NEAR or count >= _MOST_ROUNDS + 1:
            break
        theta = place
    lost = tuple(f"{names[k]}: {tiles[k].status}" for k in range(len(tiles)) if k not in good)
    return TileFit(
        tuple(tiles[k] for k in good), tuple(order[k] for k in good), tuple(names[k] for k in good), total, theta,
        rounds.reading.substeps, count, far, lost,
    )  # fmt: skip


def _find_law(
    rounds: Rounds, batches: list[tuple[list[Region], bool]], theta: Array, summarise: Summary
) -> tuple[Array, int]:
    """Move with the pilot until it stays near; a law at which its residual grows is approached in smaller steps."""
    before, noise = theta, np.inf
    for count in range(1, _MOST_ROUNDS + 1):
        tiles = [tile for tile in rounds.read(batches, theta) if _sound(tile)]
        if not tiles or add_up(tiles, rounds.reading.family, rounds.reading.view.free).noise > _WORSE * noise:
            theta = before + 0.25 * (theta - before)
            continue
        total, place, far = _next(rounds, tiles, theta, summarise)
        if far <= _NEAR:
            return place, count
        before, noise, theta = theta, total.noise, place
    return before, count


def _next(rounds: Rounds, tiles: Sequence[Tile], theta: Array, summarise: Summary) -> tuple[Total, Array, float]:
    """Return the sum of tiles, the law they lead to, and how far that is in standard errors of one of them, at most."""
    if not tiles:
        raise InputError(
            "no tile of the record could be followed by the law that its weak moments give: expected a movie of an "
            "Allen-Cahn field; look at the units of dx, dt and q, or use method='weak'"
        )
    total = add_up(tiles, rounds.reading.family, rounds.reading.view.free)
    place = total.best(summarise(total.evidence, 1.0, constraint="none").free)
    return total, place, max(float(np.linalg.norm(tile.rows[:, :-1] @ (place - theta))) for tile in tiles)


def _sound(tile: Tile) -> bool:
    return bool(np.isfinite(tile.rows).all() and np.isfinite(tile.cost))

"""Total: what all tiles of a record say together. Rows of one law add, each in units of its own noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from doublewell.adequacy import Adequacy, ScoreTest
from doublewell.adequacy.check import holm
from doublewell.adequacy.values import verdict_of
from doublewell.compute import Region
from doublewell.evidence import Beside, Block, Evidence, Key, compact
from doublewell.hints import Array
from doublewell.identify.tile_task import Tile
from doublewell.law import LinearFamily
from doublewell.likelihood import Resolution

__all__ = ["Total", "add_up", "asked_adequacy", "frame_noise", "place_map", "resolution_of"]


@dataclass(frozen=True, eq=False)
class Total:
    """The evidence of all tiles, what they say of q or a blur once the law is given, and their common noise."""

    evidence: Evidence
    beside: Beside
    noise: float

    def best(self, law: Array) -> Array:
        """Return theta for coefficients: what is most likely beside them, then they themselves."""
        return np.concatenate([self.beside.mean(law), law])


def add_up(tiles: Sequence[Tile], family: LinearFamily, names: tuple[str, ...]) -> Total:
    """Add what tiles say, in their order: q and a blur are common to them, as the law is."""
    stack = compact(np.vstack([tile.rows for tile in tiles]))
    n, size, rows = len(names), family.size, sum(tile.count for tile in tiles)
    root, cross, own = stack[:n, :n], stack[:n, n : n + size], stack[n:, n : n + size]
    law = np.asarray(np.linalg.lstsq(own, stack[n:, -1], rcond=None)[0], dtype=np.float64)
    slope = -np.asarray(np.linalg.solve(root, cross), dtype=np.float64)
    best = np.asarray(np.linalg.solve(root, stack[:n, -1] - cross @ law), dtype=np.float64)
    whole = np.zeros((len(own) + 1, size + 2))
    whole[:-1, :size], whole[:-1, -1] = own, stack[n:, -1]
    whole[-1, -1] = np.sqrt(sum(tile.cost / tile.noise**2 for tile in tiles))
    evidence = Evidence(family, (Block(Key("record", "trajectory", "all"), compact(whole), rows),), "trajectory")
    return Total(evidence, Beside(names, best, slope, root, law), pooled_noise(tiles))


def pooled_noise(tiles: Sequence[Tile]) -> float:
    """Return the noise of all tiles together."""
    freedom = sum(tile.count - tile.rows.shape[1] + 1 for tile in tiles)
    return float(np.sqrt(sum(tile.cost for tile in tiles) / freedom))


def resolution_of(tiles: Sequence[Tile], total: Total) -> Resolution:
    """Return the shifts by time step and mesh of those tiles that were asked for them, by what each weighs.

    They stand for all: a finer step or mesh moves every tile alike. Their sizes are in standard errors of all tiles.
    """
    asked = [tile for tile in tiles if tile.shifts is not None]
    size, n = total.evidence.family.size, len(total.beside.names)
    weighed, pulls = np.zeros((2, size)), []
    for tile in asked:
        own = tile.rows[n:, n:-1]
        weighed += np.asarray(tile.shifts) @ (own.T @ own)
        pulls.append(own)
    stack = np.vstack(pulls)
    time, mesh = np.linalg.lstsq(stack.T @ stack, weighed.T, rcond=None)[0].T
    triangle = total.evidence.blocks[0].triangle[:size, :size]
    return Resolution(time, mesh, float(np.linalg.norm(triangle @ time)), float(np.linalg.norm(triangle @ mesh)))


def asked_adequacy(tiles: Sequence[Tile], names: Sequence[str]) -> Adequacy | None:
    """Return the tests of all tiles together: of each the worst tile's, its probability times their number."""
    asked = [(tile.adequacy, name) for tile, name in zip(tiles, names, strict=True) if tile.adequacy is not None]
    if not asked:
        return None
    worst: dict[str, ScoreTest] = {}
    for answer, name in asked:
        for test in answer.tests:
            if test.name not in worst or test.p < worst[test.name].p:
                worst[test.name] = replace(test, part=name.split(" (")[0] if len(asked) > 1 else None)
    tests = holm([replace(test, p=min(1.0, len(asked) * test.p)) for test in worst.values()])
    return Adequacy(tests, verdict_of(tests))


def frame_noise(tiles: Sequence[Tile], regions: Sequence[Region], frames: int) -> Array:
    """Return the standard deviation of the residual of each frame, 0 where no tile was read."""
    sums, counts = np.zeros(frames), np.zeros(frames)
    for tile, region in zip(tiles, regions, strict=True):
        sums[slice(*region.frames)] += tile.sums
        counts[slice(*region.frames)] += tile.counts
    return np.asarray(np.sqrt(sums / np.maximum(counts, 1.0)))


def place_map(tiles: Sequence[Tile], regions: Sequence[Region], plan: Sequence[Region]) -> Array:
    """Return how far the residual's variance of each tile in space is from the mean, in standard deviations.

    Zero where a tile was not read; `plan` are all tiles.
    """
    places = list(dict.fromkeys(region.cells for region in plan))
    shape = tuple(len({place[axis] for place in places}) for axis in range(len(places[0])))
    sums, counts = np.zeros(len(places)), np.zeros(len(places))
    for tile, region in zip(tiles, regions, strict=True):
        sums[places.index(region.cells)] += tile.cost
        counts[places.index(region.cells)] += tile.count - tile.rows.shape[1] + 1
    none, freedom = counts == 0.0, np.maximum(counts, 1.0)
    share = 2.0 / (9.0 * freedom)  # Wilson and Hilferty: the cube root of a chi-square is close to normal
    ratio = sums / freedom / (np.sum(sums) / np.sum(counts))
    found = np.where(none, 0.0, (np.cbrt(ratio) - (1.0 - share)) / np.sqrt(share))
    return np.asarray(found.reshape(shape))

"""Tiles: what a worker does with parts of a record. It reads them itself and returns a few kilobytes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from doublewell.adequacy import Adequacy, ScoreTest, Spot, Verdict, check_adequacies
from doublewell.compute import Region, tile_record
from doublewell.dynamics import border_mask
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.likelihood import Convergence, Resolution, Status, Trajectory, follow_law, measure_resolution
from doublewell.observation import View
from doublewell.record import Record

__all__ = ["Tile", "TileReading", "Tiles", "read_tiles", "unpacked"]


@dataclass(frozen=True, eq=False)
class TileReading:
    """What is read of a record: the same for all its tiles.

    ``check`` says whether some are asked for what the model lacks; ``width`` is how many are read at once.
    """

    record: Record
    family: LinearFamily
    substeps: int
    view: View
    check: bool
    width: int = 1


@dataclass(frozen=True, eq=False)
class Tile:
    """What one tile says of a law.

    ``rows`` are [theta | target] in units of its noise, theta what the view estimates and then the coefficients;
    ``count`` is the number of values less those of border and first field, ``cost`` the sum of squares that the best
    law leaves, ``power`` that of the values. ``sums`` and ``counts`` are the squares of the residual in each frame and
    how many values they are of. ``shifts`` are those by time step and mesh, where they were asked for.
    """

    rows: Array
    count: int
    noise: float
    cost: float
    power: float
    status: Status
    solve: float
    sums: tuple[float, ...]
    counts: tuple[int, ...]
    shifts: Array | None = None
    adequacy: Adequacy | None = None

    @property
    def sound(self) -> bool:
        """Whether all numbers are finite."""
        return bool(np.isfinite(self.rows).all() and np.isfinite(self.cost))

    @property
    def converged(self) -> bool:
        """Whether the fields follow the law and the solves behind the rows were finished."""
        return self.status.converged


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles in the order of the plan."""

    tiles: tuple[Tile, ...]

    def joined(self, other: Tiles) -> Tiles:
        """Return these tiles and those that follow."""
        return Tiles((*self.tiles, *other.tiles))

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what a checkpoint holds of them."""
        plain = [replace(tile, rows=np.empty(0), shifts=None) for tile in self.tiles]
        abouts = [{k: v for k, v in asdict(tile).items() if k not in ("rows", "shifts")} for tile in plain]
        moved = [tile.shifts for tile in self.tiles if tile.shifts is not None]
        for about, tile in zip(abouts, self.tiles, strict=True):
            about["shifted"], about["status"]["code"] = tile.shifts is not None, tile.status.code.name
        arrays = {"rows": np.stack([tile.rows for tile in self.tiles])}
        return {"tiles": abouts}, arrays | ({"shifts": np.stack(moved)} if moved else {})


def unpacked(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Tiles:
    """Return the tiles that a checkpoint holds."""
    shifts = iter(arrays.get("shifts", ()))
    tiles = []
    for words, rows in zip(about["tiles"], arrays["rows"], strict=True):
        told = {name: value for name, value in words.items() if name not in ("shifted", "adequacy")}
        told |= {"sums": tuple(words["sums"]), "counts": tuple(words["counts"])}
        told["status"] = Status(**(words["status"] | {"code": Convergence[words["status"]["code"]]}))
        moved = next(shifts) if words["shifted"] else None
        tiles.append(Tile(rows=rows, shifts=moved, adequacy=_adequacy(words["adequacy"]), **told))
    return Tiles(tuple(tiles))


def _adequacy(words: Mapping[str, Any] | None) -> Adequacy | None:
    if words is None:
        return None
    tests, leftover = (tuple(_test(test) for test in words[name]) for name in ("tests", "leftover"))
    return Adequacy(**(dict(words) | {"tests": tests, "leftover": leftover, "verdict": Verdict(words["verdict"])}))


def _test(words: Mapping[str, Any]) -> ScoreTest:
    spots = tuple(Spot(tuple(spot["index"]), spot["size"], spot["spread"]) for spot in words["spots"])
    lists = {name: tuple(words[name]) for name in ("estimate", "error")}
    return ScoreTest(**(dict(words) | lists | {"spots": spots}))


def read_tiles(reading: TileReading, regions: Sequence[Region], theta: Array, asked: bool) -> Tiles:
    """Read tiles of one shape together at a law; with `asked` also what time step, mesh and model lack.

    Fewer than the reading's width are filled up with the last of them: programs are compiled for one width.
    """
    records = [tile_record(reading.record, region) for region in regions]
    records += records[-1:] * (reading.width - len(records))
    found = follow_law(
        records, theta, family=reading.family, substeps=reading.substeps, labels=["tile"] * len(records),
        view=reading.view,
    )  # fmt: skip
    resolutions: Sequence[Resolution | None] = measure_resolution(records, found) if asked else [None] * len(found)
    answers: Sequence[Adequacy | None] = [None] * len(found)
    if asked and reading.check:
        answers = check_adequacies(records, found)
    each = list(zip(records, found, resolutions, answers, strict=True))[: len(regions)]
    return Tiles(tuple(_tile(*parts) for parts in each))


def _tile(record: Record, found: Trajectory, resolution: Resolution | None, adequacy: Adequacy | None) -> Tile:
    axes, values = tuple(range(1, found.residual.ndim)), record.slab()
    kept = np.asarray(record.seen()) & ~border_mask(record.mesh)
    block = found.evidence.blocks[0]
    return Tile(
        rows=_rows(found),
        count=block.rows,
        noise=found.noise,
        cost=float(np.sum(block.triangle[found.evidence.family.size :, -1] ** 2)) * found.noise**2,
        power=float(np.vdot(values, values)),
        status=found.status,
        solve=found.solve,
        sums=tuple(float(x) for x in np.sum(np.where(kept, found.residual, 0.0) ** 2, axis=axes)),
        counts=tuple(int(x) for x in np.count_nonzero(kept, axis=axes)),
        shifts=None if resolution is None else np.stack([resolution.time_shift, resolution.mesh_shift]),
        adequacy=adequacy,
    )


def _rows(found: Trajectory) -> Array:
    """Write what a tile says as rows [theta | target], what is beside the law first."""
    beside, n = found.beside, len(found.beside.names)
    triangle = found.evidence.blocks[0].triangle
    size = found.evidence.family.size
    rows = np.zeros((n + size, n + size + 1))
    rows[:n, :n], rows[:n, n:-1] = beside.root, -beside.root @ beside.slope
    rows[:n, -1] = beside.root @ (beside.best - beside.slope @ beside.g_best)
    rows[n:, n:-1], rows[n:, -1] = triangle[:size, :size], triangle[:size, -1]
    return rows

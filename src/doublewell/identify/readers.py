"""Readers: who does the jobs of the loop. Whole records in this process, those of one kind together; tiles anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from doublewell.adequacy import Adequacy, ScoreTest, Spot, Verdict, check_adequacies
from doublewell.compute.checkpoint import Ledger
from doublewell.compute.partition import Region, most_common, tile_record, tile_shape
from doublewell.compute.run import Clock, Pool
from doublewell.dynamics import Dynamics, border_mask
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key
from doublewell.hints import Array, Bools, Report
from doublewell.inference.joint import Job, Joint, Loop, Reading
from doublewell.law import Family
from doublewell.likelihood import Batch, Convergence, Resolution, Status, Trajectory, measure_resolution
from doublewell.observation.noise import noise_view, outlier_mask
from doublewell.observation.optics import View
from doublewell.options import Noise
from doublewell.record import Record
from doublewell.runtime import device_memory, on_gpu

Reader = Callable[[list[Job]], list[Reading]]
_PILOT = 4  # tiles
_EMPTY = 0.01  # fraction of a tile's cells between the phases below which it says next to nothing
_DEVICE = 0.3  # of a GPU's memory that a batch of tiles may take
_SOLVES = 60  # copies more, where the solves of all coefficients run together
_BATCH = 16  # most tiles of a batch


def run_loops(loops: Sequence[Loop], read: Reader) -> list[Joint]:
    """Run independent loops side by side; the jobs that all of them want next are done together."""
    wanted = {k: next(loop) for k, loop in enumerate(loops)}
    ends: dict[int, Joint] = {}
    while wanted:
        replies = iter(read([job for jobs in wanted.values() for job in jobs]))
        later = {}
        for k, jobs in wanted.items():
            try:
                later[k] = loops[k].send([next(replies) for _ in jobs])
            except StopIteration as end:
                ends[k] = end.value
        wanted = later
    return [ends[k] for k in range(len(loops))]


@dataclass(frozen=True, eq=False)
class Part:
    """A record with where its fit starts and how it is observed."""

    record: Record
    name: str
    start: Array
    view: View


@dataclass(eq=False)
class Records:
    """Do jobs on whole records in this process; records of one kind that want the same are one batch."""

    parts: list[Part]
    family: Family
    fitted: Family
    dynamics: Dynamics
    noise: Noise = "white"
    report: Report | None = None
    _batches: dict[tuple[int, ...], Batch] = field(default_factory=dict)
    _models: dict[Any, Any] = field(default_factory=dict)

    def __call__(self, jobs: list[Job]) -> list[Reading]:
        """Do jobs, in their order."""
        self._weigh([job for job in jobs if job.weigh])
        groups: dict[Any, list[int]] = {}
        for k, job in enumerate(jobs):
            groups.setdefault(self._kind(job), []).append(k)
        replies: dict[int, Reading] = {}
        for places in groups.values():
            replies |= zip(places, self._read([jobs[k] for k in places]), strict=True)
        return [replies[k] for k in range(len(jobs))]

    def _kind(self, job: Job) -> Any:
        """Return what jobs of one batch have in common."""
        part, held = self.parts[job.part], None if job.before is None else job.before.fields
        record, plain = part.record, part.view.whitening.root is part.view.whitening.colour is None
        seen = (part.view.optics, part.view.q_free) if plain and not part.view.whitening.memory else job.part
        like = (record.shape, record.dx, record.q, record.boundary, tuple(record.times - record.times[0]), seen)
        return job.theta is None, job.substeps, job.resolution, job.adequacy, id(getattr(held, "batch", None)), like

    def _read(self, jobs: list[Job]) -> list[Reading]:
        if jobs[0].theta is None:
            fits = self._fit(jobs)
        elif jobs[0].adequacy:
            fits = [job.before.fields for job in jobs if job.before is not None]
        else:
            self._say("linearising again at the common law")
            fits = [job.before.fields for job in jobs if job.before is not None]
            laws = np.stack([np.asarray(job.theta)[-self.family.size :] for job in jobs])
            fits = fits[0].batch.relinearise(fits, laws)
        before = [job.before for job in jobs]
        resolutions: Sequence[Resolution | None] = [None if one is None else one.resolution for one in before]
        if jobs[0].resolution:
            self._say("checking the resolution")
            resolutions = measure_resolution(fits)
        answers: Sequence[Adequacy | None] = [None] * len(jobs)
        if jobs[0].adequacy:
            self._say("checking the model")
            answers = check_adequacies(fits)
        return [reading_of(*each) for each in zip(fits, resolutions, answers, strict=True)]

    def _fit(self, jobs: list[Job]) -> list[Trajectory]:
        places = tuple(job.part for job in jobs)
        parts = [self.parts[k] for k in places]
        if places not in self._batches:
            models = self._models.setdefault(self._kind(replace(jobs[0], before=None))[-1], {})
            labels = [part.name for part in parts]
            self._batches[places] = Batch([part.record for part in parts], self.dynamics, parts[0].view, labels, models)
        starts = np.stack([part.start for part in parts])
        watch = None if self.report is None else lambda step: self._say(f"fitting: {step}", step.number)
        return self._batches[places].fit(
            starts, family=self.family, fitted=self.fitted, substeps=jobs[0].substeps, watch=watch
        )

    def _weigh(self, jobs: list[Job]) -> None:
        """Let records be observed with their noise as the fit before shows it; outliers are masked."""
        for job in jobs:
            assert job.before is not None
            self._say(f"fitting again with {self.noise} noise")
            part, fit = self.parts[job.part], job.before.fields
            if self.noise == "robust":
                self.parts[job.part] = replace(
                    part, record=part.record.replace(mask=outlier_mask(part.record, fit.residual))
                )
            else:
                self.parts[job.part] = replace(part, view=noise_view(part.record, fit.residual, part.view, self.noise))
            for places in [places for places in self._batches if job.part in places]:
                del self._batches[places]
            self._models.clear()

    def _say(self, words: str, done: int = 0) -> None:
        if self.report is not None:
            self.report(words, done, 0)


def reading_of(fit: Trajectory, resolution: Resolution | None, adequacy: Adequacy | None) -> Reading:
    """Return what a fit says of a law, with the fit itself."""
    axes, values, kept = tuple(range(1, fit.residual.ndim)), fit.record.slab(), noisy(fit.record)
    triangle = fit.evidence.blocks[0].triangle
    return Reading(
        evidence=fit.evidence,
        theta=fit.theta,
        noise=fit.noise,
        cost=float(triangle[-1, -1] ** 2) * fit.noise**2,
        power=float(np.vdot(values, values)),
        status=fit.status,
        solve=fit.solve,
        substeps=fit.substeps,
        sums=tuple(float(x) for x in np.sum(np.where(kept, fit.residual, 0.0) ** 2, axis=axes)),
        counts=tuple(int(x) for x in np.count_nonzero(kept, axis=axes)),
        resolution=resolution,
        adequacy=adequacy,
        fields=fit,
    )


def noisy(record: Record) -> Bools:
    """Return the values whose residual is noise: those observed, less the border of a window, which is estimated."""
    seen = np.asarray(record.observed())
    return np.asarray(seen & ~border_mask(record.mesh)) if record.boundary == "open" else seen


# ---- tiles


@dataclass(frozen=True, eq=False)
class TileModel:
    """What all tiles of a record have in common; ``width`` is how many are fitted at once."""

    record: Record
    family: Family
    dynamics: Dynamics
    substeps: int
    view: View
    check: bool
    width: int = 1


@dataclass(eq=False)
class Tiles:
    """Do jobs on tiles of one record, on a pool; every piece is kept in a ledger, one after the other."""

    model: TileModel
    regions: Sequence[Region]
    pool: Pool
    ledger: Ledger[Pieces]
    report: Report | None
    _done: int = 0
    _tiles: int = 0

    def __call__(self, jobs: list[Job]) -> list[Reading]:
        """Do jobs, in their order."""
        batches = self._batches(jobs)
        places = range(self._done, self._done + len(batches))
        left, record = self.ledger.left(places), self.model.record
        values = sum(prod(tile_shape(self.regions[job.part])) for job in jobs)
        done = len(batches) - len(left)
        clock = Clock(values * np.dtype(record.values.dtype).itemsize, done, len(batches), self.report, "tiles")
        items = [self._task([jobs[k] for k in batches[place - places.start]]) for place in left]
        for k, piece in self.pool.completed(read_tiles, items):
            self.ledger.add(left[k], piece)
            done += 1
            clock.done(done)
        merged = self.ledger.pieces.merged
        assert merged is not None
        found = merged.readings[self._tiles : self._tiles + len(jobs)]
        self._done, self._tiles = places.stop, self._tiles + len(jobs)
        order = [k for batch in batches for k in batch]
        replies = dict(zip(order, found, strict=True))
        return [replies[k] for k in range(len(jobs))]

    def _batches(self, jobs: list[Job]) -> list[list[int]]:
        """Put tiles of one shape and slab that want the same together, as many as are fitted at once."""
        alike: dict[Any, list[int]] = {}
        for k, job in enumerate(jobs):
            region, theta = self.regions[job.part], np.asarray(job.theta)
            key = (region.frames, tile_shape(region), job.resolution, job.adequacy, theta.tobytes())
            alike.setdefault(key, []).append(k)
        width = self.model.width
        return [group[k : k + width] for group in alike.values() for k in range(0, len(group), width)]

    def _task(self, jobs: list[Job]) -> tuple[Any, ...]:
        return self.model, [self.regions[job.part] for job in jobs], jobs[0].theta, jobs[0].resolution, jobs[0].adequacy


def read_tiles(model: TileModel, regions: Sequence[Region], theta: Array, resolution: bool, adequacy: bool) -> Pieces:
    """Fit the fields of tiles of one shape to a law; with `resolution` and `adequacy` also test them.

    Fewer than the model's width are filled up with the last of them: programs are compiled for one width.
    """
    records = [tile_record(model.record, region) for region in regions]
    records += records[-1:] * (model.width - len(records))
    labels = [f"tile at {region.frames} {region.cells}" for region in regions]
    labels += labels[-1:] * (len(records) - len(labels))
    batch = Batch(records, model.dynamics, model.view, labels)
    fits = batch.follow(theta, family=model.family, substeps=model.substeps)
    shifts: Sequence[Resolution | None] = measure_resolution(fits) if resolution else [None] * len(fits)
    answers: Sequence[Adequacy | None] = check_adequacies(fits) if adequacy else [None] * len(fits)
    each = list(zip(fits, shifts, answers, strict=True))[: len(regions)]
    return Pieces(tuple(replace(reading_of(*parts), fields=None) for parts in each))


@dataclass(frozen=True, eq=False)
class Pieces:
    """Readings of tiles in the order of the plan."""

    readings: tuple[Reading, ...]

    def joined(self, other: Pieces) -> Pieces:
        """Return these readings and those that follow."""
        return Pieces((*self.readings, *other.readings))

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what a checkpoint holds of them."""
        abouts, arrays = [], {}
        for k, reading in enumerate(self.readings):
            block = reading.evidence.blocks[0]
            plain = replace(reading, evidence=None, theta=None, resolution=None)  # type: ignore[arg-type]
            abouts.append(asdict(plain) | {"rows": block.rows, "label": block.key.record, "sizes": None})
            abouts[-1]["status"]["code"] = reading.status.code.name
            arrays[f"triangle{k}"], arrays[f"theta{k}"] = block.triangle, reading.theta
            if reading.resolution is not None:
                abouts[-1]["sizes"] = [reading.resolution.time_size, reading.resolution.mesh_size]
                arrays[f"shifts{k}"] = np.stack([reading.resolution.time_shift, reading.resolution.mesh_shift])
        return {"readings": abouts}, arrays


def unpacked(family: Family, joint: tuple[str, ...], about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Pieces:
    """Return the readings that a checkpoint holds."""
    readings = []
    for k, words in enumerate(about["readings"]):
        block = Block(Key(words["label"], "trajectory", "all"), arrays[f"triangle{k}"], words["rows"])
        resolution = None if words["sizes"] is None else Resolution(*arrays[f"shifts{k}"], *words["sizes"])
        kept = {name: words[name] for name in ("noise", "cost", "power", "solve", "substeps")}
        readings.append(
            Reading(
                evidence=Evidence(family, (block,), True, (*joint, "force", "target")),
                theta=arrays[f"theta{k}"],
                status=Status(**words["status"] | {"code": Convergence[words["status"]["code"]]}),
                sums=tuple(words["sums"]),
                counts=tuple(words["counts"]),
                resolution=resolution,
                adequacy=_adequacy(words["adequacy"]),
                **kept,
            )
        )
    return Pieces(tuple(readings))


def _adequacy(words: Mapping[str, Any] | None) -> Adequacy | None:
    if words is None:
        return None
    tests, leftover = (tuple(_test(test) for test in words[name]) for name in ("tests", "leftover"))
    return Adequacy(**(dict(words) | {"tests": tests, "leftover": leftover, "verdict": Verdict(words["verdict"])}))


def _test(words: Mapping[str, Any]) -> ScoreTest:
    spots = tuple(Spot(tuple(spot["index"]), spot["size"], spot["spread"]) for spot in words["spots"])
    lists = {name: tuple(words[name]) for name in ("estimate", "error")}
    return ScoreTest(**(dict(words) | lists | {"spots": spots}))


def choose_stages(
    regions: Sequence[Region], interface: Sequence[float], width: int = 1
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return the stages in which tiles are read, and the pilot: those with most interface, which go first.

    One tile (on a GPU, a batch) leads to a law that is closer by far than that of weak moments; the pilot, a few tiles
    of the shape that most have, so that few shapes are compiled, leads to the law at which all are read.
    """
    kept = [k for k, fraction in enumerate(interface) if fraction >= _EMPTY]
    if not kept:
        raise InputError(
            f"none of the {len(regions)} tiles of the record holds an interface: expected phase values between the two "
            "phases; record a part with an interface, or give more memory for larger tiles"
        )
    shape = most_common([tile_shape(regions[k]) for k in kept])
    alike = sorted((k for k in kept if tile_shape(regions[k]) == shape), key=lambda k: -interface[k])
    pilot = tuple(alike[: max(_PILOT, width)])
    stages = [pilot[:width], pilot, (*pilot, *(k for k in kept if k not in pilot))]
    return tuple(dict.fromkeys(stages)), pilot


def batch_width(regions: Iterable[Region], copies: int) -> int:
    """Return how many tiles are fitted at once: what a GPU has room for, one on a processor."""
    if not on_gpu():
        return 1
    values = max(prod(tile_shape(region)) for region in regions)
    return int(np.clip(_DEVICE * device_memory() // (8 * values * (copies + _SOLVES)), 1, _BATCH))

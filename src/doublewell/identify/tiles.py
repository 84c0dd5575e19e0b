"""Tiles: a record larger than memory, read part by part, and the trajectory fit of its disjoint windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import prod
from statistics import mode
from typing import Any

import numpy as np

from doublewell.adequacy import Adequacy, ScoreTest, Spot, Verdict, check_adequacies
from doublewell.compute.checkpoint import Ledger, fingerprint
from doublewell.compute.partition import (
    Region,
    check_room,
    interface_fraction,
    make_tiles,
    tile_record,
    tile_shape,
    whole_bytes,
    window_copies,
)
from doublewell.compute.run import Clock, Pool
from doublewell.dynamics import Dynamics
from doublewell.errors import InputError, option
from doublewell.evidence import Block, Evidence, Key
from doublewell.hints import Array, Report
from doublewell.identify.conclude import Answer, conclude
from doublewell.identify.parts import Part, check_seen, from_minus_one, part_fit, rescaled
from doublewell.identify.phases import near_plateaus, plateaus_or
from doublewell.identify.weak_fit import fit_weak, steady
from doublewell.inference.joint import Job, PartFit, Plan, fit_parts, run_loops
from doublewell.law import Family
from doublewell.likelihood import (
    Batch,
    Convergence,
    Resolution,
    Status,
    first_substeps,
    growth,
    measure_resolution,
)  # fmt: skip
from doublewell.observation.view import View
from doublewell.options import Compute
from doublewell.problem import Problem
from doublewell.record import Record
from doublewell.runtime import CPU, Processor, device_memory, on_gpu
from doublewell.units import parse_memory
from doublewell.weak.stream import Stream, open_stream

_KEPT = ("noise", "cost", "power", "solve", "substeps", "excess")  # of a fit, as a checkpoint holds them
_PILOT = 4  # tiles
_EMPTY = 0.01  # fraction of a tile's cells between the phases below which it holds next to no information
_DEVICE = 0.3  # of a GPU's memory that a batch of tiles may take
_SOLVES = 60  # copies more, where the solves of all coefficients run together
_BATCH = 16  # most tiles of a batch


@contextmanager
def streamed(
    record: Record, problem: Problem, compute: Compute, report: Report | None, processor: Processor = CPU
) -> Iterator[tuple[Part, Stream]]:
    """Begin a record part by part: survey and weak-form fit; give it with the stream that reads it."""
    phases = problem.observation.phases
    if isinstance(phases, str):
        raise InputError(
            f"{option('phases', 'estimated')} reads a record many times, which one read part by part is not made for: "
            f"estimate them on a part of the record, and give {option('phases')} for the whole"
        )
    near = near_plateaus(record, phases) if problem.method.bands and problem.view(record).contrast else None
    looked, pair = near or phases, near or phases
    if problem.values is not None:
        phases, looked = problem.range_of(problem.values), plateaus_or(record, problem.values)
        pair = phases
    scaled = from_minus_one(record, pair, copy=False)
    with open_stream(
        scaled, memory=problem.method.memory, workers=compute.workers, scheduler=compute.scheduler,
        checkpoint=compute.checkpoint,
    ) as stream:  # fmt: skip
        seen = stream.survey(from_minus_one(record, looked, copy=False), report=report)
        check_seen(seen, conserved=problem.values is not None)
        seen = rescaled(seen, looked, pair)
        own = replace(stream, checkpoint=None) if problem.method.bands else stream
        weak = fit_weak(scaled, seen, problem, stream=own, processor=processor, report=report)
        if problem.values is not None and problem.method.bands:
            weak = steady(weak, problem.fitted) or weak
        assert weak.streamed is not None
        seen = replace(seen, missing=weak.streamed.missing)
        yield Part.of(record, phases, pair, seen, weak, problem, copy=False), stream


def needs_tiles(record: Record, problem: Problem) -> bool:
    """Whether the trajectory fit of a record as a whole takes more than the budget."""
    unknowns = problem.family.size + len(problem.view(record).free)
    return whole_bytes(record, unknowns) > parse_memory(problem.method.memory)


def fit_tiles(record: Record, problem: Problem, compute: Compute, report: Report | None) -> tuple[Part, Answer]:
    """Fit the law by the likelihood of disjoint tiles, each a window of its own; each value belongs to one of them."""
    _check_tiles(problem)
    memory, border = parse_memory(problem.method.memory), _border(problem)
    check_room(memory)
    with streamed(record, problem, compute, report) as (part, stream):
        start, dynamics, family, view = part.start.coefficients, problem.dynamics, problem.family, part.view
        slope = problem.fitted.steepness(start)
        window = part.record.replace(boundary="open")
        substeps = first_substeps(window, slope, dynamics)
        theta = np.concatenate([part.joint, problem.fitted.elevation(family) @ start])
        copies = window_copies(theta.size, substeps)
        rate = growth(window, slope, dynamics) / float(window.times[-1] - window.times[0])
        regions = make_tiles(window, copies=copies, rate=rate, memory=memory, border=border)
        interface, looked = [0.0] * len(regions), window
        if problem.values is not None:  # -1 and +1 are the ends of a range then, not the phases
            looked = from_minus_one(record, plateaus_or(record, problem.values), copy=False)
        fractions = stream.pool.completed(interface_fraction, [(looked, region) for region in regions])
        for done, (k, fraction) in enumerate(fractions, 1):
            interface[k] = fraction
            if report is not None:
                report("looking for interfaces", done, len(regions))
        width = batch_width(regions, copies)
        stages, pilot = choose_stages(regions, interface, width)
        view = replace(view, parts=len(regions))
        model = TileModel(window, family, dynamics, substeps, view, problem.check, width)
        options = ("tiles", family, substeps, view.optics, window.q, problem.check, width, theta.tolist())
        prints = {} if stream.checkpoint is None else fingerprint(window, part.survey.histogram, options, regions)
        ledger = Ledger(stream.checkpoint, prints, partial(unpacked, family, view.free))
        plan = Plan(stages, problem.averaged, pilot, problem.check, start=tuple(theta.tolist()))
        (joint,) = run_loops([fit_parts(plan)], Tiles(model, regions, stream.pool, ledger, report))
    return part, conclude(problem, [part], joint, regions)


def _border(problem: Problem) -> int:
    """Return the width of a tile's border; an equation without windows is refused."""
    if problem.dynamics.border is None:
        raise InputError(
            f"the record takes more than {option('memory')} allows, and {problem.dynamics.name} cannot be fitted in "
            "tiles, each a window, because the mean over the whole domain is not seen in one: give more memory, or fit "
            "fewer frames"
        )
    return problem.dynamics.border


def _check_tiles(problem: Problem) -> None:
    """Refuse what tiles do not know."""
    if problem.observation.noise not in ("auto", "white"):
        raise InputError(
            f"{option('noise', problem.observation.noise)} is measured on a first fit of the whole record, which is "
            f"larger than the memory: expected {option('noise', 'white')}; fit a part, or give more memory"
        )
    if problem.method.ridge is not None:
        raise InputError("a ridge is for a record that is fitted as a whole: leave it out, or give more memory")
    if problem.observation.refine not in (1, "auto"):
        raise InputError(
            f"{option('refine')} takes more memory than the record itself, which is larger than allowed: leave it out, "
            "or give more memory"
        )


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

    def __call__(self, jobs: list[Job]) -> list[PartFit]:
        """Do jobs, in their order."""
        batches = self._batches(jobs)
        places = range(self._done, self._done + len(batches))
        left, record = self.ledger.left(places), self.model.record
        values = sum(prod(tile_shape(self.regions[job.part])) for job in jobs)
        done = len(batches) - len(left)
        clock = Clock(values * np.dtype(record.values.dtype).itemsize, done, len(batches), self.report, "tiles")
        items = []
        for place in left:
            batch = [jobs[k] for k in batches[place - places.start]]
            first, regions = batch[0], [self.regions[job.part] for job in batch]
            items.append((self.model, regions, first.theta, first.resolution, first.adequacy))
        for k, piece in self.pool.completed(read_tiles, items):
            self.ledger.add(left[k], piece)
            done += 1
            clock.done(done)
        merged = self.ledger.merged
        assert merged is not None
        replies = merged.fits[self._tiles : self._tiles + len(jobs)]
        self._done, self._tiles = places.stop, self._tiles + len(jobs)
        order = np.argsort([k for batch in batches for k in batch])
        return [replies[k] for k in order.tolist()]

    def _batches(self, jobs: list[Job]) -> list[list[int]]:
        """Put tiles of one shape and slab that want the same together, as many as are fitted at once."""
        groups: dict[Any, list[int]] = {}
        for k, job in enumerate(jobs):
            region, theta = self.regions[job.part], np.asarray(job.theta)
            key = (region.frames, tile_shape(region), job.resolution, job.adequacy, theta.tobytes())
            groups.setdefault(key, []).append(k)
        width = self.model.width
        return [group[k : k + width] for group in groups.values() for k in range(0, len(group), width)]


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
    return Pieces(tuple(replace(part_fit(*parts), fields=None) for parts in each))


@dataclass(frozen=True, eq=False)
class Pieces:
    """Fits of tiles in the order of the plan."""

    fits: tuple[PartFit, ...]

    def joined(self, other: Pieces) -> Pieces:
        """Return these fits and those that follow."""
        return Pieces((*self.fits, *other.fits))

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what a checkpoint holds of them."""
        abouts, arrays = [], {}
        for k, fit in enumerate(self.fits):
            block = fit.evidence.blocks[0]
            numbers: dict[str, Any] = {name: getattr(fit, name) for name in (*_KEPT, "sums", "counts")}
            numbers["status"] = asdict(fit.status) | {"code": fit.status.code.name}
            numbers["adequacy"] = None if fit.adequacy is None else asdict(fit.adequacy)
            abouts.append(numbers | {"rows": block.rows, "label": block.key.record, "sizes": None})
            arrays[f"triangle{k}"], arrays[f"theta{k}"] = block.triangle, fit.theta
            if fit.resolution is not None:
                abouts[-1]["sizes"] = [fit.resolution.time_size, fit.resolution.mesh_size]
                arrays[f"shifts{k}"] = np.stack([fit.resolution.time_shift, fit.resolution.mesh_shift])
        return {"fits": abouts}, arrays


def unpacked(family: Family, joint: tuple[str, ...], about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Pieces:
    """Return the fits that a checkpoint holds."""
    fits = []
    for k, words in enumerate(about["fits"]):
        block = Block(Key(words["label"], "trajectory", "all"), arrays[f"triangle{k}"], words["rows"])
        resolution = None if words["sizes"] is None else Resolution(*arrays[f"shifts{k}"], *words["sizes"])
        kept = {name: words[name] for name in _KEPT}
        fits.append(
            PartFit(
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
    return Pieces(tuple(fits))


def _adequacy(words: Mapping[str, Any] | None) -> Adequacy | None:
    if words is None:
        return None
    tests = tuple(_test(test) for test in words["tests"])
    return Adequacy(**(dict(words) | {"tests": tests, "verdict": Verdict(words["verdict"])}))


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
    shape = mode([tile_shape(regions[k]) for k in kept])
    usual = sorted((k for k in kept if tile_shape(regions[k]) == shape), key=lambda k: -interface[k])
    pilot = tuple(usual[: max(_PILOT, width)])
    stages = [pilot[:width], pilot, (*pilot, *(k for k in kept if k not in pilot))]
    return tuple(dict.fromkeys(stages)), pilot


def batch_width(regions: Iterable[Region], copies: int) -> int:
    """Return how many tiles are fitted at once: what a GPU has room for, one on a processor."""
    if not on_gpu():
        return 1
    values = max(prod(tile_shape(region)) for region in regions)
    return int(np.clip(_DEVICE * device_memory() // (8 * values * (copies + _SOLVES)), 1, _BATCH))

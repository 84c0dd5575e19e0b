"""The trajectory road for a record larger than memory: disjoint tiles, each a window of its own, one law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from doublewell.calibrate import SurfaceTension
from doublewell.compute import (
    Ledger,
    Region,
    check_room,
    fingerprint,
    interface_share,
    make_tiles,
    parse_memory,
    tile_shape,
    whole_bytes,
    window_copies,
)
from doublewell.errors import InputError, option
from doublewell.evidence import system
from doublewell.hints import Array, Report
from doublewell.identify.batch import trajectory_result, weak_of
from doublewell.identify.streamed import given_phases, part_by_part
from doublewell.identify.tile_rounds import Rounds, Summary, TileFit, batch_width, choose_pilot, read_all
from doublewell.identify.tile_task import TileReading, unpacked
from doublewell.identify.tile_total import asked_adequacy, frame_noise, place_map, resolution_of
from doublewell.identify.together import agreements
from doublewell.identify.trajectory_numbers import Leftover, diagnostics_of
from doublewell.identify.trajectory_road import TrajectoryFit, at_degree, felt, in_units, touched, trimmed
from doublewell.identify.weak_road import WeakFit
from doublewell.inference import Posterior, average_degrees, fit_degree
from doublewell.inference.least_squares import column_scale
from doublewell.likelihood import Batch, Convergence, Status, Trajectory, first_substeps, growth
from doublewell.observation import Survey, View, joint_start
from doublewell.options import Compute
from doublewell.problem import Problem
from doublewell.record import Record
from doublewell.result import Result, Tiling
from doublewell.weak import Stream

__all__ = ["identify_tiled", "needs_tiles"]

_FEW = 0.05  # of the tiles that may be left unfinished


def needs_tiles(record: Record, asked: Problem) -> bool:
    """Whether the trajectory fit of a record as a whole takes more than the budget; without one it is fitted whole."""
    if asked.method.memory is None:
        return False
    unknowns = asked.family.size + len(asked.view(record).free)
    return whole_bytes(record, unknowns) > parse_memory(asked.method.memory)


def identify_tiled(record: Record, asked: Problem, compute: Compute, report: Report | None = None) -> Result:
    """Identify a record by the likelihood of its tiles; each value belongs to one of them."""
    _check(asked)
    check_room(parse_memory(asked.method.memory))
    with part_by_part(record, asked, compute, report) as (scaled, stream, seen):
        weak = weak_of(scaled, seen, asked, report, replace(stream, checkpoint=None))
        summarise: Summary = average_degrees if asked.averaged else fit_degree
        fit, plan = _read(scaled, seen, weak, asked, stream, report, summarise)
    assert weak.moments.streamed is not None
    seen = replace(seen, missing=weak.moments.streamed.missing)
    return _conclude(record, given_phases(asked), asked.tension, seen, weak, asked, fit, plan, summarise, stream.memory)


def _check(asked: Problem) -> None:
    """Refuse what tiles do not know."""
    if asked.observation.noise != "white":
        raise InputError(
            f"{option('noise', asked.observation.noise)} is measured on a first fit of the whole record, which is "
            f"larger than the memory: expected {option('noise', 'white')}; fit a part, or give more memory"
        )
    if asked.method.ridge is not None:
        raise InputError("a ridge is for a record that is fitted as a whole: leave it out, or give more memory")
    if asked.observation.refine > 1:
        raise InputError(
            f"{option('refine')} is for whole domains, and a record larger than the memory is fitted in windows: leave "
            "it out, or give more memory"
        )


def _read(
    scaled: Record, seen: Survey, weak: WeakFit, asked: Problem, stream: Stream, report: Report | None,
    summarise: Summary,
) -> tuple[TileFit, tuple[Region, ...]]:  # fmt: skip
    """Plan tiles, look at each, and read those that hold an interface."""
    record, start = scaled.replace(q=weak.q, boundary="open"), weak.estimate.coefficients
    view, family, fitted = asked.view(scaled), asked.family, asked.fitted
    theta = np.concatenate([joint_start(view), fitted.elevation(family) @ start])
    substeps = first_substeps(record, start, view)
    copies = window_copies(theta.size, substeps)
    rate = growth(record, start) / float(record.times[-1] - record.times[0])
    plan = make_tiles(record, copies=copies, rate=rate, memory=stream.memory)
    shares = _look(record, plan, stream, report)
    width = batch_width(plan, copies)
    reading = TileReading(record, family, substeps, view, asked.check, width)
    options = ("tiles", family, substeps, asked.optics, record.q, asked.check, width, theta.tolist())
    prints = {} if stream.checkpoint is None else fingerprint(record, seen.histogram, options, plan)
    ledger = Ledger(stream.checkpoint, prints, unpacked)
    rounds = Rounds(stream.pool, ledger, reading, report)
    return read_all(rounds, plan, choose_pilot(plan, shares, width), theta, summarise), plan


def _look(record: Record, plan: Sequence[Region], stream: Stream, report: Report | None) -> list[float]:
    """Return how much of each tile lies between the phases."""
    shares = [0.0] * len(plan)
    for done, (place, share) in enumerate(
        stream.pool.completed(interface_share, [(record, region) for region in plan]), 1
    ):
        shares[place] = share
        if report is not None:
            report("looking for interfaces", done, len(plan))
    return shares


def _conclude(
    record: Record, pair: tuple[float, float], tension: SurfaceTension | None, seen: Survey, weak: WeakFit,
    asked: Problem, fit: TileFit, plan: tuple[Region, ...], summarise: Summary, memory: int | None,
) -> Result:  # fmt: skip
    read = Tiling(
        shape=tuple(int(n) for n in np.max([tile_shape(region) for region in plan], axis=0)),
        read=len(fit.tiles),
        empty=len(plan) - len(fit.tiles) - len(fit.lost),
        lost=fit.lost,
        unfinished=tuple(
            f"{name}, {tile.status.text}" for name, tile in zip(fit.names, fit.tiles, strict=True) if not tile.converged
        ),
        checked=sum(tile.adequacy is not None for tile in fit.tiles),
    )
    left = Leftover(place_map(fit.tiles, fit.regions, plan), frame_noise(fit.tiles, fit.regions, record.frames))
    joint = _joint(record.replace(q=weak.q), asked.view(record), fit, asked, summarise)
    result = trajectory_result(
        record, pair, tension, seen, weak, joint, asked, partial(diagnostics_of, left=left, tiles=read)
    )
    systems = [(tile.rows[:, :-1], tile.rows[:, -1]) for tile in fit.tiles]
    agreed = agreements(systems, fit.names) if read.read > 1 else ()
    return replace(result, agreements=agreed, settings=replace(result.settings, memory=memory))


def _joint(record: Record, view: View, fit: TileFit, asked: Problem, summarise: Summary) -> TrajectoryFit:
    """Return the fit of all tiles in the form of a single record's; it has no fields of its own."""
    total, family = fit.total, fit.total.evidence.family
    average = summarise(total.evidence, 1.0, constraint=asked.law.constraint)
    matrix, _ = system(total.evidence, 1.0)
    resolution, law = resolution_of(fit.tiles, total), trimmed(average, family)
    active, contacts = touched(average)
    nothing: Array = np.zeros((0,) * len(record.shape))
    unfinished = [tile.status for tile in fit.tiles if not tile.converged]
    converged = len(unfinished) <= _FEW * len(fit.tiles)
    found = Trajectory(
        batch=Batch([record.replace(boundary="open")], view=view), index=0, evidence=total.evidence, theta=fit.theta,
        nuisance=nothing, response=nothing, beside=total.beside, residual=nothing, noise=total.noise,
        substeps=fit.substeps, steps=(), status=Status(Convergence.TILES, 0.0, 0) if converged else unfinished[0],
        segments=1, solve=max(tile.solve for tile in fit.tiles),
    )  # fmt: skip
    shifts = np.stack([resolution.time_shift, resolution.mesh_shift])
    drift = felt(average, family, matrix, shifts)
    beside = in_units(record, total.beside)
    return TrajectoryFit(
        law=law,
        initial=nothing,
        posterior=Posterior(family, average.path, average.components, drift, asked.law.constraint, beside),
        found=found,
        resolution=resolution,
        rounds=fit.rounds,
        distance=fit.distance,
        unconstrained=at_degree(average.free, family, law.family.degree),
        rise=float(np.sum((matrix @ (average.coefficients - average.free)) ** 2)),
        active=active,
        contacts=contacts,
        misfit=float(np.sqrt(sum(tile.cost for tile in fit.tiles) / sum(tile.power for tile in fit.tiles))),
        record=record,
        condition=float(np.divide(*column_scale(matrix)[2][[0, -1]])),
        adequacy=asked_adequacy(fit.tiles, fit.names),
    )

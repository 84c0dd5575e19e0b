"""identify: from records to a calibrated law, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from doublewell.calibrate import SurfaceTension
from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.identify.batch import identify_batch, identify_together
from doublewell.identify.streamed import identify_streamed
from doublewell.identify.tiled import identify_tiled, needs_tiles
from doublewell.jax_runtime import computing_on
from doublewell.options import Compute, DoubleWell, Method, Observation
from doublewell.problem import Problem, ask, compute_of
from doublewell.record import Record
from doublewell.result import Result
from doublewell.weak import Processor, choose_processor


def identify(
    record: Record | Sequence[Record],
    surface_tension: float | str | tuple[float, float] | SurfaceTension | None = None,
    *,
    law: DoubleWell | str | int | dict[str, Any] | None = None,
    method: Method | str | None = None,
    observation: Observation | str | dict[str, Any] | None = None,
    compute: Compute | str | dict[str, Any] | None = None,
    check: bool = True,
    progress: Report | None = None,
) -> Result:
    """Identify the force G = F'/epsilon^2 of u_t = q (Laplacian u - G(u)), and with a tension epsilon and F.

    Parameters
    ----------
    record
        The observed phase field. Where its q is None it is estimated jointly with the law (``result.q``). Where its
        boundary is not declared it is a window, cut out of something larger, and nothing is assumed about the outside.
        Several records of one material, in a list, are fitted together: meshes, frame intervals, noise and geometries
        may differ, and ``result.agreements`` says which record disagrees with the others.
    surface_tension
        An independently measured tension: a number or a pair (value, standard deviation) in the normalisation E, a
        text such as "0.3 J/m^2 +- 5 %", or a SurfaceTension. A tension with a unit needs a record with units. Without a
        tension the result holds G and H but neither epsilon nor F, which the movie does not determine.
    law
        The laws that are looked for: ``DoubleWell(degree=, constraint=, wells=)``; a number is a degree.
    method
        "trajectory" (the default): the likelihood of the whole record, with error bands, ``Trajectory(ridge=,
        memory=)``. "weak": the paper's space-time moments, ``Weak(supports=, derivative=, ridge=, corrected=, memory=,
        precision=)``. "weak-corrected": the same without the bias of white noise.
    observation
        How the field was observed: ``Observation(phases=, noise=, blur=, pixel=, exposure=, refine=, missing=)``.
    compute
        What may be used: ``Compute(workers=, scheduler=, checkpoint=, device=)``. It does not change the answer.
    check
        Whether a trajectory fit tests its residual for model misspecification (``result.adequacy``); it takes about as
        long as the fit.
    progress
        Called with (what is being done, steps done, steps), steps 0 where their number is not known.

    >>> from doublewell.simulate import initial_field, simulate
    >>> from doublewell.law import named_law
    >>> start = initial_field("circle", (64, 64), 1 / 64, epsilon=0.05)
    >>> movie = simulate(named_law("quartic"), start, dx=1 / 64, dt=1e-4, frames=25, epsilon=0.05)
    >>> sigma = named_law("quartic").surface_tension(epsilon=1.0)
    >>> result = identify(movie, surface_tension=sigma, method="weak", law=0)
    >>> round(result.epsilon, 4)
    0.05
    """
    records = [record] if isinstance(record, Record) or not isinstance(record, Sequence) else list(record)
    if not records:
        raise InputError("no records: expected a Record, or several of one material")
    problem = ask(records, surface_tension, law=law, method=method, observation=observation, check=check)
    chosen = compute_of(compute, records)
    with computing_on(chosen.device):
        return _identified(records, problem, chosen, progress)


def _identified(records: list[Record], problem: Problem, compute: Compute, progress: Report | None) -> Result:
    if len(records) > 1:
        return identify_together(records, problem, progress)
    (record,) = records
    processor = processor_of(record, problem, compute)
    parted = any(x is not None for x in (problem.method.memory, compute.workers, compute.scheduler, compute.checkpoint))
    if problem.method.bands and needs_tiles(record, problem):
        return identify_tiled(record, problem, compute, progress)
    if parted and not problem.method.bands and not problem.method.corrected:
        return identify_streamed(record, problem, compute, progress, processor)
    return identify_batch(records, [problem.tension], problem, progress, processor=processor)[0]


def processor_of(record: Record, problem: Problem, compute: Compute) -> Processor:
    """What weak moments are summed on; several workers share no GPU unless that is asked for."""
    alone = compute.workers is None and compute.scheduler is None
    device = compute.device if alone or compute.device is not None else "cpu"
    return choose_processor(device, problem.method.precision, int(np.prod(record.shape)))

"""Identify: the whole road from a record to a calibrated law, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

from doublewell.calibrate import SurfaceTension
from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.identify.batch import Degree, Method, Request, identify_batch, identify_together
from doublewell.identify.families import WellsKind
from doublewell.identify.phases import Phases
from doublewell.identify.streamed import Resources, check_memory, identify_streamed
from doublewell.identify.tiled import identify_tiled, needs_tiles
from doublewell.identify.weak_road import Supports
from doublewell.inference import Constraint
from doublewell.jax_runtime import computing_on
from doublewell.likelihood import Noise, Optics
from doublewell.record import Record
from doublewell.result import Result
from doublewell.weak import Derivative

__all__ = ["identify"]


def identify(
    record: Record | Sequence[Record],
    surface_tension: float | str | tuple[float, float] | SurfaceTension | None = None,
    *,
    degree: Degree = None,
    method: Method = None,
    constraint: Constraint = "admissible",
    wells: WellsKind = "symmetric",
    phases: Phases | None = (-1.0, 1.0),
    ridge: float | Literal["validated"] | None = None,
    supports: Supports = None,
    derivative: Derivative = "discrete",
    check: bool = True,
    optics: Optics | None = None,
    noise: Noise = "white",
    memory: str | int | None = None,
    workers: int | None = None,
    scheduler: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    device: str | None = None,
    precision: str = "double",
    progress: Report | None = None,
) -> Result:
    """Identify the force G = F'/epsilon^2 of u_t = q (Laplacian u - G(u)), and with a tension epsilon and F.

    Parameters
    ----------
    record
        The observed phase field. Where its q is None it is estimated along with the law (``result.q``). Where its
        boundary is not declared it is a window, cut out of something larger, and nothing is assumed about the outside.
        Several records of one material, in a list, are read together: meshes, frame intervals, noise and geometries may
        differ, and ``result.agreements`` says which record disagrees with the others.
    surface_tension
        An independently measured tension: a number or a pair (value, standard deviation) in the normalisation E, a
        text such as "0.3 J/m^2 +- 5 %", or a SurfaceTension. A tension with a unit needs a record with units. Without a
        tension the result holds G and H but neither epsilon nor F, which the movie does not determine.
    degree
        Degree of the bracket polynomial in u^2, 0 to 8, or "auto": the average over all degrees, weighted by the
        likelihood. Without it "auto" for the trajectory reading and 2 for the weak one.
    method
        "trajectory" (the default): the likelihood of the whole record, with error bands. "weak": the paper's
        space-time moments. "weak-corrected": the same without the bias of white noise.
    constraint
        "admissible": all laws of the degree with two stable pure phases and one central maximum, so the wells are right
        by construction. "bernstein": positive coefficients, the paper's part of these. "none": plain least squares.
    wells
        "symmetric": G(u) = -u (1 - u^2) p(u^2). "equal": two wells of equal depth that need not be alike. "unequal":
        their depths may differ too; then a planar interface travels, and no planar tension exists. With both of them
        any constraint but "none" is "admissible": two stable phases and one maximum between.
    phases
        The phase values of the two wells, or "estimated": those that leave the least of the weak moments.
    ridge
        None, a multiple alpha of the mean squared column norm, or (weak) "validated": alpha from the paper's grid,
        chosen on the last 40 % of the frames.
    supports, derivative
        Of the weak reading: pairs (frames, length) of half-widths, "paper", or None for a rule that follows the
        interface width; "discrete" or "analytic" derivative weights.
    check
        Whether the trajectory reading asks its residual for what the model lacks (``result.adequacy``); it takes about
        as long as the fit.
    optics
        What lies between the field and its image, for the trajectory reading: ``Optics(blur=, pixel=, exposure=,
        refine=)``. Without it the values are the field at the centres of the pixels.
    noise
        "white"; "correlated": its spectrum and its memory are measured on a first fit; "shot": its variance is a line
        in the phase value; "robust": outliers are found and left out.
    memory
        The most that one worker may take, such as "2GB"; the record is then read part by part, and may be of any size.
        With method="weak" the answer is the same to round-off. The trajectory reading of a record over the budget is by
        disjoint tiles, each a window with a border of its own: what the borders take makes the bands wider.
    workers, scheduler
        Of a record that is read part by part: how many processes read (threads, where the values are in memory); or the
        address of a Dask scheduler, a Dask Client or an Executor. A script with workers needs
        ``if __name__ == "__main__":``. The answer does not depend on either.
    checkpoint
        Of a record that is read part by part: a file that keeps what was read so far; the same call goes on from there.
    device, precision
        "gpu", "cpu", or None for what is found: the trajectory reading takes a GPU that JAX has, the weak one where the
        record is large. On a GPU the weak moments may be "single": faster, with six digits in place of twelve.
    progress
        Called with (what is being done, steps done, steps), steps 0 where their number is not known. A Gauss-Newton
        step says its cost and how far conjugate gradients came.

    >>> from doublewell.simulate import initial_field, simulate
    >>> from doublewell.law import named_law
    >>> start = initial_field("circle", (64, 64), 1 / 64, epsilon=0.05)
    >>> movie = simulate(named_law("quartic"), start, dx=1 / 64, dt=1e-4, frames=25, epsilon=0.05)
    >>> sigma = named_law("quartic").surface_tension(epsilon=1.0)
    >>> result = identify(movie, surface_tension=sigma, method="weak", degree=0)
    >>> round(result.epsilon, 4)
    0.05
    """
    tension = None if surface_tension is None else SurfaceTension.of(surface_tension)
    records = [record] if isinstance(record, Record) or not isinstance(record, Sequence) else list(record)
    if not records:
        raise InputError("no records: expected a Record, or several of one material")
    resources = Resources(memory, workers, scheduler, checkpoint, device, precision)
    asked = [
        Request.of(
            one, method=method, degree=degree, constraint=constraint, ridge=ridge, supports=supports,
            derivative=derivative, check=check, wells=wells, phases=phases, optics=optics, noise=noise,
            processor=resources.processor(one),
        )
        for one in records
    ]  # fmt: skip
    with computing_on(device):
        return _identified(records, tension, asked, resources, progress)


def _identified(
    records: list[Record], tension: SurfaceTension | None, asked: list[Request], resources: Resources,
    progress: Report | None,
) -> Result:  # fmt: skip
    """Take the road that one record, several, or one that is read part by part ask for."""
    if resources.given and len(records) == 1 and asked[0].method == "weak":
        return identify_streamed(records[0], tension, asked[0], resources, progress)
    if resources.given and len(records) == 1 and asked[0].method == "trajectory":
        if needs_tiles(records[0], asked[0], resources.budget):
            return identify_tiled(records[0], tension, asked[0], resources, progress)
    elif resources.given:
        for one, request in zip(records, asked, strict=True):
            check_memory(one, request, resources, len(records))
    if len(records) > 1:
        return identify_together(records, tension, asked, progress)
    return identify_batch(records, [tension], asked[0], progress)[0]

"""Identify: the whole road from a record to a calibrated law, in one call."""

from __future__ import annotations

from typing import Literal

from doublewell.calibrate import SurfaceTension
from doublewell.estimate import Constraint
from doublewell.evidence import Derivative
from doublewell.hints import Report
from doublewell.identify.batch import Degree, Method, Request, identify_batch
from doublewell.identify.families import WellsKind
from doublewell.identify.phases import Phases
from doublewell.identify.weak_road import Supports
from doublewell.record import Record
from doublewell.result import Result

__all__ = ["identify"]


def identify(
    record: Record,
    surface_tension: float | str | tuple[float, float] | SurfaceTension | None = None,
    *,
    degree: Degree = None,
    method: Method = None,
    constraint: Constraint = "bernstein",
    wells: WellsKind = "symmetric",
    phases: Phases | None = (-1.0, 1.0),
    ridge: float | Literal["validated"] | None = None,
    supports: Supports = None,
    derivative: Derivative = "discrete",
    check: bool = True,
    progress: Report | None = None,
) -> Result:
    """Identify the force G = F'/epsilon^2 of u_t = q (Laplacian u - G(u)), and with a tension epsilon and F.

    Parameters
    ----------
    record
        The observed phase field; its q must be known.
    surface_tension
        An independently measured tension: a number or a pair (value, standard deviation) in the normalisation E, a
        text such as "0.3 J/m^2 +- 5 %", or a SurfaceTension. A tension with a unit needs a record with units. Without a
        tension the result holds G and H but neither epsilon nor F, which the movie does not determine.
    degree
        Degree of the bracket polynomial in u^2, 0 to 8, or "auto": the average over all degrees, weighted by the
        likelihood. Without it "auto" for the trajectory reading and 2 for the weak one.
    method
        "trajectory": the likelihood of the whole record, with error bands; it needs a declared boundary. "weak": the
        paper's space-time moments. Without it "trajectory" where a boundary is declared, else "weak".
    constraint
        "bernstein": positive coefficients, so the wells are right by construction. "none": plain least squares.
    wells
        "symmetric": G(u) = -u (1 - u^2) p(u^2). "equal": two wells of equal depth that need not be alike. "unequal":
        their depths may differ too; then a planar interface travels, and no planar tension exists. With both of them
        any constraint but "none" is the exact one: two stable phases and one maximum between.
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
    asked = Request.of(
        record, method=method, degree=degree, constraint=constraint, ridge=ridge, supports=supports,
        derivative=derivative, check=check, wells=wells, phases=phases,
    )  # fmt: skip
    return identify_batch([record], [tension], asked, progress)[0]

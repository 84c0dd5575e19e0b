"""Identify: the whole road from a record to a calibrated law, in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Literal

import numpy as np

from doublewell.calibrate import Scale, SurfaceTension, calibrate
from doublewell.errors import InputError
from doublewell.estimate import Constraint, Estimate, estimate
from doublewell.evidence import (
    Derivative,
    Fold,
    Support,
    check_supports,
    default_supports,
    paper_supports,
    split_folds,
    weak_evidence,
)
from doublewell.law import Bernstein, Law
from doublewell.record import Record
from doublewell.result import Diagnostics, Result, Settings
from doublewell.survey import FEW_CELLS, LARGE, TOO_FEW_CELLS, Survey, survey

__all__ = ["identify"]

Supports = Sequence[Support | tuple[int, float]] | Literal["paper"] | None


def identify(
    record: Record,
    surface_tension: float | SurfaceTension | None = None,
    *,
    degree: int = 2,
    method: Literal["weak"] = "weak",
    constraint: Constraint = "bernstein",
    ridge: float | Literal["validated"] | None = None,
    supports: Supports = None,
    derivative: Derivative = "discrete",
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Identify the force G = F'/epsilon^2 of u_t = q (Laplacian u - G(u)), and with a tension epsilon and F.

    Parameters
    ----------
    record
        The observed phase field; its q must be known.
    surface_tension
        An independently measured tension: a number (normalisation E) or a SurfaceTension. Without it the result
        holds G and H but neither epsilon nor F, which the movie does not determine.
    degree
        Degree of the bracket polynomial in u^2, 0 to 8.
    method
        "weak", the paper's space-time moments.
    constraint
        "bernstein": positive coefficients, so the wells are right by construction. "none": plain least squares.
    ridge
        None, a multiple alpha of the mean squared column norm, or "validated": alpha from the paper's grid, chosen
        on the last 40 % of the frames.
    supports
        Pairs (frames, length) of half-widths, "paper", or None for a rule that follows the interface width.
    derivative
        "discrete" or "analytic" derivative weights.
    progress
        Called with (frames done, frames).

    >>> from doublewell.simulate import initial_field, simulate
    >>> from doublewell.law import named_law
    >>> start = initial_field("circle", (64, 64), 1 / 64, epsilon=0.05)
    >>> movie = simulate(named_law("quartic"), start, dx=1 / 64, dt=1e-4, frames=25, epsilon=0.05)
    >>> result = identify(movie, surface_tension=named_law("quartic").surface_tension(epsilon=1.0), degree=0)
    >>> round(result.epsilon, 4)
    0.05
    """
    tension = None if surface_tension is None else SurfaceTension.of(surface_tension)
    family = Bernstein(degree)
    q = _check(record, method)
    seen = survey(record)
    _check_survey(seen)
    chosen, rule = _supports(record, seen, supports)
    folds = _folds(record, chosen, ridge)
    evidence = weak_evidence(record, family, chosen, derivative=derivative, folds=folds, progress=progress)
    fit = estimate(evidence, q, constraint=constraint, ridge=ridge)
    scale, refusal = _scale(fit.law, tension)
    settings = Settings(
        version=version("doublewell"),
        method=method,
        degree=degree,
        constraint=constraint,
        ridge=ridge,
        supports=tuple((support.frames, support.length) for support in chosen),
        supports_rule=rule,
        derivative=derivative,
        shape=record.shape,
        dx=record.dx,
        dt=record.dt,
        q=q,
        boundary=record.boundary,
    )
    return Result(fit.law, scale, refusal, _diagnostics(fit, seen, refusal), settings)


def _check(record: Record, method: str) -> float:
    if not isinstance(record, Record):
        raise InputError(f"expected a Record, got {type(record).__name__}: wrap the field as Record(u, dx=, dt=, q=)")
    if method != "weak":
        raise InputError(f"method is {method!r}: expected 'weak'")
    if record.q is None:
        raise InputError(
            "the record has no diffusion coefficient: pass q= to Record (q sets the time scale of the law)"
        )
    return record.q


def _check_survey(seen: Survey) -> None:
    if max(abs(seen.low), abs(seen.high)) > LARGE:
        raise InputError(
            f"phase values run from {seen.low:.3g} to {seen.high:.3g}: expected the pure phases at -1 and +1; "
            "rescale the field, for example u = 2*(i - low)/(high - low) - 1"
        )
    if seen.cells is not None and seen.cells < TOO_FEW_CELLS:
        raise InputError(
            f"the mesh is too coarse: an interface spans {seen.cells:.1f} cells, expected at least "
            f"{TOO_FEW_CELLS:g} (better {FEW_CELLS:g}); record with finer pixels"
        )


def _supports(record: Record, seen: Survey, supports: Supports) -> tuple[tuple[Support, ...], str]:
    if supports is None:
        return default_supports(record, seen.interface_width), "half and one interface width, chosen from the record"
    rule = "as given"
    if isinstance(supports, str):
        if supports != "paper":
            raise InputError(f"supports is {supports!r}: expected pairs (frames, length), 'paper' or None")
        supports, rule = paper_supports(record), "the paper's, 1/16 and 1/8 of the shortest side"
    return check_supports(supports, record.frames, record.mesh, record.dx), rule


def _folds(record: Record, supports: tuple[Support, ...], ridge: float | str | None) -> tuple[Fold, ...]:
    if ridge != "validated":
        return ()
    return split_folds(record.frames, max(support.frames for support in supports))


def _scale(law: Law, tension: SurfaceTension | None) -> tuple[Scale | None, str | None]:
    """Calibrate; a law that cannot be calibrated is an outcome of the data, so it is said and not raised."""
    if tension is None:
        return None, None
    try:
        return calibrate(law, tension), None
    except InputError as error:
        return None, f"calibration refused: {error}"


def _diagnostics(fit: Estimate, seen: Survey, refusal: str | None) -> Diagnostics:
    return Diagnostics(
        rows=fit.rows,
        condition=fit.condition,
        scaled_condition=fit.scaled_condition,
        active=tuple(int(j) for j in np.flatnonzero(fit.solution.active)),
        bound=fit.bound if np.isfinite(fit.bound) else None,
        kkt=fit.solution.kkt,
        residual=fit.relative_residual,
        unconstrained=fit.unbounded,
        ridge=fit.ridge,
        supports=fit.supports,
        support_spread=fit.support_spread,
        survey=seen,
        warnings=tuple(_warnings(fit, seen, refusal)),
    )


def _warnings(fit: Estimate, seen: Survey, refusal: str | None) -> list[str]:
    """Say in plain words what a referee would ask about."""
    said = []
    if refusal:
        said.append(refusal)
    if not fit.law.structure.ok:
        said.append(f"not a plain double well: {fit.law.structure}; use constraint='bernstein' or more data")
    if seen.cells is None:
        said.append("no interface was seen: the values look like one phase or like noise")
    elif seen.cells < FEW_CELLS:
        said.append(
            f"an interface spans only {seen.cells:.1f} cells (better {FEW_CELLS:g} or more): expect a force error "
            "of ten percent or more in the presence of noise"
        )
    if seen.coverage < 0.9:
        said.append(
            f"only {100 * seen.coverage:.0f} % of the phase range is visited: the force is extrapolated elsewhere"
        )
    bias = _noise_bias(fit.law, seen.noise)
    if bias > 0.01:
        said.append(
            f"noise {seen.noise:.2g} biases the force by about {100 * bias:.0f} % (noise^2/2 times its curvature), "
            "which averaging does not remove"
        )
    if fit.support_spread > 0.1:
        said.append(
            f"the supports disagree: one alone changes the force by {100 * fit.support_spread:.0f} %; lower the degree "
            "or choose supports"
        )
    if fit.scaled_condition > 1e4:
        said.append(f"the design is badly conditioned ({fit.scaled_condition:.1e}): lower the degree or use ridge")
    if fit.solution.active.any():
        names = ", ".join(f"g_{j}" for j in np.flatnonzero(fit.solution.active))
        said.append(
            f"{names} at the lower bound: the data ask for a law outside the positive family, or are too noisy "
            "for this degree"
        )
    return said


def _noise_bias(law: Law, noise: float) -> float:
    """The relative L2 size of noise^2/2 G'', the leading bias of the features' means (paper, Section 3.4)."""
    u = np.linspace(-1.0, 1.0, 401)
    force = law.force(u)
    bend = np.diff(force, 2) / (u[1] - u[0]) ** 2
    size = np.linalg.norm(force)
    return float(0.5 * noise**2 * np.linalg.norm(bend) / size) if size else 0.0

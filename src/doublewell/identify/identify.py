"""Identify: the whole road from a record to a calibrated law, in one call."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Literal

from doublewell.calibrate import Scale, SurfaceTension, calibrate
from doublewell.errors import InputError
from doublewell.estimate import Constraint
from doublewell.evidence import Derivative
from doublewell.evidence.likelihood import MOST_STEPS
from doublewell.identify.trajectory_road import likelihood_warnings, trajectory_diagnostics, trajectory_fit
from doublewell.identify.warnings import check_survey, law_warnings, record_warnings, scale_refusal, weak_warnings
from doublewell.identify.weak_road import Supports, check_options, weak_diagnostics, weak_fit
from doublewell.law import Bernstein, Law
from doublewell.record import Record
from doublewell.result import Result, Settings
from doublewell.survey import survey

__all__ = ["identify"]

Degree = int | Literal["auto"] | None
Method = Literal["trajectory", "weak"] | None


def identify(
    record: Record,
    surface_tension: float | SurfaceTension | None = None,
    *,
    degree: Degree = None,
    method: Method = None,
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
        Degree of the bracket polynomial in u^2, 0 to 8, or "auto": the average over all degrees, weighted by the
        likelihood. Without it "auto" for the trajectory reading and 2 for the weak one.
    method
        "trajectory": the likelihood of the whole record, with error bands; it needs a declared boundary. "weak": the
        paper's space-time moments. Without it "trajectory" where a boundary is declared, else "weak".
    constraint
        "bernstein": positive coefficients, so the wells are right by construction. "none": plain least squares.
    ridge
        None, a multiple alpha of the mean squared column norm, or (weak) "validated": alpha from the paper's grid,
        chosen on the last 40 % of the frames.
    supports, derivative
        Of the weak reading: pairs (frames, length) of half-widths, "paper", or None for a rule that follows the
        interface width; "discrete" or "analytic" derivative weights.
    progress
        Called with (steps done, steps): frames of the weak reading, Gauss-Newton steps of the other.

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
    method, degree, q = _choices(record, method, degree)
    check_options(record, constraint=constraint, ridge=ridge, supports=supports, derivative=derivative)
    if method == "trajectory" and isinstance(ridge, str):
        raise InputError("ridge='validated' belongs to the weak reading: give ridge a number, or method='weak'")
    seen = survey(record)
    check_survey(seen)
    first = 2 if degree == "auto" else degree
    weak = weak_fit(
        record, seen, q, degree=first, constraint=constraint, supports=supports, derivative=derivative,
        ridge=ridge if method == "weak" else None, progress=progress if method == "weak" else None,
    )  # fmt: skip
    if method == "weak":
        law, posterior = weak.estimate.law, None
        scale, refusal = _scale(law, tension, scale_refusal(weak.estimate))
        said = [*law_warnings(law, refusal), *record_warnings(seen), *weak_warnings(weak.estimate, seen)]
        diagnostics = weak_diagnostics(weak.estimate, seen, said)
    else:
        fit = trajectory_fit(
            record,
            weak.estimate.coefficients,
            degree=degree,
            constraint=constraint,
            ridge=None if isinstance(ridge, str) else ridge,
            progress=None if progress is None else lambda step: progress(step.number, MOST_STEPS),
        )
        law, posterior = fit.law, fit.posterior
        scale, refusal = _scale(law, tension)
        said = [*law_warnings(law, refusal), *record_warnings(seen), *likelihood_warnings(fit)]
        diagnostics = trajectory_diagnostics(fit, seen, said)
    settings = Settings(
        version=version("doublewell"),
        method=method,
        degree=degree,
        constraint=constraint,
        ridge=ridge,
        supports=tuple((support.frames, support.length) for support in weak.supports),
        supports_rule=weak.rule,
        derivative=derivative,
        shape=record.shape,
        dx=record.dx,
        dt=record.dt,
        q=q,
        boundary=record.boundary,
    )
    return Result(law, scale, refusal, diagnostics, settings, posterior)


def _choices(
    record: Record, method: Method, degree: Degree
) -> tuple[Literal["trajectory", "weak"], int | Literal["auto"], float]:
    if not isinstance(record, Record):
        raise InputError(f"expected a Record, got {type(record).__name__}: wrap the field as Record(u, dx=, dt=, q=)")
    if method not in (None, "trajectory", "weak"):
        raise InputError(f"method is {method!r}: expected 'trajectory', 'weak' or None")
    if record.q is None:
        raise InputError(
            "the record has no diffusion coefficient: pass q= to Record (q sets the time scale of the law)"
        )
    if method is None:
        method = "weak" if record.boundary is None else "trajectory"
    if degree is None:
        degree = "auto" if method == "trajectory" else 2
    if degree == "auto":
        if method == "weak":
            raise InputError(
                "degree='auto' needs the trajectory reading, because weak moments have no noise model: declare a "
                "boundary and use method='trajectory', or give a degree from 0 to 8"
            )
    else:
        degree = Bernstein(degree).degree
    return method, degree, record.q


def _scale(law: Law, tension: SurfaceTension | None, refusal: str | None = None) -> tuple[Scale | None, str | None]:
    """Calibrate; a law that cannot be calibrated is an outcome of the data, so it is said and not raised."""
    if tension is None:
        return None, None
    if refusal is not None:
        return None, refusal
    try:
        return calibrate(law, tension), None
    except InputError as error:
        return None, f"calibration refused: {error}"

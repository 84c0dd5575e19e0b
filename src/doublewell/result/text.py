"""The printed report of a result."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

import numpy as np

from doublewell.calibrate import WHY_NO_SCALE
from doublewell.errors import InputError
from doublewell.estimate import DegreeFit
from doublewell.hints import Array
from doublewell.law import Law
from doublewell.result.bands import Scalar
from doublewell.result.result import Likelihood, Result

__all__ = ["band_size", "equation", "intervals", "percent", "render", "summary"]

_WIDTH = 98
_SCALED: tuple[Scalar, ...] = ("epsilon", "barrier")
_FREE: tuple[Scalar, ...] = ("width", "tension_integral")


def render(result: Result) -> str:
    """Return the report: the law, its scale, its wells, the numbers behind it, and what to look at."""
    degrees = (
        [] if result.posterior is None or len(result.posterior.path) == 1 else [("Degrees", _degree_lines(result))]
    )
    fit = _weak_lines(result) if result.diagnostics.likelihood is None else _likelihood_lines(result)
    sections = [
        ("Effective force", _force_lines(result)),
        ("Scale", _scale_lines(result)),
        ("Wells", _well_lines(result)),
        *degrees,
        ("Record", _record_lines(result)),
        ("Fit", fit),
        ("Look at", _warning_lines(result)),
    ]
    body = "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections)
    return f"doublewell {result.settings.version}: {_headline(result)}\n{body}"


def summary(result: Result) -> str:
    """Return a result in one line."""
    scale = "no scale" if result.scale is None else f"epsilon = {result.scale.epsilon:.6g}"
    wells = "double well" if result.structure.ok else "no plain double well"
    said = len(result.diagnostics.warnings)
    return f"Result({_headline(result)}, {scale}, {wells}, {said} warning{'' if said == 1 else 's'})"


def equation(law: Law, *, digits: int = 5) -> str:
    """Return the force as an equation in u, the bracket in powers of u^2.

    >>> equation(Law.bernstein([0.75, 1.5]))
    'G(u) = -u (1 - u^2) [0.75 + 0.75 u^2]'
    """
    powers = [float(c) for c in law.family.exact_bracket(law.coefficients)]
    largest = max(map(abs, powers))
    terms = [(c, "" if k == 0 else f" u^{2 * k}") for k, c in enumerate(powers) if abs(c) > 1e-12 * largest or k == 0]
    text = f"{terms[0][0]:.{digits}g}"
    for c, power in terms[1:]:
        text += f" {'-' if c < 0 else '+'} {abs(c):.{digits}g}{power}"
    return f"G(u) = -u (1 - u^2) [{text}]"


def percent(share: float) -> str:
    """Return a share in percent with two digits, and never with a positive exponent.

    >>> percent(0.0123), percent(0.983), percent(2.5)
    ('1.2 %', '98 %', '250 %')
    """
    value = 100.0 * share
    return f"{value:.2g} %" if abs(value) < 9.95 else f"{value:.0f} %"


def intervals(result: Result, *, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Return the intervals that a result can give, by name; none for a weak result."""
    found: dict[str, tuple[float, float]] = {}
    for name in (*_FREE, *(_SCALED if result.scale is not None else ())):
        try:
            found[name] = result.interval(name, level=level)
        except InputError:  # a weak result, or data that allow laws without an interface
            continue
    return found


def band_size(result: Result) -> float:
    """Return the half-width of the 95 % band of the force relative to the force, both as root mean squares."""
    u = np.linspace(-1.0, 1.0, 401)
    low, high = result.band("force", u)
    return float(0.5 * np.linalg.norm(high - low) / np.linalg.norm(result.force(u)))


def _headline(result: Result) -> str:
    kind = f"of degree {result.degree}"
    if result.posterior is not None and len(result.posterior.path) > 1:
        best = _heaviest(result)
        kind = f"averaged over degrees (degree {best.degree} weighs {percent(best.weight)})"
    return f"law {kind} by the {result.settings.method} reading"


def _force_lines(result: Result) -> Iterator[str]:
    yield from _wrapped(equation(result.law), indent="  ")
    if result.posterior is None or len(result.posterior.path) == 1:
        yield from _coefficient_lines(result)
    else:
        yield "g = " + ", ".join(f"{g:.6g}" for g in result.coefficients)
    if result.posterior is not None:
        yield f"95 % band of G: +- {percent(band_size(result))} of G (root mean squares over the phase range)"
        if len(result.posterior.path) == 1:
            yield from _correlation_lines(result.covariance)


def _coefficient_lines(result: Result) -> Iterator[str]:
    numbers = result.diagnostics
    spread = None if result.posterior is None else np.sqrt(np.diag(result.covariance))
    tiny = 1e-6 * float(np.max(np.abs(numbers.unconstrained)))  # a ridge lifts a coefficient off its bound
    for j, (g, free) in enumerate(zip(result.coefficients, numbers.unconstrained, strict=True)):
        sd = "" if spread is None else f" +- {spread[j]:.2g}"
        note = "  at its lower bound" if j in numbers.active and g <= tiny else ""
        other = f"  (without constraint and ridge {free:.5g})" if not np.isclose(g, free, rtol=1e-9, atol=0.0) else ""
        yield f"g_{j} = {g:.6g}{sd}{note}{other}"


def _correlation_lines(covariance: Array) -> Iterator[str]:
    """Write the lower triangle of the correlations."""
    size = np.sqrt(np.diag(covariance))
    table = covariance / np.outer(size, size)
    if len(table) > 1:
        yield "correlation  " + "".join(f"{f'g_{j}':>7}" for j in range(len(table) - 1))
    for i, row in enumerate(table[1:], start=1):
        yield f"{f'g_{i}':>11}  " + "".join(f"{x:7.3f}" for x in row[:i])


def _scale_lines(result: Result) -> Iterator[str]:
    if result.scale is None:
        yield from _wrapped(result.refusal or WHY_NO_SCALE)
        return
    scale, found = result.scale, intervals(result)
    alone = "" if scale.epsilon_sd is None else f" +- {scale.epsilon_sd:.2g} (from the surface tension alone)"
    yield f"epsilon = {scale.epsilon:.6g}{_range(found, 'epsilon') or alone}"
    kind = "E" if scale.tension.normalisation == "E" else "epsilon E"
    given = "" if scale.tension.sd is None else f" +- {scale.tension.sd:.2g}"
    yield f"from surface tension {scale.tension.value:.6g}{given} of {kind} and C_H = {scale.tension_integral:.6g}"
    yield f"F(u) = epsilon^2 H(u): barrier F(0) = {float(result.potential(0.0)):.6g}{_range(found, 'barrier')}"
    if found and scale.tension.sd is None:
        yield "the intervals take the surface tension as exact: pass its standard deviation to include it"


def _well_lines(result: Result) -> Iterator[str]:
    law = result.law
    yield from _wrapped(f"structure: {result.structure}", indent="  ")
    yield f"H(0) = {law.barrier:.6g}, H''(0) = {law.centre_curvature:.6g}, H''(-1) = H''(1) = {law.well_curvature:.6g}"
    if law.lowest > 0.0 and law.well_curvature > 0.0:
        width = _range(intervals(result), "width")
        yield f"planar interface from u = -0.9 to 0.9: {law.interface_width():.5g} long{width}"
    if (fit := result.diagnostics.likelihood) is not None:
        chance = "less than 0.1 %" if fit.extra_structure < 1e-3 else percent(fit.extra_structure)
        yield f"probability of extra structure, from the data without the constraint: {chance}"


def _degree_lines(result: Result) -> Iterator[str]:
    """Write the path: what each degree costs, and its share of the average."""
    assert result.posterior is not None
    yield "degree    chi2  weight  at the bound"
    for fit in result.posterior.path:
        yield f"{fit.degree:6d}{_chi2(fit.chi2):>8}{_weight(fit.weight):>8}  {_names(fit.active) or 'none'}"


def _record_lines(result: Result) -> Iterator[str]:
    asked, seen = result.settings, result.diagnostics.survey
    mesh = " x ".join(str(n) for n in asked.shape[1:])
    boundary = "" if asked.boundary is None else f", {asked.boundary}"
    yield f"{asked.shape[0]} frames of {mesh}, dx = {_list(asked.dx)}, dt = {asked.dt:.6g}, q = {asked.q:.6g}{boundary}"
    width = "no interface seen" if seen.cells is None else f"interface {seen.cells:.1f} cells wide"
    visited = f"{100 * seen.coverage:.0f} % of the phase range visited"
    yield f"noise {seen.noise:.2g} ({seen.noise_method}), {width}, {visited}"


def _weak_lines(result: Result) -> Iterator[str]:
    asked, numbers = result.settings, result.diagnostics
    supports = ", ".join(f"({n} frames, {x:.4g})" for n, x in asked.supports)
    yield from _wrapped(f"supports {supports}: {asked.supports_rule}", indent="  ")
    yield (
        f"{numbers.rows} moments, residual {percent(numbers.residual)}, condition number "
        f"{numbers.scaled_condition:.3g} (columns scaled), optimality {numbers.kkt or 0.0:.1e}"
    )
    bound = f"positive coefficients, at the bound: {_names(numbers.active) or 'none'}"
    ridge = "" if numbers.ridge is None else f"; ridge alpha = {numbers.ridge.alpha:g}"
    yield ("no constraint" if numbers.bound is None else bound) + ridge
    if len(numbers.supports) > 1:
        yield f"one support alone changes the force by up to {percent(numbers.support_spread)}"


def _likelihood_lines(result: Result) -> Iterator[str]:
    numbers, fit = result.diagnostics, result.diagnostics.likelihood
    assert fit is not None
    yield f"noise found {fit.noise:.4g} per pixel, {numbers.rows} values, condition number {numbers.condition:.3g}"
    yield from _wrapped(_iteration(fit), indent="  ")
    yield (
        f"resolution: half the time step would move the estimate by {fit.time_size:.2g} standard errors, a finer mesh "
        f"by {fit.mesh_size:.2g}"
    )
    yield from _wrapped(_constraint(result, fit), indent="  ")
    if result.settings.ridge is not None:
        yield f"ridge alpha = {result.settings.ridge}; the intervals are those without it"


def _iteration(fit: Likelihood) -> str:
    solves = sum(step.iterations for step in fit.steps)
    steps, rounds = _count(len(fit.steps), "step"), _count(fit.rounds, "linearisation")
    return (
        f"Gauss-Newton {fit.status}; {steps}, {solves} of conjugate gradients, then {rounds}; "
        f"{_count(fit.substeps, 'solver step')} from frame to frame"
    )


def _constraint(result: Result, fit: Likelihood) -> str:
    if result.settings.constraint == "none":
        return "no constraint"
    said = f"positive coefficients: chi2 rises by {max(fit.constraint_rise, 0.0):.1f}"
    if result.diagnostics.active:
        said += (
            f"; at the bound: {_names(result.diagnostics.active)} of degree {_heaviest(result).degree}, so the "
            "intervals show the spread of the constrained estimate"
        )
    return said


def _heaviest(result: Result) -> DegreeFit:
    assert result.posterior is not None
    return max(result.posterior.path, key=lambda fit: fit.weight)


def _warning_lines(result: Result) -> Iterator[str]:
    if not result.diagnostics.warnings:
        yield "nothing unusual"
    for warning in result.diagnostics.warnings:
        first, *rest = _wrapped(warning, _WIDTH - 2)
        yield f"- {first}"
        yield from (f"  {line}" for line in rest)


def _range(found: dict[str, tuple[float, float]], name: str) -> str:
    return f" (95 %: {found[name][0]:.6g} to {found[name][1]:.6g})" if name in found else ""


def _chi2(value: float) -> str:
    return f"{value:.1f}" if value < 99999.95 else f"{value:.1e}"


def _weight(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 5e-4 else "-"


def _names(active: tuple[int, ...]) -> str:
    return ", ".join(f"g_{j}" for j in active)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _wrapped(text: str, width: int = _WIDTH, *, indent: str = "") -> list[str]:
    return wrap(text, width, subsequent_indent=indent) or [""]


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in dict.fromkeys(values))

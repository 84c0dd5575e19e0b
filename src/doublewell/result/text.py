"""The printed report of a result."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

import numpy as np

from doublewell.calibrate import WHY_NO_SCALE
from doublewell.law import Law
from doublewell.result.result import Result

__all__ = ["equation", "render"]

_WIDTH = 98


def render(result: Result) -> str:
    """Return the report: the law, its scale, its wells, the numbers behind it, and what to look at."""
    sections = [
        ("Effective force", _force_lines(result)),
        ("Scale", _scale_lines(result)),
        ("Wells", _well_lines(result)),
        ("Record", _record_lines(result)),
        ("Fit", _fit_lines(result)),
        ("Look at", _warning_lines(result)),
    ]
    body = "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections)
    asked = result.settings
    return f"doublewell {asked.version}: law of degree {result.degree} by the {asked.method} reading\n{body}"


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


def _force_lines(result: Result) -> Iterator[str]:
    yield from _wrapped(equation(result.law))
    for j, (g, free) in enumerate(zip(result.coefficients, result.diagnostics.unconstrained, strict=True)):
        note = "  at its lower bound" if j in result.diagnostics.active else ""
        other = f"  (without constraint and ridge {free:.5g})" if not np.isclose(g, free, rtol=1e-9, atol=0.0) else ""
        yield f"g_{j} = {g:.6g}{note}{other}"


def _scale_lines(result: Result) -> Iterator[str]:
    if result.scale is None:
        yield from _wrapped(result.refusal or WHY_NO_SCALE)
        return
    scale = result.scale
    spread = "" if scale.epsilon_sd is None else f" +- {scale.epsilon_sd:.2g} (from the surface tension alone)"
    yield f"epsilon = {scale.epsilon:.6g}{spread}"
    kind = "E" if scale.tension.normalisation == "E" else "epsilon E"
    given = "" if scale.tension.sd is None else f" +- {scale.tension.sd:.2g}"
    yield f"from surface tension {scale.tension.value:.6g}{given} of {kind} and C_H = {scale.tension_integral:.6g}"
    yield f"F(u) = epsilon^2 H(u): barrier F(0) = {float(result.potential(0.0)):.6g}"


def _well_lines(result: Result) -> Iterator[str]:
    law = result.law
    yield from _wrapped(f"structure: {result.structure}")
    yield f"H(0) = {law.barrier:.6g}, H''(0) = {law.centre_curvature:.6g}, H''(-1) = H''(1) = {law.well_curvature:.6g}"
    if law.lowest > 0.0 and law.well_curvature > 0.0:
        yield f"planar interface from u = -0.9 to 0.9: {law.interface_width():.5g} long"


def _record_lines(result: Result) -> Iterator[str]:
    asked, seen = result.settings, result.diagnostics.survey
    mesh = " x ".join(str(n) for n in asked.shape[1:])
    yield f"{asked.shape[0]} frames of {mesh}, dx = {_list(asked.dx)}, dt = {asked.dt:.6g}, q = {asked.q:.6g}"
    width = "no interface seen" if seen.cells is None else f"interface {seen.cells:.1f} cells wide"
    visited = f"{100 * seen.coverage:.0f} % of the phase range visited"
    yield f"noise {seen.noise:.2g} ({seen.noise_method}), {width}, {visited}"


def _fit_lines(result: Result) -> Iterator[str]:
    asked, numbers = result.settings, result.diagnostics
    supports = ", ".join(f"({n} frames, {x:.4g})" for n, x in asked.supports)
    yield f"supports {supports}: {asked.supports_rule}"
    yield (
        f"{numbers.rows} moments, residual {100 * numbers.residual:.2g} %, condition number "
        f"{numbers.scaled_condition:.3g} (columns scaled), optimality {numbers.kkt:.1e}"
    )
    active = ", ".join(f"g_{j}" for j in numbers.active) or "none"
    bound = "no constraint" if numbers.bound is None else f"positive coefficients, at the bound: {active}"
    yield bound + ("" if numbers.ridge is None else f"; ridge alpha = {numbers.ridge.alpha:g}")
    if len(numbers.supports) > 1:
        yield f"one support alone changes the force by up to {100 * numbers.support_spread:.2g} %"


def _warning_lines(result: Result) -> Iterator[str]:
    if not result.diagnostics.warnings:
        yield "nothing unusual"
    for warning in result.diagnostics.warnings:
        first, *rest = _wrapped(warning, _WIDTH - 2)
        yield f"- {first}"
        yield from (f"  {line}" for line in rest)


def _wrapped(text: str, width: int = _WIDTH) -> list[str]:
    return wrap(text, width, subsequent_indent="  ") or [""]


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in dict.fromkeys(values))

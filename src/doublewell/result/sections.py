"""Sections about the law: force, scale, wells, degrees, and the record it came from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from doublewell.calibrate import WHY_NO_SCALE
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.result.physical import physical
from doublewell.result.result import Result, Settings
from doublewell.result.wording import (
    band_size,
    bound_heading,
    held_at,
    interval_words,
    intervals,
    percent,
    wrapped,
)
from doublewell.units import unit_text

__all__ = [
    "degree_lines",
    "force_lines",
    "level_lines",
    "record_lines",
    "scale_lines",
    "scale_units",
    "unit_lines",
    "well_lines",
]


def force_lines(result: Result) -> Iterator[str]:
    """Write the force, its coefficients and how well it is known."""
    yield from wrapped(result.law.equation(), indent="  ")
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


def scale_lines(result: Result) -> Iterator[str]:
    """Write epsilon and the potential, or why there is none."""
    if result.scale is None:
        yield from wrapped(result.refusal or WHY_NO_SCALE)
        return
    scale, found = result.scale, intervals(result)
    tension, (of_epsilon, of_barrier) = scale.tension, scale_units(result)
    alone = "" if scale.epsilon_sd is None else f" +- {scale.epsilon_sd:.2g} (from the surface tension alone)"
    yield f"epsilon = {scale.epsilon:.6g}{of_epsilon}{interval_words(found, 'epsilon') or alone}"
    kind = "E" if tension.normalisation == "E" else "epsilon E"
    given = ("" if tension.sd is None else f" +- {tension.sd:.2g}") + (
        "" if tension.unit is None else f" {tension.unit}"
    )
    yield f"from surface tension {tension.value:.6g}{given} of {kind} and C_H = {scale.tension_integral:.6g}"
    barrier = f"{float(result.potential(result.law.maximum)):.6g}{of_barrier}{interval_words(found, 'barrier')}"
    yield f"F(u) = epsilon^2 H(u): barrier F({result.law.maximum:.4g}) = {barrier}"
    if found and scale.tension.sd is None:
        yield "the intervals take the surface tension as exact: pass its standard deviation to include it"


def scale_units(result: Result) -> tuple[str, str]:
    """Return the units of epsilon and F as they follow from those given; nothing where one is missing."""
    length, scale = result.settings.length_unit, result.scale
    if length is None or scale is None or scale.tension.unit is None:
        return "", ""
    unit = scale.tension.unit
    if scale.tension.normalisation == "E":
        return f" {unit_text(((unit, 1), (length, 1)))}", f" {unit_text(((unit, 2),))}"
    return f" {unit_text(((unit, 0.5), (length, 0.5)))}", f" {unit_text(((unit, 1), (length, -1)))}"


def unit_lines(result: Result) -> Iterator[str]:
    """Write the numbers in physical units; nothing where none is known."""
    asked, scale = result.settings, result.scale
    if asked.length_unit is None and asked.time_unit is None:
        return
    length, time = asked.length_unit or "an unknown unit", asked.time_unit or "an unknown unit"
    area = "" if asked.length_unit is None else f"; G and H in {unit_text(((length, -2),))}"
    yield f"lengths in {length}, times in {time}{area}"
    if scale is None:
        return
    if scale.tension.unit is None:
        yield "the surface tension has no unit, so energies have none: give it with one, such as '0.3 J/m^2'"
        return
    try:
        yield from physical(result).lines()
    except InputError as error:  # pint is missing
        yield from wrapped(str(error))


def well_lines(result: Result) -> Iterator[str]:
    """Write what the law looks like."""
    law = result.law
    yield from wrapped(f"structure: {result.structure}", indent="  ")
    yield from _heights(result)
    if law.has_interface:
        width, middle, half = (
            interval_words(intervals(result), "width"),
            0.5 * sum(law.phases),
            0.5 * np.ptp(law.phases),
        )
        levels = f"u = {middle - 0.9 * half:.4g} to {middle + 0.9 * half:.4g}"
        unit = f" {result.settings.length_unit}" if result.settings.length_unit else ""
        yield f"planar interface from {levels}: {law.interface_width():.5g}{unit} long{width}"
    if (fit := result.diagnostics.likelihood) is not None:
        chance = "less than 0.1 %" if fit.extra_structure < 1e-3 else percent(fit.extra_structure)
        yield f"probability of extra structure, from the data without the constraint: {chance}"


def _heights(result: Result) -> Iterator[str]:
    """Write the barrier and the curvatures; of wells that differ, both of each."""
    law = result.law
    if law.family.even:
        curvatures = f"H''(0) = {law.centre_curvature:.6g}, H''(-1) = H''(1) = {law.well_curvature:.6g}"
        yield f"H(0) = {law.barrier:.6g}, {curvatures}"
        return
    (low, high), (first, second) = law.phases, law.barriers
    found = {} if result.posterior is None else {name: result.interval(name) for name in ("maximum", "tilt")}
    place = interval_words(found, "maximum")
    gap = f" (95 %: {found['tilt'][0]:.5g} < H({high:g}) < {found['tilt'][1]:.5g})" if found else ""
    yield f"maximum at u = {law.maximum:.5g}{place}: {first:.6g} above u = {low:g}, {second:.6g} above u = {high:g}"
    yield (
        f"H'' = {law.centre_curvature:.6g} there, {law.well_curvatures[0]:.6g} at u = {low:g} and "
        f"{law.well_curvatures[1]:.6g} at u = {high:g}"
    )
    if law.tilt != 0.0:
        deeper, travel = (low, high) if law.tilt > 0.0 else (high, low), 100 * abs(law.tilt) / max(law.barriers)
        yield from wrapped(
            f"the phase u = {deeper[0]:g} is deeper by {abs(law.tilt):.5g}, {travel:.2g} % of the higher barrier{gap}: "
            f"it grows into u = {deeper[1]:g}, no planar interface is at rest, and no planar tension exists",
            indent="  ",
        )


def level_lines(result: Result) -> Iterator[str]:
    """Write what the errors of the grey levels do; nothing where they were not added."""
    found = result.levels
    if found is None:
        return
    (low, high), (low_sd, high_sd) = found.levels, found.sd
    yield f"phase -1 at {low:.6g} +- {low_sd:.2g}, phase +1 at {high:.6g} +- {high_sd:.2g} (standard deviations)"
    also = "" if found.epsilon is None else f" and epsilon by {percent(found.epsilon)}"
    held = "the weak reading has no bands that could hold it"
    yield (
        f"these move G by {percent(found.force)}{also}; "
        + (held if result.posterior is None else "bands and intervals include it")
    )


def degree_lines(result: Result) -> Iterator[str]:
    """Write the path: what each degree costs, and its share of the average; nothing where there is no average."""
    if result.posterior is None or len(result.posterior.path) == 1:
        return
    yield f"degree    chi2  weight  {bound_heading(result)}"
    for fit in result.posterior.path:
        yield f"{fit.degree:6d}{_chi2(fit.chi2):>8}{_weight(fit.weight):>8}  {held_at(fit) or 'none'}"


def record_lines(result: Result) -> Iterator[str]:
    """Write what was seen."""
    asked, seen = result.settings, result.diagnostics.survey
    mesh = " x ".join(str(n) for n in asked.shape[1:])
    boundary = "" if asked.boundary is None else f", {asked.boundary}"
    length, time = (f" {unit}" if unit else "" for unit in (asked.length_unit, asked.time_unit))
    q = f"{asked.q:.6g}{_q_unit(asked)}{_found(result)}"
    pace = f"dx = {_list(asked.dx)}{length}, dt = {asked.dt:.6g}{time}, q = {q}"
    yield f"{asked.shape[0]} frames of {mesh}, {pace}{boundary}"
    width = "no interface seen" if seen.cells is None else f"interface {seen.cells:.1f} cells wide"
    visited = f"{100 * seen.coverage:.0f} % of the phase range visited"
    yield f"noise {seen.noise:.2g} ({seen.noise_method}), {width}, {visited}"


def _found(result: Result) -> str:
    """Say that q was estimated, with its interval where there is one."""
    if not result.q_estimated:
        return ""
    if result.posterior is None or result.posterior.beside is None:
        return " (estimated)"
    low, high = result.interval("q")
    return f" (estimated; 95 %: {low:.6g} to {high:.6g})"


def _q_unit(asked: Settings) -> str:
    if asked.length_unit is None or asked.time_unit is None:
        return ""
    return f" {unit_text(((asked.length_unit, 2), (asked.time_unit, -1)))}"


def _chi2(value: float) -> str:
    return f"{value:.1f}" if value < 99999.95 else f"{value:.1e}"


def _weight(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 5e-4 else "-"


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in dict.fromkeys(values))

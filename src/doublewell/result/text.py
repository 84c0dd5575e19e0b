"""The printed report of a result."""

from __future__ import annotations

from collections.abc import Iterable

from doublewell.result.fit_sections import fit_lines, model_lines, warning_lines
from doublewell.result.result import Result
from doublewell.result.sections import (
    degree_lines,
    force_lines,
    level_lines,
    record_lines,
    scale_lines,
    unit_lines,
    well_lines,
)
from doublewell.result.wording import band_size, count, heaviest, intervals, percent

__all__ = ["band_size", "intervals", "percent", "render", "summary"]


def render(result: Result) -> str:
    """Return the report: the law, its scale, its wells, the numbers behind it, and what to look at."""
    sections: list[tuple[str, Iterable[str]]] = [
        ("Effective force", force_lines(result)),
        ("Scale", scale_lines(result)),
        ("Physical units", unit_lines(result)),
        ("Wells", well_lines(result)),
        ("Grey levels", level_lines(result)),
        ("Degrees", degree_lines(result)),
        ("Record", record_lines(result)),
        ("Fit", fit_lines(result)),
        ("Model", model_lines(result)),
        ("Look at", warning_lines(result)),
    ]
    written = [(title, list(lines)) for title, lines in sections]
    body = "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in written if lines)
    return f"doublewell {result.settings.version}: {_headline(result)}\n{body}"


def summary(result: Result) -> str:
    """Return a result in one line."""
    scale = "no scale" if result.scale is None else f"epsilon = {result.scale.epsilon:.6g}"
    wells = "double well" if result.structure.ok else "no plain double well"
    said = count(len(result.diagnostics.warnings), "warning")
    return f"Result({_headline(result)}, {scale}, {wells}, {said})"


def _headline(result: Result) -> str:
    kind = f"of degree {result.degree}"
    if result.posterior is not None and len(result.posterior.path) > 1:
        best = heaviest(result)
        kind = f"averaged over degrees (degree {best.degree} weighs {percent(best.weight)})"
    return f"law {kind} by the {result.settings.method} reading"

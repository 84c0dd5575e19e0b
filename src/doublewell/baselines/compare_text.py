"""The printed table of a comparison, and its numbers for a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublewell.baselines.projection import admissible

if TYPE_CHECKING:
    from doublewell.baselines.compare import Comparison, Row

__all__ = ["comparison_document", "comparison_text"]

_HEAD = ("method", "seconds", "memory MB", "distance %", "deviations", "residual", "double well")


def comparison_text(found: Comparison) -> str:
    """Return the table in words, the methods that did not run, and what the columns mean."""
    lines = [_HEAD, *(_cells(row) for row in found.rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(_HEAD))]
    table = ["  ".join(_placed(cell, w, k) for k, (cell, w) in enumerate(zip(line, widths, strict=True))).rstrip()
             for line in lines]  # fmt: skip
    notes = [f"  {row.fit.name}: {word}" for row in found.rows for word in row.words]
    out = [f"  {name}: {reason}" for name, reason in found.left_out]
    said = ["Methods on the same record", *(f"  {line}" for line in table), "", *_legend(found)]
    said += ["", "Notes", *notes] if notes else []
    said += ["", "Not run", *out] if out else []
    return "\n".join(said)


def comparison_document(found: Comparison) -> dict[str, Any]:
    """Return the numbers of a comparison as JSON takes them."""
    return {
        "reference": found.rows[0].fit.name,
        "noise": found.noise,
        "methods": [_document(row) for row in found.rows],
        "distances": found.distances.tolist(),
        "not_run": [{"method": name, "reason": reason} for name, reason in found.left_out],
    }


def _document(row: Row) -> dict[str, Any]:
    fit = row.fit
    return {
        "method": fit.name,
        "seconds": fit.seconds,
        "memory": fit.memory,
        "device": fit.device,
        "distance": row.distance,
        "deviations": row.deviations,
        "residual": row.residual,
        "double_well": admissible(fit),
        "coefficients": None if fit.law is None else fit.law.coefficients.tolist(),
        "notes": [*fit.notes, *row.words],
    }


def _cells(row: Row) -> tuple[str, ...]:
    fit = row.fit
    memory = "-" if fit.memory is None else f"{fit.memory / 1e6:.0f}"
    residual = "-" if row.residual is None else f"{row.residual:.4f}"
    well = "yes" if admissible(fit) else "no"
    return (
        fit.name, f"{fit.seconds:.2f}", memory, f"{100 * row.distance:.2f}", f"{row.deviations:.1f}", residual, well
    )  # fmt: skip


def _placed(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _legend(found: Comparison) -> list[str]:
    first = found.rows[0].fit.name
    return [
        f"distance: of the force to that of {first}, relative, over all phase values",
        f"deviations: the same in standard deviations of the band of {first}, root mean square",
        f"residual: rms of record minus the movie that the force makes, over the noise {found.noise:.4g}; 1 is a "
        "perfect fit",
        "A small residual tests a force where the record has values; it cannot tell two forces apart whose movies "
        "agree.",
    ]

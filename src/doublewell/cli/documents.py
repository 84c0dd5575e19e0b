"""Documents: the answers of the commands as words and as JSON values; numbers as the library gives them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, get_type_hints

from doublewell.export.documents import facts_document, finding_document
from doublewell.facts import facts
from doublewell.findings import findings, model_tests
from doublewell.io.codec import codec_of
from doublewell.io.result_file import result_body
from doublewell.law import Law
from doublewell.observation import Survey
from doublewell.record import Phase, Record
from doublewell.record_findings import grey_findings
from doublewell.report import Inspection
from doublewell.result import Result
from doublewell.validate import Validation

if TYPE_CHECKING:
    from doublewell.demo import Demo

__all__ = [
    "demo_document",
    "identify_document",
    "identify_text",
    "inspection_document",
    "simulate_document",
    "simulate_text",
]

_WIDTH = 98


def identify_text(result: Result, validation: Validation | None, files: tuple[Path, ...]) -> str:
    """Return the report, what an evolution of the law says, and the files written."""
    parts = [str(result)]
    if validation is not None:
        parts.append("\n  ".join(["Evolution", *wrap(str(validation), _WIDTH)]))
    if files:
        parts.append("\n".join(["Written", *(f"  {path}" for path in files)]))
    return "\n\n".join(parts)


def identify_document(
    file: Path, result: Result, validation: Validation | None, files: tuple[Path, ...]
) -> dict[str, Any]:
    """Return the main numbers of a result, and under "result" all of it as `save` writes it."""
    return {
        "file": str(file),
        **_main_numbers(result),
        "validation": None if validation is None else _validation(validation),
        "files": [str(path) for path in files],
        "result": result_body(result),
    }


def demo_document(demo: Demo) -> dict[str, Any]:
    """Return the numbers of a demo, with the errors against the truth."""
    return {
        "summary": demo.summary,
        "law": demo.truth.law.name,
        "true_epsilon": demo.truth.epsilon,
        "force_error": demo.force_error,
        "epsilon_error": demo.epsilon_error,
        "weak_force_error": demo.weak_error,
        **_main_numbers(demo.result),
        "validation": _validation(demo.validation),
        "files": [str(path) for path in demo.files],
        "result": result_body(demo.result),
    }


def inspection_document(found: Inspection, grey: Phase | None = None) -> dict[str, Any]:
    """Return the numbers of an inspection."""
    levels = None
    if grey is not None:
        noted = [finding_document(item) for item in grey_findings(grey.quality)]
        levels = {"levels": grey.levels, "sd": grey.levels_sd, "findings": noted}
    return {
        "grey_levels": levels,
        "record": _record(found.record),
        "survey": codec_of(Survey).encode(found.survey, "survey"),
        "coverage": found.survey.coverage,
        "interface_share": found.survey.interface_share,
        "supports": [[support.frames, support.length] for support in found.supports],
        "supports_refused": found.refusal,
        "findings": [finding_document(item) for item in found.findings],
    }


def simulate_text(out: Path, record: Record, law: Law) -> str:
    """Say what was written and how to recover it."""
    tension = law.surface_tension(epsilon=1.0)
    return f"{out}: {record}\nrecover it with: doublewell identify {out} --surface-tension {tension:.10g}"


def simulate_document(out: Path, record: Record, law: Law, epsilon: float) -> dict[str, Any]:
    """Return what was written and the law's own numbers."""
    return {
        "file": str(out),
        "record": _record(record),
        "law": law.name,
        "epsilon": epsilon,
        "surface_tension": law.surface_tension(epsilon=1.0),
    }


def _main_numbers(result: Result) -> dict[str, Any]:
    """Return the facts and findings of a result, the most used numbers also by themselves."""
    table = facts(result)
    epsilon, barrier = table.get("epsilon"), table.get("barrier")
    return {
        "dynamics": table.dynamics,
        "method": table.method,
        "equation": table.equation,
        "phases": list(table.law.phases),
        "degree": table.law.family.degree,
        "coefficients": [g.value for g in table.coefficients],
        "epsilon": None if epsilon is None else epsilon.value,
        "barrier": None if barrier is None else barrier.value,
        "double_well": table.structure.ok,
        "structure": str(table.structure),
        "facts": facts_document(table),
        "degrees": [{"degree": fit.degree, "chi2": fit.chi2, "weight": fit.weight} for fit in table.degrees],
        "verdict": table.verdict,
        "tests": [asdict(test) for test in model_tests(result)],
        "findings": [finding_document(item) for item in findings(result, table=table)],
    }


def _validation(validation: Validation) -> dict[str, Any]:
    """All but the predicted fields; a number that is not finite is written as the result files write it."""
    hints = get_type_hints(type(validation))
    names = [name for name in hints if name != "predicted"]
    return {name: codec_of(hints[name]).encode(getattr(validation, name), name) for name in names}


def _record(record: Record) -> dict[str, Any]:
    return {
        "shape": list(record.shape),
        "dx": list(record.dx),
        "times": record.times.tolist(),
        "q": record.q,
        "boundary": record.boundary,
        "length_unit": record.length_unit,
        "time_unit": record.time_unit,
    }

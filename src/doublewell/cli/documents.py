"""Documents: the answers of the commands as words and as JSON values; numbers as the library gives them."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, get_type_hints

from doublewell.adequacy import Adequacy
from doublewell.cli.wording import shell_words
from doublewell.findings import findings
from doublewell.io.codec import codec_of
from doublewell.io.result_file import result_body
from doublewell.law import Law
from doublewell.legacy import intervals
from doublewell.observation import Survey
from doublewell.record import Phase, Record
from doublewell.record_findings import Finding, grey_findings
from doublewell.report import Inspection
from doublewell.result import LevelErrors, Measured, Result, physical
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

_LEVEL = 0.95
_WIDTH = 98


def identify_text(result: Result, validation: Validation | None, files: tuple[Path, ...]) -> str:
    """Return the report, what an evolution of the law says, and the files written."""
    parts = [shell_words(str(result))]
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
    levels = (
        None
        if grey is None
        else {
            "levels": grey.levels,
            "sd": grey.levels_sd,
            "findings": [_finding(item) for item in grey_findings(grey.quality)],
        }
    )
    return {
        "grey_levels": levels,
        "record": _record(found.record),
        "survey": codec_of(Survey).encode(found.survey, "survey"),
        "coverage": found.survey.coverage,
        "interface_share": found.survey.interface_share,
        "supports": [[support.frames, support.length] for support in found.supports],
        "supports_refused": found.refusal,
        "findings": [_finding(item) for item in found.findings],
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
    scale = result.scale
    return {
        "method": result.settings.method,
        "equation": result.law.equation(),
        "degree": result.degree,
        "q": result.q,
        "q_estimated": result.q_estimated,
        "coefficients": result.coefficients.tolist(),
        "epsilon": None if scale is None else scale.epsilon,
        "epsilon_sd": None if scale is None else scale.epsilon_sd,
        "barrier": None if scale is None else float(result.potential(result.law.maximum)),
        "physical": _physical(result),
        "intervals": _intervals(result),
        "grey_levels": codec_of(LevelErrors | None).encode(result.levels, "levels"),
        "degrees": _degrees(result),
        "adequacy": codec_of(Adequacy | None).encode(result.adequacy, "adequacy"),
        "double_well": result.structure.ok,
        "structure": str(result.structure),
        "findings": [_finding(item) for item in findings(result)],
    }


def _finding(item: Finding) -> dict[str, Any]:
    document = {"code": item.code, "severity": str(item.severity), "topic": item.topic, "where": item.where}
    return document | {"sentence": item.sentence, "advice": item.advice, "numbers": dict(item.numbers)}


def _intervals(result: Result) -> dict[str, Any] | None:
    """The 95 % intervals by name; None where the reading has no noise model."""
    if result.posterior is None:
        return None
    return {"level": _LEVEL} | {name: list(ends) for name, ends in intervals(result, level=_LEVEL).items()}


def _physical(result: Result) -> dict[str, Any] | None:
    """Return the numbers in physical units; None where not all units are known."""
    known = result.scale is not None and None not in (
        result.scale.tension.unit, result.settings.length_unit, result.settings.time_unit,
    )  # fmt: skip
    if not known:
        return None
    found = physical(result)
    names = ("kappa", "mobility", "barrier", "width", "diffusion", "epsilon", "paper_barrier")
    encode = codec_of(Measured | None).encode
    return {name: encode(getattr(found, name), name) for name in names} | {"normalisation": found.normalisation}


def _degrees(result: Result) -> list[dict[str, Any]] | None:
    """The path of a trajectory reading: what each degree costs and weighs."""
    if result.posterior is None:
        return None
    return [
        {
            "degree": fit.degree, "chi2": fit.chi2, "weight": fit.weight,
            "active": list(fit.active), "contacts": list(fit.contacts),
        }
        for fit in result.posterior.path
    ]  # fmt: skip


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

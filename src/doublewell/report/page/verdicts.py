"""Verdicts: the topics of findings as questions, with good, look or do not use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from doublewell.findings import MOSTLY
from doublewell.findings import findings as found
from doublewell.report.page.scale import scale_parts
from doublewell.result import Result

__all__ = ["MOSTLY", "SYMBOLS", "Finding", "Verdict", "findings", "overall", "tension_part"]

Verdict = Literal["good", "check", "do not use"]
SYMBOLS: dict[Verdict, str] = {"good": "✔", "check": "◆", "do not use": "✖"}  # told apart without colour
_NAMES: dict[str, Verdict] = {"ok": "good", "check": "check", "fail": "do not use"}
_QUESTIONS = {
    "data": "Is this the movie of the result?",
    "convergence": "Did the fit converge?",
    "model": "Does the movie follow this model?",
    "precision": "How precise is the law?",
    "resolution": "Are steps and pixels fine enough?",
    "constraint": "Does the constraint fit the data?",
    "moments": "Do the weak moments agree with the law?",
    "structure": "Is it a double well?",
    "movie": "Is the movie good enough?",
    "determination": "Is the law determined everywhere?",
    "grey levels": "Are the grey levels known well enough?",
    "scale": "Are ε and F fixed?",
    "agreement": "Do all parts agree?",
}


@dataclass(frozen=True)
class Finding:
    """One question, its verdict, and what was found."""

    question: str
    verdict: Verdict
    words: str


def findings(result: Result, *, found_checksum: str | None = None) -> list[Finding]:
    """Return all findings as questions with their verdicts."""
    items = found(result, checksum=found_checksum)
    return [Finding(_QUESTIONS[item.topic], _NAMES[item.severity], str(item)) for item in items]


def overall(found: list[Finding]) -> Verdict:
    """Return the worst verdict."""
    kinds = [item.verdict for item in found]
    return "do not use" if "do not use" in kinds else "check" if "check" in kinds else "good"


def tension_part(result: Result) -> float | None:
    """Return the share of epsilon's variance that comes from the surface tension; None where it is not known."""
    parts = scale_parts(result)
    return None if parts is None or parts.tension_sd is None else parts.share

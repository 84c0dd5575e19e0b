"""What a result, or the tests of a residual, found: codes and sentences."""

from __future__ import annotations

from doublewell.adequacy import Adequacy, ScoreTest
from doublewell.findings import findings
from doublewell.model_findings import Setting, model_findings, sentence_of
from doublewell.record_findings import Finding
from doublewell.result import Result

SETTING = Setting((1 / 32, 1 / 32), "periodic", (-1.0, 1.0), 40.0)


def warned(result: Result) -> dict[str, Finding]:
    """Return the findings that are not ok, by code."""
    return {item.code: item for item in findings(result) if item.severity != "ok"}


def model(answer: Adequacy, setting: Setting = SETTING, noise: float = 0.03) -> list[Finding]:
    """Return the findings about a model from the tests of a residual alone."""
    return list(model_findings(answer, noise, setting))


def sentence(test: ScoreTest, setting: Setting = SETTING) -> str:
    """Return what a test gave."""
    return sentence_of(test, setting)

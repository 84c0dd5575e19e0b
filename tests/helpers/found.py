"""What a result, or the tests of a residual, found: codes and sentences."""

from __future__ import annotations

from doublewell.adequacy import Adequacy, ScoreTest
from doublewell.findings import findings
from doublewell.likelihood import Convergence, Status
from doublewell.model_findings import Setting, model_findings, sentence_of
from doublewell.record_findings import Finding
from doublewell.result import FitQuality, Result

SETTING = Setting((1 / 32, 1 / 32), "periodic", (-1.0, 1.0), 40.0)


def warned(result: Result) -> dict[str, Finding]:
    """Return the findings that are not ok, by code."""
    return {item.code: item for item in findings(result) if item.severity != "ok"}


def model(answer: Adequacy, setting: Setting = SETTING, noise: float = 0.03) -> list[Finding]:
    """Return the findings about a model from the tests of a residual alone."""
    ended = Status(Convergence.CONVERGED, 0.01, 3)
    quality = FitQuality(
        dx=setting.dx, boundary=setting.boundary, noise=noise, status=ended, time_size=0.0, mesh_size=0.0, distance=0.0,
        constraint_rise=0.0, adequacy=answer,
    )  # fmt: skip
    return list(model_findings(quality, setting))


def sentence(test: ScoreTest, setting: Setting = SETTING) -> str:
    """Return what a test gave."""
    return sentence_of(test, setting)

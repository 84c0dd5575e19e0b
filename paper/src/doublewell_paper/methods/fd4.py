"""Pointwise regression with fourth-order differences, direct or after Gaussian smoothing in space and time."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from doublewell.baselines.regression import WIDTHS, PointwiseFit, pointwise_fit, smoothing_width
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import Sample

__all__ = ["METHODS"]


def _direct(sample: Sample) -> Outcome:
    began = perf_counter()
    found = pointwise_fit(sample.record, 1.0, 0.0)
    return _outcome(found, perf_counter() - began, {})


def _smoothed(sample: Sample) -> Outcome:
    evidence, _ = sample.weak
    began = perf_counter()
    width = smoothing_width(sample.record, 1.0, evidence, round(sample.spec.training * sample.spec.frames))
    found = pointwise_fit(sample.record, 1.0, width)
    return _outcome(found, perf_counter() - began, {"width": width})


def _outcome(found: PointwiseFit, seconds: float, extra: dict[str, float]) -> Outcome:
    active = int(np.count_nonzero(found.solution.active))
    return Outcome(found.law, "fitted", active, seconds, found.condition, found.rows, extra)


METHODS = (
    Method("direct FD4 m=2", "Direct FD4, m = 2", _direct),
    Method("smoothed FD4 m=2", "Smoothed FD4, m = 2", _smoothed, f"widths {WIDTHS}, judged on held-out weak moments"),
)

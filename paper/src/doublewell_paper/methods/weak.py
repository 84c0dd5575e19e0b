"""The weak branches on shared moments: least squares, positivity, ridge, both, exact class; degrees two and five."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Literal

import numpy as np

from doublewell.evidence import Evidence, lower
from doublewell.inference import Constraint, Estimate, estimate
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import Sample

__all__ = ["METHODS", "outcome_of"]

_NAMES: dict[tuple[Constraint, bool], str] = {
    ("none", False): "weak LS",
    ("bernstein", False): "STAC",
    ("none", True): "ridge LS",
    ("bernstein", True): "ridge STAC",
    ("admissible", False): "STAC admissible",
}


def outcome_of(fit: Estimate, seconds: float, extra: dict[str, float] | None = None) -> Outcome:
    """Return an estimate as an outcome."""
    found = dict(extra or {})
    if fit.ridge is not None:
        found["alpha"] = fit.ridge.alpha
    active = int(np.count_nonzero(fit.solution.active)) if fit.constraint == "bernstein" else None
    return Outcome(fit.law, "fitted", active, seconds, fit.scaled_condition, fit.rows, found)


def _fit(sample: Sample, *, degree: int, constraint: Constraint, ridge: Literal["validated"] | None) -> Outcome:
    evidence, assembly = sample.weak
    began = perf_counter()
    fit = estimate(_at(evidence, degree), 1.0, constraint=constraint, ridge=ridge)
    return outcome_of(fit, assembly + perf_counter() - began)


def _at(evidence: Evidence, degree: int) -> Evidence:
    return lower(evidence, degree)


def _method(degree: int, constraint: Constraint, ridged: bool) -> Method:
    name = _NAMES[constraint, ridged]
    fit = partial(_fit, degree=degree, constraint=constraint, ridge="validated" if ridged else None)
    return Method(f"{name} m={degree}", f"{name[0].upper()}{name[1:]}, m = {degree}", fit)


METHODS = tuple(_method(degree, *branch) for degree in (2, 5) for branch in _NAMES)

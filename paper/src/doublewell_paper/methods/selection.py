"""Exploratory choice of degree and support by the residual of held-out moments.

Candidates are degrees one to five and the first support, the second, or both. Each is fitted with positive
coefficients on the training frames; all are judged on the same held-out moments, those of both supports. The chosen
moments of the whole record then give the constrained and the unconstrained estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from time import perf_counter

import numpy as np

from doublewell.evidence import Evidence, lower, system
from doublewell.inference import Constraint, estimate
from doublewell_paper.methods.weak import outcome_of
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import Sample

__all__ = ["METHODS", "Choice", "choose", "held_out_residual"]

DEGREES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Choice:
    """A degree and the names of the supports."""

    degree: int
    supports: tuple[str, ...]


def choose(fitted: Evidence, judged: Evidence, degrees: tuple[int, ...] = DEGREES) -> Choice:
    """Return the candidate with the smallest residual on the judged held-out moments; ties go to the first."""
    names = fitted.supports
    groups = [(name,) for name in names] + ([names] if len(names) > 1 else [])
    candidates = [Choice(degree, group) for degree, group in product(degrees, groups)]
    return min(candidates, key=lambda item: held_out_residual(item, fitted, judged))


def held_out_residual(choice: Choice, fitted: Evidence, judged: Evidence) -> float:
    """Fit on the training moments of a choice and return the residual on all held-out moments."""
    part = lower(fitted.select(lambda key: key.fold == "training" and key.support in choice.supports), choice.degree)
    found = estimate(part, 1.0, constraint="bernstein").coefficients
    matrix, target = system(lower(judged.select(lambda key: key.fold == "validation"), choice.degree), 1.0)
    return float(np.linalg.norm(matrix @ found - target))


def _fit(sample: Sample, *, constraint: Constraint) -> Outcome:
    evidence, assembly = sample.weak
    began = perf_counter()
    choice = choose(evidence, evidence)
    part = lower(evidence.select(lambda key: key.support in choice.supports), choice.degree)
    fit = estimate(part, 1.0, constraint=constraint)
    return outcome_of(fit, assembly + perf_counter() - began, told(choice, evidence))


def told(choice: Choice, evidence: Evidence) -> dict[str, float]:
    """Return a choice as numbers: the degree, and the support as 1, 2 or 0 for both."""
    both = len(choice.supports) > 1
    return {"degree": choice.degree, "support": 0 if both else 1 + evidence.supports.index(choice.supports[0])}


_SETTINGS = "degrees 1-5; first, second or both supports; judged on held-out moments of both"
METHODS = (
    Method("selected weak LS", "Selected weak LS", partial(_fit, constraint="none"), _SETTINGS),
    Method("selected STAC", "Selected STAC", partial(_fit, constraint="bernstein"), _SETTINGS),
)

"""The analytic weak control: samples of the test function's derivatives instead of differences of its samples.

The paper says both "degree two" and "selects degree and support", so both are run.
"""

from __future__ import annotations

from time import perf_counter

from doublewell.evidence import lower
from doublewell.inference import estimate
from doublewell_paper.methods.selection import choose, told
from doublewell_paper.methods.weak import outcome_of
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import Sample

__all__ = ["METHODS"]


def _fixed(sample: Sample) -> Outcome:
    evidence, assembly = sample.analytic
    began = perf_counter()
    fit = estimate(lower(evidence, 2), 1.0, constraint="bernstein")
    return outcome_of(fit, assembly + perf_counter() - began)


def _selected(sample: Sample) -> Outcome:
    evidence, assembly = sample.analytic
    judged, _ = sample.weak
    began = perf_counter()
    choice = choose(evidence, judged)
    part = evidence.select(lambda key: key.support in choice.supports)
    fit = estimate(lower(part, choice.degree), 1.0, constraint="bernstein")
    return outcome_of(fit, assembly + perf_counter() - began, told(choice, evidence))


METHODS = (
    Method("analytic weak m=2", "Analytic weak, m = 2", _fixed),
    Method("analytic weak selected", "Analytic weak, selected", _selected, "judged on the discrete held-out moments"),
)

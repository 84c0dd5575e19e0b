"""Least squares through the Gram matrix A'A, as the paper's earlier implementation did it, at degrees zero to five."""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np

from doublewell.evidence import lower, system
from doublewell.law import Bernstein, Law
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import Sample

__all__ = ["METHODS"]

DEGREES = (0, 1, 2, 3, 4, 5)


def _fit(sample: Sample, *, degree: int) -> Outcome:
    evidence, assembly = sample.weak
    began = perf_counter()
    matrix, target = system(lower(evidence, degree), 1.0)
    gram = matrix.T @ matrix
    found = np.asarray(np.linalg.solve(gram, matrix.T @ target), dtype=np.float64)
    seconds = assembly + perf_counter() - began
    extra = {"gram_condition": float(np.linalg.cond(gram))}
    return Outcome(Law(Bernstein(degree), found), "fitted", None, seconds, None, evidence.rows, extra)


METHODS = tuple(Method(f"normal m={m}", f"Normal equations, m = {m}", partial(_fit, degree=m)) for m in DEGREES)

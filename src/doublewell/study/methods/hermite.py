"""Feature means corrected for Gaussian noise by Hermite polynomials, on moments without a mask.

For noise of variance s^2 the mean of s^k He_k(v/s) over v = u + noise is u^k. The features here are polynomials on
the whole line and every centre counts, which the identity needs; s is measured, not known.
"""

from __future__ import annotations

from functools import partial
from math import factorial
from time import perf_counter

import numpy as np

from doublewell.estimate import estimate
from doublewell.evidence import Block, Evidence, compact, lower
from doublewell.hints import Array
from doublewell.law import Bernstein
from doublewell.study.methods.selection import DEGREES, Choice, held_out_residual
from doublewell.study.methods.weak import outcome_of
from doublewell.study.outcome import Method, Outcome
from doublewell.study.sample import ODD_POWERS, TOP_DEGREE, Sample

__all__ = ["METHODS", "hermite_matrix", "monomial_matrix"]

_POWERS = ODD_POWERS
_FAMILY = Bernstein(TOP_DEGREE)


def monomial_matrix() -> Array:
    """Return the features of the top degree in odd powers of u: one column a feature."""
    out = np.zeros((len(_POWERS), _FAMILY.size))
    for j in range(_FAMILY.size):
        bracket = [float(c) for c in _FAMILY.exact_bracket(np.eye(_FAMILY.size)[j])]
        for i, c in enumerate(bracket):  # -u (1 - u^2) z^i = -u^(2i + 1) + u^(2i + 3)
            out[i, j] -= c
            out[i + 1, j] += c
    return out


def hermite_matrix(variance: float) -> Array:
    """Return the corrected powers in powers: column k is s^k He_k(u/s) for the k-th odd power."""
    out = np.zeros((len(_POWERS),) * 2)
    for column, k in enumerate(_POWERS):
        for i in range(k // 2 + 1):
            out[column - i, column] = (-0.5 * variance) ** i * factorial(k) / (factorial(i) * factorial(k - 2 * i))
    return out


def _evidence(blocks: tuple[Block, ...], turn: Array) -> Evidence:
    """Return the evidence whose feature columns are the given combinations of powers."""
    change = np.zeros((len(_POWERS) + 2, _FAMILY.size + 2))
    change[: len(_POWERS), : _FAMILY.size] = turn
    change[len(_POWERS) :, _FAMILY.size :] = np.eye(2)
    return Evidence(_FAMILY, tuple(Block(b.key, compact(b.triangle @ change), b.rows) for b in blocks))


def _fit(sample: Sample, *, corrected: bool, selected: bool) -> Outcome:
    blocks, assembly = sample.unmasked
    began = perf_counter()
    turn = monomial_matrix()
    noise = sample.survey.noise
    if corrected:
        turn = hermite_matrix(noise**2) @ turn
    evidence = _evidence(blocks, turn)
    degree, extra = 2, {"noise": noise}
    if selected:
        degree = min(DEGREES, key=lambda m: held_out_residual(Choice(m, evidence.supports), evidence, evidence))
        extra["degree"] = degree
    fit = estimate(lower(evidence, degree), 1.0, constraint="bernstein")
    return outcome_of(fit, assembly + perf_counter() - began, extra)


METHODS = (
    Method("unmasked m=2", "Unmasked, m = 2", partial(_fit, corrected=False, selected=False)),
    Method("Hermite m=2", "Hermite-corrected, m = 2", partial(_fit, corrected=True, selected=False)),
    Method("unmasked selected", "Unmasked, selected degree", partial(_fit, corrected=False, selected=True)),
    Method("Hermite selected", "Hermite-corrected, selected degree", partial(_fit, corrected=True, selected=True)),
)

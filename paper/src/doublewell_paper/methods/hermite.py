"""Feature means corrected for Gaussian noise by Hermite polynomials, on moments without a mask.

For noise of variance s^2 the mean of s^k He_k(v/s) over v = u + noise is u^k. The features here are polynomials on
the whole line and every centre counts, which the identity needs; s is measured, not known.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np

from doublewell.evidence import Block, Evidence, compact, lower
from doublewell.hints import Array
from doublewell.inference import estimate
from doublewell.law import Bernstein
from doublewell.weak.noise import hermite_matrix, monomial_matrix
from doublewell_paper.methods.selection import DEGREES, Choice, held_out_residual
from doublewell_paper.methods.weak import outcome_of
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import ODD_POWERS, TOP_DEGREE, Sample

__all__ = ["METHODS"]

_POWERS = ODD_POWERS
_FAMILY = Bernstein(TOP_DEGREE)


def _evidence(blocks: tuple[Block, ...], turn: Array) -> Evidence:
    """Return the evidence whose feature columns are the given combinations of powers."""
    change = np.zeros((len(_POWERS) + 2, _FAMILY.size + 2))
    change[: len(_POWERS), : _FAMILY.size] = turn
    change[len(_POWERS) :, _FAMILY.size :] = np.eye(2)
    return Evidence(_FAMILY, tuple(Block(b.key, compact(b.triangle @ change), b.rows) for b in blocks))


def _fit(sample: Sample, *, corrected: bool, selected: bool) -> Outcome:
    blocks, assembly = sample.unmasked
    began = perf_counter()
    turn = monomial_matrix(_FAMILY)
    noise = sample.survey.noise
    if corrected:
        turn = hermite_matrix(len(_POWERS), noise**2) @ turn
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

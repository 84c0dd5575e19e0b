"""The degree-five design itself: its conditioning, and how far noise moves it in units of its smallest singular value.

The noise-perturbation ratio is |A_noisy - A_clean| / s_min(A_noisy) on the mask of the noisy record, both designs
with the paper's block weights. The paper does not print its formula; this one was kept of five tried because it gives
the paper's range. With s_min(A_clean) below, as in the paper's coefficient bound (its Eq. 14), the ratio is larger.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from doublewell.evidence import compact
from doublewell.hints import Array
from doublewell.inference import estimate
from doublewell.law import Bernstein
from doublewell.weak import PHASE_CUT
from doublewell.weak.smoother import Smoother
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import TOP_DEGREE, Sample

__all__ = ["METHODS"]

_FAMILY = Bernstein(TOP_DEGREE)


def _fit(sample: Sample) -> Outcome:
    began = perf_counter()
    evidence, _ = sample.weak
    fit = estimate(evidence, 1.0, constraint="none")
    parts = [_designs(sample, support) for support in sample.spec.supports]
    change, clean, noisy = (np.vstack(blocks) for blocks in zip(*parts, strict=True))
    seconds = perf_counter() - began
    extra = {"noise_ratio": _ratio(change, noisy), "clean_noise_ratio": _ratio(change, clean)}
    return Outcome(fit.law, "fitted", None, seconds, fit.scaled_condition, fit.rows, extra)


def _ratio(change: Array, design: Array) -> float:
    return float(np.linalg.norm(change, 2) / np.linalg.svd(design, compute_uv=False)[-1])


def _designs(sample: Sample, support: tuple[int, float]) -> tuple[Array, Array, Array]:
    """Return the R factors of A_noisy - A_clean, A_clean and A_noisy, with the weight of one block of several."""
    noisy, clean = sample.record.slab(), sample.clean.slab()
    smoother = Smoother(sample.record, support)
    keep = np.abs(smoother.temporal_mean(noisy)) < PHASE_CUT
    scale = np.sqrt(len(sample.spec.supports) * np.count_nonzero(keep))
    before, after = (smoother.columns(list(_FAMILY.features(u)), keep) / scale for u in (clean, noisy))
    return compact(after - before), compact(before), compact(after)


METHODS = (Method("design m=5", "Design, m = 5", _fit, "ratio to the smallest singular value of the noisy design"),)

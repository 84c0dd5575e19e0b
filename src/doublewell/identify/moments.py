"""Moments: what the weak roads solve, as it is seen or with the noise taken off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from doublewell.evidence import Block, Evidence
from doublewell.hints import Progress, Report
from doublewell.inference import Constraint, Diffusion, check_motion, estimate_q
from doublewell.law import Bernstein, LinearFamily
from doublewell.observation import Survey
from doublewell.record import Record
from doublewell.weak import (
    FLOOR,
    Derivative,
    Fold,
    Processor,
    RateNoise,
    Stream,
    Streamed,
    Support,
    noise_shares,
    noisy_moments,
    rate_noise,
    support_key,
    weak_evidence,
    without_noise,
)

__all__ = ["Moments", "corrected_moments", "find_q", "plain_moments", "streamed_moments"]


@dataclass(frozen=True, eq=False)
class Moments:
    """Evidence to solve, the same as it was seen, and the noise of the rate by support.

    ``held`` is in how many directions of the coefficients, of all supports, nearly all that is seen is noise.
    ``streamed`` is what a pass over a streamed record gave besides.
    """

    evidence: Evidence
    seen: Evidence
    noise: Mapping[str, RateNoise]
    held: int = 0
    streamed: Streamed | None = None


def plain_moments(
    record: Record, family: LinearFamily, supports: Sequence[Support], noise: float, *,
    derivative: Derivative, folds: Sequence[Fold], processor: Processor, progress: Progress | None,
) -> Moments:  # fmt: skip
    """Read the weak moments as they are."""
    evidence = weak_evidence(
        record, family, supports, derivative=derivative, folds=folds, processor=processor, progress=progress
    )
    return Moments(evidence, evidence, _rates(record, supports, noise, derivative))


def streamed_moments(
    stream: Stream, record: Record, family: LinearFamily, supports: Sequence[Support], seen: Survey, *,
    derivative: Derivative, folds: Sequence[Fold], processor: Processor, report: Report | None,
) -> Moments:  # fmt: skip
    """Read the weak moments as they are, region by region."""
    found = stream.evidence(
        record, family, supports, seen, derivative=derivative, folds=folds, processor=processor, report=report
    )
    rates = _rates(record, supports, seen.noise, derivative) if record.uniform else {}
    return Moments(found.evidence, found.evidence, rates, streamed=found)


def corrected_moments(
    record: Record, family: Bernstein, supports: Sequence[Support], noise: float, *,
    derivative: Derivative, progress: Progress | None,
) -> Moments:  # fmt: skip
    """Read the weak moments with the bias of white noise taken off."""
    found = [
        noisy_moments(record, family, support, noise, derivative=derivative, progress=progress) for support in supports
    ]
    return Moments(
        Evidence(family, tuple(without_noise(one) for one in found)),
        Evidence(family, tuple(Block(one.key, one.triangle, one.rows) for one in found)),
        _rates(record, supports, noise, derivative),
        held=int(sum(np.sum(1.0 - noise_shares(one) < FLOOR) for one in found)),
    )


def find_q(moments: Moments, constraint: Constraint) -> Diffusion:
    """Estimate q from the moments as they are seen; a record that does not determine it raises.

    Only the noise of the rate is taken off here: taking off that of the features too makes q worse by its scatter.
    """
    share = check_motion(moments.seen, moments.noise)
    return Diffusion(estimate_q(moments.seen, moments.noise, constraint=constraint), share)


def _rates(
    record: Record, supports: Sequence[Support], noise: float, derivative: Derivative
) -> Mapping[str, RateNoise]:
    return {support_key(support): rate_noise(record, support, noise, derivative) for support in supports}

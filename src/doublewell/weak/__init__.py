"""The weak form: space-time moments of a record."""

from doublewell.weak.assembly import PHASE_CUT, support_key, weak_evidence, window_of
from doublewell.weak.frame_buffer import Fold, split_folds
from doublewell.weak.gpu import CPU, Processor, choose_processor
from doublewell.weak.noise import FLOOR, NoisyMoments, RateNoise, noise_shares, noisy_moments, rate_noise, without_noise
from doublewell.weak.stream import Stream, Streamed, make_plan, open_stream
from doublewell.weak.weights import (
    LEAST_FRAMES,
    Derivative,
    Support,
    axis_weights,
    check_supports,
    default_rule,
    default_supports,
    paper_supports,
)

__all__ = [
    "CPU",
    "FLOOR",
    "LEAST_FRAMES",
    "PHASE_CUT",
    "Derivative",
    "Fold",
    "NoisyMoments",
    "Processor",
    "RateNoise",
    "Stream",
    "Streamed",
    "Support",
    "axis_weights",
    "check_supports",
    "choose_processor",
    "default_rule",
    "default_supports",
    "make_plan",
    "noise_shares",
    "noisy_moments",
    "open_stream",
    "paper_supports",
    "rate_noise",
    "split_folds",
    "support_key",
    "weak_evidence",
    "window_of",
    "without_noise",
]

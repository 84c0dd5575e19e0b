"""Evidence: what a record says about the coefficients."""

from doublewell.evidence.beside import Beside
from doublewell.evidence.corrected import FLOOR, NoisyMoments, noise_shares, noisy_moments, without_noise
from doublewell.evidence.default import default_supports, paper_supports
from doublewell.evidence.evidence import Block, Evidence, Key, compact, lower, merge, restrict, stacked, system
from doublewell.evidence.rate_noise import RateNoise, rate_noise
from doublewell.evidence.weak import PHASE_CUT, Fold, Region, split_folds, support_key, weak_evidence, window_of
from doublewell.evidence.weights import Derivative, Support, axis_weights, check_supports

__all__ = [
    "FLOOR",
    "PHASE_CUT",
    "Beside",
    "Block",
    "Derivative",
    "Evidence",
    "Fold",
    "Key",
    "NoisyMoments",
    "RateNoise",
    "Region",
    "Support",
    "axis_weights",
    "check_supports",
    "compact",
    "default_supports",
    "lower",
    "merge",
    "noise_shares",
    "noisy_moments",
    "paper_supports",
    "rate_noise",
    "restrict",
    "split_folds",
    "stacked",
    "support_key",
    "system",
    "weak_evidence",
    "window_of",
    "without_noise",
]

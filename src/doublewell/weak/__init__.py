"""The weak form: space-time moments of a record."""

from doublewell.weak.corrected import FLOOR, NoisyMoments, noise_shares, noisy_moments, without_noise
from doublewell.weak.default import default_supports, paper_supports
from doublewell.weak.fold import Fold, split_folds
from doublewell.weak.processor import CPU, Processor, choose_processor
from doublewell.weak.rate_noise import RateNoise, rate_noise
from doublewell.weak.reader import PHASE_CUT, Region
from doublewell.weak.weak import support_key, weak_evidence, window_of
from doublewell.weak.weights import Derivative, Support, axis_weights, check_supports

__all__ = [
    "CPU",
    "FLOOR",
    "PHASE_CUT",
    "Derivative",
    "Fold",
    "NoisyMoments",
    "Processor",
    "RateNoise",
    "Region",
    "Support",
    "axis_weights",
    "check_supports",
    "choose_processor",
    "default_supports",
    "noise_shares",
    "noisy_moments",
    "paper_supports",
    "rate_noise",
    "split_folds",
    "support_key",
    "weak_evidence",
    "window_of",
    "without_noise",
]

"""Evidence: what a record says about the coefficients."""

from doublewell.evidence.default import default_supports, paper_supports
from doublewell.evidence.evidence import Block, Evidence, Key, compact, lower, merge, restrict, system
from doublewell.evidence.weak import PHASE_CUT, Fold, split_folds, weak_evidence
from doublewell.evidence.weights import Derivative, Support, axis_weights, check_supports

__all__ = [
    "PHASE_CUT",
    "Block",
    "Derivative",
    "Evidence",
    "Fold",
    "Key",
    "Support",
    "axis_weights",
    "check_supports",
    "compact",
    "default_supports",
    "lower",
    "merge",
    "paper_supports",
    "restrict",
    "split_folds",
    "system",
    "weak_evidence",
]

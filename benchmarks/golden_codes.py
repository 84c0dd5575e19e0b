"""What version 0.1 warns of: a code for each meaning, and the text by which it is known.

The table holds every text that a result of 0.1 can carry, whether or not one of the golden cases shows it. A sentence
may begin with where it belongs ("record 2: ", "model look: ", "model not adequate: ", "grey levels: "), which is taken
off first.
"""

from __future__ import annotations

import re

_WHERE = re.compile(r"(record \d+|grey levels|model look|model not adequate): ")

WARNINGS: dict[str, str] = {
    # calibration and the law itself (identify/warnings.py, calibrate.py, law/law.py)
    "calibration-flat-law": r"calibration refused: the law is flat at its lower bound",
    "calibration-no-interface": r"calibration refused: the potential falls below the pure phases",
    "calibration-unequal-depths": r"calibration refused: the wells are not equally deep",
    "calibration-zero-law": r"calibration refused: the primitive is zero",
    "not-a-double-well": r"not a plain double well: ",
    # the record (survey/notes.py, identify/warnings.py)
    "two-valued": r"the picture holds no more than \d+ different values",
    "not-phase-values": r"values run from .* these are no phase values",
    "values-beyond-phases": r"values reach [\d.e+-]+, beyond the pure phases at -1 and \+1",
    "phases-still-forming": r"the pure phases are not reached yet",
    "phase-not-reached": r"the phase [+-]1 is not reached",
    "no-interface": r"no interface is seen",
    "interface-unresolved": r"an interface spans [\d.]+ pixels: too few",
    "interface-few-cells": r"an interface spans [\d.]+ pixels; ",
    "values-missing": r"[\d.e+-]+ % of the values are missing",
    "phase-range-not-covered": r"only \d+ % of the phase range is visited",
    "phase-range-one-sided": r"some phase values between .* are hardly seen, only their mirror images",
    "noise-strong": r"the noise is strong",
    "little-change": r"the picture hardly changes from first to last",
    "change-too-fast": r"the picture changes .* times as fast as its own diffusion",
    "frames-far-apart": r"the frames are too far apart",
    "phase-scale": r"phase values in what follows are those of a scale",
    # a weak-form fit (identify/warnings.py, survey/notes.py)
    "moments-unexplained": r"the law leaves \d+ % of the moments unexplained",
    "few-moments": r"the support \(.*\) cannot stand alone",
    "weak-mesh-coarse": r"with an interface of [\d.]+ pixels and noise the weak reading",
    "q-little-motion": r"only \d+ % of the squared rate of change is motion",
    "correction-beyond-phases": r"values reach [\d.e+-]+ beyond the pure phases, more than white noise",
    "correction-limited": r"in \d+ of \d+ directions of the coefficients nearly all that is seen is noise",
    "noise-bias": r"noise [\d.e+-]+ biases the force",
    "supports-disagree": r"the supports disagree",
    "ill-conditioned": r"the design is badly conditioned",
    "coefficients-at-bound": r"g_\d+(, g_\d+)* at the lower bound",
    "bracket-touches-zero": r"the bracket touches zero",
    # where a law is determined (identify/determined.py)
    "numbers-extrapolated": r"the width, C_H, epsilon and F take in all phase values",
    "law-undetermined": r"the law is not determined for",
    "estimate-outside-interval": r"the estimate of \w+, .*, lies outside its own 95 % interval",
    "interval-missing": r"no interval of ",
    # a trajectory fit (identify/trajectory_numbers.py)
    "not-converged": r"the fit did not converge",
    "linearisation-far": r"the law lies \d+ standard errors from the fit",
    "constraint-raises-chi2": r"the constraint raises chi2",
    "mesh-coarse": r"a finer mesh would move the estimate",
    # several records, tiles (identify/batch.py, identify/tiled.py)
    "record-disagrees": r"record \d+ disagrees with the others",
    "tile-disagrees": r"tile \d+ .*disagrees with the others",
    "tiles-lost": r"\d+ of \d+ tiles could not be followed",
    "tiles-unfinished": r"the fields of \d+ tiles were not followed to the end",
    # tests of the residual (adequacy/words.py, adequacy/residual.py, adequacy/cells.py, adequacy/still.py)
    "q-off": r"q is [\d.e+-]+ \+- [\d.e+-]+ % (larger|smaller) than declared",
    "pattern-drifts": r"the pattern drifts with the velocity",
    "boundary-off": r"share of the way from the \w+ border",
    "boundary-quiet": r"the border is too quiet to tell",
    "force-tilted": r"the force lacks a constant",
    "contrast-off": r"the contrast is .* too (large|small)",
    "contrast-drifts": r"the contrast (grows|falls) by",
    "offset": r"the values are too (large|small) by",
    "blurred": r"a blur of the variance",
    "blur-unseen": r"blur cannot be told from another law",
    "noise-correlated-in-time": r"consecutive frames of the residual correlate",
    "noise-correlated-in-space": r"neighbours along \w of the residual correlate",
    "noise-tails": r"excess kurtosis of the residual",
    "outliers": r"\d+ values? beyond [\d.]+ standard deviations",
    "bad-pixels": r"(1 cell stands out, a bad pixel|\d+ cells stand out, bad pixels)",
    "noise-uneven": r"\d+ of \d+ cells stand out",
    "cells-even": r"no single cell stands out",
    "cause-ambiguous": r"the residual alone can hardly tell this from",
    "also-significant": r"also significant, perhaps from the same cause",
    "residual-unexplained": r"all named causes together do not explain the residual",
    "residual-not-noise": r"the record itself has almost no noise",
    "residual-numerical": r"the residual is [\d.e+-]+, [\d.e+-]+ % of the field; noise of a measurement would be",
    "no-test-significant": r"none of \d+ tests is significant",
    # grey values (intensity/notes.py)
    "grey-saturated": r"[\d.]+ % of the values are at the limit",
    "grey-few-steps": r"only \d+ grey values lie between the plateaus",
    "grey-plateau-narrow": r"no pixel of the (low|high) plateau lies far from an interface",
    "grey-fading": r"the contrast changes by .* over the record",
    "grey-fading-unequal": r"the two plateaus do not fade alike",
    "grey-frames-moved": r"frames were moved back",
    # a plan (plan/make.py)
    "plan-optimistic": r"the errors are too small: the solves behind them",
}
_PATTERNS = {code: re.compile(pattern) for code, pattern in WARNINGS.items()}


def code_of(text: str) -> str:
    """Return the code of a warning's text; a text that the table does not hold raises."""
    rest = text
    while (where := _WHERE.match(rest)) is not None:
        rest = rest[where.end() :]
    codes = [code for code, pattern in _PATTERNS.items() if pattern.match(rest)]
    if len(codes) != 1:
        raise LookupError(f"{len(codes)} codes for the warning {text!r}: {codes}")
    return codes[0]

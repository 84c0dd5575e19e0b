"""The laws of the trajectory study: the paper's and others that nothing was tuned on."""

from __future__ import annotations

from functools import cache

import numpy as np

from doublewell.law import LAW_NAMES, Law, named_law

_BRACKETS = {
    "cosine": lambda z: 1.0 + 0.5 * np.cos(4.0 * z),
    "hump": lambda z: 0.7 + 1.2 * np.exp(-6.0 * (z - 0.45) ** 2),
    "root": lambda z: np.sqrt(0.3 + 2.0 * z),
}
OTHERS = ("quartic", "outside_cone", *_BRACKETS)


@cache
def study_law(name: str) -> Law:
    if name in LAW_NAMES:
        return named_law(name)
    bracket = _BRACKETS[name]
    return Law.from_force(lambda u: -u * (1 - u**2) * bracket(u**2), name=name)

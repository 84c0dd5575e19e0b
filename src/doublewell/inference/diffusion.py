"""Unknown diffusion: q from the same weak rows as the law, and whether the record determines it.

A row is sum_j g_j S[B_j] + (1/q) D S[u] = Lap S[u]. With 1/q unknown it is one more coefficient, of a column that is
noise in part, and noise in a column pulls its coefficient towards zero: q would come out too large. With the rate as
the target it would come out too small, by the noise of the Laplacian, which shares noise with the features. So the
Laplacian is the target, where noise biases nothing, and the noise of the rate, which is known from its weights and has
nothing to do with that of the other columns, is taken off the rate's square. What bias is left is that of the features.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from doublewell.errors import InputError, NoStartError, option
from doublewell.evidence import Evidence, compact, stacked
from doublewell.inference.estimate import solve
from doublewell.law import Constraint
from doublewell.weak.noise import RateNoise

_CLEAR = 0.1  # least fraction of the rate's square that must not be noise
_SIGNIFICANT = 4.0  # least size of that fraction in standard errors of the noise
_SLOW = 1e-3  # least size of the rate, in units of the Laplacian, that is not a matter of the mesh


def check_motion(evidence: Evidence, noise: Mapping[str, RateNoise]) -> float:
    """Return the fraction of the rate's square, beyond the features, that is not noise; a still picture raises."""
    p = evidence.family.size
    left = compact(stacked(evidence))[p, p] ** 2
    fraction = 1.0 - _mean_variance(evidence, noise) / left if left > 0.0 else 0.0
    fewest = min(block.rows / noise[block.key.support].overlap for block in evidence.blocks if block.rows)
    error = _SIGNIFICANT * float(np.sqrt(2.0 / fewest))  # relative, of the noise's part
    least = max(_CLEAR, error / (1.0 + error))
    if fraction < least:
        raise NoStartError(
            "no motion can be distinguished from noise "
            f"({100 * max(fraction, 0.0):.0f} % of the squared rate of change is motion, expected at least "
            f"{100 * least:.0f} %), so the record does not determine q: pass {option('q')}, record longer, or a shape "
            "that moves"
        )
    return float(fraction)


def estimate_q(evidence: Evidence, noise: Mapping[str, RateNoise], *, constraint: Constraint) -> float:
    """Return q of the best law and q together; with it the known-q estimate of the evidence is the law of that pair."""
    triangle, p = compact(stacked(evidence)), evidence.family.size
    pivot = triangle[p, p]
    if pivot > 0.0:  # take the noise's part of the rate's square off
        shorter = np.sqrt(max(pivot**2 - _mean_variance(evidence, noise), _CLEAR * pivot**2))
        triangle[p, p], triangle[p, p + 1] = shorter, pivot * triangle[p, p + 1] / shorter
    first = compact(triangle[:, [p, *range(p), p + 1]])  # with the rate first, the other rows know nothing of q
    law, _ = solve(first[1:, 1 : p + 1], first[1:, p + 1], evidence.family, constraint=constraint)
    inverse = float((first[0, p + 1] - first[0, 1 : p + 1] @ law.coefficients) / first[0, 0])
    size = np.linalg.norm(triangle[:, p + 1])
    if not abs(inverse) * np.linalg.norm(triangle[:, p]) > _SLOW * size:
        raise InputError(
            "the picture stands still: its rate of change is less than a thousandth of its Laplacian, so the record "
            f"does not determine q; pass {option('q')}, record longer, or a shape that moves"
        )
    if inverse < 0.0:
        raise InputError(
            f"the picture moves against its own Laplacian (q would be {1.0 / inverse:.3g}): it does not follow u_t = q "
            "(Laplacian u - G(u)); check the order of the frames and the scale of the field"
        )
    return 1.0 / inverse


def _mean_variance(evidence: Evidence, noise: Mapping[str, RateNoise]) -> float:
    """Return the noise in the square of the rate of all rows, scaled as they are."""
    filled = list(dict.fromkeys(b.key._replace(fold="") for b in evidence.blocks if b.rows))
    return float(np.mean([noise[key.support].variance for key in filled]))

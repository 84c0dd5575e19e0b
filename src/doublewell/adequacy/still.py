"""Still records: a residual that is too small, or too smooth in time, to be noise."""

from __future__ import annotations

import numpy as np

from doublewell.adequacy.alternatives import Fit

_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])


def relative_noise(fit: Fit) -> float:
    """Return the standard deviation of the residual over the root mean square of the field."""
    return fit.found.noise / float(np.sqrt(np.mean(fit.predicted**2)))


def steadiness(fit: Fit) -> float | None:
    """Return the noise of the record itself, from fourth differences in time, over the residual."""
    if fit.record.frames < len(_FOURTH):
        return None
    u = fit.record.slab()
    rest = sum(c * u[k : len(u) - len(_FOURTH) + 1 + k] for k, c in enumerate(_FOURTH)) / np.linalg.norm(_FOURTH)
    return 1.4826 * float(np.median(np.abs(rest))) / fit.found.noise

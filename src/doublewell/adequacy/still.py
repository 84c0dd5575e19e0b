"""Still records: a residual that is too small, or too smooth in time, to be noise."""

from __future__ import annotations

import numpy as np

from doublewell.adequacy.alternatives import Fit

__all__ = ["no_noise", "steady_words"]

_NUMERICAL = 1e-4  # of the field: solvers differ by this, measurements by more
_STEADY = 0.1  # noise of the record over the residual below which the residual is no noise
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])


def no_noise(fit: Fit) -> str | None:
    """Say that the residual is of the size of numerical differences; None where it is not."""
    share = fit.found.noise / float(np.sqrt(np.mean(fit.predicted**2)))
    if share >= _NUMERICAL:
        return None
    return (
        f"the residual is {fit.found.noise:.1g}, {100 * share:.1g} % of the field; noise of a measurement would be "
        f"{100 * _NUMERICAL:g} % or more, and differences between two solvers are of this size: the movie follows the "
        "model as closely as numbers allow. The tests below ask for white noise and say nothing here; the bands do "
        "not know of such differences"
    )


def steady_words(fit: Fit) -> tuple[str, ...]:
    """Say that the record has far less noise than the residual is large; nothing where it has."""
    if fit.record.frames < len(_FOURTH):
        return ()
    u = fit.record.slab()
    rest = sum(c * u[k : len(u) - len(_FOURTH) + 1 + k] for k, c in enumerate(_FOURTH)) / np.linalg.norm(_FOURTH)
    noise = 1.4826 * float(np.median(np.abs(rest)))
    if noise >= _STEADY * fit.found.noise:
        return ()
    return (
        f"the record itself has almost no noise ({noise:.1g}, and the residual is {fit.found.noise:.2g}): the residual "
        "is a difference between two computations, or a wrong model; if the movie is simulated, make it again with "
        "half the time step and a finer mesh, and see whether the residual shrinks",
    )

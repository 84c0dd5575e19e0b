"""Levels: what the errors of the two grey levels do to a law, and a result whose bands hold it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array, Report
from doublewell.identify.repeat import solve_again
from doublewell.record import Phase, checksum
from doublewell.result import LevelErrors, Result

__all__ = ["add_level_errors"]

_POINTS = 401


def add_level_errors(result: Result, phase: Phase, *, progress: Report | None = None) -> Result:
    """Fit again with each grey level moved by one standard deviation, and add what that changes to the errors.

    `result` is what ``identify(phase.record, ...)`` gave. The two changes of the law become two more normal directions
    of its posterior, so that all bands and intervals hold them; ``result.levels`` says how large they are. The weak
    reading has no bands: there they are only said. It takes two more fits.

    >>> import doublewell as dw
    >>> start = dw.initial_field("circle", (48, 48), 1 / 48, epsilon=0.05)
    >>> movie = dw.simulate(dw.named_law("quartic"), start, dx=1 / 48, dt=2e-4, frames=25, epsilon=0.05)
    >>> grey = dw.phase_from_intensity(1000 + 200 * movie.slab(), levels=(800, 1200), levels_sd=(2, 2), dx=1 / 48,
    ...     dt=2e-4, q=1.0)
    >>> result = add_level_errors(dw.identify(grey.record, law=0), grey)
    >>> 0.001 < result.levels.force < 0.1
    True
    """
    sd = _check(result, phase)
    moved = []
    for name, record in zip(("low", "high"), phase.variants(), strict=True):
        say = None if progress is None else partial(_beside, progress, f"with the {name} level moved: ")
        moved.append(solve_again(result, record, say, check=False))
    return _with_errors(result, phase, sd, moved)


def _beside(progress: Report, words: str, what: str, done: int, total: int) -> None:
    progress(words + what, done, total)


def _check(result: Result, phase: Phase) -> tuple[float, float]:
    if not isinstance(result, Result) or not isinstance(phase, Phase):
        raise InputError(
            f"expected a Result and a Phase, got {type(result).__name__} and {type(phase).__name__}: call "
            "add_level_errors(identify(phase.record), phase)"
        )
    if result.levels is not None:
        raise InputError("the result holds the errors of its levels already: pass the one that identify gave")
    if checksum(phase.record, like=result.problem.records[0].checksum) != result.problem.records[0].checksum:
        raise InputError(
            "the result is not of these phase values, their checksums differ: call identify(phase.record, ...) first"
        )
    if phase.levels_sd is None:
        phase.variants()  # raises, with what to do
    assert phase.levels_sd is not None
    return phase.levels_sd


def _with_errors(result: Result, phase: Phase, sd: tuple[float, float], moved: list[Result]) -> Result:
    posterior = result.posterior
    shifts = np.stack([_lifted(one, result) - _lifted(result, result) for one in moved])
    if posterior is not None:
        posterior = replace(posterior, drift=np.vstack([posterior.drift, shifts]))
    return replace(
        result,
        posterior=posterior,
        levels=LevelErrors(phase.levels, sd, shifts, _force_change(result, moved), _epsilon_change(result, moved)),
        grey=phase.quality,
    )


def _lifted(result: Result, like: Result) -> Array:
    """Return the coefficients in the family of the posterior, or of the law where there is none."""
    family = like.law.family if like.posterior is None else like.posterior.family
    return np.asarray(family.at(result.degree).elevation(family) @ result.coefficients)


def _force_change(result: Result, moved: list[Result]) -> float:
    u = np.linspace(*result.law.phases, _POINTS)
    force = result.force(u)
    parts = [np.linalg.norm(one.force(u) - force) / np.linalg.norm(force) for one in moved]
    return float(np.linalg.norm(parts))


def _epsilon_change(result: Result, moved: list[Result]) -> float | None:
    scales = [one.scale for one in (result, *moved)]
    if any(scale is None for scale in scales):
        return None
    sizes = [scale.epsilon for scale in scales if scale is not None]
    return float(np.linalg.norm([size / sizes[0] - 1.0 for size in sizes[1:]]))

"""Goal: how long to record, or how quietly, for an error that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log, prod
from typing import Literal

from doublewell.checks import positive, shown
from doublewell.errors import InputError
from doublewell.likelihood import Information
from doublewell.plan.experiment import Experiment, longer
from doublewell.plan.prediction import Analysis, Prediction, experiment_information, predict
from doublewell.weak import LEAST_FRAMES

__all__ = ["Goal", "Quantity", "check_goal", "error_of", "reach"]

Quantity = Literal["force", "potential", "epsilon"]
Say = Callable[[str], None]
_MOST_VALUES = 4_000_000  # of the longest movie tried: 1.4 GB of memory
_IDLE = -0.03  # power of the frames, 2 % for a doubling: where the error falls more slowly, no longer movie is tried
_CLOSE = 0.03  # the number of frames, or the noise, is found to this share
_NEAR = 0.97  # share of the target above which an error meets it closely
_AIM = 0.99  # share of the target that the search aims at, so that it ends on the right side
_MOST_TRIES = 8  # of a noise level
_SILENT = 1e-3  # share of the planned noise below which the rest of the error is bias


@dataclass(frozen=True, eq=False)
class Goal:
    """What it takes to reach an error.

    ``frames`` is the length that reaches ``target`` closely, with its ``prediction``; None where no length tried does,
    and ``status`` says why. ``noise`` is the noise that would reach it in the planned number of frames; None where the
    plan reaches it already, or no noise does. ``tried`` lists lengths and their errors, shortest first.
    """

    target: float
    quantity: Quantity
    frames: int | None
    prediction: Prediction | None
    noise: float | None
    tried: tuple[tuple[int, float], ...]
    status: str


def check_goal(target: float, quantity: str) -> None:
    """Refuse a target that is no share, and a quantity that has no predicted error."""
    if positive(target, "target", "a relative error, such as 0.01 for 1 %") >= 1.0:
        raise InputError(f"target is {target:g}: expected a relative error below 1, such as 0.01 for 1 %")
    if quantity not in ("force", "potential", "epsilon"):
        raise InputError(f"target_of is {shown(quantity)}: expected 'force', 'potential' or 'epsilon'")


def error_of(prediction: Prediction, quantity: Quantity) -> float:
    """Return one of the predicted errors; one that the law does not have raises."""
    value = {"force": prediction.force, "potential": prediction.potential, "epsilon": prediction.epsilon}[quantity]
    if value is None:
        raise InputError(
            f"the error of {quantity} is not defined: the law, or what is recovered of it, has no surface tension; ask "
            "for the error of the force"
        )
    return value


def reach(
    experiment: Experiment,
    information: Information,
    analysis: Analysis,
    *,
    base: Prediction,
    target: float,
    quantity: Quantity,
    say: Say,
) -> Goal:
    """Search for the shortest movie, at the planned interval, whose predicted error is at most `target`.

    Lengths are doubled (or halved) from the planned one, whose prediction is `base`, until the error is on the other
    side, then narrowed down. None is shorter than what ``identify`` can read.
    """
    known = {experiment.frames: base}

    def error(frames: int, film: Experiment) -> float:
        """Return the error of the first frames of a film."""
        if frames not in known:
            say(f"trying {frames} frames")
            known[frames] = predict(film, experiment_information(film, seen=frames), analysis)
        return error_of(known[frames], quantity)

    planned = error(experiment.frames, experiment)
    film, status = (experiment, "") if planned <= target else _extend(experiment, error, target)
    missed = max((k for k in known if error(k, film) > target), default=0)
    frames = None if status else _narrow(film, error, target, missed)
    noise = None if planned <= target else _quiet(experiment, information, analysis, target, quantity, planned)
    tried = tuple((k, error_of(known[k], quantity)) for k in sorted(known))
    found = None if frames is None else known[frames]
    return Goal(target, quantity, frames, found, noise, tried, status or "reached")


def _extend(experiment: Experiment, error: Callable[[int, Experiment], float], target: float) -> tuple[Experiment, str]:
    """Double the length until the target is met; or say why that does not help."""
    film, before = experiment, error(experiment.frames, experiment)
    most = _MOST_VALUES // prod(experiment.initial.shape)
    said = ""
    while film.frames < most:
        longest = film.frames
        film = replace(film, frames=min(longer(film).frames, most))
        now = error(film.frames, film)
        if now <= target:
            return film, ""
        rate = log(now / before) / log(film.frames / longest)  # the error falls as this power of the frames
        if rate > _IDLE:
            return film, f"recording longer does not help: {film.frames} frames leave {now / before:.0%} of the error"
        said = f"; at the last rate it would take about {film.frames * (target / now) ** (1.0 / rate):.2g}"
        before = now
    return film, f"more than {film.frames} frames are too large to try{said}"


def _narrow(film: Experiment, error: Callable[[int, Experiment], float], target: float, missed: int) -> int:
    """Return frames of a film that meet the target closely, by interpolation in logarithms; `missed` do not meet it."""
    high, low = film.frames, missed or max(LEAST_FRAMES, (film.frames + 1) // 2)
    while low > LEAST_FRAMES and error(low, film) <= target:
        high, low = low, max(LEAST_FRAMES, (low + 1) // 2)
    if error(low, film) <= target:
        return low
    while high - low > max(1.0, _CLOSE * high) and error(high, film) < _NEAR * target:
        slope = log(error(high, film) / error(low, film)) / log(high / low)
        guess = low * exp(log(_AIM * target / error(low, film)) / slope) if slope < 0.0 else 0.5 * (low + high)
        margin = max(1, (high - low) // 8)  # never so close to an end that the other one stays where it is
        middle = int(min(max(round(guess), low + margin), high - margin))
        low, high = (low, middle) if error(middle, film) <= target else (middle, high)
    return high


def _quiet(
    experiment: Experiment,
    information: Information,
    analysis: Analysis,
    target: float,
    quantity: Quantity,
    planned: float,
) -> float | None:
    """Return the noise at which the planned movie meets the target, to 3 %; None where none does."""
    noise, now = experiment.noise, planned
    for _ in range(_MOST_TRIES):
        noise *= target / now  # the error is close to proportional to the noise
        now = error_of(predict(replace(experiment, noise=noise), information, analysis), quantity)
        if abs(now / target - 1.0) <= _CLOSE:
            return noise
        if noise < _SILENT * experiment.noise:
            break
    return None

"""Planning: the errors of an experiment before it is made, what would lower them, and what reaches a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import exp, log, prod
from textwrap import wrap
from typing import Literal

import numpy as np

from doublewell.errors import InputError, option, positive, shown
from doublewell.hints import Report
from doublewell.law import CONSTRAINTS, Constraint
from doublewell.observation import TOO_FEW_CELLS, check_survey, survey
from doublewell.plan.experiment import (
    CHANGES,
    Analysis,
    Degree,
    Experiment,
    Information,
    Prediction,
    experiment_information,
    predict,
)
from doublewell.problem import ask
from doublewell.progress import reporting
from doublewell.record import Record
from doublewell.record.arrays import PhaseScale
from doublewell.record_findings import survey_findings
from doublewell.units import percent
from doublewell.weak.weights import LEAST_FRAMES

Quantity = Literal["force", "potential", "epsilon"]
Show = Callable[[str], None]
_UNFINISHED = 0.05  # relative residual of the solves behind the information above which it is too large
_MOST_VALUES = 4_000_000  # of the longest movie tried: 1.4 GB of memory
_IDLE = -0.03  # power of the frames, 2 % for a doubling: where the error falls more slowly, no longer movie is tried
_CLOSE = 0.03  # relative accuracy of the number of frames, and of the noise
_NEAR = 0.97  # fraction of the target above which an error meets it closely
_AIM = 0.99  # fraction of the target that the search aims at, so that it ends on the right side
_MOST_TRIES = 8  # of a noise level
_SILENT = 1e-3  # fraction of the planned noise below which the rest of the error is bias
_WIDTH = 98
_NAMES = {"force": "G", "potential": "F", "epsilon": "epsilon"}
_MOST_BIAS = 0.7  # of the error: half of its square
_UNCHANGED = 0.98  # a change that leaves more of the error than this gains nothing


@dataclass(frozen=True, eq=False)
class Option:
    """One change of the experiment with its predicted errors; ``refusal`` is why a change cannot be made."""

    name: str
    experiment: Experiment | None
    prediction: Prediction | None
    refusal: str | None


@dataclass(frozen=True, eq=False)
class Goal:
    """What it takes to reach an error.

    ``frames`` is the length that reaches ``target`` closely, with its ``prediction``; None where no length tried does,
    with the reason in ``status``. ``noise`` is the noise that would reach it in the planned number of frames; None
    where the plan reaches it already, or no noise does. ``tried`` lists lengths and their errors, shortest first.
    """

    target: float
    quantity: Quantity
    frames: int | None
    prediction: Prediction | None
    noise: float | None
    tried: tuple[tuple[int, float], ...]
    status: str


@dataclass(frozen=True, eq=False)
class Plan:
    """The predicted errors of an experiment, of its variants (best first), and the answer to a target.

    ``print(plan)`` gives the tables. ``notes`` are warnings about the movie itself.
    """

    experiment: Experiment
    analysis: Analysis
    prediction: Prediction
    options: tuple[Option, ...]
    goal: Goal | None
    notes: tuple[str, ...]

    @property
    def best(self) -> Option:
        """The change with the smallest error of the force."""
        return self.options[0]

    @property
    def advice(self) -> str:
        """What helps most, in one or two sentences."""
        possible = [option for option in self.options if option.prediction is not None]
        if not possible:
            return "No change could be computed."
        first, *others = possible
        if _ratio(self, first) > _UNCHANGED:
            return "None of these changes lowers the error of G." + _why_bias(self)
        text = f"What helps most is {_described(first)}: the error of G times {_ratio(self, first):.2f}."
        if first.name == "half the noise" and others:
            rest = f" With the noise as it is, {_described(others[0])}: times {_ratio(self, others[0]):.2f}."
            text += " Nothing else lowers it." if _ratio(self, others[0]) > _UNCHANGED else rest
        return text + _why_bias(self)

    def __str__(self) -> str:
        """Return the errors to expect, what would change them, and what reaches the target."""
        degree = "averaged over degrees" if self.analysis.degree == "auto" else f"degree {self.analysis.degree}"
        head = f"Plan: {self.experiment}; fit: {degree}, {CONSTRAINTS[self.analysis.constraint]}"
        sections = [
            ("Expected errors (root mean square, relative)", _error_lines(self)),
            ("Effect of a change", _option_lines(self)),
        ]
        if self.goal is not None:
            sections.append(("Target", _goal_lines(self.experiment, self.goal)))
        if self.notes:
            notes = [wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ") for note in self.notes]
            sections.append(("Warnings", (line for note in notes for line in note)))
        body = "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections)
        return "\n".join(wrap(head, _WIDTH, subsequent_indent="  ")) + f"\n{body}"


def plan(
    experiment: Experiment,
    *,
    degree: Degree = "auto",
    constraint: Constraint = "admissible",
    tension_error: float = 0.0,
    target: float | None = None,
    target_of: Quantity = "force",
    progress: Report | bool | None = None,
) -> Plan:
    """Predict the errors of G, F and epsilon for an experiment and for changes of it.

    Parameters
    ----------
    experiment
        The movie to be recorded.
    degree, constraint
        How it will be fitted, as for ``identify``.
    tension_error
        Relative standard deviation of the surface tension that will fix epsilon and F.
    target, target_of
        A relative error, and of what: the number of frames that reaches it is searched for.
    progress
        True shows a bar; a function is called with (what is being predicted, 0, 0).

    A movie that ``identify`` would refuse, for instance one without an interface, is refused here too; a search for
    frames ends at 13. One change costs about as much as the last step of a fit of its movie. The prediction is the
    linearised likelihood of white noise at the given law: it knows of no drift, no blur and no error of q.
    """
    if not isinstance(experiment, Experiment):
        raise InputError(f"experiment is {shown(experiment)}: expected an Experiment(law, initial, dx=, dt=, ...)")
    analysis = Analysis(degree, constraint, tension_error)
    if target is not None and positive(target, "target", "a relative error, such as 0.01 for 1 %") >= 1.0:
        raise InputError(f"target is {target:g}: expected a relative error below 1, such as 0.01 for 1 %")
    if target is not None and target_of not in _NAMES:
        raise InputError(f"target_of is {shown(target_of)}: expected 'force', 'potential' or 'epsilon'")
    warnings = _survey_notes(experiment)
    with reporting(progress) as report:

        def show(words: str) -> None:
            if report is not None:
                report(f"predicting: {words}", 0, 0)

        show("as planned")
        information = experiment_information(experiment)
        if information.solve > _UNFINISHED:
            warnings += (
                f"the errors are too small: the solves behind them reached only {information.solve:.1g} of their "
                "start; a start that is unstable for so long cannot be planned, shorten the movie",
            )
        base = predict(experiment, information, analysis)
        goal = None
        if target is not None:
            goal = reach(experiment, information, analysis, base=base, target=target, quantity=target_of, show=show)
        options = []
        for name in CHANGES:
            show(name)
            options.append(_option(experiment, information, analysis, name))
    options.sort(key=lambda option: float("inf") if option.prediction is None else option.prediction.force)
    return Plan(experiment, analysis, base, tuple(options), goal, warnings)


def _survey_notes(experiment: Experiment) -> tuple[str, ...]:
    """Survey the movie, with its noise, and return warnings; one that ``identify`` would refuse is refused here."""
    shape = (experiment.frames, *experiment.initial.shape)
    empty = np.broadcast_to(np.zeros(()), shape)  # the size is checked before the movie is made
    try:
        plain = Record(empty, dx=experiment.dx, dt=experiment.dt, boundary=experiment.boundary)
        ask([plain], dynamics=experiment.equation)
        scale = PhaseScale(*experiment.force.phases)
        surveyed = survey(experiment.movie.replace(scale(experiment.movie.slab())))
        surveyed = replace(surveyed, noise=experiment.noise / experiment.force.half)
        if not experiment.found or surveyed.two_valued or (surveyed.cells or TOO_FEW_CELLS) < TOO_FEW_CELLS:
            check_survey(surveyed)  # a conserved field may be of one phase
    except InputError as error:
        raise InputError(f"identify could not fit this movie: {error}") from error
    return tuple(str(finding) for finding in survey_findings(surveyed))


def _option(experiment: Experiment, information: Information, analysis: Analysis, name: str) -> Option:
    """Predict one change; half the noise needs no other movie."""
    try:
        other = CHANGES[name][0](experiment)
        known = information if name == "half the noise" else experiment_information(other)
        return Option(name, other, predict(other, known, analysis), None)
    except InputError as error:
        return Option(name, None, None, str(error))


def error_of(prediction: Prediction, quantity: Quantity) -> float:
    """Return one of the predicted errors; one that the law does not have raises."""
    value: float | None = getattr(prediction, quantity)
    if value is None:
        raise InputError(
            f"the error of {quantity} is not defined: the law, or what is recovered of it, has no surface tension; "
            "choose the error of the force"
        )
    return value


def reach(
    experiment: Experiment, information: Information, analysis: Analysis, *,
    base: Prediction, target: float, quantity: Quantity, show: Show,
) -> Goal:  # fmt: skip
    """Search for the shortest movie, at the planned interval, whose predicted error is at most `target`.

    Lengths are doubled (or halved) from the planned one, whose prediction is `base`, until the error is on the other
    side, then narrowed down. None is shorter than what ``identify`` can fit.
    """
    known = {experiment.frames: base}

    def error(frames: int, film: Experiment) -> float:
        """Return the error of the first frames of a film."""
        if frames not in known:
            show(f"trying {frames} frames")
            known[frames] = predict(film, experiment_information(film, frames=frames), analysis)
        return error_of(known[frames], quantity)

    planned = error(experiment.frames, experiment)
    film, status = (experiment, "") if planned <= target else _extend(experiment, error, target)
    missed = max((k for k in known if error(k, film) > target), default=0)
    frames = None if status else _narrow(film, error, target, missed)
    noise = None if planned <= target else _quiet(experiment, information, analysis, target, quantity, planned)
    tried = tuple((k, error_of(known[k], quantity)) for k in sorted(known))
    prediction = None if frames is None else known[frames]
    return Goal(target, quantity, frames, prediction, noise, tried, status or "reached")


def _extend(experiment: Experiment, error: Callable[[int, Experiment], float], target: float) -> tuple[Experiment, str]:
    """Double the length until the target is met; or return why that does not help."""
    film, before = experiment, error(experiment.frames, experiment)
    most = _MOST_VALUES // prod(experiment.initial.shape)
    estimate = ""
    while film.frames < most:
        longest = film.frames
        film = replace(film, frames=min(2 * longest - 1, most))
        now = error(film.frames, film)
        if now <= target:
            return film, ""
        rate = log(now / before) / log(film.frames / longest)  # the error falls as this power of the frames
        if rate > _IDLE:
            return film, f"recording longer does not help: {film.frames} frames leave {now / before:.0%} of the error"
        estimate = f"; at the last rate it would take about {film.frames * (target / now) ** (1.0 / rate):.2g}"
        before = now
    return film, f"more than {film.frames} frames are too large to try{estimate}"


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
    experiment: Experiment, information: Information, analysis: Analysis, target: float, quantity: Quantity,
    planned: float,
) -> float | None:  # fmt: skip
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


def _error_lines(plan: Plan) -> Iterator[str]:
    errors, tension = plan.prediction, plan.analysis.tension_error
    yield f"G {percent(errors.force)}, F {_percent(errors.potential)}, epsilon {_percent(errors.epsilon)}"
    if errors.bound is not None:
        yield f"Cramer-Rao bound of G at this degree: {percent(errors.bound)}"
    yield f"bias of G, the part that more records would not average away: {percent(errors.bias)}"
    if errors.wells is not None:
        low, high = errors.wells
        yield f"coexisting phases: low +- {low:.2g}, high +- {high:.2g}"
    yield "at the phase value   " + "  ".join(f"{u:5.2f}" for u in errors.phases[1:-1])
    yield "G, % of its largest  " + "  ".join(f"{100 * e:5.2g}" for e in errors.pointwise[1:-1])
    if errors.epsilon is not None and tension:
        yield f"the surface tension's own error of {percent(tension)} is in F and epsilon"
    elif errors.epsilon is not None:
        yield "F and epsilon take the surface tension as exact"
    if errors.refused > 0.0:
        yield f"{percent(errors.refused)} of the records would give a law that no surface tension can scale"


def _option_lines(plan: Plan) -> Iterator[str]:
    yield f"{'':<46}{'G':>9}{'F':>9}{'epsilon':>9}{'G error':>9}"
    yield _row("as planned", plan.prediction, "")
    for change in plan.options:
        if change.prediction is None:
            yield from wrap(f"{change.name}: not possible ({change.refusal})", _WIDTH)
        else:
            yield _row(_described(change), change.prediction, f"x {_ratio(plan, change):.2f}")
    yield from wrap(plan.advice, _WIDTH)


def _row(name: str, errors: Prediction, ratio: str) -> str:
    columns = f"{percent(errors.force):>9}{_percent(errors.potential):>9}{_percent(errors.epsilon):>9}"
    return f"{name:<46}{columns}{ratio:>9}".rstrip()


def _described(option: Option) -> str:
    """Return the name of a change with its numbers."""
    assert option.experiment is not None
    return f"{option.name} ({CHANGES[option.name][1](option.experiment)})"


def _ratio(plan: Plan, option: Option) -> float:
    assert option.prediction is not None
    return option.prediction.force / plan.prediction.force


def _why_bias(plan: Plan) -> str:
    if plan.prediction.bias < _MOST_BIAS * plan.prediction.force:
        return ""
    if plan.analysis.degree == "auto":
        return " Most of the error is bias, of the constraint or of the average over degrees."
    words = f"Most of the error is bias: degree {plan.analysis.degree} cannot follow this law"
    return f" {words}; use {option('degree', 'auto')}."


def _goal_lines(experiment: Experiment, goal: Goal) -> Iterator[str]:
    wanted = f"error of {_NAMES[goal.quantity]} {percent(goal.target)}"
    if goal.frames is None:
        yield from wrap(f"{wanted}: no length that was tried reaches it; {goal.status}", _WIDTH)
    elif goal.frames <= experiment.frames:
        error = dict(goal.tried)[experiment.frames]
        yield f"{wanted}: target already met, the planned {experiment.frames} frames reach {percent(error)}"
        if goal.frames < experiment.frames:
            yield f"{goal.frames} frames would do, until t = {(goal.frames - 1) * experiment.dt:.6g}"
    else:
        time = (goal.frames - 1) * experiment.dt
        yield f"{wanted}: {goal.frames} frames, until t = {time:.6g} ({experiment.frames} are planned)"
    if goal.noise is not None:
        yield f"or the planned {experiment.frames} frames with noise {goal.noise:.2g} (planned {experiment.noise:.3g})"
    elif goal.frames is None:
        yield f"and no noise does either in the planned {experiment.frames} frames: its error is bias"
    tried = ", ".join(f"{frames}: {100 * error:.3g} %" for frames, error in goal.tried)
    yield from wrap(f"frames tried: {tried}", _WIDTH)


def _percent(value: float | None) -> str:
    return "none" if value is None else percent(value)

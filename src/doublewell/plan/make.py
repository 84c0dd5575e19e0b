"""Plan: the errors of an experiment before it is made, and what would make them smaller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.inference import Constraint
from doublewell.likelihood import Information
from doublewell.observation import Survey, check_survey, survey
from doublewell.plan.experiment import Experiment, faster, finer, longer, quieter, sparser
from doublewell.plan.goal import Goal, Quantity, check_goal, reach
from doublewell.plan.prediction import Analysis, Degree, Prediction, experiment_information, predict
from doublewell.plan.text import render
from doublewell.record import Record
from doublewell.record_findings import survey_findings
from doublewell.weak import default_supports

__all__ = ["Option", "Plan", "plan"]

Say = Callable[[str], None]
_UNFINISHED = 0.05  # relative residual of the solves behind the information above which it is too large
_CHANGES: tuple[tuple[str, Callable[[Experiment], Experiment]], ...] = (
    ("half the noise", quieter),
    ("twice as long", longer),
    ("twice as often", faster),
    ("twice the pixels", finer),
    ("same frames, twice the time", sparser),
)


@dataclass(frozen=True, eq=False)
class Option:
    """One change of the experiment with its predicted errors; ``refusal`` says why a change cannot be made."""

    name: str
    experiment: Experiment | None
    prediction: Prediction | None
    refusal: str | None


@dataclass(frozen=True, eq=False)
class Plan:
    """The predicted errors of an experiment, of its variants (best first), and the answer to a target.

    ``print(plan)`` gives the tables. ``notes`` say what the movie itself will lack.
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

    def __str__(self) -> str:
        return render(self)


def plan(
    experiment: Experiment,
    *,
    degree: Degree = "auto",
    constraint: Constraint = "admissible",
    tension_error: float = 0.0,
    target: float | None = None,
    target_of: Quantity = "force",
    progress: Say | None = None,
) -> Plan:
    """Predict the errors of G, F and epsilon for an experiment and for changes of it.

    Parameters
    ----------
    experiment
        The movie to be recorded.
    degree, constraint
        How it will be read, as for ``identify``.
    tension_error
        Relative standard deviation of the surface tension that will fix epsilon and F.
    target, target_of
        A relative error, and of what: how many frames reach it is searched for.
    progress
        Called with what is being computed.

    A movie that ``identify`` would refuse, for instance one of fewer than 13 frames, is refused here too. One change
    costs about as much as the last step of a fit of its movie. The prediction is the linearised likelihood
    of white noise at the given law: it knows of no drift, no blur and no error of q.
    """
    if not isinstance(experiment, Experiment):
        raise InputError(f"experiment is {shown(experiment)}: expected an Experiment(law, initial, dx=, dt=, ...)")
    analysis = Analysis(degree, constraint, tension_error)
    if target is not None:
        check_goal(target, target_of)
    seen = _readable(experiment)
    say = progress or _silent
    say("as planned")
    known = experiment_information(experiment)
    base = predict(experiment, known, analysis)
    goal = None
    if target is not None:
        goal = reach(experiment, known, analysis, base=base, target=target, quantity=target_of, say=say)
    options = [_option(experiment, known, analysis, name, change, say) for name, change in _CHANGES]
    options.sort(key=lambda option: float("inf") if option.prediction is None else option.prediction.force)
    return Plan(experiment, analysis, base, tuple(options), goal, _notes(seen, known))


def _readable(experiment: Experiment) -> Survey:
    """Survey the movie, with its noise; one that ``identify`` would refuse is refused here."""
    shape = (experiment.frames, *experiment.initial.shape)
    empty = np.broadcast_to(np.zeros(()), shape)  # the size is checked before the movie is made
    try:
        default_supports(Record(empty, dx=experiment.dx, dt=experiment.dt), None)
        seen = replace(survey(experiment.movie), noise=experiment.noise)
        check_survey(seen)
    except InputError as error:
        raise InputError(f"identify could not read this movie: {error}") from error
    return seen


def _notes(seen: Survey, known: Information) -> tuple[str, ...]:
    """Say what the movie will lack, and where the prediction is too good."""
    said = tuple(str(item) for item in survey_findings(seen))
    if known.solve <= _UNFINISHED:
        return said
    return (
        *said,
        f"the errors are too small: the solves behind them reached only {known.solve:.1g} of their start; a start that "
        "is unstable for so long cannot be planned, shorten the movie",
    )


def _option(
    experiment: Experiment,
    known: Information,
    analysis: Analysis,
    name: str,
    change: Callable[[Experiment], Experiment],
    say: Say,
) -> Option:
    """Predict one change; half the noise needs no other movie."""
    say(name)
    try:
        other = change(experiment)
        information = known if change is quieter else experiment_information(other)
        return Option(name, other, predict(other, information, analysis), None)
    except InputError as error:
        return Option(name, None, None, str(error))


def _silent(_: str) -> None:
    """Say nothing, where nobody asked."""

"""The printed form of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from doublewell.inference import CONSTRAINTS
from doublewell.wording import percent

if TYPE_CHECKING:
    from doublewell.plan.experiment import Experiment
    from doublewell.plan.goal import Goal
    from doublewell.plan.make import Option, Plan
    from doublewell.plan.prediction import Prediction

__all__ = ["advice", "render"]

_WIDTH = 98
_NAMES = {"force": "G", "potential": "F", "epsilon": "epsilon"}
_SHARE_OF_BIAS = 0.7  # of the error: half of its square
_ALIKE = 0.98  # a change that leaves more of the error than this buys nothing


def render(plan: Plan) -> str:
    """Return the plan: the errors to expect, what would change them, and what reaches the target."""
    sections = [
        ("Expected errors (root mean square, relative)", _error_lines(plan)),
        ("What a change buys", _option_lines(plan)),
    ]
    if plan.goal is not None:
        sections.append(("Target", _goal_lines(plan.experiment, plan.goal)))
    if plan.notes:
        sections.append(("Warnings", (line for note in plan.notes for line in _bullet(note))))
    body = "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections)
    return f"{_wrapped_head(plan)}\n{body}"


def advice(plan: Plan) -> str:
    """Say in one or two sentences what buys most."""
    made = [option for option in plan.options if option.prediction is not None]
    if not made:
        return "No change could be computed."
    first, *others = made
    if _ratio(plan, first) > _ALIKE:
        return "None of these changes lowers the error of G." + _why_bias(plan)
    said = f"Most is bought by {_words(first)}: the error of G times {_ratio(plan, first):.2f}."
    if first.name == "half the noise" and others:
        second = others[0]
        if _ratio(plan, second) > _ALIKE:
            said += " Nothing else lowers it."
        else:
            said += f" With the noise as it is, by {_words(second)}: times {_ratio(plan, second):.2f}."
    return said + _why_bias(plan)


def _wrapped_head(plan: Plan) -> str:
    asked = plan.analysis
    degree = "averaged over degrees" if asked.degree == "auto" else f"degree {asked.degree}"
    kind = CONSTRAINTS[asked.constraint]
    return "\n".join(wrap(f"Plan: {plan.experiment}; read as {degree}, {kind}", _WIDTH, subsequent_indent="  "))


def _error_lines(plan: Plan) -> Iterator[str]:
    found, asked = plan.prediction, plan.analysis
    yield f"G {percent(found.force)}, F {_share(found.potential)}, epsilon {_share(found.epsilon)}"
    if found.bound is not None:
        yield f"Cramer-Rao bound of G at this degree: {percent(found.bound)}"
    yield f"bias of G, the part that more records would not average away: {percent(found.bias)}"
    phases = "  ".join(f"{u:5.2f}" for u in found.phases[1:-1])
    errors = "  ".join(f"{100 * e:5.2g}" for e in found.pointwise[1:-1])
    yield f"at the phase value   {phases}"
    yield f"G, % of its largest  {errors}"
    if found.epsilon is not None and asked.tension_error:
        yield f"the surface tension's own error of {percent(asked.tension_error)} is in F and epsilon"
    elif found.epsilon is not None:
        yield "F and epsilon take the surface tension as exact"
    if found.refused > 0.0:
        yield f"{percent(found.refused)} of the records would give a law that no surface tension can scale"


def _option_lines(plan: Plan) -> Iterator[str]:
    yield f"{'':<46}{'G':>9}{'F':>9}{'epsilon':>9}{'G error':>9}"
    yield _row("as planned", plan.prediction, "")
    for option in plan.options:
        if option.prediction is None:
            yield from _wrapped(f"{option.name}: not possible ({option.refusal})")
        else:
            yield _row(_words(option), option.prediction, f"x {_ratio(plan, option):.2f}")
    yield from _wrapped(advice(plan))


def _row(name: str, found: Prediction, ratio: str) -> str:
    errors = f"{percent(found.force):>9}{_share(found.potential):>9}{_share(found.epsilon):>9}"
    return f"{name:<46}{errors}{ratio:>9}".rstrip()


def _words(option: Option) -> str:
    """Name a change with its numbers."""
    made = option.experiment
    assert made is not None
    mesh = " x ".join(str(n) for n in made.initial.shape)
    numbers = {
        "half the noise": f"{made.noise:.3g}",
        "twice as long": f"{made.frames} frames",
        "twice as often": f"{made.frames} frames, dt = {made.dt:.3g}",
        "twice the pixels": mesh,
        "same frames, twice the time": f"dt = {made.dt:.3g}",
    }
    return f"{option.name} ({numbers[option.name]})"


def _ratio(plan: Plan, option: Option) -> float:
    assert option.prediction is not None
    return option.prediction.force / plan.prediction.force


def _why_bias(plan: Plan) -> str:
    found = plan.prediction
    if found.bias < _SHARE_OF_BIAS * found.force:
        return ""
    if plan.analysis.degree == "auto":
        return " Most of the error is bias, of the constraint or of the average over degrees."
    return f" Most of the error is bias: degree {plan.analysis.degree} cannot follow this law; use degree='auto'."


def _goal_lines(experiment: Experiment, goal: Goal) -> Iterator[str]:
    asked = f"error of {_NAMES[goal.quantity]} {percent(goal.target)}"
    if goal.frames is None:
        yield from _wrapped(f"{asked}: no length that was tried reaches it; {goal.status}")
    elif goal.frames <= experiment.frames:
        error = dict(goal.tried)[experiment.frames]
        yield f"{asked}: target already met, the planned {experiment.frames} frames reach {percent(error)}"
        if goal.frames < experiment.frames:
            yield f"{goal.frames} frames would do, until t = {(goal.frames - 1) * experiment.dt:.6g}"
    else:
        time = (goal.frames - 1) * experiment.dt
        yield f"{asked}: {goal.frames} frames, until t = {time:.6g} ({experiment.frames} are planned)"
    if goal.noise is not None:
        yield f"or the planned {experiment.frames} frames with noise {goal.noise:.2g} (planned {experiment.noise:.3g})"
    elif goal.frames is None:
        yield f"and no noise does either in the planned {experiment.frames} frames: its error is bias"
    tried = ", ".join(f"{frames}: {100 * error:.3g} %" for frames, error in goal.tried)
    yield from _wrapped(f"frames tried: {tried}")


def _bullet(text: str) -> list[str]:
    first, *rest = _wrapped(text, _WIDTH - 2)
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _share(value: float | None) -> str:
    return "none" if value is None else percent(value)


def _wrapped(text: str, width: int = _WIDTH) -> list[str]:
    return wrap(text, width) or [""]

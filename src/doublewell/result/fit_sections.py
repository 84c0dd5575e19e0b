"""Sections about the fit: how it went, whether the record fits the model, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator

from doublewell.adequacy import Adequacy, ScoreTest
from doublewell.result.result import Likelihood, Result, Tiling
from doublewell.result.wording import WIDTH, class_words, count, heaviest, held_at, names, percent, phase_list, wrapped

__all__ = ["fit_lines", "model_lines", "warning_lines"]

_TABLE = 106  # wider than sentences, so that most tests need one line
_POINTERS = {
    "not adequate": "the record is not this model plus white noise, so the bands do not hold: see Model",
    "look": "a test of the model is significant: see Model",
}


def fit_lines(result: Result) -> Iterator[str]:
    """Write how the fit of either reading went."""
    return _weak_lines(result) if result.diagnostics.likelihood is None else _likelihood_lines(result)


def _weak_lines(result: Result) -> Iterator[str]:
    asked, numbers = result.settings, result.diagnostics
    supports = ", ".join(f"({n} frames, {x:.4g})" for n, x in asked.supports)
    yield from wrapped(f"supports {supports}: {asked.supports_rule}", indent="  ")
    yield (
        f"{numbers.rows} moments, residual {percent(numbers.residual)}, condition number "
        f"{numbers.scaled_condition:.3g} (columns scaled), optimality {numbers.kkt or 0.0:.1e}"
    )
    ridge = "" if numbers.ridge is None else f"; ridge alpha = {numbers.ridge.alpha:g}"
    yield _held(result) + ridge
    if len(numbers.supports) > 1:
        yield f"one support alone changes the force by up to {percent(numbers.support_spread)}"


def _likelihood_lines(result: Result) -> Iterator[str]:
    numbers, fit = result.diagnostics, result.diagnostics.likelihood
    assert fit is not None
    yield f"noise found {fit.noise:.4g} per pixel, {numbers.rows} values, condition number {numbers.condition:.3g}"
    yield from wrapped(_iteration(fit) if fit.tiles is None else _tiles(result, fit, fit.tiles), indent="  ")
    if fit.segments > 1:
        yield from wrapped(_segments(fit), indent="  ")
    yield (
        f"resolution: half the time step would move the estimate by {fit.time_size:.2g} standard errors, a finer mesh "
        f"by {fit.mesh_size:.2g}"
    )
    yield from wrapped(_constraint(result, fit), indent="  ")
    if result.settings.ridge is not None:
        yield f"ridge alpha = {result.settings.ridge}; the intervals are those without it"


def _iteration(fit: Likelihood) -> str:
    solves = sum(step.iterations for step in fit.steps)
    steps, rounds = count(len(fit.steps), "step"), count(fit.rounds, "linearisation")
    return (
        f"Gauss-Newton {fit.status}; {steps}, {solves} of conjugate gradients, then {rounds}; "
        f"{count(fit.substeps, 'solver step')} from frame to frame"
    )


def _tiles(result: Result, fit: Likelihood, tiles: Tiling) -> str:
    """Say how a record was read in parts."""
    shape = " x ".join(str(n) for n in tiles.shape)
    parts = [f"read as {count(tiles.read, 'window')} of at most {shape} values, each with a border of its own"]
    if tiles.empty:
        parts.append(f"{tiles.empty} without an interface were left out, for they say nothing of the law")
    if tiles.lost:
        parts.append(f"{tiles.lost} could not be followed")
    agreed = sum(one.agrees for one in result.agreements)
    parts.append(f"{agreed} of {len(result.agreements)} agree with the others")
    if tiles.checked:
        parts.append(f"the model was checked on {tiles.checked} of them")
    return (
        f"{'; '.join(parts)}; {count(fit.rounds, 'linearisation')}; {count(fit.substeps, 'solver step')} from frame to "
        f"frame; {fit.status}"
    )


def _segments(fit: Likelihood) -> str:
    return (
        f"the record amplifies its initial field: it was cut into {fit.segments} segments, and these were linked step "
        "by step into one trajectory"
    )


def _held(result: Result) -> str:
    """Write the constraint of the weak reading and what it holds."""
    numbers, words = result.diagnostics, class_words(result)
    if result.settings.constraint == "none":
        return words
    if result.settings.constraint == "bernstein":
        return f"{words}, at the bound: {names(numbers.active) or 'none'}"
    return f"{words}, the bracket touches zero at |u| = {phase_list(numbers.contacts)}" if numbers.contacts else words


def _constraint(result: Result, fit: Likelihood) -> str:
    words, numbers = class_words(result), result.diagnostics
    if result.settings.constraint == "none":
        return words
    said = f"{words}: chi2 rises by {max(fit.constraint_rise, 0.0):.1f}"
    if numbers.active:
        said += f"; at the bound: {names(numbers.active)} of degree {heaviest(result).degree}"
    if numbers.contacts:
        said += f"; the bracket touches zero at |u| = {phase_list(numbers.contacts)}"
    return said + (", so the intervals show the spread of the constrained estimate" if held_at(numbers) else "")


def model_lines(result: Result) -> Iterator[str]:
    """Write whether the record looks like the model plus white noise; nothing for the weak reading, which cannot ask.

    The probabilities are those after the correction for the number of tests.
    """
    if result.diagnostics.likelihood is None:
        return
    answer = result.adequacy
    if answer is None:
        yield "not asked: the check was switched off, so nothing says whether the record is this model plus white noise"
        return
    for sentence in _verdict_sentences(answer):
        yield from wrapped(sentence, indent="  ")
    yield f"{'test':<12}{'z or chi2':>11}{'p adjusted':>12}"
    for test in answer.tests:
        yield from _test_lines(test)


def _verdict_sentences(answer: Adequacy) -> list[str]:
    first, *others = answer.words
    return [f"{answer.verdict}: {first}", *others]


def _test_lines(test: ScoreTest) -> Iterator[str]:
    size = f"{'z' if test.degrees == 1 else 'chi2'} {_size(test.statistic)}"
    head = f"{test.name:<12}{size:>11}{_chance(test.adjusted):>12}  "
    first, *rest = wrapped(test.words, _TABLE - len(head))
    yield head + first
    yield from (" " * len(head) + line for line in rest)


def _size(statistic: float) -> str:
    return f"{statistic:.2f}" if abs(statistic) < 9999.5 else f"{statistic:.1e}"


def _chance(p: float) -> str:
    return "< 1e-99" if p < 1e-99 else f"{p:.2g}"


def warning_lines(result: Result) -> Iterator[str]:
    """Write what to look at; what the section on the model says in full is only named here."""
    said = _without_model(result)
    if not said:
        yield "nothing unusual"
    for warning in said:
        first, *rest = wrapped(warning, WIDTH - 2)
        yield f"- {first}"
        yield from (f"  {line}" for line in rest)


def _without_model(result: Result) -> list[str]:
    answer, warnings = result.adequacy, list(result.diagnostics.warnings)
    if answer is None:
        return warnings
    told = {f"model {answer.verdict}: {line}" for line in answer.words}
    kept = [warning for warning in warnings if warning not in told]
    if len(kept) == len(warnings):
        return kept
    return [_POINTERS[answer.verdict], *kept]

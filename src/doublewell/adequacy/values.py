"""Adequacy: what was asked of the residual and what it answered."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Adequacy", "ScoreTest"]


@dataclass(frozen=True)
class ScoreTest:
    """One question to the residual. All numbers are what the model predicts to be pure noise.

    ``statistic`` is standard normal under the model, or chi-square where ``degrees`` > 1; ``p`` its two-sided
    probability and ``adjusted`` the same after Holm's correction for the number of tests. ``estimate`` and ``error``
    are the missing parameters and their standard errors; ``shift`` says by how many standard errors the law would move
    if they were fitted too, None where that has no meaning. ``words`` says it in a sentence.
    """

    name: str
    statistic: float
    degrees: int
    p: float
    adjusted: float
    estimate: tuple[float, ...]
    error: tuple[float, ...]
    shift: float | None
    words: str


@dataclass(frozen=True)
class Adequacy:
    """Whether the record looks like the model plus white noise: "adequate", "look" or "not adequate", and why."""

    tests: tuple[ScoreTest, ...]
    verdict: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        rows = [f"  {t.name:<12}{t.statistic:>9.2f}{t.p:>10.2g}{t.adjusted:>10.2g}  {t.words}" for t in self.tests]
        head = f"  {'test':<12}{'z or chi2':>9}{'p':>10}{'p, all':>10}"
        return "\n".join([f"model: {self.verdict}", *(f"  {line}" for line in self.words), head, *rows])

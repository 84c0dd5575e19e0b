"""Adequacy: the tests of a residual as numbers, which of them are significant, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

FALSE_ALARMS = 0.03  # of all tests together; some are approximate, and 5 % is what the user is promised
NUMERICAL = 1e-4  # residual over field: two solvers differ by this, measurements by more
STEADY = 0.1  # noise of the record over the residual below which the residual is not noise
_CERTAIN = 1e-3  # adjusted probability below which the model is refused; between the two: check
_GENTLE = ("tails", "outliers")  # least squares bears them, so they never refuse the model alone
_NAMED = 3.0  # a wrong boundary leaves traces of the same size; correlated noise far smaller scores than traces
_PLAIN = 2.0  # standard deviations of a cause that counts as a rival of the first
_CLOSE = 9.0  # difference of chi-square below which two causes cannot be distinguished


class Verdict(StrEnum):
    """Whether a record is the fitted model plus white noise."""

    ADEQUATE = "adequate"
    CHECK = "check"
    NOT_ADEQUATE = "not adequate"


@dataclass(frozen=True)
class Spot:
    """A value or a cell that stands out: its index, its (mean) deviation and the spread of that over the frames."""

    index: tuple[int, ...]
    size: float
    spread: float = 0.0


@dataclass(frozen=True)
class ScoreTest:
    """One test of the residual. All numbers are what the model predicts to be pure noise.

    ``statistic`` is standard normal under the model, or chi-square where ``degrees`` > 1; ``p`` its two-sided
    probability and ``adjusted`` the same after Holm's correction for the number of tests. ``estimate`` and ``error``
    are the missing parameters and their standard errors; ``shift`` is by how many standard errors the law would move
    if they were fitted too, None where that has no meaning. ``spots`` are the values or cells that stand out, the
    largest first, ``count`` how many there are of ``total``, and ``common`` what all of them share. ``part`` is the
    tile that the test is of.
    """

    name: str
    statistic: float
    degrees: int
    p: float
    adjusted: float
    estimate: tuple[float, ...]
    error: tuple[float, ...]
    shift: float | None
    spots: tuple[Spot, ...] = ()
    count: int = 0
    total: int = 0
    common: Literal["", "frame", "cell"] = ""
    part: str | None = None

    @property
    def sigma(self) -> float:
        """The size: the normal deviate of the same two-sided probability; beyond the range of numbers the statistic."""
        from scipy.special import ndtri

        if self.p > 1e-300:
            return abs(float(ndtri(0.5 * self.p)))
        return abs(self.statistic) if self.degrees == 1 else float(np.sqrt(self.statistic))

    @property
    def significant(self) -> bool:
        """Whether it counts after the correction for the number of tests."""
        return self.adjusted < FALSE_ALARMS

    @property
    def gentle(self) -> bool:
        """Whether least squares bears it: tails, and a noise that differs from cell to cell."""
        return self.name in _GENTLE or (self.name == "cells" and self.shift is None)

    @property
    def rank(self) -> float:
        """The order of significant tests: by size, a named cause before its traces in the residual."""
        return 0.0 if self.gentle else self.sigma * (_NAMED if self.shift is not None else 1.0)


@dataclass(frozen=True)
class Adequacy:
    """The tests of a residual and their verdict.

    ``relative_noise`` is the residual over the field, ``steadiness`` the noise of the record itself over the residual
    (None where it was not measured), and ``leftover`` the tests of neighbours after every named cause is taken out of
    the residual, made only where a named cause comes first.
    """

    tests: tuple[ScoreTest, ...]
    verdict: Verdict
    relative_noise: float = 1.0
    steadiness: float | None = None
    leftover: tuple[ScoreTest, ...] = ()

    @property
    def numerical(self) -> bool:
        """Whether the residual is of the size of differences between two solvers, so that the tests have no meaning."""
        return self.relative_noise < NUMERICAL

    @property
    def significant(self) -> tuple[ScoreTest, ...]:
        """The significant tests, the likeliest cause first; none where the residual is numerical."""
        return () if self.numerical else significant(self.tests)

    @property
    def rivals(self) -> tuple[ScoreTest, ...]:
        """Named causes that explain the residual about as well as the first of the significant tests."""
        first = self.significant[:1]
        return tuple(t for t in self.tests if first and t is not first[0] and _rival(first[0], t))

    @property
    def unexplained(self) -> ScoreTest | None:
        """The largest correlation that all named causes together leave, None where it may be chance."""
        worst = min(self.leftover, key=lambda t: t.p, default=None)
        return worst if worst is not None and len(self.leftover) * worst.p < _CERTAIN else None

    def __str__(self) -> str:
        rows = [f"  {t.name:<12}{t.statistic:>9.2f}{t.p:>10.2g}{t.adjusted:>10.2g}" for t in self.tests]
        head = f"  {'test':<12}{'z or chi2':>9}{'p':>10}{'p, all':>10}"
        return "\n".join([f"model: {self.verdict}", head, *rows])


def significant(tests: Sequence[ScoreTest]) -> tuple[ScoreTest, ...]:
    """Return the significant tests, the likeliest cause first."""
    return tuple(sorted((t for t in tests if t.significant), key=lambda t: t.rank, reverse=True))


def verdict_of(tests: Sequence[ScoreTest]) -> Verdict:
    """Return the verdict: not adequate below 0.1 % (what least squares bears aside), check below 3 %."""
    counted = significant(tests)
    if not counted:
        return Verdict.ADEQUATE
    certain = any(t.adjusted < _CERTAIN and not t.gentle for t in counted)
    return Verdict.NOT_ADEQUATE if certain else Verdict.CHECK


def _rival(first: ScoreTest, other: ScoreTest) -> bool:
    named = first.shift is not None and other.shift is not None and "cells" not in (first.name, other.name)
    return named and other.sigma > _PLAIN and first.sigma**2 - other.sigma**2 < _CLOSE

"""Results: questions that tables and figures ask of the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from doublewell.hints import Array
from doublewell_paper.line import Line
from doublewell_paper.statistics import Contrast, contrast

__all__ = ["Results"]


@dataclass(frozen=True, eq=False)
class Results:
    """All lines of a study that belong to the cases and settings asked for."""

    lines: tuple[Line, ...]

    def of(self, case: str, method: str, keep: Callable[[Line], bool] | None = None) -> list[Line]:
        """Return the lines of a case and a method in the order of their records' names, all or those kept."""
        found = [x for x in self.lines if (x.case, x.method) == (case, method) and (keep is None or keep(x))]
        return sorted(found, key=lambda line: line.record)

    def merged(self, cases: Iterable[str], method: str) -> list[Line]:
        """Return the lines of several cases and one method."""
        return [line for case in cases for line in self.of(case, method)]

    def mean(self, case: str, method: str, score: str, keep: Callable[[Line], bool] | None = None) -> float | None:
        """Return the mean of a score where it is defined; None where nothing is."""
        return mean(self.of(case, method, keep), score)

    def contrast(self, case: str, first: str, second: str, score: str = "e_G") -> Contrast | None:
        """Return the difference first - second of a score over records that both have, averaged for each seed.

        None where fewer than two seeds have any.
        """
        others = {line.record: line.score(score) for line in self.of(case, second)}
        groups: dict[int, list[float]] = {}
        for line in self.of(case, first):
            difference = line.score(score) - others.get(line.record, float("nan"))
            if line.spec.seed is not None and np.isfinite(difference):
                groups.setdefault(line.spec.seed, []).append(difference)
        if len(groups) < 2:
            return None
        return contrast(np.array([np.mean(groups[seed]) for seed in sorted(groups)]))


def mean(lines: list[Line], score: str) -> float | None:
    """Return the mean of a score over lines that have it."""
    values = scores(lines, score)
    return float(values.mean()) if values.size else None


def scores(lines: list[Line], score: str) -> Array:
    """Return a score of all lines that have it."""
    values = np.array([line.score(score) for line in lines])
    return np.asarray(values[np.isfinite(values)])

"""Results: one line for each record and method, the file that keeps them, and what tables and figures read from it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from doublewell_paper.core import Array, InputError, Law
from doublewell_paper.methods import Method
from doublewell_paper.records import Spec, spec_of

STUDY = 1  # raise it when methods or scores change, so that older lines are made again
RESAMPLES = 10_000
_SEED = 5  # of the resampling; the same for every contrast
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Line:
    """One record and one method: the settings, the outcome, its scores.

    ``coefficients`` are those of the force, in the Bernstein family of their number; None where there is no fit.
    """

    case: str
    record: str
    method: str
    fingerprint: str
    spec: Spec
    status: str
    coefficients: tuple[float, ...] | None
    active: int | None
    seconds: float
    condition: float | None
    rows: int | None
    scores: dict[str, float | None]
    extra: dict[str, float]

    @property
    def key(self) -> Key:
        """Case, record and method: what identifies a line."""
        return self.case, self.record, self.method

    @property
    def law(self) -> Law | None:
        """The recovered force."""
        return None if self.coefficients is None else Law.bernstein(self.coefficients)

    def score(self, name: str) -> float:
        """Return a score, nan where it is not defined."""
        value = self.scores.get(name)
        return float("nan") if value is None else value

    def text(self) -> str:
        """Return the line as JSON, without its end."""
        return json.dumps(asdict(self), allow_nan=False)


def line_of(text: str) -> Line:
    """Return the line of a JSON text; anything else raises ValueError, KeyError or TypeError."""
    content: dict[str, Any] = json.loads(text)
    coefficients = content["coefficients"]
    tuples = {"spec": spec_of(content["spec"]), "coefficients": None if coefficients is None else tuple(coefficients)}
    return Line(**(content | tuples))


def fingerprint(spec: Spec, method: Method) -> str:
    """Return twelve characters that change with the settings of a record, its method or the study."""
    content = json.dumps([STUDY, spec.document(), method.name, method.settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


class Store:
    """The results file of one folder; a run that was killed resumes from it.

    A line counts when it is whole. What a killed run left of its last line is cut off before the next one is written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.jsonl"

    def lines(self) -> list[Line]:
        """Return all whole lines; of several with one key the last."""
        if not self.path.exists():
            return []
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        lines: dict[Key, Line] = {}
        for number, text in enumerate(whole.decode().splitlines(), start=1):
            try:
                line = line_of(text)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{self.path}, line {number} is not a result of this study: expected one JSON object per line; "
                    "move the file away, or choose another folder"
                ) from error
            lines[line.key] = line
        return list(lines.values())

    def append(self, lines: Iterable[Line]) -> None:
        """Write lines in one piece and wait until they are on the disk."""
        data = "".join(line.text() + "\n" for line in lines).encode()
        with self.path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the file for one run: a second one is refused, and a torn last line is cut off."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            _lock(file.fileno(), self.path)
            file.seek(0)
            content = file.read()
            if not content.endswith(b"\n"):
                file.truncate(content.rfind(b"\n") + 1)
            yield


def _lock(handle: int, path: Path) -> None:
    """Take the file for this process; the lock ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(f"{path} is being written by another run: wait for it, or choose another folder") from error


@dataclass(frozen=True, eq=False)
class Results:
    """All lines of a study that belong to the wanted cases and settings."""

    lines: tuple[Line, ...]

    def of(self, case: str, method: str, keep: Callable[[Line], bool] | None = None) -> list[Line]:
        """Return the lines of a case and a method in the order of their records' names, all or those kept."""
        lines = [x for x in self.lines if (x.case, x.method) == (case, method) and (keep is None or keep(x))]
        return sorted(lines, key=lambda line: line.record)

    def merged(self, cases: Iterable[str], method: str) -> list[Line]:
        """Return the lines of several cases and one method."""
        return [line for case in cases for line in self.of(case, method)]

    def mean(self, case: str, method: str, score: str = "e_G") -> float | None:
        """Return the mean of a score where it is defined; None where nothing is."""
        return mean(self.of(case, method), score)

    def contrast(self, case: str, first: str, second: str) -> Contrast | None:
        """Return the difference first - second of e_G over records that both have, averaged for each seed.

        None where fewer than two seeds have any.
        """
        others = {line.record: line.score("e_G") for line in self.of(case, second)}
        groups: dict[int, list[float]] = {}
        for line in self.of(case, first):
            difference = line.score("e_G") - others.get(line.record, float("nan"))
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


def counted(lines: list[Line], score: str = "violation") -> str:
    """Return the sum of a score of 0 or 1 over the number of lines, as text."""
    return f"{int(scores(lines, score).sum())}/{len(lines)}" if lines else ""


@dataclass(frozen=True)
class Contrast:
    """The mean of cluster values and its intervals: percentile bootstrap, BCa, and Student's t over clusters.

    Ten clusters are few: nominal coverage is not established, so the three constructions stand side by side.
    """

    values: tuple[float, ...]
    mean: float
    percentile: tuple[float, float]
    bca: tuple[float, float]
    student: tuple[float, float]

    @property
    def agrees(self) -> bool:
        """Whether all three intervals agree on zero."""
        return len({low <= 0.0 <= high for low, high in (self.percentile, self.bca, self.student)}) == 1


def contrast(values: Array, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = _SEED) -> Contrast:
    """Return the mean of one value per cluster with its intervals; clusters are resampled whole.

    >>> contrast(np.array([1.0, 2.0, 3.0])).mean
    2.0
    """
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size < 2 or not np.all(np.isfinite(values)):
        raise InputError(f"clusters are {values.tolist()}: expected at least two finite values, one per cluster")
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, values.size, (resamples, values.size))].mean(axis=1)
    tails = (0.5 * (1.0 - level), 0.5 * (1.0 + level))
    centre = float(values.mean())
    half = float(stdtrit(values.size - 1, tails[1]) * values.std(ddof=1) / np.sqrt(values.size))
    return Contrast(
        values=tuple(values.tolist()),
        mean=centre,
        percentile=_quantiles(means, tails),
        bca=_quantiles(means, _bca_tails(values, means, tails)),
        student=(centre - half, centre + half),
    )


def _quantiles(means: Array, tails: tuple[float, float]) -> tuple[float, float]:
    low, high = np.quantile(means, tails)
    return float(low), float(high)


def _bca_tails(values: Array, means: Array, tails: tuple[float, float]) -> tuple[float, float]:
    """Return the tails corrected for bias and for skewness, from the jackknife (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    if np.ptp(values) == 0.0:
        return tails
    centre = values.mean()
    bias = ndtri(np.mean(means < centre) + 0.5 * np.mean(means == centre))
    left_out = (values.sum() - values) / (values.size - 1)
    rest = left_out.mean() - left_out
    skew = np.sum(rest**3) / (6.0 * np.sum(rest**2) ** 1.5)
    moved = bias + ndtri(np.array(tails))
    low, high = ndtr(bias + moved / (1.0 - skew * moved))
    return float(low), float(high)

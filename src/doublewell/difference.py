"""Difference: two results, number by number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from doublewell.result import Result

ROUND_OFF = 1e-8  # the last bit of every value of a movie moves a trajectory result by up to 3e-11
_ABOUT = (  # how the answer was asked for and found, not the answer
    "version",
    "problem.records",
    "resolved.supports_rule",
    "diagnostics.likelihood.steps",
    "diagnostics.likelihood.initial",  # in single precision, and of the movie more than of the law
    "diagnostics.kkt",
)
_RELATIVE = ("law.", "scale.", "posterior.")  # these have units, so only their own size is a measure
_PURE = (".chi2", ".weight")  # and these are pure numbers again
_NUMBER = re.compile(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Difference:
    """One field in which two results differ: its name, both values in short, and the size where there is one."""

    field: str
    before: str
    after: str
    size: float | None

    def __str__(self) -> str:
        how = "" if self.size is None else f" (by {self.size:.2g} of its size)"
        return f"{self.field}: {self.before} before, {self.after} now{how}"


@dataclass(frozen=True)
class Comparison:
    """How two results agree: fields compared, fields equal to the last bit, the largest difference, what differs.

    ``largest`` is the largest relative difference of the fields that count as the same.
    """

    fields: int
    equal: int
    largest: float
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether all numbers are the same to round-off."""
        return not self.differences

    def __str__(self) -> str:
        if self.equal == self.fields:
            return f"the same: all {self.fields} fields are equal to the last bit"
        if self.same:
            part = f"{self.equal} of {self.fields} fields are equal to the last bit"
            return f"the same to round-off: {part}, the others to {self.largest:.1g} of their size"
        return f"not the same: {len(self.differences)} of {self.fields} fields differ"


def compare(before: Result, after: Result, *, tolerance: float = ROUND_OFF) -> Comparison:
    """Compare two results field by field; numbers count as the same within `tolerance` of their size.

    An array is measured by its largest entry. Diagnostics are pure numbers of size one, so there the tolerance is also
    an absolute one. Texts are compared without the numbers in them. The version, the file's name and the steps of the
    iteration are not part of the answer and are left out, as is the fitted initial field, kept in single precision.
    """
    sizes = [(name, a, b, _size(name, a, b)) for name, a, b in _pairs(before, after, "")]
    close = [size for *_, size in sizes if size is not None and size <= tolerance]
    apart = tuple(
        Difference(name, _short(a), _short(b), size)
        for name, a, b, size in sizes
        if size is None or not size <= tolerance
    )
    return Comparison(len(sizes), close.count(0.0), max(close, default=0.0), apart)


def _pairs(a: Any, b: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Go through the fields of two values of one kind; where the kinds differ the values themselves are a pair."""
    if name in _ABOUT:
        return
    if is_dataclass(a) and type(a) is type(b):
        for part in fields(a):
            yield from _pairs(getattr(a, part.name), getattr(b, part.name), f"{name}.{part.name}".lstrip("."))
    elif isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b) and not _numeric(a):
        for k, pair in enumerate(zip(a, b, strict=True)):
            yield from _pairs(*pair, f"{name}[{k}]")
    else:
        yield name, a, b


def _size(name: str, a: Any, b: Any) -> float | None:
    """Return the relative difference of two leaves: 0 where they are equal, None where it has no size."""
    if _numeric(a) and _numeric(b):
        first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if first.shape != second.shape:
            return None
        if np.array_equal(first, second, equal_nan=True):
            return 0.0
        floor = 0.0 if name.startswith(_RELATIVE) and not name.endswith(_PURE) else 1.0
        return float(np.max(np.abs(first - second)) / max(np.max(np.abs(first)), np.max(np.abs(second)), floor))
    if isinstance(a, str) and isinstance(b, str):
        return 0.0 if _NUMBER.sub("#", a) == _NUMBER.sub("#", b) else None
    return 0.0 if type(a) is type(b) and a == b else None


def _numeric(value: Any) -> bool:
    """Tell whether a value is a number, an array, or a list of numbers; booleans are not numbers."""
    if isinstance(value, tuple):
        return bool(value) and all(_numeric(item) and not isinstance(item, tuple | np.ndarray) for item in value)
    return isinstance(value, int | float | np.number | np.ndarray) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 60 else text[:57] + "..."

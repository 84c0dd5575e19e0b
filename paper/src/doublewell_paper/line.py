"""Line: what one method made of one record, as one line of the results file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from doublewell.law import Law
from doublewell_paper.outcome import Method
from doublewell_paper.spec import Spec, spec_of

__all__ = ["STUDY", "Key", "Line", "fingerprint", "line_of"]

STUDY = 1  # raise it when methods or scores change, so that older lines are made anew
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Line:
    """One record and one method: what was set, what came out, how good it is.

    ``coefficients`` are those of the force, in the Bernstein family of their number; None where nothing was found.
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
        """Case, record and method: what a line is found by."""
        return self.case, self.record, self.method

    @property
    def law(self) -> Law | None:
        """The force that was found."""
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
    found = content["coefficients"]
    lists = {"spec": spec_of(content["spec"]), "coefficients": None if found is None else tuple(found)}
    return Line(**(content | lists))


def fingerprint(spec: Spec, method: Method) -> str:
    """Return twelve characters that change with the settings of a record, its method or the study."""
    content = json.dumps([STUDY, spec.document(), method.name, method.settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]

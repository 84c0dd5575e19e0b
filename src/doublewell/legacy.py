"""Helpers of the renderers that do not read facts yet."""

from __future__ import annotations

from doublewell.facts import band_size, facts
from doublewell.findings import findings, model_tests
from doublewell.provenance import held, law_class
from doublewell.result import Result
from doublewell.wording import percent

__all__ = ["band_size", "first_words", "held", "intervals", "law_class", "percent", "test_words"]


def intervals(result: Result, **_: float) -> dict[str, tuple[float, float]]:
    """Return the intervals that a result can give, by name."""
    names = ("width", "tension_integral", "epsilon", "barrier")
    table = facts(result)
    found = {name: table.get(name) for name in names}
    return {name: fact.interval for name, fact in found.items() if fact is not None and fact.interval is not None}


def first_words(result: Result) -> str:
    """Return the first sentence about the model."""
    return next(str(item) for item in findings(result) if item.topic == "model")


def test_words(result: Result) -> dict[str, str]:
    """Return the sentences of the tests by name."""
    return {test.name: test.sentence for test in model_tests(result)}

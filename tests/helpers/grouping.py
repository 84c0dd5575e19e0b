"""Options of identify by their plain names, put into the values they belong to: for tests that vary one of many."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from doublewell.options import Compute, DoubleWell, Observation, Options, method_of


def grouped(**options: Any) -> dict[str, Any]:
    """Return the arguments of identify that set the given fields."""
    method = method_of(options.pop("method", None))
    made: dict[str, Any] = {}
    kinds: list[tuple[str, Options]] = [
        ("law", DoubleWell()), ("method", method), ("observation", Observation()), ("compute", Compute()),
    ]  # fmt: skip
    for name, value in kinds:
        own = {item.name for item in fields(value)} & options.keys()  # type: ignore[arg-type]
        held = {item.name: getattr(value, item.name) for item in fields(value)}  # type: ignore[arg-type]
        made[name] = type(value)(**held | {key: options.pop(key) for key in own})
    return made | options

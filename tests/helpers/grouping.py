"""Options of identify by their plain names, put into the values they belong to: for tests that vary one of many."""

from __future__ import annotations

from dataclasses import fields, replace
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
        own = {item.name for item in fields(value)} & options.keys()
        held = {item.name: getattr(value, item.name) for item in fields(value)}  # type: ignore[arg-type]
        made[name] = type(value)(**held | {key: options.pop(key) for key in own})
    return made | options


def changed(result: Any, **values: Any) -> Any:
    """Return a result whose problem, record or resolved values are others, by their names."""
    problem, resolved, (record, *others) = result.problem, result.resolved, result.problem.records
    for name, value in values.items():
        if name == "version":
            result = replace(result, version=value)
        elif name == "q_estimated":
            record = replace(record, q=None if value else result.resolved.q)
        elif name in {item.name for item in fields(resolved)}:
            resolved = replace(resolved, **{name: value})
        elif name in {item.name for item in fields(record)}:
            record = replace(record, **{name: value})
        elif name in {item.name for item in fields(problem)}:
            problem = replace(problem, **{name: value})
        else:
            part = next(
                part for part in ("law", "method", "observation") if hasattr(type(getattr(problem, part)), name)
            )
            problem = replace(problem, **{part: replace(getattr(problem, part), **{name: value})})
    return replace(result, problem=replace(problem, records=(record, *others)), resolved=resolved)

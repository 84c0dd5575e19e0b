"""JSON: all numbers of a law with their meaning, and a table with bands, for any other program."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from doublewell.export.content import Content
from doublewell.legacy import intervals

__all__ = ["json_text"]

_FORMAT, _VERSION = "doublewell law", 1
_LEVEL = 0.95
_POINTS = 81


def json_text(content: Content) -> str:
    """Return strict JSON; floats have all their digits. A saved result (`save`) holds more, this holds what is used."""
    result = content.result
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "notes": list(content.notes),
        "equation": result.law.equation(),
        "powers_of_w": list(content.powers),
        "family": {"name": result.law.family.name, "degree": result.degree, "g": result.coefficients.tolist()},
        "q": content.q,
        "kappa": content.kappa,
        "mobility": content.mobility,
        "scaled_by_a_tension": content.scaled,
        "scale": _scale(content),
        "intervals": {"level": _LEVEL} | {name: list(ends) for name, ends in intervals(result, level=_LEVEL).items()},
        "record": _record(content),
        "double_well": result.structure.ok,
        "table": _table(content),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _scale(content: Content) -> dict[str, Any] | None:
    scale = content.result.scale
    if scale is None:
        return None
    return {
        "epsilon": scale.epsilon,
        "tension": scale.tension.value,
        "tension_sd": scale.tension.sd,
        "tension_unit": scale.tension.unit,
        "normalisation": scale.tension.normalisation,
        "tension_integral": scale.tension_integral,
    }


def _record(content: Content) -> dict[str, Any]:
    asked = content.result.settings
    found: dict[str, Any] = {"shape": list(asked.shape), "dx": list(asked.dx), "dt": asked.dt}
    return found | {"boundary": asked.boundary, "length_unit": asked.length_unit, "time_unit": asked.time_unit}


def _table(content: Content) -> dict[str, list[float]]:
    """Force and primitive over the phase range; with bands where the reading has them."""
    result, u = content.result, np.linspace(*content.result.law.phases, _POINTS)
    columns = {"u": u, "force": result.force(u), "primitive": result.primitive(u)}
    if result.posterior is not None:
        for name in ("force", "primitive"):
            columns[f"{name}_low"], columns[f"{name}_high"] = result.band(name, u, level=_LEVEL)
    return {name: values.tolist() for name, values in columns.items()}

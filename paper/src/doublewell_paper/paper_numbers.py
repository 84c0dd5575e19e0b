"""The paper's own numbers, carried over as they are printed; errors in percent unless named otherwise."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["paper_numbers"]


@cache
def paper_numbers() -> dict[str, Any]:
    """Return the numbers by table; they are read once and not to be changed.

    >>> paper_numbers()["principal_noise_0.03"]["STAC m=2"][0]
    5.65
    """
    text = files("doublewell_paper").joinpath("paper_numbers.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found

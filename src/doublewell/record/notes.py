"""Notes: what in a conversion to phase values deserves a look, in words."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from doublewell.hints import Array
from doublewell.record.levels import Levels
from doublewell.record.saturation import Saturation

if TYPE_CHECKING:
    from doublewell.record.phase import Phase

__all__ = ["phase_notes", "phase_text"]

_WIDTH = 96
_FEW_STEPS = 40  # grey values between the plateaus
_FAR = 3e-3  # deficit of the bulk, in u
_GAP = 0.01  # different fading of the plateaus, in u
_SHARE = 1e-3  # of saturated values


def phase_notes(
    found: Levels, limits: Saturation, way: Array | None, *, bleaching: bool, dark: float
) -> tuple[str, ...]:
    """Say what weakens the phase values; nothing when all is well."""
    return (*_limit_notes(found, limits), *_level_notes(found, bleaching, dark), *_drift_notes(way))


def _limit_notes(found: Levels, limits: Saturation) -> Iterator[str]:
    for share, value in ((limits.share_low, limits.lowest), (limits.share_high, limits.highest)):
        if share > _SHARE:
            yield (
                f"{100 * share:.1f} % of the values are at the limit {value:g} of the camera or the file: that plateau "
                "is cut off and its level wrong; record with less light or another range"
            )
    steps = float(np.ptp(found.model.levels)) / limits.step if limits.step else np.inf
    if steps < _FEW_STEPS:
        yield (
            f"only {steps:.0f} grey values lie between the plateaus: phase values come in steps of {2 / steps:.2g}; "
            "record with more contrast or more bits"
        )


def _level_notes(found: Levels, bleaching: bool, dark: float) -> Iterator[str]:
    for name, deficit in zip(("low", "high"), found.deficit, strict=True):
        if deficit > _FAR:
            yield (
                f"no pixel of the {name} plateau lies far from an interface: its level may be off by {deficit:.2g} in "
                "u, which the levels' error holds; a larger picture or levels= is better"
            )
    if found.fade_gap > _GAP and not bleaching:
        yield (
            f"the contrast changes by {found.fade_gap:.2g} in u over the record: pass bleaching=True if the light or "
            "the dye fades"
        )
    elif found.fade_gap > _GAP:
        yield (
            f"the two plateaus do not fade alike (by {found.fade_gap:.2g} in u): pass dark=, the camera's value "
            f"without light, which is {dark:g} here"
        )


def _drift_notes(way: Array | None) -> Iterator[str]:
    if way is not None:
        yield (
            f"frames were moved back by up to {float(np.max(np.abs(way))):.2f} pixels and interpolated: noise of "
            "neighbours is correlated, and bands of the trajectory reading are then too narrow"
        )


def phase_text(phase: Phase) -> str:
    """Return a conversion in words."""
    low, high = phase.levels
    sd = ("", "") if phase.levels_sd is None else tuple(f" +- {x:.2g}" for x in phase.levels_sd)
    lines = [f"levels {low:.6g}{sd[0]} (u = -1) and {high:.6g}{sd[1]} (u = +1)"]
    if phase.gain_sd is not None:
        lines.append(
            f"so phase values are known up to a factor 1 +- {phase.gain_sd:.2g} and a constant +- {phase.offset_sd:.2g}"
        )
    lines.append(f"noise {phase.noise:.2g} in u")
    if phase.light is not None:
        lines.append(f"light from {phase.light.min():.4g} to {phase.light.max():.4g} over the picture")
    if phase.fading is not None:
        lines.append(f"fading from {phase.fading[0]:.4g} to {phase.fading[-1]:.4g} over the record")
    if phase.drift is not None:
        way = ", ".join(f"{x:.2f}" for x in phase.drift[-1])
        lines.append(f"drift of ({way}) pixels from the first frame to the last")
    for note in phase.notes:
        lines += wrap(f"- {note}", _WIDTH, subsequent_indent="  ")
    return "\n".join(lines)

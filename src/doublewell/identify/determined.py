"""Where a law is determined: bands wider than the law, intervals that are missing or miss their own estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from doublewell.calibrate import Scale
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference import Posterior, curve_band, quantile_interval, scalar_interval
from doublewell.law import Law
from doublewell.observation import COVERED, Survey

__all__ = ["determination_warnings", "undetermined"]

_LEVEL = 0.95
_POINTS = 201


def determination_warnings(law: Law, posterior: Posterior, scale: Scale | None, seen: Survey) -> list[str]:
    """Say where the record does not determine the law, and which numbers rest on what was not seen."""
    rough = quantile_interval(posterior.free_draws @ posterior.family.features(_places(law)), _LEVEL)
    if seen.coverage >= COVERED and not _wide(law, *rough).any():
        return []  # the draws with the constraint take longer, and here they say nothing new
    wide = undetermined(law, posterior)
    return [*_extrapolated(seen), *_wide_words(law, wide), *_interval_words(law, posterior, scale)]


def undetermined(law: Law, posterior: Posterior) -> tuple[float, float] | None:
    """Return the range of |u| where the 95 % band of the force is wider than the largest force; None for nowhere.

    Where the wells may differ it is a range of u.
    """
    u = _places(law)
    wide = _wide(law, *curve_band(posterior, "force", u, _LEVEL, None))
    return (float(u[wide][0]), float(u[wide][-1])) if wide.any() else None


def _places(law: Law) -> Array:
    """Return phase values at which the band is looked at; an odd force needs half of them."""
    return np.linspace(0.0 if law.family.even else law.phases[0], law.phases[1], _POINTS)


def _wide(law: Law, low: Array, high: Array) -> Array:
    return np.asarray(high - low > np.max(np.abs(law.force(_places(law)))))


def _extrapolated(seen: Survey) -> Iterator[str]:
    if seen.coverage < COVERED:
        yield (
            "the width, C_H, epsilon and F take in all phase values, so they rest on the law where it was not seen; "
            "their intervals hold only if it is as smooth there as elsewhere"
        )


def _wide_words(law: Law, wide: tuple[float, float] | None) -> Iterator[str]:
    if wide is not None:
        name = "|u|" if law.family.even else "u"
        yield (
            f"the law is not determined for {name} from {wide[0]:.2g} to {wide[1]:.2g}: its 95 % band there is wider "
            "than the largest force; record until the field takes these values, or with less noise"
        )


def _interval_words(law: Law, posterior: Posterior, scale: Scale | None) -> Iterator[str]:
    """Say which numbers have no interval, and which lie outside their own."""
    missing: dict[str, list[str]] = {}
    for name, value in _numbers(law, scale).items():
        try:
            low, high = scalar_interval(posterior, name, _LEVEL, scale)
        except InputError as error:
            missing.setdefault(str(error), []).append(name.replace("tension_integral", "C_H"))
            continue
        if not low <= value() <= high:
            yield (
                f"the estimate of {name}, {value():.4g}, lies outside its own 95 % interval, {low:.4g} to {high:.4g}: "
                "the law is so uncertain that the average over laws and the number of the average law differ; use "
                "neither"
            )
    for reason, names in missing.items():
        yield f"no interval of {', '.join(names)}: {reason}"


def _numbers(law: Law, scale: Scale | None) -> dict[str, Callable[[], float]]:
    if not law.has_interface:
        return {}
    found: dict[str, Callable[[], float]] = {
        "width": law.interface_width,
        "tension_integral": lambda: law.tension_integral,
    }
    if scale is not None:
        found["epsilon"] = lambda: scale.epsilon
        found["barrier"] = lambda: float(law.potential(law.maximum, epsilon=scale.epsilon))
    return found

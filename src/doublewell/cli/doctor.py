"""The command doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublewell.cli.output import Output

if TYPE_CHECKING:
    from doublewell.doctor import Diagnosis

__all__ = ["doctor"]

_INCOMPLETE = 1  # exit code


def doctor(
    *,
    fit: bool = True,
    output: Output = Output(),  # noqa: B008  frozen
) -> int:
    """Say which extras and devices are there, and time a small fit.

    Exit code 0: all that is needed is there. 1: a needed package is missing.

    Parameters
    ----------
    fit
        Time a small fit; --no-fit leaves it out.
    """
    from doublewell.doctor import examine

    with output.bar() as bar:
        found = examine(fit=fit, progress=bar.show)
    output.answer(str(found), _document(found))
    return _INCOMPLETE if found.missing else 0


def _document(found: Diagnosis) -> dict[str, Any]:
    return {
        "version": found.version,
        "python": found.python,
        "machine": found.machine,
        "cores": found.cores,
        "packages": dict(found.packages),
        "missing": list(found.missing),
        "extras": {extra.name: {"ready": extra.ready, "packages": dict(extra.packages)} for extra in found.extras},
        "devices": list(found.devices),
        "cache": found.cache,
        "cache_bytes": found.cache_bytes,
        "seconds": {timing.name: {"first": timing.first, "next": timing.next} for timing in found.timings},
    }

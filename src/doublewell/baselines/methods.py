"""Methods: all there are, by name; a new one is a file and one line here."""

from __future__ import annotations

from importlib.metadata import entry_points

from doublewell.baselines.analytic import Analytic
from doublewell.baselines.fd4 import DirectFD4, SmoothedFD4
from doublewell.baselines.protocol import Baseline
from doublewell.baselines.pysindy import PySindy
from doublewell.baselines.trajectory import Trajectory
from doublewell.baselines.weak import Stac
from doublewell.baselines.wsindy import Wsindy
from doublewell.checks import shown
from doublewell.errors import InputError

__all__ = ["METHODS", "baseline", "methods"]

_ALL: tuple[Baseline, ...] = (
    Trajectory(),
    Stac(),
    Analytic(),
    Wsindy(),
    SmoothedFD4(),
    DirectFD4(),
    PySindy("masked", "least squares"),
    PySindy("masked", "NNLS"),
    PySindy("all", "least squares"),
    PySindy("all", "NNLS"),
)
METHODS: dict[str, Baseline] = {one.name: one for one in _ALL}


def methods() -> dict[str, Baseline]:
    """Return all methods by name: ours, and those of installed packages (entry points "doublewell.baselines")."""
    others = (point.load()() for point in entry_points(group="doublewell.baselines"))
    return METHODS | {method.name: method for method in others}


def baseline(name: str) -> Baseline:
    """Return a method by its name, or say which there are; small letters and hyphens do.

    >>> baseline("smoothed-fd4").name
    'smoothed FD4'
    """
    known = {_plain(name): method for name, method in methods().items()}
    if not isinstance(name, str) or _plain(name) not in known:
        raise InputError(f"method is {shown(name)}: expected one of {', '.join(known)}")
    return known[_plain(name)]


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "-")

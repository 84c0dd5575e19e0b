"""What a method takes and returns, so that all are judged by the same numbers: protocol, cost, checks, projection."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from doublewell.dynamics import Dynamics
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.identify.parts import from_minus_one
from doublewell.identify.phases import visited
from doublewell.inference.estimate import solve
from doublewell.law import MAX_DEGREE, Bernstein, Constraint, Family, Law, Mixture
from doublewell.observation import survey
from doublewell.problem import Problem
from doublewell.record import Record, check_record
from doublewell.weak.weights import Derivative, Support, check_supports, default_supports, paper_supports

Force = Callable[[Array], Array]
Band = Callable[[Array], tuple[Array, Array]]
Supports = Sequence[Support | tuple[int, float]] | Literal["paper"] | None

PAPER_DEGREE = 2  # of the positive family that the paper projects onto
EXACT_DEGREE = MAX_DEGREE  # of the double wells, so that the degree is not a part of the error
_PAUSE = 0.02  # seconds between two readings of the memory
_NODES = 200
_MESH = 20_001
_ZERO = 1e-6  # of the largest force: how far from zero the force at a pure phase may be


@dataclass(frozen=True)
class BaselineFit:
    """A force G(u) as a method left it, before any projection, with its cost.

    `memory` is the peak of the process over its size at the start, in bytes, None where it was not measured (a GPU).
    `band` gives (low, high) of the method's own 95 % intervals, where it has any. `law` is the same force with its
    coefficients, where the method has some: its structure is then decided exactly, not on a mesh.
    """

    name: str
    force: Force
    seconds: float
    memory: int | None
    device: str
    notes: tuple[str, ...] = ()
    band: Band | None = None
    law: Law | None = None


class Baseline(ABC):
    """A method: a frozen dataclass whose fields are its settings.

    `needs` are the modules that have to be installed; a `slow` one takes many minutes on a CPU. One that reads other
    equations than Allen-Cahn has a field `dynamics`.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    slow: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What tables call it."""

    @abstractmethod
    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:
        """Estimate the effective force of a record with known q."""


def missing(method: Baseline) -> str | None:
    """Return why a method cannot run here, or None."""
    absent = [name for name in method.needs if find_spec(name) is None]
    return f"{method.name} needs {', '.join(absent)}: pip install 'doublewell[baselines]'" if absent else None


def cores() -> str:
    """Return the device of a method that computes on the processor."""
    return f"cpu: {os.cpu_count()} cores"


@dataclass
class Cost:
    """Seconds and bytes, filled in when the measurement ends."""

    seconds: float = 0.0
    memory: int = 0


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the time of a block and how far the process grows in it."""
    cost, start, ended = Cost(), _resident(), threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE):
            cost.memory = max(cost.memory, _resident() - start)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - began
        ended.set()
        watcher.join()
        cost.memory = max(cost.memory, _resident() - start)


def _resident() -> int:
    """Return the bytes of the process that are in memory; 0 where the system does not report them."""
    try:
        words = Path("/proc/self/status").read_text().split()
        return 1024 * int(words[words.index("VmRSS:") + 1])
    except (OSError, ValueError):
        return 0


def known_q(record: Record, name: str) -> float:
    """Return the diffusion coefficient, which the other methods do not estimate."""
    q = check_record(record).q
    if q is None:
        raise InputError(
            f"{name} needs the diffusion coefficient, and the record has none: expected a number; pass q= to Record, "
            "or let identify estimate it first"
        )
    return q


def complete(record: Record, name: str) -> float:
    """Refuse missing values and uneven times, which only our own fits take; return q."""
    q, advice = known_q(record, name), "use STAC or trajectory, or cut the record"
    if record.mask is not None:
        wrong = f"{name} cannot leave out missing values: expected a record without a mask"
        raise InputError(f"{wrong}; {advice} to a part that is complete")
    if not record.uniform:
        wrong = f"{name} needs frames that are evenly spaced in time, and these are not"
        raise InputError(f"{wrong}: {advice} where the interval changes")
    return q


def in_family(record: Record, dynamics: Dynamics, degree: int) -> tuple[Record, Family, Family]:
    """Return the record with the phases of the family that is fitted at -1 and +1, this family, and the same there.

    Of a conserved field they are polynomials over a range around its values.
    """
    if dynamics.gauge != "constant":
        return record, Bernstein(degree), Bernstein(degree)
    family = Mixture(degree, Problem.range_of(visited([record])))
    return from_minus_one(record, family.phases), family, family.placed((-1.0, 1.0))


def chosen_supports(
    record: Record, supports: Supports, derivative: Derivative = "discrete", order: int = 2
) -> tuple[Support, ...]:
    """Return the supports of a weak-form fit: given ones, the paper's, or by the rule that follows the interface."""
    if supports == "paper":
        return paper_supports(record)
    if supports is None:
        return default_supports(record, survey(record).interface_width, long=derivative == "analytic", order=order)[0]
    return check_supports(supports, record.frames, record.mesh, record.dx)


def project(force: Force, degree: int = PAPER_DEGREE, *, constraint: Constraint = "bernstein") -> Law:
    """Return the law of a degree and class that is nearest to a force in L2(-1, 1).

    With "bernstein" and degree two it is the projection of the paper. With "admissible" the class is every double well
    of the degree with a single barrier.

    >>> law = project(lambda u: -2.0 * u * (1.0 - u**2))
    >>> law.coefficients.round(9).tolist()
    [2.0, 2.0, 2.0]
    """
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    root = np.sqrt(weights)
    family = Bernstein(degree)
    solution, _ = solve(
        (root * family.features(points)).T, root * evaluated(force, points), family, constraint=constraint
    )
    return Law(family, solution.coefficients)


def admissible(fit: BaselineFit) -> bool:
    """Return whether a force is a double well with a single barrier as it was produced.

    Coefficients decide it exactly. Any other force is evaluated at 20001 phase values: zero at both pure phases, to
    1e-6 of its largest value, and of the right sign on either side of one maximum of H. The paper's wells are
    identical, so that maximum is at zero, to the width of the mesh.
    """
    if fit.law is not None:
        return fit.law.structure.ok
    u = np.linspace(-1.0, 1.0, _MESH)
    force = evaluated(fit.force, u)
    at_phases = max(abs(force[0]), abs(force[-1])) <= _ZERO * float(np.max(np.abs(force)))
    inner, middle = force[1:-1], u[1:-1]
    return bool(at_phases and np.all(inner[middle < 0.0] > 0.0) and np.all(inner[middle > 0.0] < 0.0))


def evaluated(force: Force, u: Array) -> Array:
    """Return the values of a force, checked to be finite numbers, one for each phase value."""
    values = np.asarray(force(u), dtype=np.float64)
    if values.shape != u.shape:
        raise InputError(f"the force returned shape {values.shape} for {u.shape} phase values: expected as many")
    if not np.all(np.isfinite(values)):
        raise InputError(f"the force is not finite at u = {u[np.argmin(np.isfinite(values))]:.4g}: expected numbers")
    return values

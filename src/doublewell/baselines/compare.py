"""Compare: the installed methods on one record, and how far they agree; no truth is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.baselines.forward import cannot_run, forward_rms
from doublewell.baselines.inputs import known_q
from doublewell.baselines.methods import METHODS, baseline
from doublewell.baselines.methods import methods as all_methods
from doublewell.baselines.protocol import Baseline, BaselineFit, measured, missing
from doublewell.baselines.trajectory import fit_of
from doublewell.dynamics import on_gpu
from doublewell.errors import InputError
from doublewell.hints import Array, Report
from doublewell.identify import identify
from doublewell.record import Record
from doublewell.result import Result

__all__ = ["OURS", "Comparison", "Row", "compare"]

OURS = "trajectory"  # the method that the others are measured against
_MESH = 2001
_LONG = "takes many minutes on a CPU: name it in methods= to run it all the same"


@dataclass(frozen=True, eq=False)
class Row:
    """One method on the record, with its distance to our law and the misfit of its movie.

    ``distance`` is the relative L2 distance of the force to ours on [-1, 1], ``deviations`` the same at each phase
    value in standard deviations of our band, root mean square. ``residual`` is the rms of record minus movie over the
    noise, for the movie that the force makes from our fitted first frame: 1 is a perfect fit. None where it blows up or
    where no movie could be made.
    """

    fit: BaselineFit
    distance: float
    deviations: float
    residual: float | None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found: our own result, a row for every method that ran, and why others did not.

    ``distances`` holds the relative distance of the force of each method, in the order of the rows, to that of each
    other, in units of the first one's size.
    """

    result: Result
    rows: tuple[Row, ...]
    left_out: tuple[tuple[str, str], ...]
    distances: Array
    noise: float

    def __str__(self) -> str:
        from doublewell.baselines.compare_text import comparison_text

        return comparison_text(self)


def compare(
    record: Record,
    *,
    methods: Sequence[str] | None = None,
    result: Result | None = None,
    seed: int = 0,
    progress: Report | None = None,
) -> Comparison:
    """Run other methods on a record and say how far they agree with the trajectory reading and with each other.

    Parameters
    ----------
    record
        The observed phase field with its q, wells at -1 and +1.
    methods
        Names such as "STAC", "smoothed FD4" or "PySINDy LS masked"; all by default, slow ones only where there is a
        GPU. A method whose library is missing is listed with the command that installs it, one that refuses the
        record with its reason.
    result
        A trajectory result of this record, where there is one already; else it is made.
    seed
        Of the methods that draw random numbers.
    progress
        Called with (what is being done, methods done, methods).
    """
    chosen = _chosen(methods)
    q = known_q(record, "compare")
    show = progress or (lambda *_: None)
    show("reading the trajectory", 0, len(chosen) + 1)
    found, ours = _ours(record, result)
    fits, left_out = [ours], []
    for k, one in enumerate(chosen, start=1):
        show(one.name, k, len(chosen) + 1)
        fit = _tried(one, record, seed) if methods is not None or _quick(one) else _LONG
        if isinstance(fit, str):
            left_out.append((one.name, fit))
        else:
            fits.append(fit)
    noise, initial = _start(found, record)
    rows = tuple(_row(fit, found, record, q, noise, initial) for fit in fits)
    return Comparison(found, rows, tuple(left_out), _distances(fits), noise)


def _chosen(methods: Sequence[str] | None) -> list[Baseline]:
    if methods is None:
        return [one for one in all_methods().values() if one.name != OURS]
    names = [methods] if isinstance(methods, str) else list(methods)
    found = [baseline(name) for name in names]
    if not found:
        raise InputError(f"methods is empty: expected some of {', '.join(METHODS)}, or None for all")
    return [one for one in dict.fromkeys(found) if one.name != OURS]


def _quick(one: Baseline) -> bool:
    return on_gpu() or not getattr(one, "slow", False)


def _ours(record: Record, result: Result | None) -> tuple[Result, BaselineFit]:
    with measured() as cost:
        found = identify(record, method="trajectory", check=False) if result is None else result
    if found.posterior is None or found.diagnostics.likelihood is None:
        raise InputError(
            "the result has no band, and distances are measured in it: expected a result of method='trajectory'; leave "
            "result out and it is made"
        )
    if tuple(found.settings.shape) != record.shape:
        raise InputError(
            f"the result belongs to a record of shape {tuple(found.settings.shape)}, and this one has {record.shape}: "
            "expected the record that the result came from"
        )
    return found, fit_of(found, OURS, cost.seconds, cost.memory)


def _tried(one: Baseline, record: Record, seed: int) -> BaselineFit | str:
    """Return the fit of a method, or why there is none."""
    if (reason := missing(one)) is not None:
        return reason
    try:
        return one.fit(record, seed=seed)
    except InputError as error:
        return str(error)


def _start(result: Result, record: Record) -> tuple[float, Array | None]:
    """Return the noise and the fitted first frame, None where no movie can be made from it."""
    fit = result.diagnostics.likelihood
    assert fit is not None
    fits = fit.initial is not None and fit.initial.shape == record.mesh
    return fit.noise, fit.initial.astype(np.float64) if fits and fit.initial is not None else None


def _row(fit: BaselineFit, ours: Result, record: Record, q: float, noise: float, initial: Array | None) -> Row:
    u = np.linspace(-1.0, 1.0, _MESH)
    base = np.asarray(ours.force(u))
    rest = np.asarray(fit.force(u)) - base
    spread = _spread(ours, u)
    asked = spread > 1e-9 * float(np.max(spread))  # where every law is zero there is nothing to compare
    deviations = float(np.sqrt(np.mean((rest[asked] / spread[asked]) ** 2)))
    residual, words = _residual(fit, record, q, noise, initial)
    return Row(fit, float(np.linalg.norm(rest) / np.linalg.norm(base)), deviations, residual, words)


def _spread(ours: Result, u: Array) -> Array:
    """Return the standard deviation of our force at each phase value, from the draws behind its band."""
    assert ours.posterior is not None
    return np.asarray(np.std(ours.posterior.draws @ ours.posterior.family.features(u), axis=0))


def _residual(
    fit: BaselineFit, record: Record, q: float, noise: float, initial: Array | None
) -> tuple[float | None, tuple[str, ...]]:
    reason = cannot_run(record)
    if reason is None and initial is None:
        reason = "no forward run: the result holds no fitted first frame"
    if reason is not None or initial is None:
        return None, (reason or "",)
    rms = forward_rms(fit.force, record, initial, q)
    return (None, ("its movie blows up",)) if rms is None else (rms / noise, ())


def _distances(fits: Sequence[BaselineFit]) -> Any:
    u = np.linspace(-1.0, 1.0, _MESH)
    curves = np.stack([np.asarray(fit.force(u)) for fit in fits])
    gaps = np.linalg.norm(curves[:, None] - curves[None], axis=2)
    return gaps / np.linalg.norm(curves, axis=1)[:, None]

"""Batch: many records of one shape through the same solver at once, which is how a GPU is kept busy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from doublewell.dynamics import double_precision
from doublewell.errors import InputError
from doublewell.evidence.likelihood.trajectory import (
    CG_MOST,
    CG_TOLERANCE,
    MOST_STEPS,
    Trajectory,
    as_trajectory,
    check_record,
    record_model,
    step_of,
    verdict,
)
from doublewell.hints import Array
from doublewell.law import Bernstein
from doublewell.record import Record

__all__ = ["read_batch", "relinearise_batch"]


def read_batch(
    records: Sequence[Record], starts: Array, *, family: Bernstein, substeps: int, label: str = "record"
) -> list[Trajectory]:
    """Fit records of one shape, mesh, frame interval, q and boundary from starts[record, coefficient].

    The same steps as ``read_trajectory``, taken together until every record has stopped; a record that has stopped
    stays where it is.
    """
    record = _check_alike(records)
    fitted = Bernstein(starts.shape[1] - 1)
    model, constants = record_model(record, fitted, substeps)
    data = np.stack([item.slab() for item in records])
    freedom = data[0].size - data[0, 0].size - fitted.size
    code = _compiled()
    steps: list[list[Any]] = [[] for _ in records]
    status = [""] * len(records)
    with double_precision():
        point = code.begin(model, data[:, 0], np.asarray(starts, dtype=np.float64), data, constants)
        for number in range(1, MOST_STEPS + 1):
            fresh = code.advance(model, point, data, constants)
            running = np.array([not words for words in status])
            point = code.choose(running, fresh, point)
            table = {name: np.asarray(getattr(fresh, name)) for name in fresh._fields[2:]}
            for k in np.flatnonzero(running):
                steps[k].append(step_of(number, {name: column[k] for name, column in table.items()}, freedom))
                status[k] = verdict(steps[k])
            if all(status):
                break
        theta, initial = np.asarray(point.theta), np.asarray(point.nuisance)
    lifted = theta @ fitted.elevation(family).T
    return _linearise(records, family, initial, lifted, substeps, steps, status, label)


def relinearise_batch(
    records: Sequence[Record], before: Sequence[Trajectory], coefficients: Array, *, label: str = "record"
) -> list[Trajectory]:
    """Linearise records again at other coefficients, their initial fields moved along."""
    moves = [row - found.coefficients for row, found in zip(coefficients, before, strict=True)]
    initial = np.stack(
        [f.initial + np.tensordot(move, f.response, axes=1) for f, move in zip(before, moves, strict=True)]
    )
    steps, status = [list(found.steps) for found in before], [found.status for found in before]
    family, substeps = before[0].evidence.family, before[0].substeps
    return _linearise(records, family, initial, coefficients, substeps, steps, status, label)


def _linearise(
    records: Sequence[Record],
    family: Bernstein,
    initial: Array,
    theta: Array,
    substeps: int,
    steps: list[list[Any]],
    status: list[str],
    label: str,
) -> list[Trajectory]:
    model, constants = record_model(records[0], family, substeps)
    data = np.stack([item.slab() for item in records])
    with double_precision():
        last = _compiled().sensitivity(model, initial, theta, data, constants)
        predicted = np.asarray(_compiled().predict(model, initial, theta, constants))
        last = type(last)(*(np.asarray(part) for part in last))
    return [
        as_trajectory(
            family, type(last)(*(part[k] for part in last)), initial[k], theta[k], data[k] - predicted[k], substeps,
            tuple(steps[k]), status[k], label,
        )
        for k in range(len(records))
    ]  # fmt: skip


def _check_alike(records: Sequence[Record]) -> Record:
    if not records:
        raise InputError("no records: expected at least one")
    first = records[0]
    check_record(first)
    for record in records[1:]:
        same = (record.shape, record.dx, record.q, record.boundary) == (first.shape, first.dx, first.q, first.boundary)
        if not same or not np.allclose(record.times - record.times[0], first.times - first.times[0]):
            raise InputError(f"a batch needs records of one shape, mesh, q and interval: got {first!r} and {record!r}")
    return first


@lru_cache(maxsize=1)
def _compiled() -> Any:
    from types import SimpleNamespace

    import jax
    import jax.numpy as jnp

    from doublewell.evidence.likelihood import solver

    options: dict[str, Any] = {"tolerance": CG_TOLERANCE, "most": CG_MOST}

    def begin(model: Any, nuisance: Any, theta: Any, data: Any, constants: Any) -> Any:
        each = jax.vmap(partial(solver.begin, model), in_axes=(0, 0, 0, None))
        return each(nuisance, theta, data, constants)

    def advance(model: Any, point: Any, data: Any, constants: Any) -> Any:
        return jax.vmap(partial(solver.advance, model, **options), in_axes=(0, 0, None))(point, data, constants)

    def sensitivity(model: Any, nuisance: Any, theta: Any, data: Any, constants: Any) -> Any:
        each = jax.vmap(partial(solver.sensitivity, model, **options), in_axes=(0, 0, 0, None))
        return each(nuisance, theta, data, constants)

    def predict(model: Any, nuisance: Any, theta: Any, constants: Any) -> Any:
        return jax.vmap(model.predict, in_axes=(0, 0, None))(nuisance, theta, constants)

    def choose(mask: Any, one: Any, other: Any) -> Any:
        return jax.tree.map(
            lambda a, b: jnp.where(jnp.reshape(mask, (-1, *(1,) * (jnp.ndim(a) - 1))), a, b), one, other
        )

    return SimpleNamespace(
        begin=jax.jit(begin, static_argnums=0),
        advance=jax.jit(advance, static_argnums=0),
        sensitivity=jax.jit(sensitivity, static_argnums=0),
        predict=jax.jit(predict, static_argnums=0),
        choose=jax.jit(choose),
    )

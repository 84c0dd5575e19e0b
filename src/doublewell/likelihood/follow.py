"""Follow: what records say of a law that is given: their fields are fitted to it, the law itself is not moved.

Parts of one record are read this way. They have one law, so a fit of the law to each would be thrown away, and a part
with little in it would lead such a fit astray. The fields alone are close to a linear problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from doublewell.hints import Array
from doublewell.jax_runtime import double_precision
from doublewell.law import LinearFamily
from doublewell.likelihood.compiled import compiled
from doublewell.likelihood.read import linearise
from doublewell.likelihood.setting import check_view, observed, observed_values, one_mask, record_model
from doublewell.likelihood.steps import Step, step_of
from doublewell.likelihood.trajectory import Trajectory, check_alike
from doublewell.likelihood.view import PLAIN, View
from doublewell.record import Record

__all__ = ["follow_law"]

_MOST = 8  # steps
_LEFT = 1e-5  # relative decrease of the cost below which the fields follow; the law feels them to second order only


def follow_law(
    records: Sequence[Record],
    theta: Array,
    *,
    family: LinearFamily,
    substeps: int,
    labels: Sequence[str],
    view: View = PLAIN,
) -> list[Trajectory]:
    """Fit the fields of records of one batch to one law and linearise there, all at the same point.

    `theta` is what the view estimates, then the coefficients of the family. Records that miss different values are read
    one by one.
    """
    records, theta = list(records), np.asarray(theta, dtype=np.float64)
    first = check_alike(records)
    check_view(first, view)
    if not one_mask(records):
        return [
            follow_law([one], theta, family=family, substeps=substeps, labels=[label], view=view)[0]
            for one, label in zip(records, labels, strict=True)
        ]
    model, constants = record_model(first, family, substeps, view)
    seen = observed(first, view)
    constants = constants._replace(root=seen.root)
    data = observed_values(records, view, seen)
    laws = np.tile(theta, (len(records), 1))
    nuisance = np.stack([model.border_of(one) for one in data])
    nuisance, steps, status = _follow(model, constants, data, nuisance, laws, seen.rows - theta.size)
    history = [(tuple(taken), words, 1) for taken, words in zip(steps, status, strict=True)]
    return linearise(records, family, nuisance, laws, substeps, history, labels, view)


def _follow(
    model: Any, constants: Any, data: Array, nuisance: Array, laws: Array, freedom: int
) -> tuple[Array, list[list[Step]], list[str]]:
    """Step until the fields of every record follow; one that has arrived stays where it is."""
    code = compiled()
    steps: list[list[Step]] = [[] for _ in data]
    status = [""] * len(data)
    with double_precision():
        point = code.begin(model, nuisance, laws, data, constants)
        for number in range(1, _MOST + 1):
            fresh = code.follow(model, point, data, constants)
            running = np.array([not words for words in status])
            point = code.choose(running, fresh, point)
            table = {name: np.asarray(getattr(fresh, name)) for name in fresh._fields[2:]}
            for k in np.flatnonzero(running):
                numbers = {name: column[k] for name, column in table.items()}
                steps[k].append(step_of(number, numbers, freedom, "fields of a given law"))
                status[k] = _verdict(steps[k])
            if all(status):
                break
        return np.asarray(point.nuisance), steps, status


def _verdict(steps: Sequence[Step]) -> str:
    """Return why the iteration ends, or nothing where it goes on."""
    last = steps[-1]
    gain = (last.before - last.after) / last.before if last.before > 0.0 else 0.0
    if gain <= _LEFT:  # NaN is not
        return f"converged: the last step lowered the cost by {max(gain, 0.0):.1g} of it"
    if len(steps) == _MOST:
        return f"stopped: {_MOST} steps, the last one lowered the cost by {gain:.1g} of it"
    return ""

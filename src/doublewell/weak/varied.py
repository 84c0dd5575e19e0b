"""Weak moments of an equation with parts: anisotropy, a mobility of the phase, a driving force; known or estimated.

    sum_j g_j S[B_j] + D S[Q(u)] = sum_ab A_ab d_a d_b S[u] + S[h],    Q' = 1/q

is linear in the law, in the coefficients of 1/q, and in the entries of an anisotropy but for its size. NumPy, all
centres at once: the fused kernel knows none of these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, legendre

from doublewell.dynamics import Driving, Dynamics
from doublewell.dynamics.anisotropy import entry_names, tensor_of
from doublewell.errors import InputError, NoStartError
from doublewell.evidence import Block, Evidence, Key, compact, stacked
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.record import Record
from doublewell.weak.assembly import PHASE_CUT
from doublewell.weak.weights import Derivative, Support, axis_weights, check_supports, time_weights, uneven_weights

_ROUNDS = 4  # of the size of an anisotropy, which is not linear
_SLOWEST = 20.0  # of 1/q, over its mean: a mobility that would be negative is at least this small
_NODES = 65
_MORE = 2  # degrees of 1/q beyond that of the logarithm of q, which is not a polynomial where the other is


def varied_evidence(
    record: Record, family: Family, supports: Sequence[Support], dynamics: Dynamics, derivative: Derivative
) -> Evidence:
    """Return the moments of an equation with parts: what is estimated of them, the force, the rate, the target."""
    supports = check_supports(supports, record.frames, record.mesh, record.dx)
    names, blocks = _names(dynamics, len(record.mesh)), []
    for support in supports:
        none = np.zeros((0, len(names) + family.size + 2))
        rows = np.vstack([none, *_rows(record, family, support, dynamics, derivative)])
        blocks.append(Block(Key("record", support.key, "all"), compact(rows), len(rows)))
    return Evidence(family, tuple(blocks), columns=(*names, "force", "rate", "target"))


def _names(dynamics: Dynamics, axes: int) -> tuple[str, ...]:
    parts = dynamics.parts
    entries = entry_names(axes, crossed=True) if parts.anisotropy == "estimated" else ()
    slow = range(1, parts.degree + _MORE + 1) if parts.degree else ()
    return (*[f"anisotropy {name}" for name in entries], *[f"slowness {k}" for k in slow])


def _rows(record: Record, family: Family, support: Support, dynamics: Dynamics, derivative: Derivative) -> Any:
    """Yield the rows of each centre frame."""
    from scipy.ndimage import correlate1d

    parts, axes, u = dynamics.parts, len(record.mesh), record.slab()
    space = [axis_weights(support.length / h, h, derivative) for h in record.dx]
    time = time_weights(support.frames, record.dt if record.uniform else 1.0, derivative)
    inside = tuple(slice(w.half, n - w.half) for w, n in zip(space, record.mesh, strict=True))
    tensor = parts.tensors.get("A", np.eye(axes))
    driving = parts.driving.at(record.times) if isinstance(parts.driving, Driving) else np.zeros(record.frames)
    slow = _slowness(dynamics)
    half = time.half

    def smoothed(field: Array, *bends: int) -> Array:
        """Smooth a field, with a derivative along each of the axes that are named."""
        for axis, weights in enumerate(space):
            taps = (weights.value, weights.first, weights.second)[bends.count(axis)]
            field = correlate1d(field, taps, axis=axis, mode="constant")
        return field[inside].ravel()

    for centre in range(half, record.frames - half):
        frames = slice(centre - half, centre + half + 1)
        value, first = time.value, time.first
        if not record.uniform:
            value, first = (part[0] for part in uneven_weights(support.frames, record.times[None, frames], derivative))
        near, later = _near(frames, value), _near(frames, first)
        mean = np.tensordot(value, u[near], axes=1)
        keep = np.abs(smoothed(mean)) < PHASE_CUT
        if not keep.any():
            continue
        bends = {(a, b): smoothed(mean, a, b) for a, b in combinations_with_replacement(range(axes), 2)}
        target = sum(tensor[a][b] * (1.0 if a == b else 2.0) * field for (a, b), field in bends.items())
        columns = [-_entry(bends, name.split(" ")[1], axes) for name in _names(dynamics, axes) if "slow" not in name]
        rates = [smoothed(np.tensordot(first, of(u[later]), axes=1)) for of in slow]
        features = np.tensordot(value, np.moveaxis(family.features(u[near]), 0, 1), axes=1)
        target = target + float(value @ driving[near])
        yield np.stack([*columns, *rates[1:], *map(smoothed, features), rates[0], target], axis=1)[keep]


def _near(frames: slice, weights: Array) -> slice:
    """Return the frames that weights of their own length, centred, take."""
    spare = (frames.stop - frames.start - len(weights)) // 2
    return slice(frames.start + spare, frames.stop - spare)


def _entry(bends: dict[tuple[int, int], Array], name: str, axes: int) -> Array:
    """Return what an entry of S multiplies: the bend along its axis less that along the first, or twice the mixed."""
    a, b = sorted(map("zyx"[-axes:].index, name))
    return bends[a, a] - bends[0, 0] if a == b else 2.0 * bends[a, b]


def _slowness(dynamics: Dynamics) -> list[Any]:
    """Return the functions Q whose slopes are T_0 = 1, T_1, ...; of a known mobility the one of its 1/m."""
    mobility = dynamics.parts.rate
    if mobility is None and not dynamics.parts.degree:
        return [lambda u: u]
    if mobility is None:
        return [_integral(row) for row in np.eye(dynamics.parts.degree + _MORE + 1)]
    s, (middle, half) = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES), mobility.centre
    return [_integral(chebyshev.chebfit(s, 1.0 / mobility(middle + half * s), _NODES // 2))]


def _integral(series: Array) -> Any:
    primitive = chebyshev.chebint(series)
    return lambda u: chebyshev.chebval(u, primitive)


def settle(
    evidence: Evidence, dynamics: Dynamics, q: float | None, axes: int
) -> tuple[Evidence, float, dict[str, float]]:
    """Return plain moments, q and the values of what is estimated of the equation, from least squares of all."""
    rows, p, joint = stacked(evidence), evidence.family.size, evidence.joint
    n, slow = len(joint), [k for k, name in enumerate(joint) if name.startswith("slowness")]
    rate, size, found = n + p, 1.0, dict.fromkeys(joint, 0.0)
    free, given = q is None or bool(slow), q
    for _ in range(_ROUNDS):
        left = rows[:, : rate + 1] if free else rows[:, :rate]
        right = rows[:, -1] if free else rows[:, -1] - rows[:, rate] * size / float(q or 1.0)
        scale = np.linalg.norm(left, axis=0)
        best = np.linalg.lstsq(left / scale, right, rcond=None)[0] / scale
        found = dict(zip(joint, best[:n].tolist(), strict=True))
        entries = {name.split(" ")[1]: value for name, value in found.items() if name.startswith("anisotropy")}
        if not entries:
            break
        size = 1.0 / float(np.trace(np.array(tensor_of(entries, axes))) / axes)
    weights, values = np.array([1.0]), {name: value for name, value in found.items() if name.startswith("anisotropy")}
    if free:
        if not best[rate] > 0.0:
            raise (NoStartError if slow else InputError)(  # a series in u may fail where the movie does not
                f"the picture moves against its own Laplacian (q would be {1.0 / best[rate]:.3g}): it does not follow "
                f"{dynamics.equation}; check the order of the frames and the scale of the field"
            )
        q = size / float(best[rate])
    assert q is not None
    if slow:  # a q that is known is the mean
        mean, rates, weights = _mobility(best[[rate, *slow]], len(slow) - _MORE)
        q, weights = (mean if given is None else given), weights * mean
        values |= {f"mobility {k + 1}": c for k, c in enumerate(rates)}
    blocks = []
    for block in evidence.blocks:
        t = block.triangle
        target = t[:, -1] - sum(found[name] * t[:, k] for k, name in enumerate(joint) if k not in slow)
        rates_of = t[:, [rate, *slow]] @ weights
        blocks.append(replace(block, triangle=compact(np.column_stack([t[:, n:rate], rates_of, target / size]))))
    return Evidence(evidence.family, tuple(blocks)), q, values


def _mobility(slowness: Array, degree: int) -> tuple[float, list[float], Array]:
    """Return the mean of q(u), the logarithm of q(u) as a series of a degree, and 1/q as one of its own."""
    s, weights = legendre.leggauss(_NODES)
    slow = chebyshev.chebval(s, slowness)
    mean = max(float(np.mean(slow)), 1e-300)
    slow = np.maximum(slow, mean / _SLOWEST)
    q = 0.5 * float(weights @ (1.0 / slow))
    logarithm, inverse = chebyshev.chebfit(s, -np.log(slow), degree), chebyshev.chebfit(s, slow, len(slowness) - 1)
    return q, [float(c) for c in logarithm[1:]], np.array(inverse, dtype=np.float64)

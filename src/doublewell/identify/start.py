"""Start: the law and q that a trajectory fit begins from where weak moments cannot give them, from two frames on.

The interface of a quartic law G = c (u^2 - 1) (u - m) is tanh(s x) with c = 2 s^2, so the width of the interface gives
c. An unknown q is first the regression of what changes between frames on L u - D G(u). From there both are searched,
and where the wells may be unequal the maximum m: frames are predicted, each from the one before it, and compared. The
frame that is predicted from has noise too. Its modes decay by P_k = exp(L_k q t) or faster, and what an initial field
of its own would leave of the difference d is |d_k|^2 / (1 + P_k^2): without the denominator, noise would favour a q
that smooths it away. Modes much shorter than the interface hold noise only and do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import atanh

import numpy as np

from doublewell.dynamics import (
    Cnab2,
    Dynamics,
    fastest_rate,
    numpy_transforms,
    roughly,
    since,
    steps_per_frame,
    symbols,
)
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law import INNER, Family, Law
from doublewell.observation import Survey
from doublewell.observation.view import mode_grid
from doublewell.problem import Problem
from doublewell.record import Record
from doublewell.weak.stream import Streamed
from doublewell.weak.weights import LEAST_FRAMES, Support

_FAR = 3.0  # relaxation times q G'(1) t from frame to frame above which weak moments are not asked
_PAIRS = 3  # pairs of frames that are predicted, spread over the record
_ROUNDS = [2.0 ** np.linspace(-side, side, 9) for side in (3.0, 1.0, 0.25)]  # factors of c, and of q
_SIDES, _MAXIMA = (0.8, 0.2, 0.05), np.linspace(-1.0, 1.0, 17)  # how far the maximum is sought, and where
_STEP, _MOST_STEPS = 0.25, 256  # largest rate times step of a prediction, and how many steps are taken
_FINE = 0.1, 0.2  # of the interface's width: Gaussians that take noise off a difference, and off each Laplacian
_DECAYS = 6  # pairs of frames whose waves are followed
_RATES = 4.0 ** np.arange(-4.0, 3.0)  # decays of the typical wave from frame to frame that are tried
_MOST_GROWTH = 30.0  # exponent of a mode from frame to frame
_CLEAR = 4.0  # standard errors of a motion that is not noise


@dataclass(frozen=True, eq=False)
class Start:
    """Where a trajectory fit begins: ``coefficients`` of the family that is fitted first, and q; ``rule`` states how.

    ``supports`` are those of the weak moments that gave it; ``streamed`` is what a pass over a streamed record gave
    besides, ``joint`` what is estimated of the equation beside q, by name.
    """

    coefficients: Array
    q: float
    rule: str
    supports: tuple[Support, ...] = ()
    streamed: Streamed | None = None
    joint: Mapping[str, float] = field(default_factory=dict)


def needs_quartic(record: Record, survey: Survey, dynamics: Dynamics) -> bool:
    """Whether frames are too few for weak moments, or too far apart: relaxation times in the usual interval."""
    if record.frames < LEAST_FRAMES:
        return True
    q = record.q or (survey.pace if dynamics.order == 2 else None) or 0.0
    rate = q * fastest_rate(dynamics, mode_grid(record).waves, 2.0 * _strength(survey))
    return rate * float(np.median(np.diff(record.times))) > _FAR


def quartic_start(record: Record, survey: Survey, problem: Problem) -> Start:
    """Return the quartic law, and q where the record has none, that predicts frames best from those before them.

    Where frames are so far apart that a prediction takes too many steps, interfaces have settled: their width tells it.
    """
    family, tilted = problem.fitted.at(0), problem.law.wells == "unequal"
    frames, strength, top = _Frames(record, survey.interface_width or 0.0, problem.dynamics), _strength(survey), 0.0
    names = ["its strength", *["its maximum"] * tilted, *["q"] * (record.q is None)]
    if (q := record.q) is None:
        if problem.dynamics.parts.thermal and not tilted:  # waves decay also where no interface moves
            q = frames.decay(None)[0]
        else:
            q, top = frames.regression(family, strength, survey.noise, tilted=tilted)
    settled = frames.steps(_quartic(family, strength, top), q) > _MOST_STEPS
    for factors, side in zip(_ROUNDS, _SIDES, strict=True) if not settled else ():
        if record.q is None:
            law = _quartic(family, strength, top)
            q = min((factors * q).tolist(), key=partial(frames.misfit, law))
        if tilted:
            tops = (top + side * _MAXIMA).tolist()
            top = _best(tops, [_quartic(family, strength, each) for each in tops], frames, q)
        strengths = (factors * strength).tolist()
        strength = _best(strengths, [_quartic(family, each, top) for each in strengths], frames, q)
    law = _quartic(family, strength, top)
    coefficients = family.elevation(problem.fitted) @ law.coefficients
    rule = f"none; started from a quartic law, {' and '.join(names)} by predicting frames from frames"
    if settled:
        rule = "none; started from the quartic law whose interface is as wide as that of frames far apart"
    return Start(coefficients, q, rule)


def diffusion_start(record: Record, survey: Survey, problem: Problem, other: Start | None) -> Start | None:
    """Return the linear law by which the waves of one phase decay, and q where the record has none.

    None where they grow, or where the law of the `other` start predicts frames better. Each mode decays by
    exp(q (L - c D) t): long waves show q c alone, and only short ones q.
    """
    frames = _Frames(record, survey.interface_width or 0.0, problem.dynamics, fine=(0.0, 0.0), pairs=_DECAYS)
    q, rate, gain = frames.decay(record.q)
    if not rate > 0.0:
        return None
    family = problem.fitted
    u = INNER * np.linspace(-1.0, 1.0, 9)
    law = Law(family, np.linalg.lstsq(family.features(u).T, rate / q * u)[0])
    misfit = frames.misfit(law, q)
    if other is not None and frames.misfit(Law(family, other.coefficients), other.q) <= misfit:
        return None
    if record.q is None and not gain > _CLEAR**2 * max(survey.noise, 1e-300) ** 2:
        raise InputError(
            "the record shows one phase, whose waves decay by diffusion, and none is short enough to tell q: it "
            f"determines q G' alone; pass {option('q')}, then the fit gives q G' with its band"
        )
    rule = "none; started from a linear law, its slope by the decay of waves from frame to frame"
    return Start(law.coefficients, q, rule)


def _quartic(family: Family, strength: float, top: float) -> Law:
    """Return the law G = strength (u^2 - 1) (u - top) in a family of degree 0; in half the range where it is one."""
    u, half = np.linspace(-1.0, 1.0, 9), INNER if family.found else 1.0
    force = half * strength * (u**2 - 1.0) * (u - top)
    return Law(family, np.linalg.lstsq(family.features(half * u).T, force)[0])


def _best(values: list[float], laws: list[Law], frames: _Frames, q: float) -> float:
    """Return the value whose law predicts frames best."""
    return values[int(np.argmin([frames.misfit(law, q) for law in laws]))]


def _strength(survey: Survey) -> float:
    """Return c of the quartic law whose interface is as wide as the record's."""
    assert survey.interface_width is not None
    return 2.0 * (2.0 * atanh(0.9) / survey.interface_width) ** 2


class _Frames:
    """Some pairs of consecutive frames, and how well a quartic law predicts the later from the earlier."""

    def __init__(
        self, record: Record, width: float, dynamics: Dynamics, fine: tuple[float, float] = _FINE, pairs: int = _PAIRS
    ) -> None:
        self.grid, self.dynamics = mode_grid(record), roughly(dynamics)
        self.forward, self.backward = numpy_transforms(self.grid.cells, self.grid.boundary)
        self.symbols = symbols(self.dynamics, self.grid.waves, self.grid.crossed)
        lengths = fine[0] * width, 0.5 * dynamics.order * fine[1] * width
        self.fine, self.smooth = (np.exp(0.5 * length**2 * self.grid.laplacian) for length in lengths)
        self.inside = np.ones(record.mesh)
        if record.boundary in (None, "open"):  # what comes in through the border is not predicted
            for axis, (n, h) in enumerate(zip(record.mesh, record.dx, strict=True)):
                far = np.minimum(np.arange(n), np.arange(n)[::-1]) >= min(int(np.ceil(width / h)), n // 4)
                self.inside *= far.reshape([-1 if k == axis else 1 for k in range(len(record.mesh))])
        places = np.unique(np.linspace(0, record.frames - 2, pairs).round().astype(int)).tolist()
        self.pairs: Sequence[tuple[Array, float, Dynamics]] = [
            (record.slab(k, k + 2), float(record.times[k + 1] - record.times[k]), since(self.dynamics, record.times[k]))
            for k in places
        ]
        self.power = sum([float(np.sum((self.inside * later) ** 2)) for (_, later), *_ in self.pairs])

    def steps(self, law: Law, q: float, interval: float | None = None) -> int:
        """Return the steps of a prediction over an interval, by default the longest."""
        rate = q * fastest_rate(self.dynamics, self.grid.waves, law.family.steepness(law.coefficients))
        return steps_per_frame(rate, interval or max(each for _, each, _ in self.pairs), _STEP)

    @np.errstate(over="ignore", invalid="ignore")
    def misfit(self, law: Law, q: float) -> float:
        """Return the sum of squares that predictions leave; infinite where they take too many steps, or diverge."""
        total = 0.0
        if self.steps(law, q) > _MOST_STEPS:
            return float("inf")
        for (first, second), interval, dynamics in self.pairs:
            steps = self.steps(law, q, interval)
            (there,) = Cnab2(self.grid, interval, q, steps, dynamics).run(law, first, intervals=1)
            weight = self.fine / np.sqrt(1.0 + np.exp(2.0 * q * interval * self.symbols.linear))
            total += float(np.sum(self.backward(weight * self.forward(self.inside * (second - there))) ** 2))
        return total if np.isfinite(total) else float("inf")

    def decay(self, known: float | None) -> tuple[float, float, float]:
        """Return q, the rate q c of a linear force, and by how much the square of what is left falls by q.

        The modes of frames are compared with those of the frame before, each decayed by exp((q L - rate D) t).
        """
        from scipy.optimize import minimize

        modes = [([self.forward(self.inside * field) for field in pair], t) for pair, t, _ in self.pairs]
        power = [np.abs(first) ** 2 for (first, _), _ in modes]
        interval = float(np.mean([t for _, t in modes]))
        units = [float(np.average(np.abs(s) + 0.0 * power[0], weights=sum(power))) * interval for s in self.symbols]

        def left(q: float, rate: float) -> float:
            total, exponent = 0.0, q * self.symbols.linear - rate * self.symbols.coupling
            for (first, second), t in modes:
                factor = np.exp(np.minimum(exponent * t, _MOST_GROWTH))
                total += float(np.sum(self.backward((second - factor * first) / np.sqrt(1.0 + factor**2)) ** 2))
            return total

        def best(qs: Sequence[float]) -> tuple[float, float, float]:
            rates = [sign * size / units[1] for size in _RATES for sign in (-1.0, 1.0)]
            q, rate = min(((q, rate) for q in qs for rate in rates), key=lambda pair: left(*pair))
            free = len(qs) > 1
            start = [np.log(q), rate * units[1]] if free else [rate * units[1]]
            cost = (lambda x: left(np.exp(x[0]), x[1] / units[1])) if free else (lambda x: left(q, x[0] / units[1]))
            end = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-9 * self.power})
            return float(np.exp(end.x[0])) if free else q, float(end.x[-1] / units[1]), float(end.fun)

        if known is not None:
            return (*best([known])[:2], np.inf)
        q, rate, rest = best((_RATES / units[0]).tolist())
        return q, rate, best([0.0])[2] - rest

    def regression(self, family: Family, strength: float, noise: float, *, tilted: bool) -> tuple[float, float]:
        """Return q by which frames change along L u - D G(u), and the maximum of G: 0 unless the wells are `tilted`.

        Of a round drop q and the tilt act nearly the same, so each of several q is tried with the tilt that suits it. A
        change that cannot be distinguished from noise raises.
        """
        law, columns, changes = _quartic(family, strength, 0.0), [], []
        for (first, second), interval, _ in self.pairs:
            modes = self.smooth * self.forward(0.5 * (first + second))
            u = self.backward(modes)
            force, tilt = self.forward(law.force(u)), self.forward(strength * (u**2 - 1.0))
            rates = self.symbols.linear * modes - self.symbols.coupling * force, self.symbols.coupling * tilt
            columns.append([interval * (self.inside * self.backward(rate)).ravel() for rate in rates])
            changes.append((second - first).ravel())
        (rate, tilt), change = np.concatenate(columns, axis=1), np.concatenate(changes)
        q, known = float(rate @ change / (rate @ rate)), np.sqrt(2.0) * max(noise, 1e-300)
        clear = q * float(np.linalg.norm(rate)) / known
        if tilted:
            clear = float(np.linalg.norm(np.linalg.qr(np.stack([rate, tilt], axis=1))[0].T @ change)) / known
        if not clear > _CLEAR:
            raise InputError(
                f"no motion along Laplacian u - G(u) can be distinguished from noise ({clear:.1f} standard errors, "
                f"expected {_CLEAR:g}), so the record does not determine q: pass {option('q')}, record longer, or a "
                "shape that moves"
            )
        if not tilted:
            return q, 0.0
        several = float(np.linalg.norm(change) / np.linalg.norm(rate)) * _ROUNDS[0]
        tops = [float(tilt @ (change / each - rate) / (tilt @ tilt)) for each in several]
        pairs = zip(several.tolist(), np.clip(tops, -_SIDES[0], _SIDES[0]).tolist(), strict=True)
        return min(pairs, key=lambda pair: self.misfit(_quartic(family, strength, pair[1]), pair[0]))

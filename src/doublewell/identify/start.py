"""Start: the law and q that a trajectory fit begins from where weak moments cannot give them, from two frames on.

The interface of a quartic law G = c (u^2 - 1) (u - m) is tanh(s x) with c = 2 s^2, so the width of the interface gives
c. An unknown q is first the regression of what changes between frames on L u - D G(u). From there both are searched,
and where the wells may be unequal the maximum m: frames are predicted, each from the one before it, and compared. The
frame that is predicted from has noise too. Its modes
decay by P_k = exp(L_k q t) or faster, and what an initial field of its own would leave of the difference d is
|d_k|^2 / (1 + P_k^2): without the denominator, noise would favour a q that smooths it away. Modes much shorter than the
interface hold noise only and do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh

import numpy as np

from doublewell.dynamics import Cnab2, Dynamics, fastest_rate, numpy_transforms, steps_per_frame, symbols
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law import Bernstein, Law
from doublewell.observation import Survey
from doublewell.observation.view import mode_grid
from doublewell.problem import Problem
from doublewell.record import Record
from doublewell.weak.stream import Streamed
from doublewell.weak.weights import LEAST_FRAMES, Support

_FAR = 3.0  # relaxation times q G'(1) t from frame to frame above which weak moments are not asked
_PAIRS = 3  # pairs of frames that are predicted, spread over the record
_ROUNDS = [2.0 ** np.linspace(-side, side, 9) for side in (3.0, 1.0, 0.25)]  # factors of c, and of q
_TOPS, _MAXIMA = (0.8, 0.2, 0.05), np.linspace(-1.0, 1.0, 17)  # how far the maximum is sought, and where
_STEP, _MOST_STEPS = 0.25, 256  # largest rate times step of a prediction, and how many steps are taken
_FINE = 0.1, 0.2  # of the interface's width: Gaussians that take noise off a difference, and off a Laplacian
_CLEAR = 4.0  # standard errors of a motion that is not noise


@dataclass(frozen=True, eq=False)
class Start:
    """Where a trajectory fit begins: ``coefficients`` of the family that is fitted first, and q; ``rule`` states how.

    ``misfit`` is the relative residual that it leaves. ``supports`` are those of the weak moments that gave it;
    ``streamed`` is what a pass over a streamed record gave besides.
    """

    coefficients: Array
    q: float
    rule: str
    misfit: float
    supports: tuple[Support, ...] = ()
    streamed: Streamed | None = None


def needs_quartic(record: Record, survey: Survey) -> bool:
    """Whether frames are too few for weak moments, or too far apart: relaxation times in the usual interval."""
    if record.frames < LEAST_FRAMES:
        return True
    q = survey.pace if record.q is None else record.q
    return 2.0 * (q or 0.0) * _strength(survey) * float(np.median(np.diff(record.times))) > _FAR


def quartic_start(record: Record, survey: Survey, problem: Problem) -> Start:
    """Return the quartic law, and q where the record has none, that predicts frames best from those before them."""
    frames, strength, names = _Frames(record, survey, problem.dynamics), _strength(survey), ["its strength"]
    lowest, top = problem.fitted.at(0), 0.0
    s = np.linspace(-1.0, 1.0, 9)

    def law_of(strength: float, top: float) -> Law:
        force = strength * (s**2 - 1.0) * (s - top)
        return Law(lowest, np.linalg.lstsq(lowest.features(s).T, force)[0])

    tops = [problem.law.wells == "unequal" and side for side in _TOPS]
    names += ["its maximum"] if any(tops) else []
    if (q := record.q) is None:
        names, (gram, pull, power) = [*names, "q"], frames.regression(strength, survey.noise, 1 + any(tops))
        q = float(pull[0] / gram[0, 0])
        if any(tops):  # of a round drop q and the tilt act nearly alike: each q with the tilt that suits it
            values = np.sqrt(power / gram[0, 0]) * _ROUNDS[0]
            maxima = np.clip((pull[1] / values - gram[0, 1]) / gram[1, 1], -0.9, 0.9)
            pairs = list(zip(values.tolist(), maxima.tolist(), strict=True))
            q, top = min(pairs, key=lambda pair: frames.misfit(law_of(strength, pair[1]), pair[0]))
    for factors, side in zip(_ROUNDS, tops, strict=True):
        if record.q is None:
            law, values = law_of(strength, top), factors * q
            q = _best(values, [frames.misfit(law, each) for each in values.tolist()])
        if side:
            values = top + side * _MAXIMA
            top = _best(values, [frames.misfit(law_of(strength, each), q) for each in values.tolist()])
        values = factors * strength
        strength = _best(values, [frames.misfit(law_of(each, top), q) for each in values.tolist()])
    law = law_of(strength, top)
    coefficients = lowest.elevation(problem.fitted) @ law.coefficients
    rule = f"none; started from a quartic law, {' and '.join(names)} by predicting frames from frames"
    return Start(coefficients, q, rule, float(np.sqrt(frames.misfit(law, q) / frames.power)))


def _strength(survey: Survey) -> float:
    """Return c of the quartic law whose interface is as wide as the record's."""
    assert survey.interface_width is not None
    return 2.0 * (2.0 * atanh(0.9) / survey.interface_width) ** 2


def _best(values: Array, misfits: Sequence[float]) -> float:
    return float(values[int(np.argmin(misfits))])


class _Frames:
    """Some pairs of consecutive frames, and how well a quartic law predicts the later from the earlier."""

    def __init__(self, record: Record, survey: Survey, dynamics: Dynamics) -> None:
        self.grid, self.dynamics = mode_grid(record), dynamics
        self.forward, self.backward = numpy_transforms(self.grid.cells, self.grid.boundary)
        self.symbols, width = symbols(dynamics, self.grid.waves), survey.interface_width or 0.0
        self.fine, self.smooth = (np.exp(0.5 * (part * width) ** 2 * self.grid.laplacian) for part in _FINE)
        self.inside = np.ones(record.mesh)
        if record.boundary in (None, "open"):  # what comes in through the border is not predicted
            for axis, (n, h) in enumerate(zip(record.mesh, record.dx, strict=True)):
                far = np.minimum(np.arange(n), np.arange(n)[::-1]) >= min(int(np.ceil(width / h)), n // 4)
                self.inside *= far.reshape([-1 if k == axis else 1 for k in range(len(record.mesh))])
        places = np.unique(np.linspace(0, record.frames - 2, _PAIRS).round().astype(int)).tolist()
        self.pairs: Sequence[tuple[Array, float]] = [
            (record.slab(k, k + 2), float(record.times[k + 1] - record.times[k])) for k in places
        ]
        self.power = sum([float(np.sum((self.inside * later) ** 2)) for (_, later), _ in self.pairs])

    def misfit(self, law: Law, q: float) -> float:
        """Return the sum of squares that predictions leave; infinite where they take too many steps."""
        slope, total = 2.0 * float(np.max(np.abs(law.coefficients))), 0.0
        rate = q * fastest_rate(self.dynamics, self.grid.waves, slope)
        for (first, second), interval in self.pairs:
            steps = steps_per_frame(rate, interval, _STEP)
            if steps > _MOST_STEPS:
                return float("inf")
            (there,) = Cnab2(self.grid, interval, q, steps, self.dynamics).run(law, first, intervals=1)
            weight = self.fine / np.sqrt(1.0 + np.exp(2.0 * q * interval * self.symbols.linear))
            total += float(np.sum(self.backward(weight * self.forward(self.inside * (second - there))) ** 2))
        return total if np.isfinite(total) else float("inf")

    def regression(self, strength: float, noise: float, used: int) -> tuple[Array, Array, float]:
        """Return the normal equations of how frames change along L u - D G(u) and along D (1 - u^2), and their power.

        Where what the first `used` of these explain cannot be distinguished from noise, it raises.
        """
        law, gram, pull, power = Law(Bernstein(0), np.array([strength])), np.zeros((2, 2)), np.zeros(2), 0.0
        for (first, second), interval in self.pairs:
            modes = self.smooth * self.forward(0.5 * (first + second))
            u = self.backward(modes)
            force, tilt = self.forward(law.force(u)), self.forward(strength * (u**2 - 1.0))
            columns = [self.symbols.linear * modes - self.symbols.coupling * force, self.symbols.coupling * tilt]
            rates = [interval * (self.inside * self.backward(column)).ravel() for column in columns]
            moved = (second - first).ravel()
            gram += np.array([[np.vdot(a, b) for b in rates] for a in rates])
            pull, power = pull + [np.vdot(moved, rate) for rate in rates], power + float(np.vdot(moved, moved))
        explained = float(pull[:used] @ np.linalg.solve(gram[:used, :used], pull[:used]))
        clear = np.sign(pull[0]) ** used * np.sqrt(max(explained, 0.0)) / max(noise * np.sqrt(2.0), 1e-300)
        if not clear > _CLEAR:
            raise InputError(
                f"no motion along Laplacian u - G(u) can be distinguished from noise ({clear:.1f} standard errors, "
                f"expected {_CLEAR:g}), so the record does not determine q: pass {option('q')}, record longer, or a "
                "shape that moves"
            )
        return gram, pull, power

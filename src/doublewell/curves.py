"""Curves: what the figures of a result show: the law with its bands, the phase values visited, what the fit leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from doublewell.adequacy import FALSE_ALARMS
from doublewell.errors import InputError
from doublewell.facts import LEVEL, facts, kept
from doublewell.hints import Array
from doublewell.inference import Quantity
from doublewell.law import Law
from doublewell.physical import physical
from doublewell.result import Likelihood, Result
from doublewell.statements import per_area, scale_units

POINTS = 401
_Evaluate = Callable[[Any], Any]
_TRUTH = 2001  # uniform phase values of the paper's force error


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of the phase value u, between the phases, with its 95 % band; ``why`` tells where there is none."""

    symbol: str
    name: str
    unit: str
    evaluate: Callable[[Any], Any]
    u: Array
    values: Array
    low: Array | None
    high: Array | None
    why: str = ""

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        return float(np.max(np.abs(self.values))) or 1.0

    @property
    def half_width(self) -> float | None:
        """The largest half-width of the band relative to the largest value, None without a band."""
        if self.low is None or self.high is None:
            return None
        return 0.5 * float(np.max(self.high - self.low)) / self.largest


@dataclass(frozen=True, eq=False)
class Residual:
    """What a trajectory fit leaves.

    ``blocks`` tells how far its variance over time is from the mean, in standard deviations, for each block of cells
    between ``edges``; ``frames`` its standard deviation in each frame over ``noise``, at ``times`` since the first
    frame; ``spread`` is the standard deviation of one of these.
    """

    blocks: Array
    edges: tuple[Array, ...]
    times: Array
    frames: Array
    noise: float
    spread: float


@dataclass(frozen=True, eq=False)
class Curves:
    """All curves of a result: G, H and, with a scale, F; interior stationary points and stable phases with their kinds.

    ``energy`` is f = kappa H in physical units, None where these are not known. ``unseen`` are ranges of u that the
    movie (nearly) never shows, ``fractions`` the fractions of its values between ``edges``; ``weights`` those of the
    degrees, empty for a single one.
    """

    law: tuple[Curve, ...]
    energy: Curve | None
    points: tuple[tuple[float, str], ...]
    unseen: tuple[tuple[float, float], ...]
    edges: Array
    fractions: Array
    coverage: float
    weights: tuple[tuple[int, float], ...]
    residual: Residual | None

    @property
    def named(self) -> dict[str, Curve]:
        """The curves by the names of `Result.band`, f in physical units last, where it is known."""
        names = "force", "primitive", "potential"
        return dict(zip(names, self.law, strict=False)) | ({} if self.energy is None else {"bulk_energy": self.energy})

    @property
    def panels(self) -> tuple[Curve, ...]:
        """The curves of a figure: G, H and F; where physical units are known f, G, and then the F of the paper."""
        return self.law if self.energy is None else (self.energy, self.law[0], self.law[-1])

    @property
    def quoted(self) -> tuple[Curve, ...]:
        """The curves of a page: an energy, the force, and the F of the paper where the energy is f."""
        return self.panels if self.energy is not None else (self.law[-1], self.law[0])


@kept
def curves(result: Result) -> Curves:
    """Return the curves of a result."""
    law, survey = result.law, result.diagnostics.survey
    u = np.linspace(*law.phases, POINTS)
    area = per_area(result) or "1/length^2"

    def curve(symbol: str, name: str, unit: str, evaluate: _Evaluate, band: _Evaluate) -> Curve:
        low = high = None
        why = ""
        try:
            low, high = band(u)
        except InputError as error:  # a weak-form fit, or data that allow laws without an interface
            why = str(error)
        return Curve(symbol, name, unit, evaluate, u, np.asarray(evaluate(u)), low, high, why)

    def band(quantity: Quantity) -> _Evaluate:
        return partial(result.band, quantity, level=LEVEL)

    made = [
        curve("G", "effective force G", area, result.force, band("force")),
        curve("H", "primitive H of the force", area, result.primitive, band("primitive")),
    ]
    if result.scale is not None:
        kind = "tension^2" if result.scale.tension.normalisation == "E" else "tension/length"
        unit = scale_units(result)[1] or kind
        made.append(curve("F", "potential F", unit, result.potential, band("potential")))
    energy = None
    if (barrier := facts(result).get("physical_barrier")) is not None:
        known = physical(result)
        energy = curve("f", "bulk energy f", barrier.unit or "", known.bulk_energy, partial(known.band, level=LEVEL))
    stable = [(u, "minimum") for u, bend in zip(law.phases, law.well_curvatures, strict=True) if bend > 0.0]
    fractions = np.array(survey.histogram)
    edges = np.linspace(*law.phases, fractions.size + 1)
    step = np.diff(np.concatenate([[0], ~np.array(survey.visited), [0]]).astype(int))
    path = () if result.posterior is None else result.posterior.path
    return Curves(
        law=tuple(made),
        energy=energy,
        points=(*((point.u, str(point.kind)) for point in law.structure.stationary), *stable),
        unseen=tuple(zip(edges[step == 1].tolist(), edges[step == -1].tolist(), strict=True)),
        edges=edges,
        fractions=fractions,
        coverage=survey.coverage,
        weights=tuple((item.degree, item.weight) for item in path) if len(path) > 1 else (),
        residual=None if result.diagnostics.likelihood is None else _residual(result, result.diagnostics.likelihood),
    )


def _residual(result: Result, fit: Likelihood) -> Residual:
    record = result.problem.records[0]
    edges = tuple(
        np.linspace(0, cells, blocks + 1).round() * step
        for cells, blocks, step in zip(record.shape[1:], fit.residual_map.shape, record.dx, strict=True)
    )
    return Residual(
        blocks=fit.residual_map,
        edges=edges,
        times=record.dt * np.arange(fit.residual_frames.size, dtype=np.float64),
        frames=np.asarray(fit.residual_frames / fit.noise),
        noise=fit.noise,
        spread=float(1.0 / np.sqrt(2.0 * prod(record.shape[1:]))),
    )


def thresholds(count: int) -> Array:
    """Return the sizes, in sigma, from which tests count by Holm's correction, for the largest first."""
    from scipy.special import ndtri

    return np.asarray(-ndtri(0.5 * FALSE_ALARMS / np.arange(count, 0, -1)))


@dataclass(frozen=True)
class Truth:
    """A known law, read as F', with its epsilon: what a recovered one is compared with.

    >>> from doublewell.law import named_law
    >>> Truth(named_law("quartic"), 0.5).force.coefficients.tolist()
    [4.0]
    """

    law: Law
    epsilon: float

    @cached_property
    def force(self) -> Law:
        """The effective force F'/epsilon^2."""
        return self.law.effective(self.epsilon)

    def curve(self, symbol: str) -> Callable[[Any], Any]:
        """Return G, H or F as a function."""
        return {"G": self.force.force, "H": self.force.primitive, "F": self.law.primitive}[symbol]

    def force_error(self, result: Result) -> float:
        """Return e_G = |G_hat - G| / |G| in L2 between the phases, by 2001 uniform phase values."""
        u = np.linspace(*self.law.phases, _TRUTH)
        true = self.force.force(u)
        return float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true))

    def epsilon_error(self, result: Result) -> float | None:
        """Return e_eps = epsilon_hat / epsilon - 1, None when the result has no scale."""
        return None if result.scale is None else result.scale.epsilon / self.epsilon - 1.0

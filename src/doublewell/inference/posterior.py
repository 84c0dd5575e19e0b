"""Posterior: what the evidence leaves open, as a mixture over degrees, and the bands that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from doublewell.calibrate import Scale, epsilon_power, why_no_scale
from doublewell.dynamics.anisotropy import tensor_of
from doublewell.dynamics.mobility import relative_mobility
from doublewell.errors import InputError, option
from doublewell.evidence import JointParameters
from doublewell.hints import Array
from doublewell.inference.degrees import Component, DegreeAverage, DegreeFit
from doublewell.law import Constraint, Family, Law, Tangents, gauss_legendre

Quantity = Literal["force", "primitive", "potential", "bulk_energy", "diffusion", "mobility"]
JointName = Literal[
    "q", "blur", "gain", "offset", "gain drift", "offset drift", "drift x", "drift y", "drift z", "bend x", "bend y",
    "bend z", "response", "theta",
]  # fmt: skip
LawNumber = Literal[
    "epsilon", "barrier", "width", "tension_integral", "kappa", "tension", "bulk_barrier", "maximum", "tilt", "low",
    "high", "spinodal_low", "spinodal_high", "chi", "ratio", "angle", "flux ratio", "flux angle",
]  # fmt: skip
Scalar = LawNumber | JointName
DRAWS = 4000  # fixed seed; a band's edge then moves by about 2 % of its half-width from seed to seed
_SEED = 20_260_101
_NODES = 64
_NEVER = 1e-9  # chance of a negative value that needs no care
_SURE = 0.975  # least fraction of draws with an entropy that is positive


@dataclass(frozen=True, eq=False)
class Posterior:
    """A mixture of normal distributions over degrees, in the coefficients of one family.

    ``path`` is the table of degrees, ``components`` the mixture. ``drift`` holds shifts of the coefficients, one per
    row: two that a finer discretisation would bring, then what the data leave unseen. Each is added as one more normal
    direction. A draw outside the class of the ``constraint`` is replaced by the nearest law inside, in the metric of
    its component: the spread is then that of the constrained estimate. ``joint`` is what was estimated jointly with the
    law, such as q, given the law.
    """

    family: Family
    path: tuple[DegreeFit, ...]
    components: tuple[Component, ...]
    drift: Array
    constraint: Constraint
    joint: JointParameters | None = None

    @property
    def mean(self) -> Array:
        """The mean of the unconstrained mixture."""
        return np.asarray(sum(item.weight * (self._lift(item) @ item.free) for item in self.components))

    @property
    def covariance(self) -> Array:
        """The covariance of the unconstrained mixture: within the components, between them, and the drift."""
        mean, total = self.mean, self.drift.T @ self.drift
        for item in self.components:
            lift = self._lift(item)
            gap = lift @ item.free - mean
            total = total + item.weight * (lift @ item.covariance @ lift.T + np.outer(gap, gap))
        return total

    @cached_property
    def free_draws(self) -> Array:
        """Draws of the coefficients without the constraint; shape (DRAWS, size)."""
        return self._all_draws("none")

    def extra_structure(self) -> float:
        """Return the fraction of unconstrained draws that are not double wells with a single barrier."""
        return float(np.mean(~self.family.single_barrier(self.free_draws)))

    @cached_property
    def draws(self) -> Array:
        """Draws of the coefficients, constrained where the estimate is; shape (DRAWS, size)."""
        return self.free_draws if self.constraint == "none" else self._all_draws(self.constraint)

    @cached_property
    def tangents(self) -> Tangents | None:
        """The common tangent of every draw of a conserved field's law; None where at most half of them have one."""
        line = self.family.tangents(self.draws) if self.family.found else None
        return None if line is None or np.mean(line.known) <= 0.5 else line

    def joint_values(self, law: Law) -> dict[str, float]:
        """Return the most likely values of what was estimated jointly with the law; the blur is a length."""
        if self.joint is None:
            return {}
        lifted = self.family.at(law.family.degree).elevation(self.family) @ law.coefficients
        values = dict(zip(self.joint.names, self.joint.mean(lifted).tolist(), strict=True))
        return values | ({"blur": max(values["blur"], 0.0) ** 0.5} if "blur" in values else {})

    @cached_property
    def _joint_draws(self) -> dict[str, Array]:
        """Draws of what was estimated jointly with the law, one for each draw of it, by name."""
        if self.joint is None:
            return {}
        drawn = self.joint.draw(self.draws, np.random.default_rng(_SEED - 1))
        return dict(zip(self.joint.names, drawn.T, strict=True))

    def joint_draws(self, name: str) -> Array | None:
        """Return draws of what was estimated jointly with the law, one for each draw; None where it was not."""
        drawn = self._joint_draws.get(name)
        return drawn if drawn is None or name != "blur" else np.sqrt(np.maximum(drawn, 0.0))

    def mobilities(self, u: Array, known: float) -> Array:
        """Return q(u) of every draw, a row each; the mean of each is the `known` one where q was not estimated."""
        rates = [drawn for name, drawn in self._joint_draws.items() if name.startswith("mobility ")]
        if not rates:
            raise InputError("the mobility was not estimated by this fit as a function of the phase, so it has no band")
        q, s = self._joint_draws.get("q", np.full(len(self.draws), known)), (u - self.family.middle) / self.family.half
        return np.stack([each * relative_mobility(np.array(row), s) for each, *row in zip(q, *rates, strict=True)])

    def constant_mobility(self) -> tuple[float, int]:
        """Return chi-square of a mobility that does not depend on the phase, and its degrees of freedom."""
        drawn = np.array([drawn for name, drawn in self._joint_draws.items() if name.startswith("mobility ")])
        mean, spread = np.mean(drawn, axis=1), np.atleast_2d(np.cov(drawn))
        return float(mean @ np.linalg.solve(spread, mean)), len(drawn)

    def _all_draws(self, constraint: Constraint) -> Array:
        """Split the draws over the components by their weights, not at random."""
        edges = np.round(np.cumsum([item.weight for item in self.components]) * DRAWS).astype(int)
        draws = []
        for k, (item, count) in enumerate(zip(self.components, np.diff(edges, prepend=0).tolist(), strict=True)):
            if not count:
                continue
            rng, root = np.random.default_rng(_SEED + k), np.linalg.cholesky(item.covariance)
            g = item.free + rng.standard_normal((count, item.free.size)) @ root.T
            metric, own = np.linalg.inv(root), self.family.at(item.degree)
            roots = np.broadcast_to(metric, (count, *metric.shape))
            g = own.hold(constraint, roots, g @ metric.T, g, near=item.coefficients).coefficients
            draws.append(g @ self._lift(item).T + rng.standard_normal((count, len(self.drift))) @ self.drift)
        return np.vstack(draws)

    def _lift(self, item: Component) -> Array:
        return self.family.at(item.degree).elevation(self.family)


def quantile_interval(values: Array, level: float) -> tuple[Array, Array]:
    """Return the central interval of draws along the first axis."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}: expected a number between 0 and 1, such as 0.95")
    low, high = np.quantile(values, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return low, high


def curve_band(
    posterior: Posterior, quantity: str, u: Array, level: float, scale: Scale | None = None, q: float = 1.0
) -> tuple[Array, Array]:
    """Return the pointwise band of a curve at u; `q` is that of the record where it was not estimated."""
    if quantity not in (names := get_args(Quantity)):
        raise InputError(f"band of {quantity!r}: expected one of {', '.join(map(repr, names))}")
    if quantity == "mobility":
        low, high = quantile_interval(posterior.mobilities(u.ravel(), q), level)
        return low.reshape(u.shape), high.reshape(u.shape)
    family, draws = posterior.family, posterior.draws
    basis = {"force": family.features, "diffusion": family.slopes}.get(quantity, family.primitives)
    curves, line = draws @ basis(u.ravel()), posterior.tangents
    if quantity == "diffusion":
        estimated = posterior.joint_draws("q")
        curves = curves * (q if estimated is None else estimated[:, None])
    elif line is not None:
        curves = (curves - (line.force[:, None] if quantity == "force" else line.under(u.ravel())))[line.known]
    if quantity in ("potential", "bulk_energy"):
        epsilon, kappa, kept = _scale_draws(posterior, scale)
        kept = kept if line is None else kept[line.known]
        curves = (epsilon**2 if quantity == "potential" else kappa)[:, None] * curves[kept]
    low, high = quantile_interval(curves, level)
    return low.reshape(u.shape), high.reshape(u.shape)


def scalar_interval(posterior: Posterior, quantity: str, level: float, scale: Scale | None) -> tuple[float, float]:
    """Return the interval of a number that follows from the law."""
    names = (*get_args(LawNumber), *get_args(JointName))
    if quantity not in (*names, *(posterior.joint.names if posterior.joint else ())):
        raise InputError(f"interval of {quantity!r}: expected one of {', '.join(map(repr, names))}")
    low, high = quantile_interval(_scalar_draws(posterior, quantity, scale), level)
    return float(low), float(high)


def _scalar_draws(posterior: Posterior, quantity: str, scale: Scale | None) -> Array:
    family, draws = posterior.family, posterior.draws
    if quantity in ("epsilon", "barrier", "kappa", "bulk_barrier", "tension"):
        epsilon, kappa, kept = _scale_draws(posterior, scale)
        integrals, first = _tension_integrals(posterior)
        unit = {"epsilon": epsilon, "barrier": epsilon**2}.get(quantity, kappa)
        if quantity not in ("epsilon", "kappa"):
            unit = unit * (integrals[kept[first]] if quantity == "tension" else family.barriers(draws[kept]))
        return unit
    if quantity in ("low", "high", "spinodal_low", "spinodal_high", "chi"):
        return _of_mixture(posterior, quantity)
    if quantity.endswith(("ratio", "angle")) or quantity not in get_args(LawNumber):
        return _of_equation(posterior, quantity)
    if quantity == "maximum":
        line = posterior.tangents
        return family.maxima(draws if line is None else draws[line.known])
    if quantity == "tilt":
        return np.asarray(draws @ family.primitives(np.array(family.phases[1:]))[:, 0]) * (not family.found)
    return _widths(posterior) if quantity == "width" else _tension_integrals(posterior)[0]


def _thetas(posterior: Posterior) -> Array:
    """Return theta of every draw: positive, so that of a normal distribution only that side is drawn."""
    from scipy.special import ndtr, ndtri

    drawn = posterior.joint_draws("theta")
    if drawn is None:
        raise InputError(f"thermal noise was not read by this fit: use {option('temperature')}")
    mean, sd = float(np.mean(drawn)), float(np.std(drawn))
    below = float(ndtr(-mean / sd))
    return drawn if below < _NEVER else mean + sd * ndtri(below + (1.0 - below) * ndtr((drawn - mean) / sd))


def _of_equation(posterior: Posterior, quantity: str) -> Array:
    """Return what was estimated jointly with the law of every draw; ratio and angle are those of an anisotropy.

    Angles are continued around the most likely one.
    """
    if quantity not in get_args(LawNumber):
        values = _thetas(posterior) if quantity == "theta" else posterior.joint_draws(quantity)
        if values is None:
            raise InputError(f"{quantity} was not estimated by this fit, so it has no interval")
        return values
    part, name = "flux" if quantity.startswith("flux") else "anisotropy", quantity.rpartition(" ")[2]
    entries = {key.split(" ")[1]: x for key, x in posterior._joint_draws.items() if key.startswith(f"{part} ")}
    if not entries:
        raise InputError(f"the anisotropy was not estimated by this fit, so its {name} has no interval")
    axes = 3 if any("z" in key or key == "yy" for key in entries) else 2
    tensors = np.moveaxis(
        np.array([[np.broadcast_to(x, DRAWS) for x in row] for row in tensor_of(entries, axes)]), -1, 0
    )
    if name == "ratio":
        values = np.linalg.eigvalsh(tensors)
        return np.asarray(values[:, -1] / values[:, 0])
    if axes == 3:
        raise InputError(
            "an anisotropy of three axes has no one angle: its entries have intervals, such as 'anisotropy xy'"
        )
    twice = np.arctan2(2.0 * tensors[:, 0, 1], tensors[:, 1, 1] - tensors[:, 0, 0])
    centre = np.angle(np.mean(np.exp(1j * twice)))
    return np.asarray(np.rad2deg(0.5 * centre) % 180.0 + np.rad2deg(0.5 * np.angle(np.exp(1j * (twice - centre)))))


def _heights(posterior: Posterior, s: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return H at positions s of every draw that is positive at all of them, and which draws these are: over half."""
    family = posterior.family
    if not family.equal_depths:
        raise InputError(
            "the depths of the wells may differ in this fit, so no planar interface is at rest: it has no width, no "
            "planar tension and no interval of them; where the depths are known to be equal, use "
            f"{option('wells', 'equal')}"
        )
    heights = family.heights(posterior.draws, s)
    kept = np.min(heights, axis=1) > 0.0  # not where it is NaN
    if np.mean(kept) < 0.5:
        raise InputError(
            "more than half of the laws that the data allow have no planar interface: no interval can be given; "
            f"use {option('constraint', 'admissible')} or more data"
        )
    return heights[kept], kept


def _tension_integrals(posterior: Posterior) -> tuple[Array, NDArray[np.bool_]]:
    """Return C_H of every draw that has a planar interface, and which draws these are."""
    nodes, weights = gauss_legendre(_NODES)
    heights, kept = _heights(posterior, nodes)
    return _halves(posterior)[kept] * (np.sqrt(2.0 * heights) @ weights), kept


def _widths(posterior: Posterior) -> Array:
    """Return the interface width between 90 % of the way to either phase, with s = tanh(sigma) as in ``Law``."""
    nodes, weights = gauss_legendre(_NODES)
    reach = np.arctanh(0.9)
    s = np.tanh(reach * nodes)
    heights, kept = _heights(posterior, s)
    return np.asarray(reach * _halves(posterior)[kept] * (((1.0 - s**2) / np.sqrt(2.0 * heights)) @ weights))


def _halves(posterior: Posterior) -> Array:
    """Return half the distance of the phases of every draw."""
    low, high = posterior.family.ends(posterior.draws).T if posterior.family.found else posterior.family.phases
    return np.broadcast_to(0.5 * (high - low), len(posterior.draws))


def _of_mixture(posterior: Posterior, quantity: str) -> Array:
    """Return the coexisting phases of every draw, the ends of its spinodal interval, or chi."""
    if quantity == "chi":
        return posterior.family.interaction(posterior.draws)
    if not posterior.family.found and not quantity.startswith("spinodal"):
        raise InputError("the phases are assumed in this fit and not estimated, so they have no interval")
    pairs = posterior.family.spinodals(posterior.draws)
    if not quantity.startswith("spinodal"):
        line = posterior.family.tangents(posterior.draws)
        pairs = np.stack([line.low, line.high], axis=1)
    values = pairs[:, int(quantity.endswith("high"))]
    if np.mean(np.isfinite(values)) <= 0.5:
        raise InputError(
            "more than half of the laws that the data allow have no such end near the values of the record: no "
            "interval can be given; use more data"
        )
    return values[np.isfinite(values)]


def _scale_draws(posterior: Posterior, scale: Scale | None) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return epsilon and kappa = sigma / C_H of every draw that has an interface, and which draws these are."""
    if scale is None:
        raise InputError(why_no_scale())
    integrals, kept = _tension_integrals(posterior)
    tension = scale.tension
    noise = np.random.default_rng(_SEED + 1).standard_normal(integrals.size)
    relative = np.maximum(1.0 + (tension.sd or 0.0) / tension.value * noise, 1e-12)
    if scale.thermal is not None:
        kappa = scale.thermal * relative / _thetas(posterior)[kept]
    elif scale.mixing is None:
        kappa = tension.value * relative / integrals
    else:
        sizes = posterior.family.entropies(posterior.draws)[kept]
        if np.mean(sizes > 0.0) < _SURE:
            raise InputError("the record does not determine the entropy of ideal mixing, so that kappa has no interval")
        kappa, kept = scale.mixing * relative[sizes > 0.0] / sizes[sizes > 0.0], kept.copy()
        kept[np.flatnonzero(kept)[sizes <= 0.0]] = False
    return kappa ** epsilon_power(tension.normalisation), kappa, kept


def free_covariance(average: DegreeAverage, family: Family) -> Array:
    """Return the covariance of the coefficients of an average over degrees, without a constraint."""
    return Posterior(family, average.path, average.components, np.zeros((1, family.size)), "none").covariance

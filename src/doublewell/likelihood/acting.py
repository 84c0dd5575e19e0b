"""Acting: what moves a field in addition to the law: anisotropy, mobility, driving force, terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from doublewell.dynamics import Driving, Dynamics
from doublewell.dynamics.anisotropy import direction_products, tensor_of
from doublewell.dynamics.mobility import acted, pace
from doublewell.dynamics.protocol import Symbols, stretched, symbols
from doublewell.dynamics.terms import State, Term
from doublewell.hints import Array


class Acting(NamedTuple):
    """The symbols and q times the frame intervals of the steps, and what turns the law's force into that of a step.

    ``known`` is, for each frame interval, its middle as a fraction of the record, what is added to its rate, and the
    driving force at its half steps; None where the force is that of the law alone. ``tensor`` is an anisotropy of the
    gradient energy that is estimated, ``speed`` a mobility of the phase over the rate that is stepped exactly.
    """

    symbols: Symbols
    taus: Any
    known: tuple[Any, Any, Any] | None
    tensor: Any
    speed: Any
    terms: tuple[Term, ...]
    amplitudes: Any

    @classmethod
    def of(cls, model: Any, joint: dict[str, Any], constants: Any, taus: Any) -> Acting:
        """Return what acts in a model at the values of what is estimated with the law."""
        import jax.numpy as jnp

        def estimated(name: str) -> dict[str, Any]:
            return {key.split(" ")[1]: joint[key] for key in model.free if key.startswith(f"{name} ")}

        symbols, tensor, speed = constants.stepped, None, None
        if entries := estimated("anisotropy"):
            tensor = tensor_of(entries, len(model.cells))
            symbols = stretched(symbols, tensor, constants.products, drives=False)
        if entries := estimated("flux"):
            symbols = stretched(symbols, tensor_of(entries, len(model.cells)), constants.products, drives=True)
        rates = [*estimated("mobility").values()] or (
            () if isinstance(constants.mobility, tuple) else constants.mobility
        )
        if len(rates):
            middle, speed = pace(rates)
            taus = middle * taus
        pushes, driving = (None if isinstance(x, tuple) else x for x in (constants.pushes, constants.driving))
        known = None
        if model.terms or speed is not None or pushes is not None or driving is not None:
            known = (jnp.cumsum(taus) - 0.5 * taus) / jnp.sum(taus), pushes, driving
        return cls(symbols, taus, known, tensor, speed, model.terms, joint["terms"])

    @property
    def bends(self) -> bool:
        """Whether L u is needed for the force."""
        return bool(self.terms) or self.speed is not None

    def pull(self, u: Any, curved: Any, force: Any, known: Any, half: Any, *more: Any) -> Any:
        """Return the force that is stepped, such that u_t / q is L u less it.

        It is the law's less the driving force, the terms times their amplitudes and the push of a frame interval. Of
        all that and of L u, a mobility takes its part.
        """
        import jax

        middle, push, driving = known
        force = acted(u, None, force, None if driving is None else driving[half], None)
        state = State(u, curved, force, middle, *more)
        total = 0.0 if push is None else push
        # amplitudes are zero: what a term does to a change of u counts for nothing, and is not computed
        added = (a * jax.lax.stop_gradient(term(state)) for a, term in zip(self.amplitudes, self.terms, strict=True))
        force = force - sum(added, total)
        return acted(u, curved, force, None, self.speed)


def acting_constants(
    dynamics: Dynamics, estimated: Sequence[str], times: Array, substeps: int, waves: Sequence[Array],
    crossed: Sequence[Array] | None,
) -> dict[str, Any]:  # fmt: skip
    """Return the constants of a model that are the equation's, by name; `estimated` are the names beside q."""
    found: dict[str, Any] = {"stepped": symbols(dynamics, waves, crossed)}
    parts = dynamics.parts
    if any(name.startswith(("anisotropy", "flux")) for name in estimated):
        found["products"] = direction_products(waves, crossed)
    if parts.rate is not None:
        found["mobility"] = np.array(parts.rate.coefficients)
    if isinstance(parts.driving, Driving):
        halves = np.arange(2 * substeps + 1) / (2 * substeps)
        found["driving"] = parts.driving.at(times[:-1, None] + np.diff(times)[:, None] * halves)
    return found

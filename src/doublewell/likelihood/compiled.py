"""The solver's functions, compiled for several records of one shape at once; one record is a batch of one."""

from __future__ import annotations

from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

from doublewell.jax_runtime import on_gpu
from doublewell.likelihood import solver
from doublewell.likelihood.steps import CG_MOST, CG_TOLERANCE

__all__ = ["compiled"]


@lru_cache(maxsize=1)
def compiled() -> Any:
    """Return begin, advance, follow, sensitivity, predict, pull and choose.

    The first argument is the model; all others but the constants have a leading record axis. One compilation serves
    all records of a shape.
    """
    import jax
    import jax.numpy as jnp

    options: dict[str, Any] = {"tolerance": CG_TOLERANCE, "most": CG_MOST}
    together = 16 if on_gpu() else 1  # a GPU waits for its next kernel, a core for its numbers

    def over(function: Any, count: int) -> Any:
        def batched(model: Any, *arguments: Any) -> Any:
            return jax.vmap(partial(function, model), in_axes=(*(0,) * count, None))(*arguments)

        return jax.jit(batched, static_argnums=0)

    def choose(mask: Any, one: Any, other: Any) -> Any:
        return jax.tree.map(
            lambda a, b: jnp.where(jnp.reshape(mask, (-1, *(1,) * (jnp.ndim(a) - 1))), a, b), one, other
        )

    return SimpleNamespace(
        begin=over(solver.begin, 3),
        advance=over(partial(solver.advance, **options), 2),
        follow=over(partial(solver.follow, **options), 2),
        sensitivity=over(partial(solver.sensitivity, together=together, **options), 3),
        predict=over(lambda model, *rest: model.predict(*rest), 2),
        pull=over(solver.pull_back, 3),
        choose=jax.jit(choose),
    )

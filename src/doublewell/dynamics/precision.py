"""Double precision in JAX for the length of a block, whatever the user's global setting."""

from __future__ import annotations

from contextlib import AbstractContextManager

from doublewell.dynamics.cache import keep_compiled

__all__ = ["double_precision"]


def double_precision() -> AbstractContextManager[None]:
    """Return a context in which JAX computes in float64; no global flag is touched.

    >>> with double_precision():
    ...     import jax.numpy as jnp
    ...     print(jnp.ones(1).dtype)
    float64
    """
    import jax

    keep_compiled()
    if hasattr(jax, "enable_x64"):  # from jax 0.8
        context: AbstractContextManager[None] = jax.enable_x64(True)
    else:
        from jax.experimental import enable_x64

        context = enable_x64()
    return context

"""Device: whether JAX computes on a GPU. There a batch costs little more than one record."""

from __future__ import annotations

__all__ = ["on_gpu"]


def on_gpu() -> bool:
    """Say whether JAX's default device is something else than the CPU."""
    import jax

    return str(jax.default_backend()) != "cpu"

"""Device: what JAX computes on. On a GPU a batch costs little more than one record."""

from __future__ import annotations

__all__ = ["device_names", "on_gpu"]


def device_names() -> tuple[str, ...]:
    """Return the platform and kind of every device, the default one first."""
    import jax

    return tuple(f"{device.platform}: {device.device_kind}" for device in jax.devices())


def on_gpu() -> bool:
    """Say whether JAX's default device is something else than the CPU."""
    import jax

    return str(jax.default_backend()) != "cpu"

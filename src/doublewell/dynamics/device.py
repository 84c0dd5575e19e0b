"""Device: what JAX computes on. On a GPU a batch costs little more than one record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

__all__ = ["computing_on", "device_memory", "device_names", "gpu_found", "on_gpu"]

_PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin")
_CPU_MEMORY = 10**9


def device_names() -> tuple[str, ...]:
    """Return the platform and kind of every device, the default one first."""
    import jax

    return tuple(f"{device.platform}: {device.device_kind}" for device in jax.devices())


def on_gpu() -> bool:
    """Say whether JAX's default device is something else than the CPU."""
    import jax

    chosen = jax.config.jax_default_device
    return str(jax.default_backend() if chosen is None else getattr(chosen, "platform", chosen)) != "cpu"


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Let JAX compute on the CPU for the length of a block; without "cpu" on what it finds."""
    if device != "cpu":
        yield
        return
    import jax

    with jax.default_device(jax.devices("cpu")[0]):
        yield


def gpu_found() -> bool:
    """Say whether JAX has a GPU, without importing it where no plugin for one is installed."""
    return any(find_spec(name) is not None for name in _PLUGINS) and on_gpu()


def device_memory() -> int:
    """Return the bytes that arrays on the default device may take; a small number where the device does not say."""
    import jax

    found = jax.devices()[0].memory_stats() or {}
    return int(found.get("bytes_limit", _CPU_MEMORY))

"""Transforms between fields and the modes of the Laplacian, in NumPy and in JAX, with one layout.

Periodic: the real FFT over all axes. Neumann: the orthonormal DCT-II over all axes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from doublewell.hints import Array
from doublewell.record import Boundary

__all__ = ["jax_transforms", "numpy_transforms"]

Transform = Callable[[Any], Any]


def numpy_transforms(cells: tuple[int, ...], boundary: Boundary) -> tuple[Transform, Transform]:
    """Return the maps field -> modes and modes -> field for NumPy arrays.

    >>> forward, backward = numpy_transforms((4,), "neumann")
    >>> backward(forward(np.arange(4.0))).round(12).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    from scipy import fft

    if boundary == "periodic":
        return partial(fft.rfftn, workers=1), partial(fft.irfftn, s=cells, workers=1)
    cosine = {"type": 2, "norm": "ortho", "workers": 1}
    return partial(fft.dctn, **cosine), partial(fft.idctn, **cosine)


def jax_transforms(cells: tuple[int, ...], boundary: Boundary) -> tuple[Transform, Transform]:
    """Return the same two maps for JAX arrays, to be used in double precision and under any transformation."""
    if boundary == "periodic":
        import jax.numpy as jnp

        return jnp.fft.rfftn, partial(jnp.fft.irfftn, s=cells)
    return _dctn, _idctn


# jax.scipy.fft.dctn gives the same numbers but takes four times as long on a CPU: it goes through complex
# FFTs. Here each axis is one real FFT of its own length (Makhoul 1980).


def _dctn(u: Any) -> Any:
    import jax.numpy as jnp

    for _ in u.shape:  # the last axis each time, then to the front: after all axes the order is the old one
        u = jnp.moveaxis(_dct(u), -1, 0)
    return u


def _idctn(modes: Any) -> Any:
    import jax.numpy as jnp

    for _ in modes.shape:
        modes = jnp.moveaxis(_idct(modes), -1, 0)
    return modes


def _dct(u: Any) -> Any:
    """DCT-II of the last axis: even samples, then odd ones backwards, one real FFT and a turn of each mode."""
    import jax.numpy as jnp

    n = u.shape[-1]
    samples = jnp.concatenate([u[..., ::2], u[..., 1::2][..., ::-1]], axis=-1)
    turned = jnp.fft.rfft(samples) * _turns(n)
    upper = -turned.imag[..., 1 : (n + 1) // 2]
    return jnp.concatenate([turned.real, upper[..., ::-1]], axis=-1)


def _idct(modes: Any) -> Any:
    """Invert ``_dct`` along the last axis."""
    import jax.numpy as jnp

    n = modes.shape[-1]
    half = n // 2 + 1
    upper = modes[..., : (n - 1) // 2 : -1]  # modes n - 1, n - 2, ..., the partners of modes 1, 2, ...
    imaginary = jnp.concatenate([jnp.zeros_like(modes[..., :1]), upper], axis=-1)
    samples = jnp.fft.irfft((modes[..., :half] - 1j * imaginary[..., :half]) / _turns(n), n=n)
    middle = (n + 1) // 2
    odd = samples[..., middle:][..., ::-1]
    if n % 2:
        odd = jnp.concatenate([odd, odd[..., :1]], axis=-1)  # a filler for the last pair, cut off below
    return jnp.stack([samples[..., :middle], odd], axis=-1).reshape(*modes.shape[:-1], 2 * middle)[..., :n]


def _turns(n: int) -> Array:
    """The factors exp(-i pi k / 2n) with the orthonormal scale."""
    k = np.arange(n // 2 + 1)
    return np.asarray(np.exp(-0.5j * np.pi * k / n) * np.where(k == 0, np.sqrt(1.0 / n), np.sqrt(2.0 / n)))

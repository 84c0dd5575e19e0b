"""Grid: a mesh with its boundary, its points and its modes, and the transforms between fields and modes.

Periodic: the real FFT over all axes. Neumann: the orthonormal DCT-II over all axes. NumPy and JAX have one layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import pi
from operator import mul
from typing import Any

import numpy as np

from doublewell.errors import InputError, check_spacing, is_whole, shown
from doublewell.hints import Array
from doublewell.record import Boundary
from doublewell.record.record import check_boundary

Transform = Callable[[Any], Any]


@dataclass(frozen=True)
class Grid:
    """Describe a mesh of one to three axes, in the order (z, y,) x.

    Parameters
    ----------
    cells
        Number of cells along each axis, at least 2.
    dx
        Spacing, one number or one per axis.
    boundary
        "periodic": points i dx, Fourier modes. "neumann": zero slope at the ends, cell centres (i + 1/2) dx,
        cosine modes. Either way the domain is [0, cells dx] along each axis.

    A mesh three times finer holds the points of this one: u[::3] (periodic) or u[1::3] (neumann) along each axis.

    >>> Grid((4,), 0.25, "neumann").points[0].tolist()
    [0.125, 0.375, 0.625, 0.875]
    """

    cells: tuple[int, ...]
    dx: tuple[float, ...]
    boundary: Boundary

    def __init__(self, cells: Any, dx: float | Sequence[float], boundary: Boundary = "periodic") -> None:
        mesh = tuple(cells) if isinstance(cells, Sequence | np.ndarray) and not isinstance(cells, str) else ()
        if not 1 <= len(mesh) <= 3 or not all(is_whole(n) and n >= 2 for n in mesh):
            way = f"; for one axis pass ({cells},)" if is_whole(cells) else ""
            raise InputError(
                f"the mesh is {shown(mesh or cells)}: expected one to three axes in the order (z, y,) x, each of at "
                f"least 2 cells{way}"
            )
        object.__setattr__(self, "cells", tuple(map(int, mesh)))
        object.__setattr__(self, "dx", check_spacing(dx, len(mesh)))
        object.__setattr__(self, "boundary", check_boundary(boundary, known=True))

    @property
    def extent(self) -> tuple[float, ...]:
        """Length of the domain along each axis, cells times spacing."""
        return tuple(map(mul, self.cells, self.dx))

    @property
    def points(self) -> tuple[Array, ...]:
        """Coordinates of the mesh points along each axis."""
        shift = 0.0 if self.boundary == "periodic" else 0.5
        return tuple((np.arange(n, dtype=np.float64) + shift) * h for n, h in zip(self.cells, self.dx, strict=True))

    @cached_property
    def laplacian(self) -> Array:
        """Eigenvalues -|kappa|^2 of the spectral Laplacian, in the layout of the transforms.

        Periodic: shape of ``rfftn``, kappa = 2 pi k / extent. Neumann: shape of the mesh, kappa = pi k / extent.
        """
        total = np.zeros(())
        for kappa in self.waves:
            total = total - kappa**2
        total.flags.writeable = False
        return total

    @cached_property
    def waves(self) -> tuple[Array, ...]:
        """Wave numbers kappa along each axis, shaped for broadcasting over the modes."""
        lines = []
        for left, (n, h) in enumerate(zip(self.cells, self.dx, strict=True), 1 - len(self.cells)):
            if self.boundary == "neumann":
                lines.append(pi / (n * h) * np.arange(n, dtype=np.float64))
            else:  # a real field needs half of the last axis
                lines.append(np.asarray(2.0 * pi * (np.fft.fftfreq(n, h) if left else np.fft.rfftfreq(n, h))))
        return tuple(np.meshgrid(*lines, indexing="ij", sparse=True))

    @cached_property
    def multiplicity(self) -> Array:
        """How many modes of a real field each mode stands for: one of the last axis for its mirror image too."""
        last = np.ones(self.laplacian.shape[-1])
        if self.boundary == "periodic":
            last[1 : (self.cells[-1] + 1) // 2] = 2.0
        return np.broadcast_to(last, self.laplacian.shape)

    @cached_property
    def crossed(self) -> tuple[Array, ...] | None:
        """Wave numbers whose products of two axes act on real fields: without the highest of an even axis.

        None where cosines are the modes, which have no such products.
        """
        if self.boundary == "neumann":
            return None
        return tuple(
            np.where(np.abs(k) * h > pi * (1.0 - 1e-9), 0.0, k) for k, h in zip(self.waves, self.dx, strict=True)
        )


def numpy_transforms(cells: tuple[int, ...], boundary: Boundary) -> tuple[Transform, Transform]:
    """Return the maps field -> modes and modes -> field of the last axes of NumPy arrays.

    >>> forward, backward = numpy_transforms((4,), "neumann")
    >>> backward(forward(np.arange(4.0))).round(12).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    from scipy import fft

    last = {"axes": range(-len(cells), 0), "workers": 1}
    if boundary == "periodic":
        return partial(fft.rfftn, **last), partial(fft.irfftn, s=cells, **last)
    return partial(fft.dctn, norm="ortho", **last), partial(fft.idctn, norm="ortho", **last)


def jax_transforms(cells: tuple[int, ...], boundary: Boundary) -> tuple[Transform, Transform]:
    """Return the same two maps for JAX arrays, to be used in double precision and under any transformation."""
    if boundary == "periodic":
        import jax.numpy as jnp

        return jnp.fft.rfftn, partial(jnp.fft.irfftn, s=cells)
    return _dctn, _idctn


# jax.scipy.fft.dctn gives the same numbers but takes four times as long on a CPU: it goes through complex
# FFTs. Here each axis is one real FFT of its own length (Makhoul 1980), a short one a product with a matrix, which is
# as fast and compiles in a third of the time.
_SHORT = 64


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
    if n <= _SHORT:
        return u @ cosines(n).T
    samples = jnp.concatenate([u[..., ::2], u[..., 1::2][..., ::-1]], axis=-1)
    turned = jnp.fft.rfft(samples) * _turns(n)
    upper = -turned.imag[..., 1 : (n + 1) // 2]
    return jnp.concatenate([turned.real, upper[..., ::-1]], axis=-1)


def _idct(modes: Any) -> Any:
    """Invert ``_dct`` along the last axis."""
    import jax.numpy as jnp

    n = modes.shape[-1]
    if n <= _SHORT:
        return modes @ cosines(n)
    half = n // 2 + 1
    upper = modes[..., : (n - 1) // 2 : -1]  # modes n - 1, n - 2, ..., the partners of modes 1, 2, ...
    imaginary = jnp.concatenate([jnp.zeros_like(modes[..., :1]), upper], axis=-1)
    samples = jnp.fft.irfft((modes[..., :half] - 1j * imaginary[..., :half]) / _turns(n), n=n)
    middle = (n + 1) // 2
    odd = samples[..., middle:][..., ::-1]
    if n % 2:
        odd = jnp.concatenate([odd, odd[..., :1]], axis=-1)  # a filler for the last pair, cut off below
    return jnp.stack([samples[..., :middle], odd], axis=-1).reshape(*modes.shape[:-1], 2 * middle)[..., :n]


def cosines(n: int) -> Array:
    """Return the matrix of the orthonormal DCT-II."""
    from scipy import fft

    return np.asarray(fft.dct(np.eye(n), norm="ortho", axis=0))


def _turns(n: int) -> Array:
    """The factors exp(-i pi k / 2n) with the orthonormal scale."""
    k = np.arange(n // 2 + 1)
    return np.asarray(np.exp(-0.5j * np.pi * k / n) * np.where(k == 0, np.sqrt(1.0 / n), np.sqrt(2.0 / n)))


def refinement(cells: int, factor: int, boundary: str) -> Array:
    """Return the matrix that interpolates along an axis by its modes to a mesh `factor` times finer."""
    from scipy import fft

    points, fine = np.eye(cells), factor * cells
    if boundary == "neumann":
        modes = np.pad(fft.dct(points, norm="ortho", axis=0), ((0, fine - cells), (0, 0)))
        return np.asarray(fft.idct(modes, norm="ortho", axis=0) * np.sqrt(float(factor)))
    modes = fft.rfft(points, axis=0)
    matrix = np.asarray(fft.irfft(modes, n=fine, axis=0) * factor)
    if cells % 2 == 0:  # irfft counts the highest mode of an even mesh twice once it is no longer the last
        matrix -= np.outer(np.cos(np.pi * np.arange(fine) / factor), modes[-1].real / cells)
    return matrix

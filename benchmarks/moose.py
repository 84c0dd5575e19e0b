"""MOOSE's own movie of 11 frames, its scheme programmed again, and the law that the movie itself obeys.

The file is of idaholab/moose (LGPL-2.1), modules/phase_field/test/tests/actions/gold/Nonconserved_1var_out.e: a growing drop, unequal wells,
F = 2 u^2 (1 - u)^2 - 0.2 u, kappa = 2, L = 1: q = 2, G = F'/2; noise-free, an interface of 4.3 cells. It was made with
bilinear elements and BDF2 with steps of one frame, the first one backward Euler; `solve` does the same. A step of BDF2 that long is not the
equation in continuous time, so the movie has a law of its own: Laplacian u - u_t / q against u, with differences of
sixth order in time and cosine modes in space, at frames 3 to 7. public_records.py compares fits with both.
"""  # noqa: E501

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from numpy.polynomial import Polynomial
from scipy.fft import dctn, idctn
from scipy.sparse.linalg import spsolve

Q, KAPPA = 2.0, 2.0
SIXTH = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0


def slope(u: np.ndarray) -> np.ndarray:
    return 4.0 * u * (1.0 - u) * (1.0 - 2.0 * u) - 0.2


def curvature(u: np.ndarray) -> np.ndarray:
    return 4.0 * (1.0 - 6.0 * u + 6.0 * u**2)


def solve(first: np.ndarray, frames: int) -> np.ndarray:
    """Return the movie by bilinear elements of size 1 and BDF2 with a step of 1, each step by Newton's method."""
    n, g = len(first), 1.0 / np.sqrt(3.0)
    x, y = np.array([[-g, g, g, -g], [-g, -g, g, g]])[:, :, None]
    sx, sy = np.array([-1, 1, 1, -1]), np.array([-1, -1, 1, 1])
    shape = (1 + sx * x) * (1 + sy * y) / 4.0  # of node a at Gauss point g: [g, a]
    dx, dy = sx * (1 + sy * y) / 2.0, sy * (1 + sx * x) / 2.0
    index = np.arange(n * n).reshape(n, n)
    cells = np.stack([index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]], -1).reshape(-1, 4)
    rows, columns = np.repeat(cells, 4, axis=1).ravel(), np.tile(cells, (1, 4)).ravel()

    def matrix(each: np.ndarray) -> sparse.csr_matrix:
        entries = np.broadcast_to(each, (len(cells), 4, 4)).ravel()
        return sparse.csr_matrix((entries, (rows, columns)), shape=(n * n, n * n))

    mass, stiff = matrix(shape.T @ shape / 4.0), matrix((dx.T @ dx + dy.T @ dy) / 4.0)
    movie = [first.ravel()]
    for k in range(1, frames):
        lead = 1.0 if k == 1 else 1.5  # the first step is backward Euler
        before = mass @ (movie[0] if k == 1 else 2.0 * movie[-1] - 0.5 * movie[-2])
        u = movie[-1]
        for _ in range(30):
            at = u[cells] @ shape.T
            force = np.bincount(cells.ravel(), (slope(at) @ shape / 4.0).ravel(), minlength=n * n)
            bend = matrix(np.einsum("eg,ga,gb->eab", curvature(at), shape, shape) / 4.0)
            rest = lead * (mass @ u) + KAPPA * (stiff @ u) + force - before
            step = spsolve((lead * mass + KAPPA * stiff + bend).tocsc(), -rest)
            u = u + step
            if np.max(np.abs(step)) < 1e-12:
                break
        movie.append(u)
    return np.array(movie).reshape(frames, n, n)


def own_law(movie: np.ndarray) -> Polynomial:
    """Return the force that the movie itself obeys in continuous time; all values of u weigh alike."""
    waves = np.pi * np.arange(movie.shape[1]) / (movie.shape[1] - 1)
    laplacian = -(waves[:, None] ** 2 + waves**2)
    u, force = [], []
    for k in range(3, len(movie) - 3):
        change = np.tensordot(SIXTH, movie[k - 3 : k + 4], axes=1)
        u.append(movie[k].ravel())
        force.append((idctn(laplacian * dctn(movie[k], type=1), type=1) - change / Q).ravel())
    values, forces = np.concatenate(u), np.concatenate(force)
    bins = np.digitize(values, np.linspace(values.min(), values.max(), 41))
    return Polynomial.fit(values, forces, 5, w=1.0 / np.sqrt(np.bincount(bins)[bins]))

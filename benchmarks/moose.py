"""MOOSE's own movie of 11 frames: a growing drop, unequal wells, noise-free, a step of one frame, an interface of 4.3 cells.

Run: python benchmarks/moose.py Nonconserved_1var_out.e     writes results/moose.json; minutes
The file is of idaholab/moose (LGPL-2.1), modules/phase_field/test/tests/actions/gold, F = 2 u^2 (1 - u)^2 - 0.2 u, kappa = 2, L = 1: q = 2, G = F'/2. It was made with
bilinear elements and BDF2, the first step backward Euler; `solve` does the same, and its largest difference from the file
is stored. A step of BDF2 that long is not the equation in continuous time, so the movie has a law of its own:
Laplacian u - u_t / q against u, with differences of sixth order in time and cosine modes in space, at frames 3 to 7.
Fits are compared with it and with MOOSE's: the average over degrees and degree 0, without a boundary and with walls.
"""  # noqa: E501

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sparse
from common import TINY, file_of, print_table, save_results
from numpy.polynomial import Polynomial
from scipy.fft import dctn, idctn
from scipy.sparse.linalg import spsolve

import doublewell as dw

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


def main() -> None:
    path = file_of("Nonconserved_1var_out.e, a file of MOOSE", __doc__)
    movie = dw.open_record(path).slab()
    same = float(np.max(np.abs(solve(movie[0], len(movie)) - movie)))
    own, rows = own_law(movie), []
    for boundary, degree in [(None, 0)] if TINY else [(None, "auto"), ("neumann", "auto"), (None, 0), ("neumann", 0)]:
        began, record = time.perf_counter(), dw.open_record(path, q=Q, boundary=boundary)
        law = {"wells": "unequal", "degree": degree}
        result = dw.identify(record, law=law, observation="phases=estimated", check=not TINY and degree == "auto")
        u = np.linspace(*result.resolved.phases, 401)
        force, truth, self_law = result.force(u), slope(u) / KAPPA, own(u)
        low, high = result.band("force", u)
        rows.append({
            "boundary": boundary or "not declared", "degree": degree,
            "against MOOSE's law, %": round(100 * float(np.linalg.norm(force - truth) / np.linalg.norm(truth)), 2),
            "against the movie's law, %": round(
                100 * float(np.linalg.norm(force - self_law) / np.linalg.norm(self_law)), 2
            ),
            "movie's law inside the band, %": round(100 * float(np.mean((low <= self_law) & (self_law <= high))), 1),
            "errors are larger by": round(float(np.sqrt(result.diagnostics.likelihood.excess)), 1),
            "phases": [round(phase, 4) for phase in result.resolved.phases],
            "verdict": None if result.adequacy is None else str(result.adequacy.verdict.value),
            "seconds": round(time.perf_counter() - began, 1),
            "solver differs by": same,
        })  # fmt: skip
        print(rows[-1], flush=True)
    print_table("MOOSE, 11 frames", rows)
    if not TINY:
        save_results("moose", rows)


if __name__ == "__main__":
    main()

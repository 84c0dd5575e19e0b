"""MOOSE's movie with a mobility L(u): 21 frames of 41 nodes, noise-free, a step of one frame, an interface of 3.5 cells.

Run: python benchmarks/moose_mobility.py AC_mobility_derivative_test_out.e     writes results/moose_mobility.json; minutes
The file is of idaholab/moose (LGPL-2.1), modules/phase_field/test/tests/mobility_derivative/gold. F = 2 u^2 (1 - u)^2 - 0.2 u,
kappa = 1, L = u^2 (1 - u)^2 + 0.01 inside [0, 1] and 0.01 outside: q(u) = L, G = F'. It was made with linear elements,
two Gauss points and BDF2, the first step backward Euler; `solve` does the same, and its largest difference from the file
is stored. So are the differences that short steps make, and a fine mesh: which of the two the movie's own law differs by.
Fits are made of the file and of the movie on a mesh eight times as fine, every eighth node.
"""  # noqa: E501

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import TINY, file_of, print_table, save_results
from scipy.linalg import solve_banded

import doublewell as dw
from doublewell.errors import InputError

LENGTH, DT = 25.0, 2.0
GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)
SHAPE = np.stack([1.0 - GAUSS, GAUSS])  # of an element's two nodes at its Gauss points
U = np.linspace(0.02, 1.02, 101)
CASES: list[tuple[Any, Any, Any]] = [
    ("neumann", 0, 6),
    (None, 0, 6),
    ("neumann", "auto", 6),
    ("neumann", 0, "estimated"),
]


def slope(u: Any) -> Any:
    return 4.0 * u * (1.0 - u) * (1.0 - 2.0 * u) - 0.2


def mobility(u: Any) -> tuple[Any, Any, Any]:
    """Return L(u) and its first two derivatives."""
    inside = (u > 0.0) & (u < 1.0)
    each = u**2 * (1.0 - u) ** 2, 2.0 * u * (1.0 - u) * (1.0 - 2.0 * u), 2.0 - 12.0 * u + 12.0 * u**2
    value, first, second = (np.where(inside, x, 0.0) for x in each)
    return value + 0.01, first, second


def first_field(cells: int) -> np.ndarray:
    """Return the profile that MOOSE starts from: a cosine of width 3 around 6."""
    x = np.clip((np.linspace(0.0, LENGTH, cells + 1) - 4.5) / 3.0, 0.0, 1.0)
    return 0.5 * (1.0 + np.cos(np.pi * x))


def solve(cells: int, frames: int, steps: int = 1) -> np.ndarray:
    """Return the movie at the 41 nodes of the file, by linear elements and BDF2, each step by Newton's method."""
    h, tau = LENGTH / cells, DT / steps
    weight, mass = h / 2.0, h / 6.0 * np.array([[2.0, 1.0], [1.0, 2.0]])
    ends = np.array([-1.0, 1.0]) / h  # slopes of the two shapes

    def gathered(each: np.ndarray) -> np.ndarray:
        total = np.zeros(cells + 1)
        total[:-1] += each[0]
        total[1:] += each[1]
        return total

    states = [first_field(cells)]
    for k in range(1, (frames - 1) * steps + 1):
        lead, before = (1.0, states[-1]) if k == 1 else (1.5, 2.0 * states[-1] - 0.5 * states[-2])
        u = states[-1]
        for _ in range(50):
            pair, change = np.stack([u[:-1], u[1:]]), lead * u - before
            at, grade = SHAPE.T @ pair, np.diff(u) / h
            (rate, rate1, rate2), force = mobility(at), slope(at)
            bend = 4.0 * (1.0 - 6.0 * at + 6.0 * at**2)
            rest = mass @ np.stack([change[:-1], change[1:]]) / tau + weight * SHAPE @ (rate * force)
            drag = weight * SHAPE @ rate1  # of grad L
            rest += grade * (weight * np.sum(rate, axis=0) * ends[:, None] + drag * grade)
            own = weight * (rate1 * force + rate * bend + grade**2 * rate2)
            matrix = lead * mass[:, :, None] / tau + np.einsum("ag,bg,ge->abe", SHAPE, SHAPE, own)
            matrix += np.multiply.outer(np.outer(ends, ends), weight * np.sum(rate, axis=0))
            matrix += grade * (ends[:, None, None] * drag + 2.0 * drag[:, None] * ends[:, None])
            bands = np.zeros((3, cells + 1))
            bands[0, 1:], bands[1], bands[2, :-1] = matrix[0, 1], gathered(matrix[[0, 1], [0, 1]]), matrix[1, 0]
            step = solve_banded((1, 1), bands, -gathered(rest))
            u = u + step
            if np.max(np.abs(step)) < 1e-12:
                break
        states.append(u)
    return np.array(states[::steps])[:, :: cells // 40]


def row_of(name: str, record: dw.Record, degree: Any, series: Any) -> dict[str, Any]:
    began, equation = time.perf_counter(), dw.AllenCahn(mobility=series)
    law = {"wells": "unequal", "degree": degree}
    row: dict[str, Any] = {
        "movie": name,
        "boundary": record.boundary or "not declared",
        "degree": degree,
        "of log q": series,
    }
    try:
        result = dw.identify(record, law=law, observation="phases=estimated", dynamics=equation, check=False)
    except InputError as error:
        return row | {"refused": str(error)}
    for what, found, truth in (("force", result.force, slope(U)), ("mobility", result.mobility, mobility(U)[0])):
        low, high = result.band(what, U)
        row[f"{what} error, %"] = round(100 * float(np.linalg.norm(found(U) - truth) / np.linalg.norm(truth)), 1)
        row[f"{what} inside the band, %"] = round(100 * float(np.mean((low <= truth) & (truth <= high))), 1)
    fit = result.diagnostics.likelihood
    row |= {"errors are larger by": round(float(np.sqrt(fit.excess)), 1), "converged": bool(fit.status.converged)}
    row["phases"] = [round(phase, 4) for phase in result.resolved.phases]
    return row | {"seconds": round(time.perf_counter() - began, 1)}


def main() -> None:
    path = file_of("AC_mobility_derivative_test_out.e, a file of MOOSE", __doc__)
    movie = dw.open_record(path).slab()
    frames, own = len(movie), solve(40, len(movie))
    resolved = solve(320, frames)
    common = {
        "solver differs by": float(np.max(np.abs(own - movie))),
        "short steps change": float(np.sqrt(np.mean((solve(40, frames, 20) - movie) ** 2))),
        "a fine mesh changes": float(np.sqrt(np.mean((resolved - movie) ** 2))),
    }
    print(common, flush=True)
    rows, mesh = [], {"dx": LENGTH / 40, "dt": DT, "origin": "simulation"}
    for name, values in (("the file", movie), ("fine mesh", resolved)):
        for boundary, degree, series in CASES[:1] if TINY else CASES:
            rows.append(common | row_of(name, dw.Record(values, **mesh, boundary=boundary), degree, series))
            print(rows[-1], flush=True)
    if not TINY:
        save_results("moose_mobility", rows)
    read = [{key: row[key] for key in row if key not in common} for row in rows if "refused" not in row]
    print_table("MOOSE, a mobility of the phase", read)


if __name__ == "__main__":
    main()

"""From py-pde and back: a movie that another solver made, its law found by both methods, and run in py-pde again.

py-pde solves u_t = q (Laplacian u + sin(pi u) / (pi epsilon^2)) by finite differences and its own Runge-Kutta stepper.
This is the potential F(u) = (1 + cos(pi u)) / pi^2, none of doublewell's named laws and not a polynomial. The movie
goes through py-pde's own HDF5 file; each method finds the force; the export "py-pde" of the result is a script, and
that script evolves the first frame again.

    python examples/from_py_pde.py --out folder [--cells 128] [--frames 31] [--epsilon 0.05]

With the defaults (benchmarks/results/from_py_pde.json):

          weak: force error 0.249 %, field error in py-pde 0.0179 %
    trajectory: force error 0.356 %, field error in py-pde 0.0210 %

A mesh of finite differences has an error of its own, about (cell / epsilon)^2 / 12 of the force. It is the largest
part of these errors, so a coarser mesh needs a wider interface.
"""

from __future__ import annotations

import argparse
import json
import runpy
from pathlib import Path

import numpy as np
import pde

import doublewell as dw

Q = 1.0


def true_force(u: np.ndarray, epsilon: float) -> np.ndarray:
    """Return G = F'/epsilon^2."""
    return -np.sin(np.pi * u) / (np.pi * epsilon**2)


class CosineLaw(pde.PDEBase):
    """The equation in py-pde's own words: its Laplacian, its boundary."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon

    def evolution_rate(self, state: pde.ScalarField, t: float = 0) -> pde.ScalarField:  # noqa: ARG002  py-pde's
        """Return the rate of change of a field."""
        laplacian = state.laplace(bc="auto_periodic_neumann").data
        return pde.ScalarField(state.grid, Q * (laplacian - true_force(state.data, self.epsilon)))


def first_field(cells: int, epsilon: float) -> np.ndarray:
    """Return a drop with six lobes on the unit square."""
    x = (np.arange(cells) + 0.5) / cells - 0.5
    y, x = np.meshgrid(x, x, indexing="ij")
    outline = 0.27 * (1.0 + 0.3 * np.cos(6.0 * np.arctan2(y, x)))
    return np.tanh((outline - np.hypot(x, y)) / (1.2 * epsilon))


def make_movie(folder: Path, cells: int, frames: int, epsilon: float) -> Path:
    """Solve by py-pde and let it write the movie to a file of its own kind."""
    grid = pde.CartesianGrid([(0.0, 1.0)] * 2, cells, periodic=True)
    step = 0.15 / cells**2 / Q
    interval = step * round(0.08 * epsilon**2 / Q / step)  # py-pde writes a frame after whole steps only
    path = folder / "movie.hdf5"
    storage = pde.FileStorage(path, write_mode="truncate")
    CosineLaw(epsilon).solve(
        pde.ScalarField(grid, first_field(cells, epsilon)),
        t_range=(frames - 1) * interval,
        dt=step,
        solver="runge-kutta",
        backend="numpy",
        tracker=[storage.tracker(interval)],
    )
    storage.close()
    return path


def run_again(result: dw.Result, movie: np.ndarray, folder: Path) -> float:
    """Export the law to py-pde, run that script, and return the largest relative field error over the frames."""
    script = folder / f"law_{result.problem.method.name}.py"
    script.write_text(dw.export(result, "py-pde"), encoding="utf-8")
    fields = runpy.run_path(str(script))["evolve"](movie[0], len(movie))
    return float(np.max(np.linalg.norm(fields - movie, axis=(1, 2)) / np.linalg.norm(movie, axis=(1, 2))))


def force_error(result: dw.Result, epsilon: float) -> float:
    """Return the relative L2 error of the force over the phase range."""
    u = np.linspace(-1.0, 1.0, 2001)
    true = true_force(u, epsilon)
    return float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true))


def draw(movie: dw.Record, results: dict[str, dw.Result], epsilon: float, path: Path) -> None:
    """Draw the first and the last frame, and what is left between each found force and the true one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    first, last, rest = figure.subplots(1, 3)
    for axis, k, title in ((first, 0, "first frame"), (last, -1, "last frame")):
        axis.imshow(movie.slab()[k], cmap="cividis", vmin=-1, vmax=1, origin="lower", extent=(0, 1, 0, 1))
        axis.set(title=title, xlabel="x", ylabel="y")
    u = np.linspace(-1.0, 1.0, 401)
    true = true_force(u, epsilon)
    for dashes, (name, result) in zip(("--", "-"), results.items(), strict=True):
        rest.plot(u, 100 * (result.force(u) - true) / np.abs(true).max(), dashes, color="#0072B2", label=name)
    rest.axhline(0.0, color="#999999", linewidth=0.8)
    rest.set(title="force, found minus true", xlabel="u", ylabel="% of the largest force")
    rest.legend()
    figure.savefig(path, dpi=110)


def main(words: list[str] | None = None) -> dict[str, dict[str, float]]:
    """Make the movie, identify it by both methods, run both laws, and write errors.json and force.png."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("from_py_pde"))
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--frames", type=int, default=31)
    parser.add_argument("--epsilon", type=float, default=0.05)
    asked = parser.parse_args(words)
    asked.out.mkdir(parents=True, exist_ok=True)
    movie = make_movie(asked.out, asked.cells, asked.frames, asked.epsilon)
    record = dw.open_record(movie, q=Q)  # mesh, times and the periodic border are in the file
    errors, results = {}, {}
    for method in ("weak", "trajectory"):
        # The movie is clean, and its solver's finite differences are then all that the check could detect.
        result = dw.identify(record, method=method, check=False)
        results[method] = result
        field = run_again(result, record.slab(), asked.out)
        errors[method] = {"force": force_error(result, asked.epsilon), "field": field}
        print(f"{method:>10}: force error {100 * errors[method]['force']:.3f} %, field error in py-pde "
              f"{100 * errors[method]['field']:.4f} %")  # fmt: skip
    text = json.dumps({name: getattr(asked, name) for name in ("cells", "frames", "epsilon")} | {"errors": errors})
    (asked.out / "errors.json").write_text(text + "\n", encoding="utf-8")
    draw(record, results, asked.epsilon, asked.out / "force.png")
    return errors


if __name__ == "__main__":
    main()

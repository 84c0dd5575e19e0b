"""A camera movie in one call: an OME-TIFF of another solver with every fault of a camera, through open_record and identify.

    python benchmarks/camera_movie.py [thin|wide ...] [--seeds 3]   # writes benchmarks/results/camera_movie.json

py-pde solves u_t = q (Laplacian u - G(u)) on a mesh three times finer than the pixels, with the sixth law, by its
Runge-Kutta stepper; the Laplacian is of fourth order, so the law of the movie is the true one to 2e-4. The camera sees a
window of it: a pixel is the mean over its area (exact, by Fourier modes), the stage drifts by 0.3 pixels, the light
falls off by 25 %, the dye fades by 20 %, there are a dark value, shot noise and readout noise, five dead and hot pixels,
and 16 bits. Interfaces are 3.9 pixels wide (thin) or 9.3 (wide). Neither q nor the boundary nor any option is given.

Beside it stand the exact values of the same movie: point values, the same mean noise, white, declared a simulation.
Asked are a force error within twice that of the exact values, a band that covers, "adequate", and five times the time.
"""  # noqa: E501

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from common import need, print_table, save_results, sized, target, words

need("pde", "tifffile")
import pde
import tifffile

import doublewell as dw

PIXELS, FRAMES, BORDER, FINE = sized((96, 61, 6, 3), tiny=(32, 15, 2, 3))  # a border that the camera does not see
EPSILON = {"thin": 3.9 / 4.163, "wide": 9.3 / 4.163}  # pixels; the quartic law's interface is 4.163 epsilon wide
TIME, Q, PIXEL, SECOND = 40.0 * sized(1.0, tiny=0.2), 1.0, 0.25, 2.0  # px^2 / q in all; um per pixel; s per frame
LAW = dw.named_law("sixth")
LOW, HIGH, DARK, ELECTRON, READ = 2000.0, 12000.0, 110.0, 3.2, 12.0  # grey values; of one photoelectron
BAD = {(0.15, 0.72): 65535, (0.4, 0.31): 0, (0.55, 0.55): 30000, (0.7, 0.2): 65535, (0.86, 0.9): 0}
U = np.linspace(-1.0, 1.0, 401)


class AllenCahn(pde.PDEBase):
    """The equation for py-pde on a periodic domain, with differences of fourth order; lengths in pixels."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        points = np.cos(np.pi * (np.arange(16) + 0.5) / 16)
        fit = np.polynomial.Polynomial.fit(points, LAW.effective(epsilon).force(points), 7, domain=(-1, 1))
        self.slopes = fit.coef[1::2]  # exact: an odd polynomial of degree 5

    def evolution_rate(self, state: pde.ScalarField, t: float = 0) -> pde.ScalarField:  # noqa: ARG002  py-pde's
        """Return the rate of change of a field."""
        u, n, wide = state.data, state.data.shape[0], np.pad(state.data, 2, mode="wrap")
        second = -60.0 * u
        for k, weight in ((0, -1.0), (1, 16.0), (3, 16.0), (4, -1.0)):
            second += weight * (wide[k : k + n, 2:-2] + wide[2:-2, k : k + n])
        square = u * u
        force = u * (self.slopes[0] + square * (self.slopes[1] + square * (self.slopes[2] + square * self.slopes[3])))
        return pde.ScalarField(state.grid, Q * (second * (FINE**2 / 12.0) - force))


def solve(epsilon: float) -> np.ndarray:
    """Return the fields of all frames on the fine mesh: a lobed drop and two small ones on a periodic domain."""
    side = PIXELS + 2 * BORDER
    grid = pde.CartesianGrid([(0.0, side)] * 2, side * FINE, periodic=True)
    x = (np.arange(side * FINE) + 0.5) / FINE / side
    y, x = np.meshgrid(x, x, indexing="ij")
    depth = np.full(x.shape, -np.inf)
    for cx, cy, radius, lobes in ((0.45, 0.5, 0.24, 5), (0.84, 0.8, 0.09, 0), (0.85, 0.2, 0.11, 2)):
        angle, distance = np.arctan2(y - cy, x - cx), np.hypot(y - cy, x - cx)
        depth = np.maximum(depth, radius * (1.0 + 0.3 * np.cos(lobes * angle) * (lobes > 0)) - distance)
    step, interval = 0.2 / FINE**2 / Q, TIME / Q / (FRAMES - 1)
    step = interval / np.ceil(interval / step)
    storage = pde.MemoryStorage()
    AllenCahn(epsilon).solve(
        pde.ScalarField(grid, np.tanh(side * depth / (np.sqrt(2.0) * epsilon))),
        t_range=(FRAMES - 1) * interval * (1 + 1e-9), dt=step, solver="runge-kutta", backend="numpy",
        tracker=[storage.tracker(interval)],
    )  # fmt: skip
    return np.array(storage.data)[:FRAMES]


def seen(fields: np.ndarray, *, drift: float, pixel: bool) -> np.ndarray:
    """Return what pixels see of the fine fields: moved by a smooth drift; means over their area or point values."""
    waves = 2.0 * np.pi * np.fft.fftfreq(fields.shape[1]) * FINE
    centre = 0.5 - 0.5 / FINE  # a pixel's centre lies between the points of the fine mesh
    t, frames = np.linspace(0.0, 1.0, len(fields)), []
    for field, way in zip(fields, drift * np.stack([0.8 * t, 0.9 * t - 0.3 * t**2], 1), strict=True):
        modes = np.fft.fft2(field)
        for axis, d in enumerate(way):
            factor = np.exp(1j * waves * (centre - d)) * (np.sinc(waves / (2.0 * np.pi)) if pixel else 1.0)
            modes = modes * (factor[:, None] if axis == 0 else factor)
        inside = slice(BORDER, BORDER + PIXELS)
        frames.append(np.fft.ifft2(modes).real[::FINE, ::FINE][inside, inside])
    return np.array(frames)


def photograph(u: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return 16-bit grey values with all faults of the camera, and the mean noise in u."""
    y, x = np.meshgrid(*(np.linspace(-1.0, 1.0, n) for n in u.shape[1:]), indexing="ij")
    light = 1.0 - 0.25 * ((x - 0.2) ** 2 + 0.8 * (y + 0.1) ** 2) / 2.0
    fade = 0.8 + 0.2 * np.exp(-2.0 * np.linspace(0.0, 1.0, len(u)))[:, None, None]
    signal = light * fade * (LOW + (HIGH - LOW) * (u + 1.0) / 2.0)
    grey = DARK + ELECTRON * rng.poisson(signal / ELECTRON) + READ * rng.standard_normal(u.shape)
    noise = 2.0 * np.sqrt(ELECTRON * signal + READ**2) / (light * fade * (HIGH - LOW))
    for (row, column), value in BAD.items():
        grey[:, int(row * u.shape[1]), int(column * u.shape[2])] = value
    return np.clip(np.rint(grey), 0, 65535).astype(np.uint16), float(np.sqrt(np.mean(noise**2)))


def score(record: dw.Record, epsilon: float, started: float, **options: Any) -> dict[str, Any]:
    """Identify and compare with the true law; seconds are from `started` on."""
    result = dw.identify(record, **options)
    seconds = time.perf_counter() - started
    true = LAW.effective(epsilon * PIXEL).force(U)
    low, high = result.band("force", U)
    return {
        "force error %": round(100 * float(np.linalg.norm(result.force(U) - true) / np.linalg.norm(true)), 3),
        "covered %": round(100 * float(np.mean((true >= low) & (true <= high))), 1),
        "verdict": str(result.adequacy.verdict.value),
        "seconds": round(seconds, 1),
        "findings": [item.code for item in dw.findings(result) if str(item.severity) != "ok"],
    }


def run(name: str, seed: int, folder: Path, fields: np.ndarray) -> list[dict[str, Any]]:
    """Return the rows of one movie: exact values, then the file of the camera."""
    epsilon, rng = EPSILON[name], np.random.default_rng(seed)
    grey, noise = photograph(seen(fields, drift=0.3, pixel=True), rng)
    exact = seen(fields, drift=0.0, pixel=False) + noise * rng.standard_normal(grey.shape)
    scale = {"dx": PIXEL, "dt": SECOND, "length_unit": "um", "time_unit": "s"}
    known = {"origin": "simulation"} if "origin" in dw.Record.__init__.__kwdefaults__ else {}
    rows, path = [], folder / "movie.ome.tif"
    print(f"{name}, seed {seed}: noise {noise:.4f}", flush=True)
    rows.append({"movie": name, "seed": seed, "noise": round(noise, 4), "values": "exact"})
    rows[0] |= score(dw.Record(exact, **scale, **known), epsilon, time.perf_counter())
    print(rows[0], flush=True)
    metadata = {"axes": "TYX", "PhysicalSizeX": PIXEL, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": PIXEL,
                "PhysicalSizeYUnit": "µm", "TimeIncrement": SECOND, "TimeIncrementUnit": "s"}  # fmt: skip
    tifffile.imwrite(path, grey, photometric="minisblack", metadata=metadata, ome=True)
    rows.append({"movie": name, "seed": seed, "noise": round(noise, 4), "values": "camera"})
    started = time.perf_counter()
    try:
        rows[1] |= score(dw.open_record(path), epsilon, started)
        rows[1]["times the error"] = round(rows[1]["force error %"] / rows[0]["force error %"], 2)
        rows[1]["times the time"] = round(rows[1]["seconds"] / rows[0]["seconds"], 2)
    except dw.InputError as error:
        rows[1]["refused"] = str(error)
    print(rows[1], flush=True)
    return rows


def draw(fields: np.ndarray, path: Path) -> None:
    """Write the figure of docs/intensities.md: grey values, what was found in them, phase values with their mask."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grey, _ = photograph(seen(fields, drift=0.3, pixel=True), np.random.default_rng(101))
    phase = dw.phase_from_intensity(grey, dx=PIXEL, dt=SECOND)
    figure, axes = plt.subplots(1, 4, figsize=(11, 2.7), constrained_layout=True)
    u = np.where(phase.record.observed(0, 1)[0], phase.record.slab(0, 1)[0], np.nan)
    pictures = (
        ("grey values", grey[0], 1000, 13500),
        ("light that was found", phase.light, None, None),
        ("u", u, -1, 1),
    )
    for axis, (name, picture, low, high) in zip(axes, pictures, strict=False):
        colours = plt.get_cmap("cividis").copy()
        colours.set_bad("red")
        figure.colorbar(axis.imshow(picture, cmap=colours, vmin=low, vmax=high), ax=axis, shrink=0.8)
        axis.set(title=name, xticks=[], yticks=[])
    axes[3].plot(phase.fading)
    axes[3].set(title="fading that was found", xlabel="frame", ylabel="factor")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("movies", nargs="*", default=[*EPSILON])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=101, help="the first seed: results are of seeds from 101 on")
    parser.add_argument("--figure", action="store_true", help="draw docs/figures/camera_movie.png and end")
    asked = parser.parse_args(words("wide"))
    if asked.figure:
        draw(solve(EPSILON["wide"]), target(Path(__file__).parents[1] / "docs" / "figures" / "camera_movie.png"))
        return
    rows = []
    with TemporaryDirectory() as folder:
        for name in asked.movies:
            fields = solve(EPSILON[name])
            for seed in range(asked.first, asked.first + asked.seeds):
                rows += run(name, seed, Path(folder), fields)
                if asked.first == 101:
                    save_results("camera_movie", rows)
    shown = ("movie", "values", "seed", "force error %", "covered %", "verdict", "seconds", "refused")
    print_table("A camera movie in one call", [{name: row.get(name, "") for name in shown} for row in rows])


if __name__ == "__main__":
    main()

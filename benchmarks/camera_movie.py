"""A camera movie in one call: an OME-TIFF of another solver with every fault of a camera, through open_record and identify.

    python benchmarks/camera_movie.py [thin|wide ...] [--seeds 3]   # writes benchmarks/results/camera_movie.json
    python benchmarks/camera_movie.py --cameras 16                  # random cameras: results/cameras.json
    python benchmarks/camera_movie.py ... --make --folder F         # the files alone; without --make they are judged

py-pde solves u_t = q (Laplacian u - G(u)) on a mesh three times finer than the pixels, with the sixth law, by its
Runge-Kutta stepper; the Laplacian is of fourth order, so the law of the movie is the true one to 2e-4. The camera sees a
window of it: a pixel is the mean over its area (exact, by Fourier modes), the stage drifts by 0.3 pixels, the light
falls off by 25 %, the dye fades by 20 %, there are a dark value, shot noise and readout noise, five dead and hot pixels,
and 16 bits. Interfaces are 3.9 pixels wide (thin) or 9.3 (wide). Neither q nor the boundary nor any option is given.

Beside it stand the exact values of the same movie: point values, the same mean noise, white, declared a simulation.
Asked are a force error within twice that of the exact values (root mean square over seeds, and the one that the widths
of the bands promise), a band that covers, "adequate", and five times the time.

Random cameras have none to any of these faults in ordinary sizes, so nothing is wrong with their records: 90 % of them
must be "ok" or "adequate".
"""  # noqa: E501

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from common import join_results, need, print_table, save_results, sized, target, words

need("tifffile")
import tifffile

import doublewell as dw

PIXELS, FRAMES, BORDER, FINE = sized((96, 61, 6, 3), tiny=(32, 15, 2, 3))  # a border that the camera does not see
EPSILON = {"thin": 3.9 / 4.163, "wide": 9.3 / 4.163}  # pixels; the quartic law's interface is 4.163 epsilon wide
TIME, Q, PIXEL, SECOND = 40.0 * sized(1.0, tiny=0.2), 1.0, 0.25, 2.0  # px^2 / q in all; um per pixel; s per frame
LAW = dw.named_law("sixth")
U = np.linspace(-1.0, 1.0, 401)


@dataclass(frozen=True)
class Camera:
    """What a camera does to a movie: grey values of the phases, fall-off, fading, drift, blur in pixels, bad pixels."""

    low: float = 2000.0
    high: float = 12000.0
    dark: float = 110.0
    electron: float = 3.2  # grey values of one photoelectron
    readout: float = 12.0
    falloff: float = 0.25
    fading: float = 0.2
    drift: float = 0.3
    blur: float = 0.0
    bad: dict[tuple[float, float], int] = field(
        default_factory=lambda: {
            (0.15, 0.72): 65535, (0.4, 0.31): 0, (0.55, 0.55): 30000, (0.7, 0.2): 65535, (0.86, 0.9): 0,
        }
    )  # fmt: skip

    @classmethod
    def random(cls, rng: np.random.Generator) -> Camera:
        """Draw one as they are in laboratories; a third of them have no fall-off, no fading, drift or blur."""
        low, electron = rng.uniform(500.0, 5000.0), rng.uniform(1.0, 8.0)
        sizes = [float(rng.uniform(0.0, top) * (rng.random() > 1 / 3)) for top in (0.3, 0.3, 0.5, 0.5)]
        bad = {tuple(rng.uniform(0.0, 1.0, 2)): int(rng.choice([0, 30000, 65535])) for _ in range(rng.integers(0, 9))}
        high = low + rng.uniform(3000.0, 15000.0)
        return cls(low, high, rng.uniform(50.0, 300.0), electron, rng.uniform(5.0, 25.0), *sizes, bad)

    def photograph(self, u: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """Return 16-bit grey values of what the pixels saw, and the mean noise in u."""
        y, x = np.meshgrid(*(np.linspace(-1.0, 1.0, n) for n in u.shape[1:]), indexing="ij")
        light = 1.0 - self.falloff * ((x - 0.2) ** 2 + 0.8 * (y + 0.1) ** 2) / 2.0
        fade = 1.0 - self.fading * (1.0 - np.exp(-2.0 * np.linspace(0.0, 1.0, len(u))))[:, None, None]
        contrast = self.high - self.low
        signal = light * fade * (self.low + contrast * (u + 1.0) / 2.0)
        grey = self.dark + self.electron * rng.poisson(signal / self.electron)
        grey = grey + self.readout * rng.standard_normal(u.shape)
        noise = 2.0 * np.sqrt(self.electron * signal + self.readout**2) / (light * fade * contrast)
        for (row, column), value in self.bad.items():
            grey[:, int(row * u.shape[1]), int(column * u.shape[2])] = value
        return np.clip(np.rint(grey), 0, 65535).astype(np.uint16), float(np.sqrt(np.mean(noise**2)))


@lru_cache
def solve(name: str) -> np.ndarray:
    """Return the fields of all frames on the fine mesh: a lobed drop and two small ones on a periodic domain."""
    need("pde")
    import pde

    epsilon = EPSILON[name]
    points = np.cos(np.pi * (np.arange(16) + 0.5) / 16)
    fit = np.polynomial.Polynomial.fit(points, LAW.effective(epsilon).force(points), 7, domain=(-1, 1))
    slopes = fit.coef[1::2]  # exact: an odd polynomial of degree 5

    class AllenCahn(pde.PDEBase):
        """The equation on a periodic domain, with differences of fourth order; lengths in pixels."""

        def evolution_rate(self, state: pde.ScalarField, t: float = 0) -> pde.ScalarField:  # noqa: ARG002  py-pde's
            u, n, wide = state.data, state.data.shape[0], np.pad(state.data, 2, mode="wrap")
            second = -60.0 * u
            for k, weight in ((0, -1.0), (1, 16.0), (3, 16.0), (4, -1.0)):
                second += weight * (wide[k : k + n, 2:-2] + wide[2:-2, k : k + n])
            square = u * u
            force = u * (slopes[0] + square * (slopes[1] + square * (slopes[2] + square * slopes[3])))
            return pde.ScalarField(state.grid, Q * (second * (FINE**2 / 12.0) - force))

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
    AllenCahn().solve(
        pde.ScalarField(grid, np.tanh(side * depth / (np.sqrt(2.0) * epsilon))),
        t_range=(FRAMES - 1) * interval * (1 + 1e-9), dt=step, solver="runge-kutta", backend="numpy",
        tracker=[storage.tracker(interval)],
    )  # fmt: skip
    return np.array(storage.data)[:FRAMES]


def seen(fields: np.ndarray, *, drift: float, pixel: bool, blur: float = 0.0) -> np.ndarray:
    """Return what pixels see of the fine fields: moved by a smooth drift, blurred; means over their area or points."""
    waves = 2.0 * np.pi * np.fft.fftfreq(fields.shape[1]) * FINE
    centre = 0.5 - 0.5 / FINE  # a pixel's centre lies between the points of the fine mesh
    t, frames = np.linspace(0.0, 1.0, len(fields)), []
    for one, way in zip(fields, drift * np.stack([0.8 * t, 0.9 * t - 0.3 * t**2], 1), strict=True):
        modes = np.fft.fft2(one)
        for axis, d in enumerate(way):
            factor = np.exp(1j * waves * (centre - d) - 0.5 * (blur * waves) ** 2) * (
                np.sinc(waves / (2.0 * np.pi)) if pixel else 1.0
            )
            modes = modes * (factor[:, None] if axis == 0 else factor)
        inside = slice(BORDER, BORDER + PIXELS)
        frames.append(np.fft.ifft2(modes).real[::FINE, ::FINE][inside, inside])
    return np.array(frames)


def make(path: Path, name: str, seed: int, camera: Camera, *, exact: bool) -> None:
    """Write the file of a camera, and where asked the exact values with the same noise beside it."""
    rng = np.random.default_rng(seed)
    grey, noise = camera.photograph(seen(solve(name), drift=camera.drift, pixel=True, blur=camera.blur), rng)
    metadata = {"axes": "TYX", "PhysicalSizeX": PIXEL, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": PIXEL,
                "PhysicalSizeYUnit": "µm", "TimeIncrement": SECOND, "TimeIncrementUnit": "s"}  # fmt: skip
    tifffile.imwrite(path, grey, photometric="minisblack", metadata=metadata, ome=True)
    beside = {"noise": np.array(noise)}
    if exact:
        values = seen(solve(name), drift=0.0, pixel=False) + noise * rng.standard_normal(grey.shape)
        beside["exact"] = values.astype(np.float32)
    np.savez_compressed(path.with_suffix(".npz"), **beside)


def score(record: dw.Record, epsilon: float, started: float, **options: Any) -> dict[str, Any]:
    """Identify and compare with the true law; seconds are from `started` on."""
    result = dw.identify(record, **options)
    seconds = time.perf_counter() - started
    true = LAW.effective(epsilon * PIXEL).force(U)
    low, high = result.band("force", U)
    return {
        "force error %": round(100 * float(np.linalg.norm(result.force(U) - true) / np.linalg.norm(true)), 3),
        "covered %": round(100 * float(np.mean((true >= low) & (true <= high))), 1),
        "band %": round(100 * float(np.linalg.norm((high - low) / 3.92) / np.linalg.norm(true)), 3),
        "verdict": str(result.adequacy.verdict.value),
        "seconds": round(seconds, 1),
        "findings": [item.code for item in dw.findings(result) if str(item.severity) != "ok"],
    }


def run(path: Path, name: str, seed: int, *, exact: bool) -> list[dict[str, Any]]:
    """Return the rows of one movie: exact values where asked, then the file of the camera."""
    epsilon, beside, rows = EPSILON[name], np.load(path.with_suffix(".npz")), []
    about = {"movie": name, "seed": seed, "noise": round(float(beside["noise"]), 4)}
    if exact:
        scale = {"dx": PIXEL, "dt": SECOND, "length_unit": "um", "time_unit": "s"}
        known = {"origin": "simulation"} if "origin" in dw.Record.__init__.__kwdefaults__ else {}
        record = dw.Record(beside["exact"].astype(float), **scale, **known)
        rows.append(about | {"values": "exact"} | score(record, epsilon, time.perf_counter()))
        print(rows[-1], flush=True)
    row, started = about | {"values": "camera"}, time.perf_counter()
    try:
        row |= score(dw.open_record(path), epsilon, started)
        if exact:
            row["times the error"] = round(row["force error %"] / rows[0]["force error %"], 2)
            row["times the time"] = round(row["seconds"] / rows[0]["seconds"], 2)
    except dw.InputError as error:
        row["refused"] = str(error)
    print(row, flush=True)
    return [*rows, row]


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for each movie and kind of values: root mean square error and width, coverage, verdicts."""
    lines = []
    for name, values in sorted({(row["movie"], row["values"]) for row in rows}):
        own = [row for row in rows if (row["movie"], row["values"]) == (name, values) and "verdict" in row]
        if own:
            size = {key: float(np.sqrt(np.mean([row[key] ** 2 for row in own]))) for key in ("force error %", "band %")}
            good = sum(row["verdict"] in ("ok", "adequate") for row in own)
            line = {"movie": name, "values": values, "records": len(own)} | {k: round(v, 3) for k, v in size.items()}
            line["covered %"] = round(float(np.mean([row["covered %"] for row in own])), 1)
            lines.append(line | {"adequate": good, "seconds": round(sum(row["seconds"] for row in own) / len(own), 1)})
    return lines


def draw(path: Path) -> None:
    """Write the figure of docs/intensities.md: grey values, what was found in them, phase values with their mask."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    camera = Camera()
    grey, _ = camera.photograph(seen(solve("wide"), drift=camera.drift, pixel=True), np.random.default_rng(101))
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
    parser.add_argument("--first", type=int, default=101, help="the first seed")
    parser.add_argument("--cameras", type=int, help="so many random cameras instead, seeds from --first on")
    parser.add_argument("--folder", type=Path, help="where the files are kept")
    parser.add_argument("--make", action="store_true", help="make the files and end")
    parser.add_argument("--out", type=Path, help="results, else those in benchmarks/results")
    parser.add_argument("--merge", nargs="+", type=Path, help="join such results")
    parser.add_argument("--figure", action="store_true", help="draw docs/figures/camera_movie.png and end")
    asked = parser.parse_args(words("wide"))
    if asked.figure:
        draw(target(Path(__file__).parents[1] / "docs" / "figures" / "camera_movie.png"))
        return
    name, rows = "cameras" if asked.cameras else "camera_movie", list[dict[str, Any]]()
    with TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for movie in [] if asked.merge else asked.movies:
            for seed in range(asked.first, asked.first + (asked.cameras or asked.seeds)):
                path = folder / f"{name}-{movie}-{seed}.ome.tif"
                if not path.exists():
                    camera = Camera.random(np.random.default_rng([seed])) if asked.cameras else Camera()
                    make(path, movie, seed, camera, exact=not asked.cameras)
                if not asked.make:
                    rows += run(path, movie, seed, exact=not asked.cameras)
                    save_results(name, rows, asked.out)
    if asked.merge:
        rows = join_results(name, asked.merge, lambda row: (row["movie"], row["seed"], row["values"] != "exact"))
    if any("verdict" in row for row in rows):
        print_table("A camera movie in one call", summary(rows))


if __name__ == "__main__":
    main()

"""Inputs of the golden results: small movies by a solver of their own, in plain NumPy, from fixed seeds.

The solver is the classical Runge-Kutta method with an integrating factor for u_t = q (Laplacian u - G(u)) in Fourier
modes; a no-flux wall is the even extension of the field. It shares nothing with the package, so that no change there
moves an input. Every movie is a dictionary: `u` and the metadata of a record in the words of version 0.1; one with
`file` is written to a TIFF and opened with the options `open`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray
Movie = dict[str, Any]

CELLS, FRAMES, DX, DT, EPSILON, Q = 32, 21, 1 / 32, 5e-4, 0.08, 0.8
SUBSTEPS = 8


def sixth(u: Array) -> Array:
    """F' of F = (1 - u^2)^2 (1 + u^2/2) / 4."""
    return -0.75 * u * (1 - u**2) * (1 + u**2)


def outside(u: Array) -> Array:
    """F' of an admissible law outside the positive cone: its bracket nearly touches zero."""
    return -5.0 * u * (1 - u**2) * ((u**2 - 0.5) ** 2 + 0.03)


def skew(u: Array) -> Array:
    """F' of F = (1 - u^2)^2 (1 + 0.4 u) / 4: wells of equal depth that are not identical."""
    return -(1 - u**2) * (u * (1 + 0.4 * u) - 0.1 * (1 - u**2))


def tilted(u: Array) -> Array:
    """F' of wells whose depths differ."""
    return -(1 - u**2) * (u - 0.08)


def evolve(
    force: Callable[[Array], Array], start: Array, times: Array, *, dx: float = DX, q: float = Q,
    epsilon: float = EPSILON, neumann: bool = False, substeps: int = SUBSTEPS,
) -> Array:  # fmt: skip
    """Return the frames of a movie at some times."""
    cells, axes = start.shape, tuple(range(start.ndim))
    if neumann:
        for axis in axes:
            start = np.concatenate([start, np.flip(start, axis)], axis)
    waves = [
        2 * np.pi * (np.fft.rfftfreq if k == axes[-1] else np.fft.fftfreq)(n, dx) for k, n in enumerate(start.shape)
    ]
    decay = -q * sum(k**2 for k in np.meshgrid(*waves, indexing="ij", sparse=True))

    def remainder(v: Array) -> Array:
        return np.fft.rfftn(-q / epsilon**2 * force(np.fft.irfftn(v, start.shape, axes)), axes=axes)

    v, frames = np.fft.rfftn(start, axes=axes), [start]
    for gap in np.diff(times):
        h = gap / substeps
        half = np.exp(0.5 * h * decay)
        for _ in range(substeps):
            a = remainder(v)
            b = remainder(half * (v + 0.5 * h * a))
            c = remainder(half * v + 0.5 * h * b)
            d = remainder(half**2 * v + h * half * c)
            v = half**2 * v + h / 6 * (half**2 * a + 2 * half * (b + c) + d)
        frames.append(np.fft.irfftn(v, start.shape, axes))
    return np.stack(frames)[(slice(None), *(slice(n) for n in cells))]


def points(cells: int, dims: int, *, centred: bool = False) -> list[Array]:
    """Return coordinates from the middle of a unit domain."""
    line = (np.arange(cells) + 0.5 * centred) / cells - 0.5
    return list(np.meshgrid(*[line] * dims, indexing="ij"))


def star(cells: int = CELLS, radius: float = 0.27, depth: float = 0.3, lobes: int = 3, **options: Any) -> Array:
    y, x = points(cells, 2, **options)
    return np.tanh((radius * (1 + depth * np.cos(lobes * np.arctan2(y, x))) - np.hypot(x, y)) / (np.sqrt(2) * EPSILON))


def ball(cells: int, dims: int, radius: float, epsilon: float) -> Array:
    r = np.sqrt(sum(x**2 for x in points(cells, dims)))
    return np.tanh((radius - r) / (np.sqrt(2) * epsilon))


def waves(size: float, seed: int) -> Array:
    """Return a random start: the lowest modes with normal amplitudes."""
    y, x = points(CELLS, 2)
    draws, total = np.random.default_rng(seed).standard_normal((2, 3, 3)), 0.0
    for i, j in [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]:
        total = total + draws[0, i, j] * np.cos(2 * np.pi * (i * x + j * y))
        total = total + draws[1, i, j] * np.sin(2 * np.pi * (i * x - j * y))
    return size * total / np.std(total)


def even(frames: int = FRAMES, dt: float = DT) -> Array:
    return dt * np.arange(frames)


def white(u: Array, noise: float, seed: int) -> Array:
    return u + noise * np.random.default_rng(seed).standard_normal(u.shape)


@cache
def clean(law: str, boundary: str = "periodic") -> Array:
    """Return the star of a law on the usual mesh, without noise."""
    neumann = boundary == "neumann"
    return evolve(globals()[law], star(centred=neumann), even(), neumann=neumann)


def plain(u: Array, **other: Any) -> Movie:
    """Return a movie with the usual metadata."""
    return {"u": u, "dx": DX, "dt": DT, "q": Q, "boundary": "periodic"} | other


def smooth(u: Array, width: float) -> Array:
    """Return frames convolved with a periodic Gaussian of a width in cells."""
    axes = tuple(range(1, u.ndim))
    k2 = sum(k**2 for k in np.meshgrid(*[2 * np.pi * np.fft.fftfreq(n) for n in u.shape[1:]], indexing="ij"))
    return np.fft.ifftn(np.fft.fftn(u, axes=axes) * np.exp(-0.5 * width**2 * k2), axes=axes).real


def coloured(shape: tuple[int, ...], size: float, seed: int) -> Array:
    """Return noise that is correlated over neighbours and over frames."""
    fresh = smooth(np.random.default_rng(seed).standard_normal(shape), 0.7)
    for k in range(1, len(fresh)):
        fresh[k] = 0.5 * fresh[k - 1] + np.sqrt(0.75) * fresh[k]
    return size * fresh / np.std(fresh)


def gaps() -> Movie:
    """Return a movie with a dead block, scattered missing values and a lost frame, all NaN."""
    u = white(clean("sixth"), 0.02, 11)
    mask = np.random.default_rng(12).random(u.shape) > 0.003
    mask[:, 2:5, 3:9] = False
    mask[16] = False
    return plain(np.where(mask, u, np.nan), mask=mask)


def uneven() -> Movie:
    times = np.cumsum(np.concatenate([[0.0], np.where(np.arange(FRAMES - 1) % 3 == 0, 8e-4, 4e-4)]))
    movie = plain(white(evolve(sixth, star(), times), 0.02, 13), times=times)
    del movie["dt"]
    return movie


def window() -> Movie:
    """Return a part of a larger movie, of which no boundary is known."""
    u = evolve(sixth, star(48), even(FRAMES, 1e-3), dx=1 / 48)[:, 8:40, 4:36]
    return plain(white(u, 0.01, 14), dx=1 / 48, dt=1e-3, boundary=None)


def seen_through() -> Array:
    """Return a movie blurred by a Gaussian of 1.2 cells."""
    return white(smooth(clean("sixth"), 1.2), 0.01, 15)


def spikes() -> Array:
    u, rng = white(clean("sixth"), 0.02, 16), np.random.default_rng(17)
    u[rng.integers(0, FRAMES, 40), rng.integers(0, CELLS, 40), rng.integers(0, CELLS, 40)] += 0.6
    return u


def shot() -> Array:
    u = clean("sixth")
    return u + 0.02 * np.sqrt(1.0 + 0.8 * np.clip(u, -1, 1)) * np.random.default_rng(18).standard_normal(u.shape)


def bad_pixel() -> Array:
    u = white(clean("sixth"), 0.02, 19)
    u[:, 9, 23] += 0.3
    return u


def drifting() -> Array:
    """Return a movie whose pattern drifts by 1.5 cells along x."""
    u = clean("sixth")
    k = 2 * np.pi * np.fft.fftfreq(CELLS)
    way = 1.5 * np.linspace(0.0, 1.0, FRAMES)
    phase = np.exp(-1j * way[:, None, None] * k)
    return white(np.fft.ifft(np.fft.fft(u, axis=-1) * phase, axis=-1).real, 0.01, 20)


def grey(u: Array) -> Array:
    """Return a camera's picture: 160 of 256 grey values between the phases."""
    return np.clip(np.round(128 + 80 * u), 0, 255).astype(np.uint8)


def line() -> Movie:
    x = points(64, 1)[0]
    start = np.tanh((0.2 + 0.05 * np.cos(2 * np.pi * x) - np.abs(x)) / (np.sqrt(2) * 0.05))
    start = 0.9 * start + 0.2 * np.cos(6 * np.pi * x)
    u = evolve(sixth, start, even(FRAMES, 4e-4), dx=1 / 64, epsilon=0.05)
    return plain(white(u, 0.005, 21), dx=1 / 64, dt=4e-4)


def cube() -> Movie:
    u = evolve(sixth, ball(16, 3, 0.3, 0.1), even(15, 1e-3), dx=1 / 16, epsilon=0.1)
    return plain(white(u, 0.01, 22), dx=1 / 16, dt=1e-3)


def spinodal() -> Movie:
    u = evolve(sixth, waves(0.01, 1), even(FRAMES, 4e-3), q=1.0, substeps=40)
    return plain(white(u, 0.03, 23), dt=4e-3, q=1.0)


def poor() -> Movie:
    """Return a movie with strong noise, few cells across an interface and little motion."""
    u = evolve(sixth, ball(CELLS, 2, 0.3, 0.03), even(FRAMES, 4e-5), epsilon=0.03)
    return plain(white(0.7 * u, 0.12, 24), dt=4e-5)


def flat() -> Movie:
    """Return diffusion without any law: no double well is in it."""
    u = evolve(lambda u: 3.0 * u, star(), even(), epsilon=EPSILON)
    return plain(white(u, 0.01, 25))


MOVIES: dict[str, Callable[[], Movie]] = {
    "star": lambda: plain(white(clean("sixth"), 0.02, 1)),
    "star-units": lambda: plain(white(clean("sixth"), 0.02, 1), length_unit="um", time_unit="s"),
    "star-quiet": lambda: plain(white(clean("sixth"), 0.01, 2)),
    "star-no-q": lambda: plain(white(clean("sixth"), 0.01, 3), q=None),
    "star-wrong-q": lambda: plain(white(clean("sixth"), 0.005, 4), q=0.9 * Q),
    "star-no-flux": lambda: plain(white(clean("sixth", "neumann"), 0.02, 5), boundary="neumann"),
    "star-contrast": lambda: plain(white(0.96 * clean("sixth"), 0.01, 6)),
    "star-0-1": lambda: plain(0.5 + 0.5 * white(clean("sixth"), 0.02, 1)),
    "star-grey": lambda: plain(grey(white(clean("sixth"), 0.02, 1)), file="movie.tif", open={"levels": [48.0, 208.0]}),
    "star-long": lambda: plain(white(evolve(sixth, star(), even(27)), 0.02, 26)),
    "star-exact": lambda: plain(white(clean("sixth"), 4e-5, 27)),
    "outside": lambda: plain(white(clean("outside"), 0.02, 7)),
    "skew": lambda: plain(white(clean("skew"), 0.01, 8)),
    "skew-0-1": lambda: plain(0.5 + 0.5 * white(clean("skew"), 0.01, 8)),
    "tilted": lambda: plain(white(clean("tilted"), 0.01, 9)),
    "correlated": lambda: plain(clean("sixth") + coloured(clean("sixth").shape, 0.02, 10)),
    "gaps": gaps,
    "uneven": uneven,
    "window": window,
    "blurred": lambda: plain(seen_through()),
    "spikes": lambda: plain(spikes()),
    "shot": lambda: plain(shot()),
    "bad-pixel": lambda: plain(bad_pixel()),
    "drifting": lambda: plain(drifting()),
    "line": line,
    "cube": cube,
    "spinodal": spinodal,
    "poor": poor,
    "flat": flat,
}


@cache
def movie(name: str) -> Movie:
    return MOVIES[name]()


def fingerprint(name: str) -> list[float]:
    """Return sums over a movie that a changed value moves: itself, its square, and itself weighted at random."""
    u = np.nan_to_num(np.asarray(movie(name)["u"], dtype=np.float64))
    weights = np.random.default_rng(99).standard_normal(u.size)
    return [float(np.mean(u)), float(np.mean(u**2)), float(weights @ u.ravel() / u.size)]

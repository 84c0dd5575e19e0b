"""A camera: from a simulated order parameter to grey values, with every fault of its own."""

import numpy as np
import pytest

from doublewell.law import named_law
from doublewell.simulate import initial_field, simulate

CELLS, EPSILON, FRAMES = 96, 0.03, 31
LAW = named_law("sixth")


@pytest.fixture(scope="session")
def field():
    """Phase values u[t, y, x] of a wobbled drop, clean."""
    start = initial_field("wobbled", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    return simulate(LAW, start, dx=1 / CELLS, dt=5e-5, frames=FRAMES, epsilon=EPSILON).slab()


@pytest.fixture(scope="session")
def known():
    return {"dx": 1 / CELLS, "dt": 5e-5, "q": 1.0, "boundary": "periodic"}


def moved(u, way):
    """Move frames on the periodic domain by Fourier modes: written again here, not taken from the package."""
    ky, kx = np.fft.fftfreq(u.shape[1])[:, None], np.fft.rfftfreq(u.shape[2])[None]
    modes = np.fft.rfft2(u) * np.exp(-2j * np.pi * (ky * way[:, :1, None] + kx * way[:, 1:, None]))
    return np.fft.irfft2(modes, s=u.shape[1:])


def camera(u, *, low=3000.0, high=20000.0, dark=0.0, vignette=0.0, stray=0.0, bleach=0.0, way=None, noise=0.01,
           bits=16, seed=1):  # fmt: skip
    """Return integers: drift, light, fading, noise, rounding and saturation in this order."""
    u = u if way is None else moved(u, way)
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in u.shape[1:]), indexing="ij")
    light = 1.0 - vignette * (x**2 + 0.7 * y**2 + 0.2 * x) / 1.9
    fade = np.exp(-bleach * np.linspace(0.0, 1.0, len(u)))[:, None, None]
    seen = dark + fade * light * (low + (high - low) * (u + 1) / 2) + stray * (high - low) * (0.5 * x + y**2)
    seen = seen + 0.5 * noise * (high - low) * np.random.default_rng(seed).standard_normal(u.shape)
    return np.clip(np.rint(seen), 0, 2**bits - 1).astype(np.uint8 if bits == 8 else np.uint16)


@pytest.fixture(scope="session")
def shoot():
    return camera


@pytest.fixture(scope="session")
def force_error():
    u = np.linspace(-1.0, 1.0, 2001)
    true = LAW.effective(EPSILON).force(u)

    def error(result):
        return float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true))

    return error

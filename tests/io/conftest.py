"""A small movie of a shrinking circle, and what identify says of it."""

import numpy as np
import pytest

from doublewell.calibrate import SurfaceTension
from doublewell.identify import identify
from doublewell.options import Weak
from doublewell.record import Record


@pytest.fixture(scope="session")
def movie():
    cells, frames, dt, epsilon = 48, 60, 2e-4, 0.04
    x = (np.arange(cells) + 0.5) / cells - 0.5
    distance = np.hypot(*np.meshgrid(x, x, indexing="ij"))
    radius = np.sqrt(0.3**2 - 2 * dt * np.arange(frames))[:, None, None]
    u = np.tanh((radius - distance) / (np.sqrt(2) * epsilon))
    noise = 0.01 * np.random.default_rng(1).standard_normal(u.shape)
    return Record(u + noise, dx=1 / cells, dt=dt, q=1.0, boundary="periodic")


@pytest.fixture(scope="session")
def result(movie):
    return identify(
        movie, method=Weak(ridge="validated"), surface_tension=SurfaceTension(0.94, sd=0.01, normalisation="eE")
    )


@pytest.fixture(scope="session")
def small():
    """A record with awkward numbers: uneven times, a spacing that is no short decimal, a negative zero."""
    rng = np.random.default_rng(7)
    u = rng.standard_normal((6, 4, 5))
    u[0, 0, 0], u[1, 0, 0] = -0.0, 5e-324
    return Record(u, dx=(1 / 3, 0.1), times=np.cumsum(rng.random(6)) - 2, q=2 / 7, boundary="neumann")


@pytest.fixture(scope="session")
def same():
    """Whether two records agree to the last bit."""

    def compare(a, b):
        assert (a.shape, a.dx, a.q, a.boundary) == (b.shape, b.dx, b.q, b.boundary)
        assert a.times.tobytes() == b.times.tobytes()
        assert a.slab().tobytes() == b.slab().tobytes()
        return True

    return compare


@pytest.fixture
def stored(small, tmp_path):
    """A record saved by hand as a zarr group with two frames to a chunk: three chunks in all."""
    import zarr

    group = zarr.create_group(str(tmp_path / "movie.zarr"), attributes={"dx": [1 / 3, 0.1], "dt": 0.5})
    array = group.create_array("u", shape=small.shape, chunks=(2, 4, 5), dtype="f8")
    array[:] = small.slab()
    return tmp_path / "movie.zarr"

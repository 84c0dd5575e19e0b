"""A studio of a folder of its own: as an application that is called, or as a server that is started."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("psutil")

from studio_calls import TOKEN, Caller

from doublewell.io import save
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.studio.processes import Limits
from doublewell.studio.server import application


@pytest.fixture(scope="session")
def drop():
    """A noisy drop: 25 frames of 32 x 32, as other tests fit it."""
    start = initial_field("circle", (32, 32), 1 / 32, epsilon=0.08)
    movie = simulate(named_law("quartic"), start, dx=1 / 32, dt=4e-4, frames=25, epsilon=0.08)
    return add_noise(movie, 0.02, seed=1)


@pytest.fixture(scope="session")
def camera(drop, tmp_path_factory):
    """The same as a microscope would write it: an OME-TIFF with pixel size, interval and units."""
    tifffile = pytest.importorskip("tifffile")
    path = tmp_path_factory.mktemp("camera") / "drop.ome.tif"
    grey = np.clip(1000 + 400 * drop.slab(), 0, 65535).astype(np.uint16)
    sizes = {f"PhysicalSize{axis}{end}": value for axis in "XY" for end, value in (("", 0.5), ("Unit", "µm"))}
    about = {"axes": "TYX", "TimeIncrement": 2.0, "TimeIncrementUnit": "s", **sizes}
    tifffile.imwrite(path, grey, metadata=about)
    return path


@pytest.fixture
def folder(tmp_path):
    """A start folder with a file beside it that nobody may read."""
    (tmp_path / "start").mkdir()
    np.save(tmp_path / "secret.npy", np.zeros((5, 16, 16)))
    return tmp_path / "start"


@pytest.fixture
def call(folder):
    """Return a caller that has the cookie; uploads of up to 100 kB."""
    app = application(folder, token=TOKEN, host="127.0.0.1", job=Limits(10**10, 600.0), upload=100_000)
    yield Caller(app).enter()
    app.state.studio.jobs.close()
    app.state.studio.inspecting.close()
    app.state.studio.showing.close()


@pytest.fixture
def drop_file(folder, drop):
    save(drop, folder / "drop.npz")
    return folder / "drop.npz"

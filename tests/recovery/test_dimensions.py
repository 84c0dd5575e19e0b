"""One and three space axes: windows, gaps, blur, unknown q and unlike wells are read there as on two.

Each record is read with what it needs and without: the one reading holds the truth, the other is clearly off. Data
from CNAB2. Records of as many axes have one mesh and one number of frames, and all values are weighed and seen
through optics, be they plain: so three programs are compiled for each number of axes.
"""

from __future__ import annotations

import numpy as np
import pytest
from readings import ONE, RARE, Reading, q_of, read_law

from doublewell.law import Family, Law, Wells, named_law
from doublewell.observation import View
from doublewell.options import Observation
from doublewell.record import Record
from doublewell.simulate import add_noise, simulate

EPSILON, DT, NOISE = 0.1, 5e-4, 0.01
CELLS, FRAMES, DX, LARGER = {1: 64, 3: 12}, {1: 25, 3: 13}, {1: 1 / 40, 3: 1 / 16}, {1: 90, 3: 15}
SIXTH = named_law("sixth")
TILTED = SIXTH.tilted(0.2)
WEAK = Law(ONE, 0.8 * SIXTH.effective(EPSILON).coefficients)  # where fits start


def movie(axes: int, law: Law = SIXTH, cells: int | None = None) -> Record:
    """Waves that are wider than an interface: they move on one axis too."""
    n = CELLS[axes] if cells is None else cells
    shapes = [[-1 if j == k else 1 for j in range(axes)] for k in range(axes)]
    waves = [np.sin(2 * np.pi * (np.arange(n) + 0.3 * k) / n).reshape(shape) for k, shape in enumerate(shapes)]
    start = np.tanh(0.9 * (sum(waves) + 0.2))
    return simulate(law, start, dx=DX[axes], dt=DT, frames=FRAMES[axes], epsilon=EPSILON)


def noisy(record: Record) -> Record:
    """With noise, and with a mask that leaves nothing out."""
    return add_noise(record, NOISE, seed=1).replace(mask=np.ones(record.shape, bool))


def read(record: Record, law: Law = SIXTH, *, family: Family = ONE, blur=1e-3, q_free=False) -> Reading:
    """Read with a `blur` in cells, by default next to none."""
    optics = Observation() if record.boundary == "open" else Observation(blur=blur * record.dx[0])
    return read_law(record, law.effective(EPSILON), WEAK, family=family, view=View(optics=optics, q_free=q_free))


def is_true(reading: Reading, most: float) -> bool:
    return reading.holds and reading.error < most and abs(reading.found.noise / NOISE - 1.0) < 0.06


@pytest.fixture(scope="module", params=[1, 3])
def axes(request) -> int:
    return request.param


@pytest.fixture(scope="module")
def clean(axes) -> Record:
    return movie(axes)


@pytest.fixture(scope="module")
def whole(clean) -> Record:
    return noisy(clean)


def test_a_plain_record(whole) -> None:
    assert is_true(read(whole), 0.02)


def test_a_hole_and_a_lost_frame(axes, whole) -> None:
    mask = np.ones(whole.shape, bool)
    mask[(slice(None), *(slice(2, 2 + CELLS[axes] // 5),) * axes)] = False
    mask[5] = False
    dark = np.where(mask, whole.slab(), 0.0)
    assert is_true(read(whole.replace(dark, mask=mask)), 0.03)
    assert read(whole.replace(dark)).error > 0.2  # taken for values


def test_a_blur(axes, clean) -> None:
    cells = {1: 2.5, 3: 0.6}[axes]
    k = 2 * np.pi * np.fft.fftfreq(CELLS[axes])
    passed = np.exp(-0.5 * cells**2 * sum(np.meshgrid(*(k**2,) * axes, indexing="ij")))
    space = tuple(range(1, axes + 1))
    record = noisy(clean.replace(np.fft.ifftn(passed * np.fft.fftn(clean.slab(), axes=space), axes=space).real))
    assert is_true(read(record, blur=cells), 0.03)
    ignored = read(record)
    assert ignored.error > 0.05
    assert ignored.chi2 > 10 * RARE[2]


def test_a_window_whose_q_is_not_known(axes, whole) -> None:
    larger, middle = movie(axes, cells=LARGER[axes]), slice(1, 1 + CELLS[axes])
    part = np.ascontiguousarray(larger.slab()[(slice(None), *(middle,) * axes)])
    cut = noisy(Record(part, dx=DX[axes], dt=DT, q=1.2, boundary="open"))
    found = read(cut, q_free=True)
    q, deviation = q_of(found.found, 1.2)
    assert is_true(found, 0.04)
    assert abs(q - 1.0) < 3.3 * deviation
    assert deviation < 0.1
    assert read(cut.replace(q=1.0, boundary="periodic")).error > 0.2
    fast = read(whole.replace(q=1.2))  # a q that is taken for known
    assert fast.error > 0.05
    assert fast.chi2 > 10 * RARE[2]


def test_wells_of_unlike_depth(axes) -> None:
    record = noisy(movie(axes, TILTED))
    assert is_true(read(record, TILTED, family=Wells(1)), 0.02)
    alike = read(record, TILTED)
    assert alike.error > 0.08
    assert alike.found.noise > 1.05 * NOISE  # what is left is more than noise

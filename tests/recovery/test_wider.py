"""The law comes back from windows, gaps, unknown q, blurred pictures, all kinds of noise, and several records.

Data from CNAB2. Most records have one mesh and one number of frames, so that few programs are compiled.
"""

from __future__ import annotations

import numpy as np
import pytest
from found import warned
from grouping import grouped
from readings import read_trajectory

from doublewell.errors import InputError
from doublewell.evidence import system
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON, CELLS, FRAMES, DT, DX, NOISE = 0.1, 24, 15, 5e-4, 1 / 24, 0.01
TRUTH = named_law("sixth").effective(EPSILON).coefficients  # of degree 1
RARE = 13.8  # chi-square of two degrees that is larger once in a thousand
U = np.linspace(-1.0, 1.0, 401)


def movie(cells=(CELLS, CELLS), geometry="nonconvex", law="sixth", frames=FRAMES, dx=DX, dt=DT) -> Record:
    start = initial_field(geometry, cells, dx, epsilon=EPSILON)
    return simulate(named_law(law), start, dx=dx, dt=dt, frames=frames, epsilon=EPSILON)


def read(record, **options):
    return identify(record, **grouped(degree=1, constraint="none", check=False, **options))


def chi2(result) -> float:
    """How far the law is from the truth, in standard errors, squared and summed."""
    item = result.posterior.components[0]
    gap = item.coefficients - TRUTH
    return float(gap @ np.linalg.solve(item.covariance, gap))


def error(result) -> float:
    true = named_law("sixth").effective(EPSILON).force(U)
    return float(np.linalg.norm(result.law.force(U) - true) / np.linalg.norm(true))


def width(result) -> float:
    """The standard error of the force, relative to it."""
    low, high = result.band("force", U[1:-1])
    return float(np.linalg.norm(high - low) / 4 / np.linalg.norm(named_law("sixth").effective(EPSILON).force(U)))


def noise(result) -> float:
    return result.diagnostics.likelihood.noise


@pytest.fixture(scope="module")
def clean() -> Record:
    return movie()


@pytest.fixture(scope="module")
def noisy(clean) -> Record:
    return add_noise(clean, NOISE, seed=1)


@pytest.fixture(scope="module")
def whole(noisy):
    return read(noisy)


@pytest.fixture(scope="module")
def wide() -> Record:
    """A larger domain, to cut a window from."""
    return add_noise(movie((34, 34)), NOISE, seed=2)


@pytest.fixture(scope="module")
def window(wide) -> Record:
    return Record(wide.slab()[:, 5:29, 4:28], dx=DX, dt=DT, q=1.0)


def test_a_window_without_a_boundary(window, whole) -> None:
    found = read(window)
    assert found.resolved.boundary == "open"
    assert found.diagnostics.likelihood.status.converged
    assert chi2(found) < RARE
    assert error(found) < 0.02
    assert noise(found) == pytest.approx(NOISE, rel=0.03)
    with pytest.raises(InputError, match="across the periodic border"):
        read(Record(window.values, dx=DX, dt=DT, q=1.0, boundary="periodic"))
    assert width(found) > width(whole)  # less is known


def test_a_third_of_the_values_missing(clean, noisy, whole) -> None:
    mask = np.random.default_rng(3).random(noisy.shape) < 0.7
    found = read(noisy.replace(np.where(mask, noisy.slab(), np.nan), mask=mask))
    assert chi2(found) < RARE
    assert noise(found) == pytest.approx(NOISE, rel=0.03)
    assert 1.0 < width(found) / width(whole) < 1.6
    assert warned(found)["values-missing"].numbers["missing"] == pytest.approx(0.299, abs=1e-3)


def test_a_hole_and_a_lost_frame(noisy) -> None:
    mask = np.ones(noisy.shape, bool)
    mask[:, 8:15, 9:16] = False
    mask[6] = False
    found = read(noisy.replace(np.where(mask, noisy.slab(), np.nan), mask=mask))
    again = read(noisy.replace(np.where(mask, noisy.slab(), -7.0), mask=mask))
    assert chi2(found) < RARE
    assert noise(found) == pytest.approx(NOISE, rel=0.03)
    assert np.array_equal(found.law.coefficients, again.law.coefficients)
    shown = found.diagnostics.likelihood
    assert np.all(shown.residual_map[8:15, 9:16] == 0.0)  # a hole is neither quiet nor loud
    assert np.abs(shown.residual_map).max() < 6.0
    assert shown.residual_frames[6] == 0.0
    assert np.allclose(np.delete(shown.residual_frames, 6)[3:], NOISE, rtol=0.15)


def test_a_diffusion_that_is_not_known(noisy, whole) -> None:
    """q = 1 lies in its 95 % interval; times in another unit give the same law and q in that unit."""
    found = read(Record(noisy.values, dx=DX, dt=DT, boundary="periodic"))
    low, high = found.interval("q")
    assert low < 1.0 < high
    assert high - low < 0.05
    assert found.q == pytest.approx(1.0, abs=0.02)
    assert found.q_estimated
    assert chi2(found) < RARE
    assert width(found) > width(whole)
    slower = read(Record(noisy.values, dx=DX, dt=1000 * DT, boundary="periodic"))
    assert 1000 * slower.q == pytest.approx(found.q, rel=1e-6)
    assert np.allclose(slower.law.coefficients, found.law.coefficients, rtol=1e-5)


def blurred(record: Record, cells: float) -> Record:
    """The picture through a Gaussian of a width in cells, exactly, on a periodic domain."""
    k = 2 * np.pi * np.fft.fftfreq(CELLS)
    seen = np.exp(-0.5 * cells**2 * (k[:, None] ** 2 + k**2))
    return record.replace(np.fft.ifft2(seen * np.fft.fft2(record.slab())).real)


def test_a_blur_that_is_known_or_estimated(clean) -> None:
    record = add_noise(blurred(clean, 0.6), NOISE, seed=4)
    known = read(record, blur=0.6 * DX)
    assert known.diagnostics.likelihood.status.converged
    assert chi2(known) < RARE
    assert chi2(read(record)) > 10 * RARE  # a blurred interface looks like another law
    found = read(record, blur="estimated")
    joint = found.posterior.joint
    variance, deviation = float(joint.best[0]), 1.0 / float(np.abs(joint.root[0, 0]))
    assert joint.names == ("blur",)
    assert found.diagnostics.likelihood.status.converged
    assert chi2(found) < RARE
    assert np.sqrt(variance) == pytest.approx(0.6 * DX, rel=0.15)
    assert deviation < 0.3 * variance
    assert width(found) > width(known)


def test_correlated_noise(clean) -> None:
    """White bands would be too narrow for noise that neighbours share; the scores of frames widen them as needed."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(5)
    shared = np.stack([gaussian_filter(rng.standard_normal((48, 48)), 1.0)[12:36, 12:36] for _ in range(FRAMES)])
    record = clean.replace(clean.slab() + NOISE * shared / shared.std())
    white, found = read(record), read(record, noise="correlated")
    assert chi2(found) < RARE
    excess = white.diagnostics.likelihood.excess
    assert excess > 1.0
    assert width(found) > 1.5 * width(white) / np.sqrt(excess)
    assert width(white) > 0.75 * width(found)
    assert found.problem.observation.noise == "correlated"


def test_shot_noise(clean) -> None:
    u = clean.slab()
    record = clean.replace(u + NOISE * np.sqrt(1.0 + 0.95 * np.clip(u, -1, 1)) * rng_like(u, 6))
    white, found = read(record), read(record, noise="shot")
    assert chi2(found) < RARE
    assert found.diagnostics.likelihood.status.converged
    assert not np.array_equal(found.law.coefficients, white.law.coefficients)
    assert noise(found) == pytest.approx(noise(white), rel=0.2)


def rng_like(values, seed):
    return np.random.default_rng(seed).standard_normal(values.shape)


def test_spikes_and_hot_pixels(noisy, whole) -> None:
    rng, u = np.random.default_rng(7), noisy.slab().copy()
    spikes = rng.random(u.shape) < 0.005
    u[spikes] += rng.choice([-0.5, 0.5], np.count_nonzero(spikes))
    u[:, 7, 9], u[:, 17, 15] = 1.6, -1.7
    record = noisy.replace(u)
    found = read(record, noise="robust")
    assert chi2(found) < RARE
    assert noise(found) == pytest.approx(NOISE, rel=0.05)
    assert error(read(record)) > 5 * error(found)
    assert width(found) < 1.2 * width(whole)


def test_uneven_times() -> None:
    fine = movie(frames=57, dt=DT / 4)
    kept = np.arange(0, 57, 4) + np.array([0, 1, -1, 0, 1, 1, -1, 0, 0, -1, 1, 0, -1, 1, 0])
    record = add_noise(fine.replace(fine.values[kept], times=fine.times[kept]), NOISE, seed=8)
    found = read(record)
    assert not record.uniform
    assert chi2(found) < RARE
    assert noise(found) == pytest.approx(NOISE, rel=0.03)
    free = read(Record(record.values, dx=DX, times=record.times, boundary="periodic"))
    low, high = free.interval("q")
    assert low < 1.0 < high
    assert high - low < 0.05
    assert chi2(free) < RARE


def test_records_together(noisy, whole) -> None:
    """Two are better than each; a record of another law is named, and only that one."""
    other = add_noise(movie(geometry="circle"), NOISE, seed=9)
    both = read([noisy, other])
    assert width(both) < min(width(whole), width(read(other)))
    assert chi2(both) < RARE
    assert [one.agrees for one in both.agreements] == [True, True]
    wrong = add_noise(movie(geometry="circle", law="quartic"), NOISE, seed=10)
    three = read([noisy, wrong, other])
    assert [one.agrees for one in three.agreements] == [True, False, True]
    assert warned(three)["record-disagrees"].sentence.startswith("record 2 disagrees with the others (chi2 ")
    pair = read([noisy, wrong])
    assert [one.agrees for one in pair.agreements] == [False, False]  # nothing says which is right


@pytest.mark.parametrize("axes", [1, 3])
def test_windows_with_gaps_in_one_and_three_dimensions(axes) -> None:
    cells, cut, dx, frames = {1: (64, 48, 1 / 32, 21), 3: (16, 12, 1 / 16, 13)}[axes]
    movies = add_noise(movie((cells,) * axes, "circle", frames=frames, dx=dx), NOISE, seed=11)
    part = movies.slab()[(slice(None), *(slice(2, 2 + cut) for _ in range(axes)))]
    mask = np.random.default_rng(12).random(part.shape) < 0.85
    record = Record(np.where(mask, part, np.nan), dx=dx, dt=DT, q=1.0, boundary="open", mask=mask)
    found = read_trajectory(record, 0.8 * TRUTH)
    matrix, target = system(found.evidence, 1.0)
    best = np.linalg.lstsq(matrix, target, rcond=None)[0]
    assert found.status.converged
    assert np.sum((matrix @ (best - TRUTH)) ** 2) < RARE
    assert found.noise == pytest.approx(NOISE, rel=0.06)


def test_what_the_reading_refuses(noisy) -> None:
    mask = np.ones(noisy.shape, bool)
    mask[:, 3, 3] = False
    gaps = noisy.replace(noisy.slab(), mask=mask)
    metres = Record(noisy.values, dx=DX, dt=DT, q=1.0, boundary="periodic", length_unit="m", time_unit="s")
    for record, options, words in (
        (noisy, {"noise": "pink"}, "noise is 'pink': expected 'auto', 'white', .* 'robust' or 'none'"),
        (
            noisy,
            {"noise": "shot", "method": "weak"},
            "exposure, refine and noise belong to the trajectory fit",
        ),
        (noisy, {"pixel": True, "method": "weak"}, "refine and noise belong to the trajectory fit"),
        (gaps, {"noise": "correlated"}, "correlated noise and missing values do not go together"),
        ([noisy, metres], {}, "the records have different units: expected one unit of length and one of time"),
        ([noisy, noisy], {"method": "weak"}, "several records are fitted together by their likelihood"),
        ([], {}, "no records: expected a Record, or several of one material"),
    ):
        with pytest.raises(InputError, match=words):
            read(record, **options)
    small = Record(noisy.slab()[:, :9], dx=DX, dt=DT, q=1.0)
    with pytest.raises(InputError, match="the window is 9 x 24: expected at least 12 cells along each axis"):
        read(small)

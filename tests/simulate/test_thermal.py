"""Thermal noise of simulated movies: the spectrum of a phase, its time step, equilibrium, conserved fields."""

import numpy as np
import pytest
from scipy.special import chdtri

from doublewell.dynamics import AllenCahn, Grid, Mobility
from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.simulate import initial_field, simulate

CELLS, EPSILON, THETA, RARE = (16, 24), 2.0, 1e-6, 1e-4
CURVATURE = 2.0 / EPSILON**2  # G'(1) of the quartic law


def in_equilibrium(dynamics="allen-cahn", boundary="periodic", dt=6.0, frames=80, substeps=10, dx=(1.0, 0.8), **more):
    """Frames of a phase far enough apart that they are independent but for the slowest waves; steps are long."""
    settings = {"dx": dx, "dt": dt, "frames": frames, "epsilon": EPSILON, "boundary": boundary, "substeps": substeps}
    return simulate(
        named_law("quartic"), np.ones(CELLS), **settings, dynamics=dynamics, **{"theta": THETA, "seed": 3} | more
    )


def spectrum(record):
    """Return the variance of each mode over that of white noise of unit variance, and k^2."""
    from scipy.fft import dctn, fftn

    grid, away = Grid(record.mesh, record.dx, record.boundary), record.slab()[2:] - 1.0
    if record.boundary == "neumann":
        return np.mean(dctn(away, axes=(1, 2), norm="ortho") ** 2, axis=0), -grid.laplacian
    waves = [2 * np.pi * np.fft.fftfreq(n, h) for n, h in zip(record.mesh, record.dx, strict=True)]
    return np.mean(np.abs(fftn(away, axes=(1, 2), norm="ortho")) ** 2, axis=0), waves[0][:, None] ** 2 + waves[1] ** 2


def check_spectrum(record, wanted, kept):
    """The sum of all modes in units of what they should be is a chi-square; so is that of short and of long waves."""
    power, square = spectrum(record)
    ratio, frames = (power / wanted(square))[kept], record.frames - 2
    for part in (ratio, ratio[: ratio.size // 2], ratio[ratio.size // 2 :]):
        freedom = part.size * frames
        low, high = chdtri(freedom, 1.0 - RARE / 2) / freedom, chdtri(freedom, RARE / 2) / freedom
        assert low < float(np.mean(part)) < high


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_a_phase_has_the_spectrum_of_its_energy(boundary):
    record = in_equilibrium(boundary=boundary)
    check_spectrum(record, lambda k2: THETA / np.prod(record.dx) / (k2 + CURVATURE), np.ones(CELLS, dtype=bool))


def test_a_conserved_field_keeps_its_mean_and_has_the_same_spectrum():
    record = in_equilibrium("cahn-hilliard", dt=8.0, substeps=50, frames=60)
    assert float(np.max(np.abs(np.mean(record.slab(), axis=(1, 2)) - 1.0))) < 1e-12
    _, square = spectrum(record)
    fast = square * (square + CURVATURE) * 8.0 > 4.0  # slow waves of a conserved field are not in equilibrium yet
    check_spectrum(record, lambda k2: THETA / np.prod(record.dx) / (k2 + CURVATURE), fast)


def test_two_cells_are_distributed_as_boltzmann_says():
    """Far from linear: pairs of cells that change their phase every now and then, with the integrals over both.

    The pairs are so far apart that each is alone.
    """
    apart, theta, law = 1e4, 0.25, named_law("quartic").effective(1.5)
    record = simulate(
        named_law("quartic"), np.ones((100, 2)), dx=(apart, 1.0), dt=1.0, frames=300, substeps=8, epsilon=1.5,
        theta=theta * apart, seed=5,
    )  # fmt: skip
    u = np.linspace(-3.0, 3.0, 301)
    a, b = np.meshgrid(u, u)
    bent = 0.25 * np.pi**2 * (a - b) ** 2  # k^2 / 2 of the one wave, (a - b)^2 / 2
    weight = np.exp(-(bent + law.continued().primitive(a) + law.continued().primitive(b)) / theta)
    first, second = np.moveaxis(record.slab()[100:], -1, 0)
    assert np.count_nonzero(np.diff(np.sign(first), axis=0)) > 500
    pairs = ((a**2, first**2), (a * b, first * second), (a**4, first**4), (a, first), (a * b**3, first * second**3))
    for exact, seen in pairs:
        means = np.mean(seen, axis=0)
        wanted = float(np.sum(weight * exact) / np.sum(weight))
        assert abs(np.mean(means) - wanted) < 4.5 * np.std(means) / np.sqrt(len(means)) + 2e-3


def test_a_flat_interface_has_capillary_waves():
    """<|h_k|^2> = kT / (sigma k^2) for orthonormal waves, and what the phases add to a column of a movie.

    The first axis holds copies so far apart that each is alone. The displacement is that of the mean of a column.
    """
    copies, apart, theta = 16, 1e4, 0.01
    cells, law = (copies, 32, 32), named_law("quartic").effective(EPSILON)
    flat = np.broadcast_to(np.tanh((np.arange(32) - 15.5) / (np.sqrt(2) * EPSILON)), cells)
    record = simulate(
        named_law("quartic"), flat, dx=(apart, 1.0, 1.0), dt=60.0, frames=22, substeps=60, epsilon=EPSILON,
        theta=theta * apart, seed=7, boundary="neumann",
    )  # fmt: skip
    from scipy.fft import dct

    u = np.linspace(-1.0, 1.0, 2001)
    tension = float(np.trapezoid(np.sqrt(np.maximum(2.0 * (law.primitive(u) - law.primitive(-1.0)), 0.0)), u))
    waves = np.pi * np.arange(1, 4) / 32
    height = dct(0.5 * np.sum(record.slab()[6:], axis=-1), axis=-1, norm="ortho")[..., 1:4]
    expected = theta / (tension * waves**2) + 0.25 * 32 * theta / (waves**2 + CURVATURE)
    means = np.mean(np.mean(height**2, axis=0) / expected, axis=-1)  # of each copy
    assert abs(np.mean(means) - 1.0) < 4.5 * np.std(means) / np.sqrt(copies)
    assert np.std(means) / np.sqrt(copies) < 0.08


def test_a_seed_gives_one_movie_and_no_noise_the_usual_one():
    first, again, other = (in_equilibrium(frames=3, substeps=8, seed=seed).slab() for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    start = initial_field("circle", (16, 16), 1.0, epsilon=EPSILON)
    settings = {"dx": 1.0, "dt": 1.0, "frames": 3, "epsilon": EPSILON}
    usual, still = (simulate(named_law("quartic"), start, **settings, **more) for more in ({}, {"theta": 0.0}))
    assert np.array_equal(usual.slab(), still.slab())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"theta": -1e-3}, "theta"),
        ({"seed": None}, "seed is"),
        ({"dynamics": AllenCahn(mobility=Mobility((0.3,)))}, "a drift of its own"),
    ],
)
def test_what_cannot_be_made_is_refused(more, words):
    with pytest.raises(InputError, match=words):
        in_equilibrium(frames=3, substeps=8, **more)

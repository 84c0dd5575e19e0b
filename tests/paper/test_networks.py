"""The networks on small records: they learn, they repeat, and they say what they cannot take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from doublewell.baselines import missing
from doublewell.dynamics import Grid
from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, simulate
from doublewell_paper.networks.network import Schedule, curve, initial, movie_of, stacked, train
from doublewell_paper.networks.pfwnn import Pfwnn, bump
from doublewell_paper.networks.pinn import Pinn
from doublewell_paper.networks.spinn import Spinn

EPSILON = 0.08
CELLS = 24
PHASES = np.linspace(-0.9, 0.9, 201)  # what the record shows
TRUE = named_law("quartic").effective(EPSILON).force(PHASES)

SPINN = Spinn(hidden=(12, 12), ahead=1, batch=6, schedule=Schedule(steps=1000, rate=0.03))
PFWNN = Pfwnn(hidden=(12, 12), span=2, radius=0.35, schedule=Schedule(steps=600, rate=0.03))
PINN = Pinn(hidden=(12, 12), field=(32, 32), waves=2, batch=160, schedule=Schedule(steps=450, rate=0.01))
ALL = pytest.mark.parametrize("network", [SPINN, PFWNN, PINN], ids=["spinn", "pfwnn", "pinn"])
SHORT = Schedule(steps=50, rate=0.01)


def wavy(boundary: str = "periodic") -> Record:
    """A stripe with wavy edges: every phase value is seen, on both sides."""
    y, x = np.meshgrid(*Grid((CELLS, CELLS), 1 / CELLS, boundary).points, indexing="ij")
    start = np.tanh((0.25 + 0.06 * np.cos(2 * np.pi * y) - np.abs(x - 0.5)) / (np.sqrt(2) * EPSILON))
    clean = simulate(named_law("quartic"), start, dx=1 / CELLS, dt=3e-4, frames=13, epsilon=EPSILON, boundary=boundary)
    return add_noise(clean, 0.003, seed=3)


@pytest.fixture(scope="module")
def record() -> Record:
    return wavy()


def error(found: np.ndarray) -> float:
    return float(np.linalg.norm(found - TRUE) / np.linalg.norm(TRUE))


@pytest.mark.parametrize(("network", "most"), [(SPINN, 0.2), (PFWNN, 0.3), (PINN, 0.5)], ids=["spinn", "pfwnn", "pinn"])
def test_a_network_learns_the_force(record, network, most):
    fit = network.fit(record, seed=1)
    assert error(fit.force(PHASES)) < most
    assert missing(network) is None
    assert fit.name == network.name
    assert fit.seconds > 0.0
    assert "terminal weights" in fit.notes[0]


def test_initialisations_trained_together_are_those_trained_alone(record):
    quick = replace(PFWNN, schedule=SHORT)
    together = quick.fit_many(record, seeds=(4, 7))
    alone = quick.fit(record, seed=7)
    np.testing.assert_allclose(
        together[1].force(PHASES), alone.force(PHASES), rtol=1e-3, atol=1e-3 * np.abs(TRUE).max()
    )
    assert np.ptp(together[0].force(PHASES) - together[1].force(PHASES)) > 1.0
    assert "2 initialisations trained together" in together[0].notes[1]


def test_a_neumann_record_is_mirrored():
    movie = movie_of(wavy("neumann"), resolution=None, method="SPINN")
    assert movie.grid.cells == (2 * CELLS, 2 * CELLS)
    assert movie.grid.dx == pytest.approx((1 / CELLS, 1 / CELLS))
    np.testing.assert_array_equal(movie.values[:, :CELLS, CELLS:], movie.values[:, :CELLS, CELLS - 1 :: -1])


def test_a_band_limit_keeps_the_low_modes(record):
    fine = movie_of(record, resolution=None, method="SPINN")
    coarse = movie_of(record, resolution=4.0, method="SPINN")
    assert coarse.grid.cells == (16, 16)
    assert coarse.grid.extent == pytest.approx(fine.grid.extent)
    modes = [np.fft.fft2(one.values[3])[:6, :6] / one.values[3].size for one in (fine, coarse)]
    np.testing.assert_allclose(modes[0], modes[1], atol=1e-6)


def test_weights_are_largest_at_the_interface(record):
    movie = movie_of(record, resolution=None, method="SPINN")
    assert movie.weights.mean() == pytest.approx(1.0, abs=1e-5)
    inner = np.abs(movie.values) < 0.5
    assert movie.weights[inner].min() > 2 * movie.weights[~inner].min()


def test_the_size_of_the_force_is_that_of_the_width_or_of_what_moves(record):
    still = movie_of(record, resolution=None, method="SPINN")
    assert still.size == pytest.approx(2.0 * (2.0 * np.arctanh(0.9) / still.width) ** 2)
    quick = replace(still, q=1e-6 * still.q)  # the same change asks for a larger force
    moved = np.std(still.values[-1] - still.values[0])
    assert quick.size == pytest.approx(moved / (1e-6 * 12 * 3e-4), rel=1e-5)


def test_a_line_is_learned_from_a_record_of_one_axis():
    x = (np.arange(64) + 0.5) / 64
    start = 0.9 * np.sin(2 * np.pi * x) + 0.2 * np.cos(4 * np.pi * x)
    line = simulate(named_law("quartic"), start, dx=1 / 64, dt=5e-4, frames=21, epsilon=EPSILON)
    fit = replace(PFWNN, resolution=None, schedule=Schedule(500, 0.03)).fit(line)
    assert error(fit.force(PHASES)) < 0.2
    for network in (SPINN, PINN):
        force = replace(network, schedule=SHORT).fit(line).force(PHASES)
        assert np.all(np.isfinite(force))


def test_a_bump_is_compact_and_of_sum_one():
    grid = Grid((16, 24), (1 / 16, 1 / 24), "periodic")
    modes = bump(grid, 0.2, 4)
    field = np.fft.irfft2(modes, s=grid.cells)
    assert modes[0, 0] == pytest.approx(1.0)
    assert np.abs(field[4:13]).max() < 1e-12  # 0.2 is 3.2 cells along y
    assert field[0, 0] == field.max()


def test_training_fits_a_line_and_keeps_to_its_steps():
    u = np.linspace(-1.0, 1.0, 20, dtype=np.float32)

    def loss(layers, _key, data):
        return ((curve(layers, data) - 0.5 * data) ** 2).mean()

    trained = train(loss, stacked((0, 1), (1, 4, 1), gain=1.0), u, schedule=Schedule(520, 0.03), seeds=(0, 1))
    assert trained.steps == 500
    assert max(trained.loss) < 1e-4
    brief = train(loss, stacked((0,), (1, 4, 1)), u, schedule=Schedule(10**9, 0.03, seconds=0.5), seeds=(0,))
    assert 50 <= brief.steps < 10**9


def test_seeds_make_different_networks():
    one, same, other = (initial((1, 8, 1), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one[0][0], same[0][0])
    assert not np.array_equal(one[0][0], other[0][0])


@ALL
def test_what_a_network_cannot_take(record, network):
    u, mesh = record.slab(), {"dx": 1 / CELLS, "dt": 3e-4}
    refused = {
        "needs the diffusion coefficient": Record(u, **mesh, boundary="periodic"),
        "cannot leave out missing values": Record(u, **mesh, q=1.0, boundary="periodic", mask=u < 9.0),
        "needs a periodic or a Neumann boundary: the record's is open": Record(u, **mesh, q=1.0, boundary="open"),
        "needs a periodic or a Neumann boundary: the record's is not declared": Record(u, **mesh, q=1.0),
    }
    if network.least_frames > 2:
        refused["needs at least 3 frames"] = Record(u[:2], **mesh, q=1.0, boundary="periodic")
    for said, one in refused.items():
        with pytest.raises(InputError, match=f"{network.name} {said}"):
            network.fit(one)


def test_records_too_short_or_too_coarse(record):
    with pytest.raises(InputError, match="predicts 20 frames ahead: the record has only 13 frames; pass a smaller"):
        replace(SPINN, ahead=20).fit(record)
    with pytest.raises(InputError, match="rows over 20 frame intervals: the record has only 13"):
        replace(PFWNN, span=20).fit(record)
    with pytest.raises(InputError, match="span less than two cells"):
        bump(Grid((16,), 1 / 16, "periodic"), 0.1, 4)
    with pytest.raises(InputError, match="shows no interface"):
        SPINN.fit(
            record.replace(np.full(record.shape, 0.9) + 1e-3 * np.random.default_rng(0).normal(size=record.shape))
        )

"""The Ising models of benchmarks/ising.py against exact energy and magnetisation, conservation, mean-field theory."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ellipk

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RATIO, SURE, BATCHES = 0.85, 4.5, 20


@pytest.fixture(scope="module")
def ising():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("ising")
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in ("ising", "common"):
            sys.modules.pop(name, None)


def onsager_energy(temperature):
    x = 2.0 / temperature
    k = 2.0 * np.sinh(x) / np.cosh(x) ** 2
    return -(1.0 + 2.0 / np.pi * (2.0 * np.tanh(x) ** 2 - 1.0) * ellipk(k**2)) / np.tanh(x)


def energies(spins):
    s = spins.astype(int)
    return -float(np.mean(s * (np.roll(s, 1, 0) + np.roll(s, 1, 1))))


def agrees(values, exact):
    means = np.mean(np.reshape(values, (BATCHES, -1)), axis=1)
    return abs(np.mean(means) - exact) < SURE * np.std(means, ddof=1) / np.sqrt(BATCHES)


def test_one_phase_has_yangs_magnetisation_and_onsagers_energy(ising):
    rng, spins = np.random.default_rng(1), np.ones((64, 64), dtype=np.int8)
    up, seen = ising.chances(RATIO * ising.CRITICAL, np.arange(-4, 5, 2)), []
    ising.heat_bath(spins, up, 200, rng)
    for _ in range(400):
        ising.heat_bath(spins, up, 10, rng)
        seen.append((float(np.mean(spins)), energies(spins)))
    m, e = np.array(seen).T
    assert agrees(m, ising.yang(RATIO))
    assert agrees(e, onsager_energy(RATIO * ising.CRITICAL))
    assert np.std(e) / np.sqrt(400) < 1e-3 * abs(np.mean(e))


def test_exchanges_keep_the_magnetisation_and_the_energy_of_equilibrium(ising):
    """Copies are drawn without conservation; exchanges leave the distribution as it is."""
    temperature, rng, values = RATIO * ising.CRITICAL, np.random.default_rng(2), []
    up, pairs = (ising.chances(temperature, np.arange(-n, n + 1, 2)) for n in (4, 6))
    spins = np.ones((48, 48), dtype=np.int8)
    ising.heat_bath(spins, up, 200, rng)
    for _ in range(400):
        ising.heat_bath(spins, up, 20, rng)
        moved = spins.copy()
        ising.exchange(moved, pairs, 5, rng)
        assert moved.sum() == spins.sum()
        assert np.count_nonzero(moved != spins) > 10
        values.append(energies(moved))
    assert agrees(values, onsager_energy(temperature))


def test_the_kac_model_comes_near_mean_field_theory(ising):
    rng, offsets, ratio = np.random.default_rng(3), ising.neighbours(8), 0.7
    spins, n = np.ones((64, 64), dtype=np.int8), len(offsets)
    field, up = np.full(spins.shape, n), ising.chances(ratio * n, np.arange(-n, n + 1))
    means = []
    for _ in range(60):
        ising.long_range(spins, field, offsets, up, 3, rng)
        means.append(float(np.mean(spins)))
    assert np.array_equal(field, sum(np.roll(spins.astype(int), tuple(by), axis=(0, 1)) for by in offsets))
    assert abs(np.mean(means[20:]) - ising.mean_field(ratio, 8)[0]) < 0.01
    kappa = np.mean(np.sum(offsets**2, axis=1)) / 4.0
    near = ising.mean_field(0.98, 8)[1]  # Landau's: f = -a m^2 / 2 + b m^4 / 4, a = 0.02, b = T/3
    assert near == pytest.approx(np.sqrt(8.0 * kappa / 9.0) * 0.02**1.5 / (0.98 / 3.0) / 0.98, rel=0.03)


def test_block_spins_and_strips(ising):
    record = ising.glauber((64, 32), 0.8, frames=3, every=2, before=5, seed=1)
    assert set(np.unique(record.slab())) == {-1.0, 1.0}
    halved = ising.blocked(record, 4)
    assert (halved.mesh, halved.dx, halved.dt) == ((16, 8), (4.0, 4.0), 2.0)
    assert np.mean(halved.slab()) == pytest.approx(np.mean(record.slab()))
    assert np.mean(record.slab()[:, 24:40]) > 0.8 > -0.8 > np.mean(record.slab()[:, :8])


def test_the_tables_of_the_page_are_those_of_the_file(ising):
    rows = json.loads((BENCHMARKS / "results/ising.json").read_text())["rows"]
    page = (BENCHMARKS.parent / "docs/ising.md").read_text()
    for table in ising.tables(rows):
        assert len(table.splitlines()) > 3
        assert f"<!-- numbers: benchmarks/results/ising.json -->\n{table}\n\n" in page

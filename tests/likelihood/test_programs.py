"""Models are built once, programs are compiled once, and the device is asked for each call."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from doublewell.adequacy import check_adequacies
from doublewell.law import Bernstein, named_law
from doublewell.likelihood import Batch, gauss_newton, measure_resolution, programs
from doublewell.likelihood import model as models
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

START = np.array([[100.0]])


def movie(*, dx: float = 1 / 12, dt: float = 1e-3, q: float = 1.0, seed: int = 1) -> Record:
    start = initial_field("circle", (12, 12), dx, epsilon=0.15)
    clean = simulate(named_law("quartic"), start, dx=dx, dt=dt, frames=4, epsilon=0.1, q=q)
    return add_noise(clean, 0.02, seed=seed)


@pytest.fixture
def built(monkeypatch) -> Counter:
    """Count the models that are built, by what they are built from."""
    counts: Counter = Counter()
    build = models.record_model

    def counted(record, family, substeps, view, **variant):
        counts[(family, substeps, record.boundary, view.q_free, *sorted(variant.items(), key=str))] += 1
        return build(record, family, substeps, view, **variant)

    monkeypatch.setattr(models, "record_model", counted)
    return counts


def test_no_model_is_built_twice(built) -> None:
    record = movie()
    batch = Batch([record])
    fits = batch.fit(START, family=Bernstein(1))
    fits = batch.relinearise(fits, np.stack([fit.coefficients for fit in fits]))
    measure_resolution(fits)
    check_adequacies(fits)
    assert set(built.values()) == {1}
    assert len(built) == 5  # that of the fit, half the step, finer mesh, the other boundary, a free q with terms


def test_new_numbers_compile_nothing(caplog) -> None:
    import jax

    def fit(**numbers: float) -> None:
        (fit,) = Batch([movie(**numbers)]).fit(START, substeps=2)
        assert fit.status.converged

    fit()
    compiled = []
    with jax.log_compiles(), caplog.at_level("WARNING"):
        fit(q=1.3, dt=0.8e-3, seed=2)
        fit(dx=1 / 11, seed=3)
        compiled = [entry.getMessage() for entry in caplog.records if "Compiling" in entry.getMessage()]
        assert not compiled
        Batch([movie()]).fit(START, substeps=3)
        compiled = [entry.getMessage() for entry in caplog.records if "Compiling" in entry.getMessage()]
    assert compiled  # the count sees a compilation


def test_the_device_is_asked_for_each_call(monkeypatch) -> None:
    """A first fit on the CPU must not leave later ones on a GPU with one solve at a time."""
    asked = []
    make = programs._compiled.__wrapped__
    monkeypatch.setattr(programs, "_compiled", lambda gpu: asked.append(gpu) or make(gpu))
    for device in (False, True, False):
        monkeypatch.setattr(programs, "on_gpu", lambda device=device: device)
        programs.compiled()
    assert asked == [False, True, False]


@pytest.mark.parametrize("scale", [0.0, 1e-7, 1.0])
def test_a_basis_of_long_rows_is_orthonormal_to_round_off(scale) -> None:
    x = np.linspace(-1.0, 1.0, 30_000)
    rows = np.stack([1.0 + 0.0 * x, x, x + scale * np.sin(9.0 * x), 0.0 * x])
    kept = rows.copy()
    q, r = gauss_newton.orthonormal(rows)
    np.testing.assert_array_equal(rows, kept)
    np.testing.assert_allclose(r.T @ q, rows, atol=1e-13)
    there = [0, 1, 2] if scale else [0, 1]
    np.testing.assert_allclose(q[there] @ q[there].T, np.eye(len(there)), atol=1e-10)


def test_rows_that_are_nothing_have_no_triangle() -> None:
    q, r = gauss_newton.orthonormal(np.zeros((3, 1000)))
    assert not q.any()
    assert not r.any()

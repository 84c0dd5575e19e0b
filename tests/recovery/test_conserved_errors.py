"""Errors of a law from a window of a Cahn-Hilliard movie: its border imitates the law, and R must not count that."""

from __future__ import annotations

import numpy as np

from doublewell.dynamics import CAHN_HILLIARD
from doublewell.law import Mixture, named_law
from doublewell.likelihood import Batch
from doublewell.likelihood.programs import Programs, compiled
from doublewell.record import Record
from doublewell.simulate import simulate

CELLS, EPSILON = 24, 3.0
FAMILY = Mixture(1, (-2.0, 2.0))
TRUTH = FAMILY.fitted(named_law("quartic").effective(EPSILON).continued().force)


def window() -> Record:
    """A part of 24 x 24 cells of a spinodal pattern, in units of the range of the family."""
    k = 2 * np.pi * np.hypot(*np.meshgrid(np.fft.fftfreq(40), np.fft.rfftfreq(40), indexing="ij"))
    modes = np.fft.rfft2(np.random.default_rng(3).standard_normal((40, 40))) * np.exp(-((EPSILON * k) ** 2))
    start = np.fft.irfft2(modes)
    start *= 0.5 / np.std(start)
    options = {"dx": 1.0, "dt": 16.0, "frames": 12, "epsilon": EPSILON, "q": 1.0, "dynamics": "cahn-hilliard"}
    movie = simulate(named_law("quartic"), start, solver="etdrk4", substeps=8, **options).slab()
    return Record(movie[:, :CELLS, :CELLS] / FAMILY.half, dx=1.0, dt=16.0, q=1.0, boundary="open")


def test_unfinished_solves_do_not_count_the_border_as_the_law() -> None:
    """R of the solver's tolerance against that of exact solves: in no direction more than a twentieth too large."""
    record, roots = window(), []
    model, constants = Batch([record], CAHN_HILLIARD).model(FAMILY.placed((-1.0, 1.0)), 2)
    fields = model.nuisance_of(record.slab()[None], constants)[0]
    at = fields[None], TRUTH[None], record.slab()[None], constants
    for code, options in ((compiled(), {}), (Programs(gpu=False, most=3000), {"tolerance": 1e-5, "exact": True})):
        roots.append(np.asarray(code.sensitivity(model, *at, **options).triangle)[0])
    ratios = np.linalg.svd(roots[0] @ np.linalg.inv(roots[1]), compute_uv=False)
    assert np.all(ratios < 1.05)
    assert np.all(ratios > 0.999)

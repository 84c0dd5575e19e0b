"""The lower bound of positive coefficients where the record leaves some of them open."""

from __future__ import annotations

import itertools

import numpy as np

from doublewell.evidence import Block, Evidence, Key
from doublewell.inference import average_degrees
from doublewell.law import Bernstein


def test_the_bound_does_not_follow_coefficients_that_the_record_leaves_open() -> None:
    """A record of small phase values: at degree 8 the unbounded fit is huge, and the constrained path still falls."""
    family = Bernstein(8)
    u = np.linspace(0.01, 0.25, 400)
    matrix = 10.0 * family.features(u).T
    target = matrix @ np.full(9, 100.0) + np.random.default_rng(3).standard_normal(400)
    root = np.linalg.qr(np.column_stack([matrix, np.zeros(400), target]), mode="r")
    evidence = Evidence(family, (Block(Key("r", "trajectory", "all"), root, 400),), kind="trajectory")
    path = average_degrees(evidence, 1.0, constraint="bernstein").path
    assert np.max(np.abs(path[-1].free)) > 1e11
    chi2 = [fit.chi2 for fit in path]
    assert all(later <= earlier + 1e-6 * (1 + earlier) for earlier, later in itertools.pairwise(chi2))

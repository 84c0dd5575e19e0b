from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from doublewell.estimate import approximation_floor
from doublewell.law import Law, named_law

PAPER = [("outside_cone", 2, 37.68), ("outside_cone", 5, 5.55), ("bernstein3", 2, 6.45), ("exponential", 2, 0.60)]


@pytest.mark.parametrize(("name", "degree", "percent"), [*PAPER, ("rational", 2, 0.44), ("sixth", 2, 0.0)])
def test_the_papers_floors(name: str, degree: int, percent: float) -> None:
    for nodes in (80, 160):
        assert 100 * approximation_floor(named_law(name), degree, nodes=nodes).error == pytest.approx(
            percent, abs=0.006
        )


def test_amplitude_does_not_matter() -> None:
    law = named_law("outside_cone")
    a, b = approximation_floor(law, 3), approximation_floor(law.scaled(7.0), 3)
    assert a.error == pytest.approx(b.error, rel=1e-10)
    assert np.allclose(7.0 * a.coefficients, b.coefficients)


def test_a_law_inside_the_cone_is_found() -> None:
    floor = approximation_floor(Law.bernstein([1.0, 2.0, 0.5]), 2)
    assert np.allclose(floor.coefficients, [1.0, 2.0, 0.5])
    assert floor.error < 1e-12


def test_floors_fall_with_the_degree() -> None:
    errors = [approximation_floor(named_law("exponential"), m).error for m in range(6)]
    assert all(b < a for a, b in pairwise(errors))

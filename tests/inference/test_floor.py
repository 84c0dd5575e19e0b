from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from doublewell.inference import approximation_floor
from doublewell.law import Law, named_law

PAPER = [("outside_cone", 2, 37.68), ("outside_cone", 5, 5.55), ("bernstein3", 2, 6.45), ("exponential", 2, 0.60)]


@pytest.mark.parametrize(("name", "degree", "percent"), [*PAPER, ("rational", 2, 0.44), ("sixth", 2, 0.0)])
def test_the_papers_floors(name: str, degree: int, percent: float) -> None:
    for nodes in (80, 160):
        floor = approximation_floor(named_law(name), degree, constraint="bernstein", nodes=nodes)
        assert 100 * floor.error == pytest.approx(percent, abs=0.006)


@pytest.mark.parametrize(("degree", "percent"), [(2, 37.68), (3, None), (5, 5.55), (8, None)])
def test_a_double_well_outside_the_cone_has_no_floor_in_the_exact_class(degree: int, percent: float | None) -> None:
    law = named_law("outside_cone")
    cone = 100 * approximation_floor(law, degree, constraint="bernstein").error
    assert percent is None or cone == pytest.approx(percent, abs=0.006)
    assert approximation_floor(law, degree).error < 1e-12 < cone
    assert Law.bernstein(approximation_floor(law, degree).coefficients).structure.ok


def test_floors_fall_with_the_size_of_the_class() -> None:
    for degree in range(1, 9):
        law = Law.from_force(lambda u: -u * (1 - u**2) * (1.2 + np.cos(7 * u**2)), name="waves")
        free, exact, cone = (
            approximation_floor(law, degree, constraint=c).error for c in ("none", "admissible", "bernstein")
        )
        assert free <= exact + 1e-12
        assert exact <= cone + 1e-6


def test_amplitude_does_not_matter() -> None:
    law = named_law("outside_cone")
    a, b = (approximation_floor(one, 3, constraint="bernstein") for one in (law, law.scaled(7.0)))
    assert a.error == pytest.approx(b.error, rel=1e-10)
    assert np.allclose(7.0 * a.coefficients, b.coefficients)


def test_a_law_inside_the_cone_is_found() -> None:
    floor = approximation_floor(Law.bernstein([1.0, 2.0, 0.5]), 2)
    assert np.allclose(floor.coefficients, [1.0, 2.0, 0.5])
    assert floor.error < 1e-12


def test_floors_fall_with_the_degree() -> None:
    errors = [approximation_floor(named_law("exponential"), m).error for m in range(6)]
    assert all(b < a for a, b in pairwise(errors))

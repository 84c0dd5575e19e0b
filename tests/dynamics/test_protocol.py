"""Dynamics are values: names, symbols, rates, and programs that a new number does not compile again."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from doublewell.dynamics import (
    ALLEN_CAHN,
    AllenCahn,
    Dynamics,
    Grid,
    dynamics_of,
    fastest_rate,
    steps_per_frame,
    symbols,
)
from doublewell.errors import InputError


def test_a_member_is_a_hashable_value() -> None:
    assert dynamics_of("allen-cahn") is ALLEN_CAHN
    assert dynamics_of(AllenCahn()) == ALLEN_CAHN
    assert hash(AllenCahn()) == hash(ALLEN_CAHN)
    assert isinstance(ALLEN_CAHN, Dynamics)


@pytest.mark.parametrize("name", ["cahn", 3, None, AllenCahn])
def test_a_name_that_is_not_known_is_refused(name) -> None:
    with pytest.raises(InputError, match=r"dynamics is .*: expected one of 'allen-cahn', .* 'auto' for a fit, or"):
        dynamics_of(name)


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_symbols_of_allen_cahn_are_the_laplacian_and_one(boundary) -> None:
    grid = Grid((6, 5, 4), (0.1, 0.2, 0.3), boundary)
    linear, coupling = symbols(ALLEN_CAHN, grid.waves)
    assert np.array_equal(linear, grid.laplacian)
    assert coupling == 1.0


def test_the_fastest_rate_is_that_of_the_force() -> None:
    grid = Grid((6, 5), 0.1)
    assert fastest_rate(ALLEN_CAHN, grid.waves, 7.0) == 7.0
    assert fastest_rate(ALLEN_CAHN, grid.waves, 0.0) == 0.0
    assert steps_per_frame(7.0, 0.1, 0.5) == 2
    assert steps_per_frame(0.0, 0.1, 0.5) == 1


def test_the_weak_form_of_allen_cahn() -> None:
    force, rate, target = ALLEN_CAHN.weak_form
    assert (force.name, force.source, force.time, force.space) == ("force", "features", 0, 0)
    assert (rate.time, rate.space, target.time, target.space) == (1, 0, 0, 1)
    assert not any(column.centred for column in ALLEN_CAHN.weak_form)


def test_jax_is_not_imported_with_the_package() -> None:
    code = "import sys, doublewell.dynamics; print([m for m in ('jax', 'scipy', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@dataclass(frozen=True)
class Incomplete:
    name: str = "incomplete"


def test_a_value_without_the_methods_is_not_a_dynamics() -> None:
    with pytest.raises(InputError, match="dynamics is Incomplete"):
        dynamics_of(Incomplete())

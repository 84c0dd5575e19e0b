"""Other methods on conserved fields: their equations, what they cannot read, and a comparison that knows the gauge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from doublewell.baselines import (
    Analytic,
    Baseline,
    BaselineFit,
    DirectFD4,
    PySindy,
    SmoothedFD4,
    Stac,
    Wsindy,
    compare,
    missing,
)
from doublewell.dynamics import CAHN_HILLIARD, MASS_CONSERVING
from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.report.style import render
from doublewell.simulate import add_noise, simulate

EPSILON, LAW = 2.5, named_law("quartic")
U = np.linspace(-0.95, 0.95, 191)
EQUATIONS = {CAHN_HILLIARD: 6.0, MASS_CONSERVING: 0.6}


def movie(dynamics, cells: int = 40, frames: int = 41):
    x, y = np.meshgrid(*[np.arange(cells) - cells / 2] * 2, indexing="ij")
    outline = 0.27 * cells * (1 + 0.3 * np.cos(4 * np.arctan2(y, x)))
    start = np.tanh((outline - np.hypot(x, y)) / (np.sqrt(2) * EPSILON))
    times = {"dx": 1.0, "dt": EQUATIONS[dynamics], "frames": frames}
    return simulate(LAW, start, **times, epsilon=EPSILON, dynamics=dynamics, substeps=100)


@pytest.fixture(scope="module", params=EQUATIONS, ids=lambda dynamics: dynamics.name)
def dynamics(request):
    return request.param


@pytest.fixture(scope="module")
def clean(dynamics):
    return movie(dynamics)


def error(force) -> float:
    """Relative, without the constant that has no effect."""
    true = LAW.effective(EPSILON).force(U)
    gap = force(U) - true
    return float(np.linalg.norm(gap - gap.mean()) / np.linalg.norm(true))


@pytest.mark.parametrize(
    ("method", "most"),
    [
        (Stac(), 0.01),
        (DirectFD4(), 0.01),
        (SmoothedFD4([(5, 6.0)]), 0.05),  # its narrowest filter widens the interface
        (PySindy("all", count=400, batch=200, models=0), 0.01),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_clean_movie_gives_its_law(method, most, dynamics, clean) -> None:
    if missing(method):
        pytest.skip(missing(method))
    assert error(replace(method, dynamics=dynamics).fit(clean).force) < most
    assert error(method.fit(clean).force) > 0.05  # as Allen-Cahn


def test_what_a_method_cannot_read_is_refused(dynamics, clean) -> None:
    for method in (Wsindy(dynamics=dynamics), Analytic(dynamics=dynamics)):
        if dynamics is MASS_CONSERVING:
            assert error(method.fit(clean).force) < 0.01
            continue
        with pytest.raises(InputError, match="fourth derivatives in space"):
            method.fit(clean)
    for method in (PySindy("masked", dynamics=dynamics), PySindy("all", "NNLS", dynamics=dynamics)):
        if not missing(method):
            with pytest.raises(InputError, match="those of .* are found: expected all rows and least squares"):
                method.fit(clean)


@dataclass(frozen=True)
class Other(Baseline):
    """A method that knows one equation."""

    name: str = "other"

    def fit(self, record, *, seed: int = 0) -> BaselineFit:
        raise AssertionError


def test_a_comparison_knows_the_equation_and_its_gauge() -> None:
    record = add_noise(movie(CAHN_HILLIARD, cells=28, frames=15), 0.005, seed=1)
    result = identify(record, dynamics="cahn-hilliard", law=0, check=False)
    methods = [Stac(supports=[(2, 5.0)], degree=0), DirectFD4(), Other()]
    found = compare(record, result=result, methods=methods)
    ours, stac, differences = found.rows
    assert (ours.distance, ours.deviations) == (0.0, 0.0)
    assert 0.8 < ours.residual < 1.05
    assert stac.distance < 0.1
    assert stac.residual < 1.5
    assert differences.distance > 0.2  # fourth derivatives of noise
    assert found.left_out == (("other", "reads the Allen-Cahn equation only, and this is cahn-hilliard"),)
    assert "Methods on the same record" in str(found)
    assert render(found.figure(), "png")
    with pytest.raises(InputError, match="the result is of cahn-hilliard, and dynamics is 'allen-cahn'"):
        compare(record, result=result, dynamics="allen-cahn")

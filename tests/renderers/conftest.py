"""Results of every kind, made without a trajectory fit: their posteriors are put in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from doublewell.adequacy import Adequacy, ScoreTest, Spot, Verdict
from doublewell.calibrate import SurfaceTension, Temperature, calibrate, refusal_of, thermal_scale
from doublewell.evidence import JointParameters
from doublewell.identify import identify
from doublewell.inference import Component, DegreeFit, Posterior
from doublewell.law import Law, named_law
from doublewell.likelihood import Convergence, Status
from doublewell.options import DoubleWell, Observation, Trajectory
from doublewell.problem import family_of
from doublewell.record import Record
from doublewell.result import Agreement, FitQuality, Likelihood, Result, Tiling
from doublewell.simulate import add_noise, initial_field, simulate

TENSION = SurfaceTension(0.9, 0.02)
CAPILLARY = (780.0, 700.0, 870.0)  # tension over kT and its interval
WEIGHTS = (0.05, 0.05, 0.1, 0.1, 0.65, 0.05)  # of the degrees 0 to 5: degree 4 is the heaviest
SKEWED = Law.wells([-70.0, -60.0, 60.0, 150.0])  # its maximum is not in the middle
NAMES = ("q", "advection", "boundary", "tilt", "gain", "gain drift", "offset", "blur", "white in t", "white in y",
         "white in x", "tails", "outliers", "cells")  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A result with the record that it is of."""

    result: Result
    record: Record


def equal_depths() -> Law:
    """Return G = -(1 - s^2) (100 s + 60 (s^2 - 1/5)): equally deep wells that differ, a maximum beside the middle."""
    family, s = family_of("equal", 1), np.linspace(-1.0, 1.0, 101)
    force = -(1 - s**2) * (100 * s + 60 * (s**2 - 0.2))
    law = Law(family, np.linalg.lstsq(family.features(s).T, force, rcond=None)[0])
    np.testing.assert_allclose(law.force(s), force, atol=1e-9)
    assert law.tilt == 0.0
    assert abs(law.maximum) > 0.05
    return law


def posterior_of(law: Law, top: int, error: float = 0.01, constraint: str = "admissible") -> Posterior:
    """Return an average over degrees around one law; every degree that can hold it does."""
    family = law.family.at(top)
    path, parts = [], []
    for degree, weight in enumerate(WEIGHTS[: top + 1]):
        own = law.family.at(degree)
        g = law.projected(own)
        covariance = np.diag((error * (np.abs(g) + 0.1 * np.max(np.abs(g)))) ** 2)
        path.append(DegreeFit(degree, 10.0 / (1 + degree), weight, g, g, covariance, ()))
        if degree >= law.family.degree:
            parts.append(Component(degree, None, None, weight, g, g, covariance))
    total = sum(part.weight for part in parts)
    kept = tuple(replace(part, weight=part.weight / total) for part in parts)
    return Posterior(family, tuple(path), kept, np.zeros((2, family.size)), constraint)


def scores(**changed: dict) -> tuple[ScoreTest, ...]:
    """Return tests that find nothing, but for those given."""
    plain = {"statistic": 0.5, "p": 0.6, "adjusted": 1.0, "estimate": (0.01,), "error": (0.02,), "shift": 0.1,
             "effect": 0.01}  # fmt: skip
    tests = []
    for name in NAMES:
        numbers = dict(plain, degrees=1)
        if name == "advection":
            numbers |= {"degrees": 2, "estimate": (0.01, 0.02), "error": (0.02, 0.02)}
        if name.startswith("white") or name in ("tails", "outliers", "cells"):
            numbers["shift"] = numbers["effect"] = None
        if name == "cells":
            numbers |= {"spots": (Spot((3, 4), 0.001, 0.002),), "total": 1024}
        tests.append(ScoreTest(name=name, **(numbers | changed.get(name, {}))))
    return tuple(tests)


GOOD = Adequacy(scores(), Verdict.ADEQUATE, 0.03)
BAD = Adequacy(
    scores(q={"statistic": 9.0, "p": 1e-18, "adjusted": 1e-17, "estimate": (0.05,), "error": (0.004,), "shift": 3.0,
              "drop": 81.0, "effect": 0.05}),
    Verdict.NOT_ADEQUATE, 0.03, 0.9, 0.02,
)  # fmt: skip


def likelihood(record: Record, adequacy: Adequacy | None, **changed: object) -> Likelihood:
    frames, *mesh = record.shape
    boundary = record.boundary or "open"
    rest = np.random.default_rng(1).standard_normal(mesh)
    numbers = {
        "dx": record.dx, "boundary": boundary, "noise": 0.02, "status": Status(Convergence.CONVERGED, 0.01, 3),
        "time_size": 0.01, "mesh_size": 0.02, "distance": 0.1, "constraint_rise": 0.3,
        "adequacy": adequacy, "steps": (), "substeps": 2, "rounds": 1, "extra_structure": 0.0, "segments": 1,
        "residual_map": rest, "residual_frames": np.full(frames, 0.02),
    }  # fmt: skip
    return Likelihood(**(numbers | changed))


@pytest.fixture(scope="session")
def base() -> Kind:
    """A weak-form fit of 15 frames of 32 x 32."""
    start = initial_field("nonconvex", (32, 32), 1 / 32, epsilon=0.1)
    movie = simulate(named_law("sixth"), start, dx=1 / 32, dt=5e-4, frames=15, epsilon=0.1)
    record = add_noise(movie, 0.02, seed=5)
    return Kind(identify(record, TENSION, method="weak"), record)


@pytest.fixture(scope="session")
def make(base):
    """Return a trajectory result with another law: wells, phases, boundary, q, tension and fit as they are given.

    With theta it is one of a movie with thermal noise and flat interfaces.
    """

    def build(law, *, wells="symmetric", phases=(-1.0, 1.0), tension=TENSION, boundary=None, q=1.0, top=5,
              adequacy=GOOD, units=(None, None), agreements=(), theta=None, temperature=None, **changed):  # fmt: skip
        law = law.placed(phases)
        posterior = posterior_of(law, top)
        whole = Law(posterior.family, law.projected(posterior.family))
        low, high = phases
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        record = Record(
            middle + half * base.record.slab(), dx=base.record.dx, times=base.record.times, q=q, boundary=boundary,
            length_unit=units[0], time_unit=units[1],
        )  # fmt: skip
        found = {"q": 1.02} if q is None else {} if theta is None else {"theta": theta}
        if found:
            (name,), (value,), size = found, found.values(), posterior.family.size
            joint = JointParameters(
                (name,), np.array([value]), np.zeros((1, size)), np.array([[100.0 / value]]), whole.coefficients
            )
            posterior = replace(posterior, joint=joint)
        seen = base.result.diagnostics.survey
        seen = replace(seen, noise=half * seen.noise, low=middle + half * seen.low, high=middle + half * seen.high,
                       change=half * seen.change)  # fmt: skip
        fit = likelihood(record, adequacy, **changed)
        numbers = replace(
            base.result.diagnostics, unconstrained=whole.coefficients, active=(), contacts=(), bound=None, kkt=None,
            survey=seen, supports=(), likelihood=fit, capillary=theta and CAPILLARY,
        )  # fmt: skip
        info = replace(
            base.result.problem.records[0], q=q, boundary=boundary, length_unit=units[0], time_unit=units[1],
            checksum=None,
        )  # fmt: skip
        problem = replace(
            base.result.problem, law=DoubleWell(wells=wells), method=Trajectory(), tension=tension,
            observation=Observation(phases=phases), records=(info,), temperature=temperature,
            dynamics=base.result.problem.dynamics.changed(thermal=theta is not None),
        )  # fmt: skip
        resolved = replace(base.result.resolved, phases=phases, boundary=boundary or "open", q=1.02 if q is None else q)
        resolved = replace(resolved, theta=theta)
        scale = None if tension is None or refusal_of(whole) is not None else calibrate(whole, tension)
        if tension is None and temperature is not None:
            scale = thermal_scale(whole, temperature, theta, 2, units[0])
        return Kind(
            Result(whole, scale, numbers, problem, resolved, posterior=posterior, agreements=agreements), record
        )

    return build


@pytest.fixture(scope="session")
def kinds(base, make) -> dict[str, Kind]:
    """A result of every kind."""
    sixth = Law.bernstein([75.0, 150.0])
    skewed = equal_depths()
    other = FitQuality(
        dx=base.record.dx, boundary="periodic", noise=0.02, status=Status(Convergence.MOST_STEPS, 3.0, 20),
        time_size=0.0, mesh_size=0.0, distance=0.0, constraint_rise=0.0, adequacy=None,
    )  # fmt: skip
    agreements = (Agreement("record 1", 2.0, 3, 0.6, 1.0, True), Agreement("record 2", 90.0, 3, 1e-19, 1e-18, False))
    tiles = Tiling((15, 16, 16), 3, 1, (), ("tile 2 (frames 0 to 14, y 0 to 15, x 16 to 31), stopped",), 1)
    parts = tuple(Agreement(f"tile {k} (frames 0 to 14)", 2.0, 3, 0.6, 1.0, True) for k in (1, 2, 3))
    odd = Law.bernstein([-300.0, 50.0, 80.0])  # H dips below the wells
    return {
        "symmetric": make(sixth, boundary="periodic"),
        "units": make(sixth, tension=SurfaceTension(0.9, 0.02, unit="J/m^2"), units=("um", "s"), boundary="neumann"),
        "no tension": make(sixth, tension=None),
        "exact tension": make(sixth, tension=SurfaceTension(0.9)),
        "equal": make(skewed, wells="equal"),
        "unequal": make(SKEWED, wells="unequal"),
        "other phases": make(sixth, phases=(0.0, 1.0)),
        "equal, other phases": make(skewed, wells="equal", phases=(0.2, 1.4)),
        "window": make(sixth, boundary=None),
        "unknown q": make(sixth, q=None),
        "several movies": make(sixth, agreements=agreements, others=(other,)),
        "tiles": make(sixth, tiles=tiles, agreements=parts),
        "untested": make(sixth, adequacy=None),
        "not adequate": make(sixth, adequacy=BAD),
        "thermal noise": make(
            sixth, tension=None, theta=0.01, temperature=Temperature.of("300 K +- 3 K, 50 nm"), units=("um", "s")
        ),
        "thermal noise and tension": make(
            sixth, tension=SurfaceTension(820.0, 10.0), theta=0.01, temperature=Temperature(1.0)
        ),
        "thermal noise without temperature": make(sixth, tension=None, theta=0.01, units=("um", "s")),
        "weak": base,
        "stopped": stopped(make(sixth, adequacy=None), 6),
        "stopped before a fit": stopped(base, 1),
        "failed calibration": base_law(base, odd),
    }  # fmt: skip


def stopped(kind: Kind, step: int) -> Kind:
    """Return what there was when the time was over: a fit without its resolution, or the weak-form fit."""
    result, fit = kind.result, kind.result.diagnostics.likelihood
    if fit is not None:
        fit = replace(fit, time_size=np.nan, mesh_size=np.nan)
    problem = replace(result.problem, method=Trajectory(), check=True)
    resolved, numbers = replace(result.resolved, stopped=step), replace(result.diagnostics, likelihood=fit)
    return Kind(replace(result, problem=problem, resolved=resolved, diagnostics=numbers), kind.record)


def base_law(base: Kind, law: Law) -> Kind:
    """Return a weak-form result with another law, which no surface tension can scale."""
    assert refusal_of(law) is not None
    numbers = replace(base.result.diagnostics, unconstrained=law.coefficients, active=(), contacts=(), bound=None)
    problem = replace(base.result.problem, law=DoubleWell(degree=law.family.degree, constraint="none"))
    return Kind(replace(base.result, law=law, scale=None, diagnostics=numbers, problem=problem), base.record)

"""The py-pde and FiPy texts are run, each library in its own process, and meet the trajectory of our own solver."""

import subprocess
import sys
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from doublewell.dynamics import (
    AllenCahn,
    Anisotropy,
    CahnHilliard,
    Cnab2,
    Driving,
    Grid,
    MassConserving,
    Mobility,
    dynamics_of,
)
from doublewell.export import export
from doublewell.law import Law
from doublewell.simulate import initial_field, rollout, simulate

DRIVER = """
import os, runpy, sys
import numpy as np

folder = sys.argv[1]
for name in sys.argv[2:]:
    place = os.path.join(folder, name)
    sys.argv = ["law.py", place + "_first.npy", "6", place + "_out.npy"]
    runpy.run_path(place + ".py", run_name="__main__")
"""
LAW = Law.bernstein([90.0, 60.0, 160.0, 120.0])  # none of the named ones
CASES = {
    "plane": ((48, 80), (1 / 60, 1 / 80), "periodic"),
    "walls": ((60, 40), (1 / 60, 1 / 60), "neumann"),
    "line": ((200,), (1 / 100,), "neumann"),
}


CONSERVED = {
    "cahn-hilliard": {
        "plane": ((32, 40), (0.35, 0.3), "periodic"),
        "walls": ((18, 15), (0.35, 0.4), "neumann"),
        "line": ((40,), (0.25,), "neumann"),
    },
    "mass-conserving": {
        "plane": ((40, 48), (0.25, 0.22), "periodic"),
        "walls": ((24, 20), (0.25, 0.3), "neumann"),
    },
}
PACKAGES = [("py-pde", "pde"), ("fipy", "fipy")]


def field_errors(fields, ours):
    """Largest over the frames: error over the field, and error over how far the field has moved since the start."""
    error = np.sqrt(np.mean((fields - ours) ** 2, axis=tuple(range(1, ours.ndim))))
    size = np.sqrt(np.mean(ours**2, axis=tuple(range(1, ours.ndim))))
    moved = np.sqrt(np.mean((ours - ours[0]) ** 2, axis=tuple(range(1, ours.ndim))))
    return np.max(error / size), np.max(error[1:] / moved[1:])


def run(folder, cases):
    """Run the scripts of a folder from their first fields and return the fields of each case."""
    (folder / "driver.py").write_text(DRIVER)
    command = [sys.executable, "driver.py", ".", *cases]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("6 frames of") == len(cases)
    return {case: np.load(folder / f"{case}_out.npy") for case in cases}


@pytest.mark.parametrize(("name", "package"), PACKAGES)
def test_the_script_reproduces_our_own_solver(name, package, make, tmp_path):
    if find_spec(package) is None:
        pytest.skip(f"{name} is not installed")
    ours = {}
    for case, (cells, dx, boundary) in CASES.items():
        first = initial_field("circle", cells, dx, epsilon=0.08, boundary=boundary)
        physics = {"dx": dx, "dt": 8e-4, "q": 0.8, "boundary": boundary}
        ours[case] = simulate(LAW, first, frames=6, substeps=40, **physics).slab()
        result = make(LAW, shape=(6, *cells), dx=dx, dt=8e-4, q=0.8, boundary=boundary)
        (tmp_path / f"{case}.py").write_text(export(result, name))
        np.save(tmp_path / f"{case}_first.npy", first)
    for case, fields in run(tmp_path, CASES).items():
        of_field, of_motion = field_errors(fields, ours[case])
        assert of_field < 0.001, case
        assert of_motion < 0.01, case


def waves(cells, dx, boundary):
    """A smooth field from -0.95 to 0.85, beyond both coexisting phases of the mixture."""
    grid = Grid(cells, dx, boundary)
    turns = 2.0 * np.pi if boundary == "periodic" else np.pi
    lines = [np.cos(turns * x / length) for x, length in zip(grid.points, grid.extent, strict=True)]
    return -0.05 + 0.9 / len(cells) * sum(np.meshgrid(*lines, indexing="ij"))


@pytest.mark.parametrize(("name", "package"), PACKAGES)
def test_the_script_of_an_ideal_mixture_reproduces_our_own_solver(name, package, conserved, ideal, tmp_path):
    if find_spec(package) is None:
        pytest.skip(f"{name} is not installed")
    cells, dx, boundary = CONSERVED["cahn-hilliard"]["line"]
    first, physics = 0.47 + 0.4 * waves(cells, dx, boundary), {"dx": dx, "dt": 0.05, "q": 0.8, "boundary": boundary}
    assert first.min() < ideal.phases[0]
    ours = simulate(ideal, first, frames=6, substeps=200, dynamics="cahn-hilliard", **physics).slab()
    (tmp_path / "line.py").write_text(export(conserved(law=ideal, shape=(6, *cells), **physics), name))
    np.save(tmp_path / "line_first.npy", first)
    fields = run(tmp_path, ["line"])["line"]
    assert field_errors(fields, ours)[1] < 0.01
    assert np.ptp(fields.mean(axis=1)) < 1e-12


@pytest.mark.parametrize("dynamics", CONSERVED)
@pytest.mark.parametrize(("name", "package"), PACKAGES)
def test_the_script_of_a_conserved_field_reproduces_our_own_solver(
    name, package, dynamics, conserved, mixture, tmp_path
):
    if find_spec(package) is None:
        pytest.skip(f"{name} is not installed")
    ours = {}
    for case, (cells, dx, boundary) in CONSERVED[dynamics].items():
        first, physics = waves(cells, dx, boundary), {"dx": dx, "dt": 0.2, "q": 0.8, "boundary": boundary}
        assert first.min() < mixture.phases[0] < mixture.phases[1] < first.max()
        ours[case] = simulate(mixture, first, frames=6, substeps=200, dynamics=dynamics, **physics).slab()
        (tmp_path / f"{case}.py").write_text(export(conserved(dynamics, shape=(6, *cells), **physics), name))
        np.save(tmp_path / f"{case}_first.npy", first)
    for case, fields in run(tmp_path, ours).items():
        assert field_errors(fields, ours[case])[1] < 0.01, case
        assert np.ptp(fields.reshape(6, -1).mean(axis=1)) < 1e-12, case


def push(t):
    return 20.0 * np.cos(2.0 * np.pi * np.asarray(t) / 3e-3)


ALONG, RATE = Anisotropy(1.8, 30.0), Mobility.of(lambda u: 1.0 + 0.5 * u)
H = Driving.of(push, np.linspace(0.0, 4e-3, 6))
PARTS = {
    "all": (AllenCahn(anisotropy=ALONG, mobility=RATE, driving=H), (48, 60), 1 / 60, "periodic"),
    "walls": (AllenCahn(anisotropy=Anisotropy(1.8, 90.0), mobility=RATE), (40, 30), 1 / 40, "neumann"),
    "fluxes": (CahnHilliard(anisotropy=ALONG, flux=Anisotropy(1.6, 110.0)), (32, 40), 0.3, "periodic"),
    "mean": (MassConserving(anisotropy=ALONG), (40, 48), 0.25, "periodic"),
}


@pytest.mark.parametrize(("name", "package"), PACKAGES)
def test_the_script_of_an_equation_with_parts_reproduces_our_own_solver(
    name, package, make, conserved, mixture, tmp_path
):
    """Within 1 % of the motion; a script that lacks any one part is more than 5 % off."""
    if find_spec(package) is None:
        pytest.skip(f"{name} is not installed")
    ours = {}
    for case, (dynamics, cells, dx, boundary) in PARTS.items():
        kept = dynamics.gauge == "constant"
        physics = {"dx": (dx, dx), "dt": 0.2 if kept else 8e-4, "q": 0.8, "boundary": boundary}
        law, first = mixture, waves(cells, (dx, dx), boundary)
        result = conserved(dynamics, shape=(6, *cells), **physics)
        if not kept:
            law, first = LAW, initial_field("circle", cells, dx, epsilon=0.08, boundary=boundary)
            result = make(LAW, dynamics=dynamics, shape=(6, *cells), **physics)
        run_of = partial(simulate, law, first, frames=6, substeps=40, solver="etdrk4", **physics)
        ours[case] = run_of(dynamics=dynamics).slab()
        for part, value in vars(dynamics).items():
            if value not in (None, False):
                assert field_errors(run_of(dynamics=dynamics.changed(**{part: None})).slab(), ours[case])[1] > 0.05
        (tmp_path / f"{case}.py").write_text(export(result, name))
        np.save(tmp_path / f"{case}_first.npy", first)
    for case, fields in run(tmp_path, ours).items():
        assert field_errors(fields, ours[case])[1] < 0.01, case


def test_the_measure_sees_a_wrong_law():
    cells, dx, boundary = CASES["plane"]
    first = initial_field("circle", cells, dx, epsilon=0.08, boundary=boundary)
    physics = {"dx": dx, "dt": 8e-4, "q": 0.8, "boundary": boundary, "frames": 6, "substeps": 40}
    right, wrong = (simulate(law, first, **physics).slab() for law in (LAW, LAW.scaled(1.03)))
    assert field_errors(wrong, right)[1] > 0.01


def test_the_measure_sees_a_force_that_is_linear_beyond_the_coexisting_phases(mixture):
    class Linear(Law):
        def force(self, u):
            x = np.clip(u, *self.phases)
            return super().force(x) + np.where(u < x, *self.well_curvatures) * (u - x)

    case = CONSERVED["cahn-hilliard"]["line"]
    laws = (mixture, Linear(mixture.family, mixture.coefficients))
    stepper = Cnab2(Grid(*case), 0.2, 0.8, 200, dynamics_of("cahn-hilliard"))
    right, wrong = (rollout(stepper, law, waves(*case), frames=6) for law in laws)
    assert field_errors(wrong, right)[1] > 0.01

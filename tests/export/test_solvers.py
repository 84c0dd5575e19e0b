"""The py-pde and FiPy texts are run, each library in its own process, and meet the trajectory of our own solver."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from doublewell.export import export
from doublewell.law import Law
from doublewell.simulate import initial_field, simulate

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


def field_errors(fields, ours):
    """Largest over the frames: error over the field, and error over how far the field has moved since the start."""
    error = np.sqrt(np.mean((fields - ours) ** 2, axis=tuple(range(1, ours.ndim))))
    size = np.sqrt(np.mean(ours**2, axis=tuple(range(1, ours.ndim))))
    moved = np.sqrt(np.mean((ours - ours[0]) ** 2, axis=tuple(range(1, ours.ndim))))
    return np.max(error / size), np.max(error[1:] / moved[1:])


@pytest.mark.parametrize(("name", "package"), [("py-pde", "pde"), ("fipy", "fipy")])
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
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, "driver.py", ".", *CASES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("6 frames of") == len(CASES)
    for case, wanted in ours.items():
        of_field, of_motion = field_errors(np.load(tmp_path / f"{case}_out.npy"), wanted)
        assert of_field < 0.001, case
        assert of_motion < 0.01, case


def test_the_measure_sees_a_wrong_law():
    cells, dx, boundary = CASES["plane"]
    first = initial_field("circle", cells, dx, epsilon=0.08, boundary=boundary)
    physics = {"dx": dx, "dt": 8e-4, "q": 0.8, "boundary": boundary, "frames": 6, "substeps": 40}
    right, wrong = (simulate(law, first, **physics).slab() for law in (LAW, LAW.scaled(1.03)))
    assert field_errors(wrong, right)[1] > 0.01

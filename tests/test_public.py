"""The public face: its names, what an import costs, and that the examples in the docstrings are true."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import doublewell

NAMES = {
    "AllenCahn", "Anisotropy", "CahnHilliard", "Compute", "DoubleWell", "Driving", "MassConserving", "Mobility",
    "Trajectory", "Weak",
    "LAW_NAMES", "Bernstein", "Experiment", "InputError", "Interrupted", "Law", "Mixing", "Observation", "Record",
    "Result", "SurfaceTension", "Temperature", "__version__",
    "add_noise", "bounds", "calibrate", "capillary", "compare", "estimate", "export", "facts", "findings",
    "identify", "identify_many", "initial_field",
    "load_result", "lower", "merge", "named_law", "open_record", "phase_from_intensity", "physical", "plan", "save",
    "simulate", "survey", "validate", "weak_evidence", "write_page",
}  # fmt: skip
_PINNED = ("xarray", "dask", "units", "netcdf", "tiff", "baselines")  # extras whose oldest versions are tested
HEAVY = ("numpy", "jax", "numba", "scipy", "xarray", "dask", "zarr", "h5py", "tifffile", "matplotlib")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(doublewell.__path__, "doublewell.")
    if not module.name.endswith("__main__")
)


def test_public_names() -> None:
    assert set(doublewell.__all__) == NAMES
    assert all(getattr(doublewell, name) is not None for name in NAMES)
    assert set(dir(doublewell)) == NAMES


def test_names_for_type_checkers_are_the_public_ones() -> None:
    tree = ast.parse(Path(doublewell.__file__).read_text(encoding="utf-8"))
    block = next(part for part in tree.body if isinstance(part, ast.If))
    typed = {(line.module, name.asname) for line in block.body for name in line.names}
    lazy = {(f"doublewell.{module}", name) for name, module in doublewell._HOME.items()}
    assert typed == lazy | {("doublewell", "bounds")}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'identfy'"):
        doublewell.identfy  # noqa: B018


def test_a_function_is_not_replaced_by_the_module_of_its_name() -> None:
    code = (
        "import doublewell.identify.identify, doublewell.plan.planning, doublewell as dw; print(dw.identify, dw.plan)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("<function") == 2


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, doublewell; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


ALONE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "zarr", "matplotlib", "cyclopts", "rich", "xarray", "dask"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import numpy as np
from doublewell.likelihood import Batch
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

start = initial_field("circle", (24, 24), 1 / 24, epsilon=0.1)
movie = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=13, epsilon=0.1)
print(Batch([add_noise(movie, 0.02, seed=1)]).fit(np.array([[60.0, 90.0, 130.0]]))[0].status.converged)
"""


def test_the_trajectory_reader_needs_numpy_scipy_and_jax_alone() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_module_says_what_it_is() -> None:
    for name in MODULES:
        assert importlib.import_module(name).__doc__, name


def test_minimum_versions_are_the_declared_ones() -> None:
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = dict(
        re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=(.*)", line).groups()
        for line in [*project["dependencies"], *(f for name in _PINNED for f in extras[name])]
    )
    lines = (root / "constraints-minimum.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert set(declared) <= set(pinned)
    for name, least in declared.items():
        parts = [int(part) for part in pinned[name].split(".")]
        wanted = [int(part) for part in least.split(".")]
        assert parts == wanted + [0] * (len(parts) - len(wanted)), name

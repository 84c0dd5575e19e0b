"""The public face: its names, what an import costs, and that the examples in the docstrings are true."""

from __future__ import annotations

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
    "LAW_NAMES", "Bernstein", "InputError", "Law", "Record", "Result", "SurfaceTension",
    "add_noise", "bounds", "calibrate", "estimate", "identify", "initial_field", "load_result", "lower", "merge",
    "named_law", "open_record", "save", "simulate", "survey", "validate", "weak_evidence",
}  # fmt: skip
HEAVY = ("jax", "numba", "scipy.optimize", "xarray", "dask", "zarr", "matplotlib")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(doublewell.__path__, "doublewell.")
    if not module.name.endswith("__main__")
)


def test_public_names() -> None:
    assert set(doublewell.__all__) == NAMES
    assert all(getattr(doublewell, name) is not None for name in NAMES)


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, doublewell; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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
        for line in [*project["dependencies"], *extras["xarray"], *extras["dask"]]
    )
    lines = (root / "constraints-minimum.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert set(declared) <= set(pinned)
    for name, least in declared.items():
        parts = [int(part) for part in pinned[name].split(".")]
        wanted = [int(part) for part in least.split(".")]
        assert parts == wanted + [0] * (len(parts) - len(wanted)), name

"""What is shipped works outside the repository: the wheel in an empty environment runs the demo and reads a folder."""

from __future__ import annotations

import json
import tarfile
import tomllib
from zipfile import ZipFile

import pytest
from installed import ROOT, Installed

from doublewell.version import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    return Installed(tmp_path_factory.mktemp("shipped"))


def test_wheel_and_source_hold_the_package_and_nothing_else(installed) -> None:
    here = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/doublewell").rglob("*") if path.is_file()}
    wanted = {name for name in here if "__pycache__" not in name}
    with ZipFile(installed.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == wanted
    with tarfile.open(installed.source) as source:
        files = {member.name.partition("/")[2] for member in source.getmembers() if member.isfile()}
    around = files - {f"src/{name}" for name in wanted}
    assert around <= {
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        ".gitignore",
    }
    assert {"LICENSE", "README.md", "CITATION.cff", "PKG-INFO"} <= around


def test_the_core_needs_no_extra_and_its_parts_fit_together(installed) -> None:
    code = "import doublewell, sys; print(doublewell.__version__, doublewell.__file__, 'jax' in sys.modules)"
    version, place, heavy = installed.run("python", "-c", code).split()
    assert (version, heavy) == (__version__, "False")
    assert place.startswith(str(installed.folder))
    listed = json.loads(installed.run("python", "-m", "pip", "list", "--format", "json"))
    names = {item["name"].lower().replace("-", "_") for item in listed}
    extras = {
        "tifffile",
        "xarray",
        "pandas",
        "dask",
        "distributed",
        "pint",
        "pysindy",
        "h5netcdf",
        "starlette",
        "sympy",
    }
    assert not names & extras
    assert {line.partition(">")[0] for line in PROJECT["dependencies"]} <= names
    assert "No broken requirements found" in installed.run("python", "-m", "pip", "check")
    assert json.loads(installed.run("doublewell", "doctor", "--no-fit", "--json"))["missing"] == []


def test_the_demo_runs_from_it(installed) -> None:
    found = json.loads(installed.run("doublewell", "demo", "--out", "demo", "--json"))
    assert found["force_error"] < 0.02
    assert abs(found["epsilon_error"]) < 0.01
    names = {path.name for path in (installed.folder / "demo").iterdir()}
    assert {"report.html", "record.npz", "result.json", "law.png", "fields.svg"} <= names


def test_a_folder_of_movies_is_read_by_it(installed) -> None:
    for seed in ("1", "2"):
        name = f"m{seed}.npz"
        words = ("--mesh", "24x24", "--frames", "9", "--epsilon", "0.1", "--dt", "5e-4", "--noise", "0.02")
        installed.run("doublewell", "simulate", name, "--law", "sixth", "--seed", seed, *words)
    words = ("--method", "weak", "--out", "results", "--json")
    found = json.loads(installed.run("doublewell", "identify", "m1.npz", "m2.npz", *words))
    assert [row["error"] for row in found["movies"]] == ["", ""]
    assert (installed.folder / "results/index.html").exists()

"""What the core install takes on disk, dependency by dependency: the wheel in an empty environment.

Run: python benchmarks/install_size.py
The package is installed with constraints.txt, without extras, into a new environment. Of each direct dependency the
files of its own are counted, and those of the packages that nothing else brings; what several bring is counted apart.
Compiled .pyc files are left out. With --tiny the environment at hand is measured.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from common import RESULTS, ROOT, TINY, machine, markdown, print_table, renewed, write_json
from packaging.requirements import Requirement

HOST = "doublewell"
PAGE = ROOT / "docs/install.md"
WHY = {
    "jax": "the trajectory fit: compiled forward runs with their linearisations and adjoints, on CPU and GPU",
    "numba": "the weak-form fit: one pass over the movie in compiled loops, on all cores",
    "scipy": "transforms, special functions of the tests, NNLS, MATLAB and netCDF 3 files",
    "matplotlib": "every figure, in files and in the page",
    "numpy": "arrays",
    "zarr": "records that are larger than memory; also OME-Zarr",
    "h5py": "HDF5, netCDF 4, MATLAB 7.3 and Exodus files; from 3.16 on, whose HDF5 does not crash on damaged files",
    "clarabel": "the cone program where rounding defeats the fast way to hold a law in its class",
    "cyclopts": "the command line: one flag for each field of an option value, without code per option",
    "rich": "progress bars in the terminal",
    "shared by several": "",
    HOST: "",
}


def measured(name: str) -> dict:
    """Return version, bytes and requirements of an installed package."""
    found = distribution(name)
    files = [Path(str(found.locate_file(file))) for file in found.files or () if file.suffix != ".pyc"]
    size = sum(file.stat().st_size for file in files if file.is_file())
    needs = [Requirement(text) for text in found.requires or ()]
    wanted = [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return {"version": found.version, "bytes": size, "needs": [plain(each) for each in wanted]}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str, known: dict[str, dict]) -> set[str]:
    """Return a package and all that it needs; packages are measured on the way."""
    todo, reached = [name], set()
    while todo:
        each = todo.pop()
        if each not in reached:
            reached.add(each)
            known.setdefault(each, measured(each))
            todo += known[each]["needs"]
    return reached


def table(content: dict) -> str:
    """Return the table of the page."""
    lines = [["package", "MB", "brings along", "what for"]]
    for row in content["rows"]:
        lines.append([row["package"], f"{row['MB']:g}", ", ".join(row["brings"]), WHY[row["package"]]])
    return markdown([*lines, ["all", f"{content['MB']:g}", f"{content['packages']} packages", ""]])


def measure() -> dict:
    known: dict[str, dict] = {}
    everything = closure(HOST, known)
    direct = sorted(known[HOST]["needs"])
    brought = {name: closure(name, known) for name in direct}
    rows, counted = [], {HOST}
    for name in direct:
        others = set().union(*(brought[other] for other in direct if other != name), direct)
        only = brought[name] - others | {name}
        counted |= only
        size = sum(known[each]["bytes"] for each in only)
        rows.append(
            {"package": name, "version": known[name]["version"], "MB": mega(size), "brings": sorted(only - {name})}
        )
    rows.sort(key=lambda row: -row["MB"])
    shared = sorted(everything - counted)
    rows.append({"package": "shared by several", "version": "", "MB": mega(known, shared), "brings": shared})
    rows.append({"package": HOST, "version": known[HOST]["version"], "MB": mega(known, [HOST]), "brings": []})
    return {"packages": len(everything), "MB": mega(known, everything), "rows": rows}


def mega(size, names=None) -> float:
    return round((size if names is None else sum(size[name]["bytes"] for name in names)) / 1e6, 1)


def main() -> None:
    if "--here" in sys.argv or TINY:
        content = measure()
    else:
        with TemporaryDirectory() as name:
            python = Path(name) / "bin/python"
            subprocess.run([sys.executable, "-m", "venv", name], check=True)
            quiet = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
            subprocess.run([*quiet, ROOT], check=True)
            words = [python, Path(__file__).resolve(), "--here"]
            content = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    if "--here" in sys.argv:
        print(json.dumps(content))
        return
    print_table(f"{content['packages']} packages, {content['MB']:g} MB", content["rows"])
    write_json(RESULTS / "install_size.json", {"machine": machine(), **content})
    if not TINY:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(renewed(page, "benchmarks/results/install_size.json", table(content)), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Size and shape of the package beside the targets of its redesign: `python benchmarks/architecture.py [--json]`.

Files and lines; the modules, functions and module-to-module calls that one warm trajectory fit runs through, and those
of the command from a TIFF movie to the page; models that one fit builds twice; tests of the type or name of a family, a
dynamics or a method outside its own package; heavy libraries that `import doublewell` loads. `--list` names the tests,
`--json` stores the figures. Those of 0.1 (commit 49be2f4) are this script's, with that version on PYTHONPATH.
"""

from __future__ import annotations

import ast
import hashlib
import pickle
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from statistics import median

import doublewell

ROOT = Path(doublewell.__file__).parent
PAPER = ROOT.parents[1] / "paper" / "src"
STORED = Path(__file__).parent / "results" / "architecture.json"
HEAVY = ("jax", "numba", "scipy", "matplotlib")
# figure: (0.1, target); a figure is ok where it is not above its target
TARGETS: dict[str, tuple[float, float | None]] = {
    "files": (353, 150),
    "lines": (37923, 28500),  # 27,000 for what 0.1 could do; contrast, few frames, cameras and diagnosis came since
    "files over 500 lines": (0, 0),
    "median lines of a file": (94, None),
    "files in paper/": (0, None),
    "lines in paper/": (0, None),
    "fit: modules": (73, 35),
    "fit: functions": (593, 400),
    "fit: module-to-module edges": (179, 100),
    "fit: models built": (12, None),
    "fit: most times one model is built": (7, 1),
    "TIFF to page: modules": (127, 65),
    "TIFF to page: functions": (1102, None),
    "tests of a family": (30, 0),
    "tests of a dynamics": (0, 0),
    "tests of a method": (26, 0),
    "heavy libraries after import": (0, 0),
    "heavy libraries after --help": (0, 0),
}
# functions that build the static model of a record: (file, name), their arguments are the key
BUILDERS = {("likelihood/model.py", "record_model"), ("evidence/likelihood/setting.py", "record_model")}
METHODS = {"trajectory", "weak", "weak-corrected"}
DYNAMICS = {"allen-cahn", "cahn-hilliard"}
OWN = {"family": ("law/",), "dynamics": ("dynamics/",), "method": ("options.py",)}


def main() -> None:
    figures: dict[str, float] = {**sizes(), **traced(), **tests_of_kind(), **imports()}
    width = max(map(len, TARGETS))
    print(f"{'':{width}}  {'now':>7}  {'0.1':>7}  {'target':>7}")
    for name, (before, target) in TARGETS.items():
        verdict = "" if target is None else "ok" if figures[name] <= target else "miss"
        print(f"{name:{width}}  {figures[name]:>7g}  {before:>7g}  {'' if target is None else target:>7}  {verdict}")
    if "--json" in sys.argv[1:]:
        from common import machine, write_json

        rows = [
            {"figure": name, "0.1": before, "target": target, "now": figures[name]}
            for name, (before, target) in TARGETS.items()
        ]
        write_json(STORED, {"machine": machine(), "commit of 0.1": "49be2f4", "rows": rows})
        print(f"wrote {STORED}")


def sizes() -> dict[str, float]:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.rglob("*.py")}
    paper = [len(path.read_text(encoding="utf-8").splitlines()) for path in PAPER.rglob("*.py")]
    for path, count in lines.items():
        if count > 500:
            print(f"  {path.relative_to(ROOT)} has {count} lines")
    return {
        "files": len(lines),
        "lines": sum(lines.values()),
        "files over 500 lines": sum(count > 500 for count in lines.values()),
        "median lines of a file": median(lines.values()),
        "files in paper/": len(paper),
        "lines in paper/": sum(paper),
    }


@dataclass
class Trace:
    """What of the package a call runs through; the caller of a function is the nearest one of the package."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    edges: set[tuple[str, str]] = field(default_factory=set)
    models: Counter[str] = field(default_factory=Counter)

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.functions}

    def run(self, call: Callable[[], object]) -> Trace:
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self

    def _event(self, frame, event: str, _: object) -> None:
        if event != "call" or (module := _module(frame)) is None or frame.f_code.co_name == "<module>":
            return
        self.functions.add((module, frame.f_code.co_qualname))
        caller = frame.f_back
        while caller is not None and _module(caller) is None:
            caller = caller.f_back
        if caller is not None and (origin := _module(caller)) != module:
            self.edges.add((str(origin), module))
        if (module, frame.f_code.co_name) in BUILDERS:
            self.models[_key(frame)] += 1


def _module(frame) -> str | None:
    """The file of a frame in the package; None outside, and for the bodies of modules and classes."""
    name = frame.f_code.co_filename
    return name[len(str(ROOT)) + 1 :] if name.startswith(str(ROOT)) else None


def _key(frame) -> str:
    """A model's key: the arguments of its builder by value; of a record its shape and boundary, not its numbers."""
    count = frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount
    arguments = [frame.f_locals[name] for name in frame.f_code.co_varnames[:count]]
    static = []
    for part in arguments:
        record, terms = isinstance(part, doublewell.Record), isinstance(part, tuple)  # terms of an equation: functions
        static.append((part.shape, part.dx, part.boundary) if record else tuple(map(repr, part)) if terms else part)
    return hashlib.sha256(b"".join(pickle.dumps(part) for part in static)).hexdigest()


def traced() -> dict[str, float]:
    from doublewell.cli import main as command
    from doublewell.identify import identify
    from doublewell.law import named_law
    from doublewell.simulate import add_noise, initial_field, simulate

    law = named_law("quartic")
    start = initial_field("circle", (32, 32), 1 / 32, epsilon=0.08)
    movie = add_noise(simulate(law, start, dx=1 / 32, dt=4e-4, frames=25, epsilon=0.08), 0.02, seed=1)
    tension = law.surface_tension(epsilon=1.0)
    identify(movie, tension)
    fit = Trace().run(lambda: identify(movie, tension))
    with tempfile.TemporaryDirectory() as folder:
        import numpy as np
        import tifffile

        file = Path(folder) / "movie.tif"
        tifffile.imwrite(file, np.round(20000 + 12000 * movie.slab()).astype(np.uint16))
        words = ["identify", str(file), "--axes", "tyx", "--dx", str(1 / 32), "--dt", "4e-4", "--q", "1"]
        words += ["--boundary", "periodic", "--levels", "8000,32000", "--surface-tension", str(tension)]
        words += ["--report", str(Path(folder) / "report"), "--quiet"]
        with redirect_stdout(StringIO()):
            page = Trace().run(lambda: command(words))
        if not (Path(folder) / "report" / "report.html").exists():
            raise RuntimeError("the command wrote no page")
    return {
        "fit: modules": len(fit.modules),
        "fit: functions": len(fit.functions),
        "fit: module-to-module edges": len(fit.edges),
        "fit: models built": sum(fit.models.values()),
        "fit: most times one model is built": max(fit.models.values(), default=0),
        "TIFF to page: modules": len(page.modules),
        "TIFF to page: functions": len(page.functions),
    }


def tests_of_kind() -> dict[str, float]:
    """Count tests of the type or the name of a family, a dynamics or a method outside the package that owns it."""
    trees = {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}
    classes = {
        "family": _classes(trees, ("law/",), {"features"}, {"OfDegree"}),
        "dynamics": _classes(trees, ("dynamics/",), {"weak_form", "coupling"}, {"Dynamics"}),
        "method": {"Trajectory", "Weak", "Method"} if "options.py" in trees else set(),
    }
    counts = dict.fromkeys(classes, 0)
    for file, tree in trees.items():
        for kind, names in classes.items():
            if file.startswith(OWN[kind]):
                continue
            for node in ast.walk(tree):
                if _tests_type(node, names) or _tests_name(node, kind):
                    counts[kind] += 1
                    if "--list" in sys.argv[1:]:
                        print(f"  {kind}: {file}:{node.lineno}: {ast.unparse(node)[:100]}")
    return {f"tests of a {kind}": count for kind, count in counts.items()}


def _classes(trees: dict[str, ast.Module], own: tuple[str, ...], members: set[str], seeds: set[str]) -> set[str]:
    """The classes of a package that have one of the members, or a base that has."""
    nodes = [
        n for file, tree in trees.items() if file.startswith(own) for n in ast.walk(tree) if isinstance(n, ast.ClassDef)
    ]
    names = set(seeds)
    for _ in range(3):
        for node in nodes:
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            defined = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            if bases & names or defined & members or node.name.endswith("Family"):
                names.add(node.name)
    return names


def _tests_type(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        tested: ast.AST = node.args[1]
    elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
        tested = node
    elif isinstance(node, ast.MatchClass):
        tested = node.cls
    else:
        return False
    mentioned = {n.id for n in ast.walk(tested) if isinstance(n, ast.Name)}
    return bool((mentioned | {n.attr for n in ast.walk(tested) if isinstance(n, ast.Attribute)}) & names)


def _tests_name(node: ast.AST, kind: str) -> bool:
    """Whether a name is compared with a constant; families by their attribute `name`, for constraints share words."""
    if isinstance(node, ast.MatchValue):
        sides: list[ast.AST] = [node.value]
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    else:
        return False
    words = {
        n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }
    if kind == "family":
        owners = [ast.unparse(side.value) for side in sides if isinstance(side, ast.Attribute) and side.attr == "name"]
        return bool(words) and any("family" in owner for owner in owners)
    return bool(words & (METHODS if kind == "method" else DYNAMICS))


def imports() -> dict[str, float]:
    code = "import sys; {}; print(len([name for name in " + repr(HEAVY) + " if name in sys.modules]))"
    answers = {}
    for name, body in (
        ("import", "import doublewell"),
        ("--help", "from doublewell.cli import main; main(['--help'])"),
    ):
        done = subprocess.run([sys.executable, "-c", code.format(body)], capture_output=True, text=True, check=True)
        answers[f"heavy libraries after {name}"] = int(done.stdout.split()[-1])
    return answers


if __name__ == "__main__":
    main()

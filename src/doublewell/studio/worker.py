"""Workers: the only processes of the studio that open movies. One shows and inspects, one identifies.

    python -m doublewell.studio.worker look ROOT            requests and answers as lines of JSON on stdin and stdout
    python -m doublewell.studio.worker identify ROOT RUN    RUN/request.json in, all else of RUN out

They read files below ROOT and those of Python and its caches, whatever a file or a form names; the server watches their
time and memory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cyclopts import CycloptsError

from doublewell.atomic import Content, write_files
from doublewell.cli import explain
from doublewell.errors import InputError, Interrupted, as_word, shell_words
from doublewell.hints import STATED
from doublewell.studio.form import Question, form_fields, read
from doublewell.studio.places import inside, movies

if TYPE_CHECKING:
    from doublewell.record import Record
    from doublewell.result import Result

_SIDE = 320  # pixels of a picture along its longer side
_LEVELS = 65534  # of a picture's values; one more marks a missing value
_SURVEYED = 2**25  # values that are read to inspect a movie: some seconds
_PAUSE = 0.2  # seconds between two reports of progress
_POINTS = 4  # every fourth point of a curve is drawn
_SYSTEM = ("/dev/null", "/dev/urandom", "/proc", "/sys", "/usr", "/lib", "/lib64", "/Library", "/System")
_CACHES = ("DOUBLEWELL_CACHE", "NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR")
_RAW = ("var", "axes", "dx", "dt", "times", "length_unit", "time_unit")  # what is needed to show a file's own values
_EXPORTS = {
    "moose": "law.i", "py-pde": "law_pypde.py", "fipy": "law_fipy.py", "sympy": "law_sympy.py", "python": "law.py",
    "latex": "law.tex", "json": "law.json",
}  # fmt: skip
_WRONG = (InputError, CycloptsError, OSError, MemoryError)


def main() -> None:
    """Run a worker by its arguments."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a server in the background ignores it, and so would we
    task, root = sys.argv[1], Path(sys.argv[2])
    confine(root)
    with shell_words():
        if task == "look":
            look(root)
        else:
            run(root, Path(sys.argv[3]))


def confine(root: Path) -> None:
    """Refuse that any Python code opens a file elsewhere: a companion that a movie names, a path in a form.

    Readers in C refuse links out of their file themselves (docs/files.md).
    """
    caches = [os.environ.get(name) for name in _CACHES]
    own = [Path.home() / name for name in (".cache", ".config/matplotlib", ".fonts", ".local/share/fonts", "Library")]
    places = [root, *_SYSTEM, sys.prefix, sys.base_prefix, *sys.path, *caches, *own]
    allowed = tuple({os.path.realpath(place) for place in places if place})

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if event not in ("open", "os.listdir", "os.scandir") or not isinstance(given[0], str | bytes | os.PathLike):
            return
        place = os.path.realpath(os.fsdecode(given[0]))
        known = any(place == item or place.startswith(item.rstrip("/") + "/") for item in allowed)
        if not known or place.endswith("/environ"):
            raise PermissionError(1, "outside of the folder that the studio was started in", os.fsdecode(given[0]))

    sys.addaudithook(watch)


# --- look -------------------------------------------------------------------------------------------------------------


def look(root: Path) -> None:
    """Answer requests until the server is gone."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    tasks: dict[str, Callable[[Path, dict[str, Any]], dict[str, Any]]] = {
        "files": lambda root, _: {"files": movies(root)}, "inspect": inspect, "frame": frame,
        "fields": lambda *_: {"fields": [asdict(item) for item in form_fields()]},
    }  # fmt: skip
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = tasks[request["do"]](root, request)
        except _WRONG as error:
            answer = {"error": explain(error)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"an error of the program, {type(error).__name__}: {error}; details are in look.log"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def inspect(root: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Return what a file states, what a survey of it finds, and the question as a script and a command."""
    from doublewell.report import inspect_record

    path, words = inside(root, request["file"]), request["words"]
    question = read(path, words)
    answer: dict[str, Any] = {
        "python": question.python(),
        "command": question.command(),
        "sections": [],
        "findings": [],
    }
    try:
        record = question.open()
    except _WRONG as error:
        with suppress(*_WRONG):
            answer |= {"stated": _stated(*_raw(path, words, path.stat().st_mtime_ns))}
        return answer | {"error": explain(error)}
    answer |= {"stated": _stated(record), "record": repr(record)}
    if record.grey is not None:
        answer["sections"].append(["Grey values", str(record.grey).splitlines()])
    if prod(record.shape) > _SURVEYED:
        return answer | {"note": "The movie is too large for a survey while you type; identify makes it."}
    try:
        _check(record, question.asking)
    except _WRONG as error:
        answer["error"] = explain(error)
    found = inspect_record(record)
    answer["sections"] = [[title, list(lines)] for title, lines in found.sections(printed=False)] + answer["sections"]
    answer["findings"] = [{"severity": str(item.severity), "text": str(item)} for item in found.findings]
    return answer


def _check(record: Record, asking: Mapping[str, Any]) -> None:
    """Raise where identify would refuse the question before it begins."""
    from doublewell.problem import ask

    if asking["dynamics"] != "auto":
        rest = {name: asking[name] for name in ("dynamics", "law", "method", "observation", "check", "temperature")}
        ask([record], asking["surface_tension"], **rest)


def _stated(record: Record, unknown: Collection[str] = ()) -> dict[str, str]:
    """Return what is known of a movie as words of the form; steps that are `unknown` stand in for missing ones."""
    values: dict[str, Any] = {
        "dx": record.dx if len(set(record.dx)) > 1 else record.dx[0],
        ("dt" if record.uniform else "times"): record.dt if record.uniform else tuple(record.times.tolist()),
        "q": record.q, "boundary": record.boundary, "length_unit": record.length_unit, "time_unit": record.time_unit,
        "levels": None if record.grey is None else tuple(float(f"{x:.6g}") for x in record.grey.levels),
    }  # fmt: skip
    return {name: as_word(value) for name, value in values.items() if value is not None and name not in unknown}


@lru_cache(maxsize=2)
def _opened(path: Path, words: tuple[tuple[str, str], ...], changed: int) -> Record:  # noqa: ARG001
    return read(path, dict(words)).open()


def _raw(path: Path, words: Mapping[str, str], changed: int) -> tuple[Record, Collection[str]]:
    """Return a movie with the values as they lie in the file, and the names of steps that are not known: they are 1."""
    kept = {name: words[name] for name in _RAW if name in words} | {"levels": "-1,1"}
    reason: Exception | None = None
    for more in ({}, {"dt": "1"}, {"dx": "1"}, {"dx": "1", "dt": "1"}):
        try:
            return _opened(path, tuple((kept | more).items()), changed), more
        except InputError as error:
            reason = reason or error
    assert reason is not None
    raise reason


def frame(root: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Return a frame of a movie, thinned, as 16-bit values from `low` to `high`; of a volume its middle slice."""
    path = inside(root, request["file"])
    record, _ = _raw(path, request["words"], path.stat().st_mtime_ns)
    number = min(max(int(request["frame"]), 0), record.frames - 1)
    values = _picture(record, number)
    step = ceil(max(values.shape) / _SIDE)
    values = values[::step, ::step]
    finite = np.isfinite(values)
    low, high = _range(record)
    low, high = min(low, float(values[finite].min(initial=low))), max(high, float(values[finite].max(initial=high)))
    scaled = (np.where(finite, values, low) - low) * (_LEVELS / (high - low if high > low else 1.0))
    coded = np.where(finite, scaled.round(), _LEVELS + 1).astype("<u2")
    return {
        "frame": number, "frames": record.frames, "mesh": list(record.mesh), "shape": list(coded.shape), "step": step,
        "low": low, "high": high, "time": float(record.times[number]), "dx": list(record.dx[-2:]),
        "values": b64encode(coded.tobytes()).decode("ascii"),
    }  # fmt: skip


def _picture(record: Record, number: int) -> Any:
    """Return a frame as two axes; values that are no numbers are left to the reader of the picture."""
    field = np.asarray(record.values[number : number + 1], dtype=np.float64)[0]
    field = field[field.shape[0] // 2] if field.ndim == 3 else field
    return np.atleast_2d(field)


@lru_cache(maxsize=2)
def _range(record: Record) -> tuple[float, float]:
    """Return the least and the largest value of some frames, so that colours mean the same in all of them."""
    some = [_picture(record, k) for k in {0, record.frames // 2, record.frames - 1}]
    finite = np.concatenate([values[np.isfinite(values)] for values in some])
    low, high = float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf))
    return (low, high) if low <= high else (0.0, 1.0)


# --- identify ---------------------------------------------------------------------------------------------------------


def run(root: Path, folder: Path) -> None:
    """Identify, and leave all that there is to see in the folder; end.json is written last and tells how it went."""
    with suppress(FileExistsError), (folder / "pid.json").open("x") as claim:  # a run is made once, whoever starts it
        import psutil

        json.dump({"pid": os.getpid(), "started": psutil.Process().create_time()}, claim)
        claim.flush()
        try:
            state, message, contents = _identify(root, folder)
        except KeyboardInterrupt:
            state, message, contents = "stopped", "stopped before there was an answer", []
        except _WRONG as error:
            state, message, contents = "failed", explain(error), []
        _finish(folder, state, message, contents)


def _finish(folder: Path, state: str, message: str, contents: list[tuple[Path, Content]]) -> None:
    end = json.dumps({"state": state, "message": message, "ended": time.time()})
    write_files([*contents, (folder / "end.json", end.encode())])


def _identify(root: Path, folder: Path) -> tuple[str, str, list[tuple[Path, Content]]]:
    from doublewell.identify import identify

    request = json.loads((folder / "request.json").read_text("utf-8"))
    question = read(inside(root, request["file"]), request["words"])
    report = _Progress(folder)
    report("reading", 0, 0)
    record = question.open()
    if question.asking["method"].bands and question.asking["dynamics"] != "auto":
        _early(question, record, folder, report)
    state, message = "done", ""
    try:
        result = identify(record, **question.asking, progress=report)
    except Interrupted as reason:
        if reason.result is None:
            raise
        result, state, message = reason.result, "stopped", f"{reason}: the best answer so far"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left takes seconds
    report("writing", 0, 0)
    result = replace(result, problem=result.problem.of_file(question.movie.source(question.file)))
    return state, message, _contents(folder, question, result, record)


def _early(question: Question, record: Record, folder: Path, report: _Progress) -> None:
    """Write the answer of the weak-form fit, which takes a second, while the trajectory fit is on its way."""
    from doublewell.identify import identify

    report("weak-form fit", 0, 0)
    asked = {**question.asking, "method": "weak", "check": False, "temperature": None}
    try:
        result = identify(record, **asked)
    except InputError as error:
        report(f"no early answer: {error}", 0, STATED)
        return
    write_files([(folder / "early.json", _answer(result))])


def _contents(folder: Path, question: Question, result: Result, record: Record) -> list[tuple[Path, Content]]:
    """Return all files of a result."""
    from doublewell.export import export
    from doublewell.io.result_file import result_bytes
    from doublewell.report import page_html

    exports, refused = {}, {}
    for kind, name in _EXPORTS.items():
        try:
            exports[name] = export(result, kind).encode()  # type: ignore[arg-type]
        except InputError as error:
            refused[kind] = str(error)
    named = {kind: name for kind, name in _EXPORTS.items() if name in exports}
    files: dict[str, bytes] = {
        **exports, "result.json": result_bytes(result), "report.html": page_html(result, record).encode(),
        "facts.csv": facts_csv(result).encode(), "script.py": question.python().encode(),
        "answer.json": _answer(result, exports=named, refused=refused),
    }  # fmt: skip
    return [(folder / name, data) for name, data in files.items()]


def _answer(result: Result, **more: Any) -> bytes:
    """Return what the page shows of a result: facts, findings and curves."""
    from doublewell.curves import curves
    from doublewell.export.tables import result_dict
    from doublewell.facts import facts

    drawn = [
        {
            "symbol": curve.symbol, "name": curve.name, "unit": curve.unit,
            **{end: None if (line := getattr(curve, end)) is None else np.asarray(line)[::_POINTS].tolist()
               for end in ("u", "values", "low", "high")},
        }
        for curve in curves(result).named.values()
    ]  # fmt: skip
    table = facts(result)
    document = {**result_dict(result), "headline": table.headline, "motion": table.motion, "curves": drawn, **more}
    return json.dumps(document, default=str).encode()


def facts_csv(result: Result) -> str:
    """Return the facts as a table."""
    from doublewell.facts import facts
    from doublewell.report.overview import csv_text

    rows = []
    for key, fact in facts(result).numbers.items():
        low, high = fact.interval or (None, None)
        about = {"value": fact.value, "low": low, "high": high, "sd": fact.sd, "unit": fact.unit}
        rows.append({"key": key, "name": fact.name, "symbol": fact.symbol, **about, "note": fact.note or fact.why})
    return csv_text(rows)


class _Progress:
    """Writes what a fit reports to progress.json, which the server reads."""

    def __init__(self, folder: Path) -> None:
        self._path, self._stated, self._last = folder / "progress.json", list[str](), 0.0

    def __call__(self, words: str, done: int, total: int) -> None:
        if total == STATED:
            self._stated.append(words)
        elif time.monotonic() - self._last < _PAUSE and done not in (0, total):
            return
        self._last = time.monotonic()
        stage = {
            "stage": "" if total == STATED else words,
            "done": done,
            "total": max(total, 0),
            "stated": self._stated,
        }
        beside = self._path.with_suffix(".part")
        beside.write_text(json.dumps(stage | {"stated": self._stated}), "utf-8")
        beside.replace(self._path)


if __name__ == "__main__":
    main()

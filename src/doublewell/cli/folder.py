"""Whole folders: a law for each of many movies, in processes of their own; a run that was killed resumes.

What is on the disk is the state of a run: a movie is done where its folder holds a result of the same values, the same
problem and the same version. Options may stand in doublewell.toml beside the movies, which is data: names of options
and of conditions, and nothing that is run, written or connected to.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import CycloptsError

from doublewell.cli.identify import PAGE, RESULT, asked, identify
from doublewell.cli.options import Given, Movie, Output, about
from doublewell.errors import InputError, as_word, option, shell_words, shown
from doublewell.version import __version__

if TYPE_CHECKING:
    from doublewell.report.overview import Entry
    from doublewell.result import Result

_SETTINGS = "doublewell.toml"
_OVERVIEW, _SUMMARY = "index.html", "summary.csv"
_FAILED = 1  # exit code
_OF_ONE = ("figures", "report", "validate_from")  # flags of one movie
_ELSEWHERE = ("scheduler", "checkpoint")  # and those that connect or write
_ALLOWED = frozenset(
    {item.name for kind in (Movie, Given) for item in fields(kind)} - {"workers", *_ELSEWHERE}
    | {"surface_tension", "tension_sd", "normalisation", "temperature", "check", "dynamics"}
)
_Conditions = dict[str, str | float]


def identify_folder(files: Sequence[Path], out: Path, words: Sequence[str], output: Output) -> int:
    """Identify each movie, write results, pages and what compares them to a folder; return 1 where some failed."""
    from doublewell.atomic import write_files
    from doublewell.compute.run import each_alone
    from doublewell.report.overview import FAILED, Entry, overview_html, summary_csv, summary_rows
    from doublewell.runtime import cores

    _check(files, out, words)
    settings = {folder: _settings(folder, files) for folder in dict.fromkeys(file.parent for file in files)}
    movies = [(file, out / file.name, _arguments(file, words, settings[file.parent][0])) for file in files]
    questions = [_question(file, each) for file, _, each in movies]  # wrong options are refused before the first fit
    workers = questions[0]["compute"].workers
    entries: dict[int, Entry] = {}
    with output.bar() as bar, closing(each_alone(_one, movies, workers or cores())) as answers:
        output.fitting(bar)("identifying", 0, len(files))
        for number, answer in answers:
            file = files[number]
            known = answer if isinstance(answer, Entry) else Entry(file.name, error=_reason(answer, file))
            entries[number] = replace(known, conditions=settings[file.parent][1].get(file.name, {}))
            bar.show("identifying", len(entries), len(files))
        bar.show("drawing", 0, 0)
        ordered = [entries[number] for number in range(len(files))]
        with shell_words():
            page, table = overview_html(ordered), summary_csv(ordered)
    written = write_files([(out / _SUMMARY, table.encode("utf-8")), (out / _OVERVIEW, page.encode("utf-8"))])
    failed = [entry for entry in ordered if entry.verdict == FAILED]
    verdicts = [entry.verdict for entry in ordered]
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in dict.fromkeys(sorted(verdicts)))
    lines = [f"{len(files)} movies: {counts}", *(f"  {entry.name}: {entry.error}" for entry in failed)]
    lines += ["", "Written", *(f"  {path}" for path in written), f"  {out}/*/{RESULT}, {PAGE}"]
    output.answer("\n".join(lines), {"movies": summary_rows(ordered), "files": [str(path) for path in written]})
    return _FAILED if failed else 0


def _check(files: Sequence[Path], out: Path, words: Sequence[str]) -> None:
    """Refuse names that collide in the folder, and flags that are for one movie."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out is {out}, which is a file: expected a folder for several movies; choose another name")
    names = [file.name for file in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{len(files)} movies of which several are called {twice[0]}: expected different names")
    if taken := [name for name in names if name in (_OVERVIEW, _SUMMARY, "")]:
        raise InputError(f"a movie is called {taken[0]!r}, as is a file of the folder {out}: give it another name")
    for name in (*_OF_ONE, *_ELSEWHERE):
        if _is_given(name, words):
            raise InputError(
                f"{option(name)} is for one movie, and --out {out} is a folder for many: leave it out; every movie "
                f"gets its {RESULT} and its {PAGE} there"
            )


def _is_given(name: str, words: Sequence[str]) -> bool:
    flag = name.replace("_", "-")
    return any(word.partition("=")[0] in (f"--{flag}", f"--no-{flag}") for word in words)


def _reason(error: BaseException, file: Path) -> str:
    """Return why a movie has no result, in one line."""
    from concurrent.futures import BrokenExecutor

    if isinstance(error, BrokenExecutor):
        return "its process ended before it was done, perhaps for want of memory: run the same command again"
    expected = isinstance(error, InputError | OSError | MemoryError)
    text = " ".join((str(error) or type(error).__name__).split())
    return text.removeprefix(f"{file}: ") if expected else f"{type(error).__name__}: {text}"


# --- one movie, in a process of its own -------------------------------------------------------------------------------


def _one(file: Path, folder: Path, arguments: Mapping[str, Any]) -> Entry:
    """Identify a movie, unless its folder holds the answer; return what the overview shows of it."""
    from doublewell.io import load_result
    from doublewell.report.overview import Entry

    with shell_words():
        result = _stored(file, folder, arguments)
        if result is None:
            alone = replace(arguments["given"], workers=None)  # the movies are what the workers are for
            identify(file, report=folder, output=Output(quiet=True), **{**arguments, "given": alone})
            result = load_result(folder / RESULT)
        return Entry.of(file.name, f"{folder.name}/{PAGE}", result)


def _stored(file: Path, folder: Path, arguments: Mapping[str, Any]) -> Result | None:
    """Return the result in a folder where it is of this movie, this problem and this version."""
    from doublewell.io import load_result
    from doublewell.problem import RecordInfo, ask, observed_as
    from doublewell.record import checksum

    try:
        before = load_result(folder / RESULT)
    except InputError:  # none, damaged, or of another version
        return None
    if before.version != __version__ or before.resolved.stopped is not None or not (folder / PAGE).exists():
        return None
    question, record = _question(file, arguments), arguments["movie"].open(file)
    del question["compute"]
    tension, auto = question.pop("surface_tension"), question["dynamics"] == "auto"
    if auto != bool(before.rivals):
        return None
    known, problem = before.problem.records[0], ask(
        [record], tension, **question | ({"dynamics": before.problem.dynamics} if auto else {})
    )  # fmt: skip
    record = observed_as(record, problem)
    info = replace(RecordInfo.of(record, checksum(record, like=known.checksum)), source=arguments["movie"].source(file))
    same = replace(problem, records=(info,), values=before.problem.values) == before.problem
    return before if same else None


def _question(file: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``doublewell.identify`` of a movie."""
    with about(file):
        return asked(**arguments)


# --- doublewell.toml --------------------------------------------------------------------------------------------------


def _settings(folder: Path, files: Sequence[Path]) -> tuple[dict[str, Any], dict[str, _Conditions]]:
    """Return the options of doublewell.toml in a folder of movies, and the conditions of each movie by its name."""
    path = folder / _SETTINGS
    if not path.exists():
        return {}, {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML ({error}): expected lines such as dx = 0.5") from error
    own, conditions = table.pop("files", {}), table.pop("conditions", {})
    names = [file.name for file in files if file.parent == folder]
    _check_options(table, str(path))
    if not isinstance(own, dict) or not all(isinstance(each, dict) for each in own.values()):
        raise InputError(f'{path}: expected files as tables, [files."{names[0]}"] with options below')
    for name, each in own.items():
        _check_name(name, names, folder, f"{path}, files")
        _check_options(each, f"{path}, files, {name}")
    return table | {"files": own}, _conditions(conditions, names, folder)


def _check_options(table: Mapping[str, Any], where: str) -> None:
    """Refuse names that are no options of a movie, and values that are no words, numbers or lists of them."""
    for name, value in table.items():
        if name.replace("-", "_") in _ELSEWHERE or name in ("out", *_OF_ONE, "workers"):
            raise InputError(f"{where}: {name} belongs on the command line, not in a file beside the movies")
        if name.replace("-", "_") not in _ALLOWED:
            raise InputError(
                f"{where}: unknown option {shown(name)}: expected one of {', '.join(sorted(_ALLOWED))}, or the tables "
                "files and conditions"
            )
        if not all(isinstance(each, str | int | float) for each in (value if isinstance(value, list) else [value])):
            raise InputError(f"{where}: {name} is {shown(value)}: expected a text, a number, true, false or a list")


def _conditions(table: Any, names: Sequence[str], folder: Path) -> dict[str, _Conditions]:
    """Return the conditions of each movie: of a list in the order of the movies, of a table by their names."""
    made: dict[str, _Conditions] = {}
    path = folder / _SETTINGS
    if not isinstance(table, dict):
        raise InputError(f"{path}: conditions is {shown(table)}: expected a table, such as temperature = [300, 310]")
    for condition, given in table.items():
        where = f"{path}, conditions, {condition}"
        if isinstance(given, list) and len(given) != len(names):
            raise InputError(
                f"{where}: a list of {len(given)} for {len(names)} movies: expected one for each, in the order of the "
                'movies, or a table by name, such as {"movie1.tif" = 300}'
            )
        values = dict(zip(names, given, strict=True)) if isinstance(given, list) else given
        if not isinstance(values, dict):
            raise InputError(f"{where} is {shown(given)}: expected a list or a table of numbers or texts")
        for name, value in values.items():
            _check_name(name, names, folder, where)
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise InputError(f"{where}, {name} is {shown(value)}: expected a number or a text")
            made.setdefault(name, {})[condition] = value
    return made


def _check_name(name: str, names: Sequence[str], folder: Path, where: str) -> None:
    """Refuse the name of a movie that is not there; one that is not given this time may be named."""
    if name not in names and (Path(name).name != name or not (folder / name).exists()):
        raise InputError(f"{where}: no movie {shown(name)} in {folder}: expected the name of a file there")


def _arguments(file: Path, words: Sequence[str], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `identify` is called with for a movie: flags, then its own options, then those for all movies."""
    from doublewell.cli import explain, parse

    own = table.get("files", {}).get(file.name, {})
    pairs = [
        (name.replace("-", "_"), value) for each in (table, own) for name, value in each.items() if name != "files"
    ]
    added = [f"--{name.replace('_', '-')}={_word(x)}" for name, x in dict(pairs).items() if not _is_given(name, words)]
    try:
        _, bound = parse([*words, *added])
    except CycloptsError as error:
        raise InputError(f"{file.parent / _SETTINGS}: {explain(error)}") from error
    bound.apply_defaults()
    left_out = ("out", "output", "words", *_OF_ONE)
    return {name: value for name, value in bound.kwargs.items() if name not in left_out}


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return as_word(tuple(value) if isinstance(value, list) else value)

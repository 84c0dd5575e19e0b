"""The short commands: inspect, prepare, compare, export, demo, doctor."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from doublewell.cli.identify import check_folder, check_result, result_document
from doublewell.cli.options import Integer, Movie, Output, about, check_seed
from doublewell.errors import InputError
from doublewell.options import Observation

if TYPE_CHECKING:
    from doublewell.record import Record

_INCOMPLETE = 1  # exit code


def inspect(
    file: Path,
    /,
    *,
    phases: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-1,1",
    movie: Movie = Movie(),  # noqa: B008  frozen
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Describe what a movie offers: noise, phases, interface width, and what to check.

    Parameters
    ----------
    file
        The movie, in any format that docs/files.md lists; a folder or a pattern for one file per frame.
    phases
        Values of the pure phases in the file, as low,high, such as 0,1; estimated for where the values pile up.
    """
    from doublewell.io.result_file import encode
    from doublewell.observation import Survey
    from doublewell.report import inspect_record

    given = Observation.of(f"phases={phases}").phases
    with output.bar() as bar, about(file):
        record = movie.open(file)
        inspection = inspect_record(record, phases=given, progress=bar.stage("inspecting"))
    levels = "" if record.grey is None else "\n\nGrey values\n" + indent(str(record.grey), "  ")
    document = {
        "file": str(file),
        "grey_values": _grey_document(record),
        "record": record_document(inspection.record),
        "notes": [asdict(note) for note in record.notes],
        "phases": list(inspection.phases),
        "survey": encode(inspection.survey, Survey, "survey"),
        "coverage": inspection.survey.coverage,
        "interface_fraction": inspection.survey.interface_fraction,
        "supports": [[support.frames, support.length] for support in inspection.supports],
        "supports_refused": inspection.refusal,
        "findings": [asdict(finding) for finding in inspection.findings],
    }
    output.answer(f"{file}: {inspection}{levels}", document)


def prepare(
    file: Path,
    /,
    *,
    out: Path | None = None,
    figures: Path | None = None,
    movie: Movie = Movie(),  # noqa: B008  frozen
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Turn a camera movie into phase values: show what was found in it, and store the record with its mask.

    Parameters
    ----------
    file
        A movie of grey values: TIFF, or integers in any other format.
    out
        Write the prepared record to this .npz, .zarr or .nc file, which identify takes.
    figures
        Write prepared.png, .pdf and .svg to this folder: some frames of the phase values.
    """
    from doublewell.atomic import write_files
    from doublewell.io import save
    from doublewell.report.figures import fields_figure
    from doublewell.report.style import FORMATS, render

    check_folder(figures, "--figures")
    with output.bar() as bar, about(file):
        bar.stage("reading")
        record = movie.open(file)
        if record.grey is None:
            raise InputError("the movie holds phase values, not grey values: inspect and identify take it as it is")
        if out is not None:
            save(record, out)
        contents: list[tuple[Path, bytes]] = []
        if figures is not None:
            figure = fields_figure(record)
            contents = [(figures / f"prepared.{kind}", render(figure, kind)) for kind in FORMATS]
        paths = write_files(contents)
    written = [str(path) for path in (*([] if out is None else [out]), *paths)]
    lines = [f"{file}: {record}", indent(str(record.grey), "  "), *(f"wrote {name}" for name in written)]
    document = {"file": str(file), "record": record_document(record), "grey_values": _grey_document(record)}
    output.answer("\n".join(lines), document | {"files": written})


def _grey_document(record: Record) -> dict[str, Any] | None:
    from doublewell.record_findings import grey_findings

    grey = record.grey
    if grey is None:
        return None
    notes = [asdict(finding) for finding in grey_findings(grey)]
    found = [asdict(item) for item in grey.found]
    return {"levels": grey.levels, "sd": grey.levels_sd, "noise": grey.noise, "found": found, "findings": notes}


def record_document(record: Record) -> dict[str, Any]:
    """Return what a record states of itself."""
    names = ("q", "boundary", "length_unit", "time_unit", "origin")
    stated = {name: getattr(record, name) for name in names}
    return {"shape": list(record.shape), "dx": list(record.dx), "times": record.times.tolist(), **stated}


def compare(
    file: Path,
    /,
    *,
    methods: str | None = None,
    dynamics: str = "allen-cahn",
    seed: Integer = 0,
    out: Path | None = None,
    figures: Path | None = None,
    movie: Movie = Movie(),  # noqa: B008  frozen
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Run other methods on a movie and report how far they agree with ours; the true law need not be known.

    Parameters
    ----------
    file
        The movie, as for identify, with its diffusion coefficient.
    methods
        Names with commas between them, such as stac,smoothed-fd4,pysindy-ls-masked; all by default, slow ones only
        where there is a GPU. A method whose library is missing is listed with its reason.
    dynamics
        The equation of motion: allen-cahn, cahn-hilliard or mass-conserving.
    seed
        Of the methods that draw random numbers.
    out
        Write the numbers to this .json file.
    figures
        Write compare.png, .pdf and .svg to this folder: every force over our band.
    """
    from doublewell.atomic import write_files
    from doublewell.baselines import baseline
    from doublewell.baselines import compare as run
    from doublewell.dynamics import dynamics_of
    from doublewell.report.style import FORMATS, render

    check_result(out)
    check_folder(figures, "--figures")
    names = None if methods is None else [name for name in methods.split(",") if name.strip()]
    if names == []:
        raise InputError(f"--methods is {methods!r}: expected names with commas between, such as stac,smoothed-fd4")
    names, equation = names and [baseline(name).name for name in names], dynamics_of(dynamics)  # refused before reading
    check_seed(seed)
    with about(file):
        record = movie.open(file)
        with output.bar() as bar:
            show = output.fitting(bar)
            comparison = run(record, methods=names, dynamics=equation, seed=seed, progress=show)
            show("writing", 0, 0)
            contents: list[tuple[Path, bytes]] = []
            if out is not None:
                contents.append((out, (json.dumps(comparison.document(), indent=1, allow_nan=False) + "\n").encode()))
            if figures is not None:
                figure = comparison.figure()
                contents += [(figures / f"compare.{kind}", render(figure, kind)) for kind in FORMATS]
            files = write_files(contents)
    document = {"file": str(file), **comparison.document(), "files": [str(path) for path in files]}
    written = [f"wrote {path}" for path in files]
    output.answer("\n".join([str(comparison), *([""] if written else []), *written]), document)


def export(
    result: Path,
    format: Literal["moose", "py-pde", "fipy", "sympy", "latex", "python", "json"],
    /,
    *,
    out: Path | None = None,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Write an identified law as a text for another program, or as a page to read.

    Parameters
    ----------
    result
        A result that identify wrote with --out.
    format
        moose: an input file. py-pde, fipy: a script that evolves a field. sympy, python: the law as symbols or as NumPy
        functions. latex: a page to read, with errors. json: all numbers and a table with bands.
    out
        Write the text to this file instead of the screen.
    """
    from doublewell.atomic import replace_file
    from doublewell.export import export as write
    from doublewell.io import load_result

    text = write(load_result(result), format)
    if out is not None:
        with replace_file(out) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
    shown = text.rstrip("\n") if out is None else f"{out}: the law of {result} for {format}"
    document = {"result": str(result), "format": format, "file": None if out is None else str(out), "text": text}
    output.answer(shown, document)


def demo(
    *,
    out: Path = Path("demo"),
    seed: Integer = 1,
    law: str = "sixth",
    noise: float = 0.03,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Simulate a noisy movie, recover its law, compare with the truth, and write figures.

    Parameters
    ----------
    out
        Folder for the record, the result and the figures.
    seed
        Seed of the noise.
    law
        quartic, sixth, bernstein3, exponential, rational or outside_cone.
    noise
        Standard deviation of the noise of one pixel.
    """
    from doublewell.demo import run_demo
    from doublewell.errors import not_negative

    check_seed(seed)
    not_negative(noise, "--noise")
    with output.bar() as bar:
        done = run_demo(out, seed=seed, law=law, noise=noise, progress=output.fitting(bar))
    document = {
        "summary": done.summary,
        "law": done.truth.law.name,
        "true_epsilon": done.truth.epsilon,
        "force_error": done.truth.force_error(done.result),
        "epsilon_error": done.truth.epsilon_error(done.result),
        "weak_force_error": done.truth.force_error(done.weak),
        **result_document(done.result, done.validation),
        "files": [str(path) for path in done.files],
    }
    output.answer(str(done), document)


def doctor(
    *,
    fit: bool = True,
    output: Output = Output(),  # noqa: B008  frozen
) -> int:
    """Report which extras and devices are there, and time a small fit.

    Exit code 0: all that is needed is there. 1: a needed package is missing.

    Parameters
    ----------
    fit
        Time a small fit; --no-fit leaves it out.
    """
    from doublewell.doctor import examine

    with output.bar() as bar:
        diagnosis = examine(fit=fit, progress=bar.show)
    names = ("version", "python", "machine", "cores", "missing", "devices", "cache", "cache_bytes")
    document = {
        **{name: getattr(diagnosis, name) for name in names},
        "packages": dict(diagnosis.packages),
        "extras": {extra.name: {"ready": extra.ready, "packages": dict(extra.packages)} for extra in diagnosis.extras},
        "seconds": {timing.name: {"first": timing.first, "next": timing.next} for timing in diagnosis.timings},
    }
    output.answer(str(diagnosis), document)
    return _INCOMPLETE if diagnosis.missing else 0

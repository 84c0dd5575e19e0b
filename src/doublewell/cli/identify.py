"""The commands identify and repeat. All computing comes before all writing, and files are written together."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from cyclopts import Parameter

from doublewell.cli.options import ANSWER, TENSION, Given, Integer, Movie, Output, Switch, about, options_of
from doublewell.errors import InputError, Interrupted
from doublewell.hints import Report

if TYPE_CHECKING:
    from doublewell.record import Record
    from doublewell.result import Result
    from doublewell.validate import Validation

_WIDTH = 98
_DIFFERENT = 1  # exit code
_PAGE, _RESULT = "report.html", "result.json"
_Answer = Parameter(group=ANSWER)
_Tension = Parameter(group=TENSION, allow_leading_hyphen=True)


def identify(
    file: Path,
    /,
    *,
    out: Annotated[Path | None, _Answer] = None,
    figures: Annotated[Path | None, _Answer] = None,
    report: Annotated[Path | None, _Answer] = None,
    validate_from: Annotated[Integer | None, _Answer] = None,
    check: Annotated[bool, _Answer] = True,
    dynamics: Annotated[str, _Answer] = "allen-cahn",
    output: Output = Output(),  # noqa: B008  frozen
    surface_tension: Annotated[str | None, _Tension] = None,
    temperature: Annotated[str | None, _Tension] = None,
    tension_sd: Annotated[float | None, _Tension] = None,
    normalisation: Annotated[Literal["E", "eE"] | None, _Tension] = None,
    movie: Movie = Movie(),  # noqa: B008  frozen
    given: Given = Given(),  # noqa: B008  frozen
) -> None:
    """Recover the law that drives a movie, and with a surface tension also its scale.

    Parameters
    ----------
    file
        The movie: NumPy, zarr, HDF5, netCDF, MATLAB, TIFF, VTK or Exodus; a folder or a pattern for one file per frame.
    out
        Write the result to this .json file.
    figures
        Write figures (PNG, PDF and SVG) to this folder.
    report
        Write report.html, one page that opens offline, and the result to this folder.
    validate_from
        Evolve the recovered law from this frame to the last and report the field error.
    check
        Test the residual of a trajectory fit for model misspecification; --no-check saves about half the time.
    dynamics
        The equation of motion: allen-cahn, cahn-hilliard, mass-conserving, or auto, the one that explains the movie
        best; its parts in brackets, such as "allen-cahn(anisotropy=estimated, mobility=2, driving=force.txt)".
    surface_tension
        A surface tension measured by other means, a number or "0.3 J/m^2 +- 5 %" (a unit needs those of the movie);
        with wells=ideal also temperature and site volume, "300 K, 0.02 nm^3". Without it epsilon and F are not
        determined.
    temperature
        Read the movie as one with thermal noise, whose size gives the scale: "300 K", of a film "300 K, 50 nm" with its
        thickness, or 1 for energies in kT.
    tension_sd
        Standard deviation of the surface tension.
    normalisation
        E (the default): tension of the energy with (epsilon/2) |grad u|^2 + F/epsilon. eE: of epsilon times it.
    """
    from doublewell.identify import identify as fit
    from doublewell.validate import validate

    question = asked(surface_tension, tension_sd, normalisation, temperature, dynamics, check, movie, given)
    check_result(out)
    check_folder(figures, "--figures")
    check_folder(report, "--report")
    with about(file):
        record = movie.open(file)
    if validate_from is not None and record.boundary in (None, "open"):
        raise InputError(f"{file} has no boundary, which --validate-from needs: pass --boundary periodic or neumann")
    if validate_from is not None and not 0 <= validate_from < record.frames - 1:
        raise InputError(
            f"--validate-from is {validate_from}: expected a frame from 0 to {record.frames - 2} of {file}"
        )
    with output.bar() as bar:
        with about(file):
            bar.stage("reading and compiling, which takes a minute the first time")
            show = output.fitting(bar) if question["method"].bands else bar.show
            given_up: Interrupted | None = None
            try:
                result = fit(record, **question, progress=show)
            except Interrupted as reason:
                if reason.result is None:
                    raise
                if out is None:
                    raise Interrupted(f"{reason}; give --out to keep the best answer so far", reason.result) from None
                given_up, result, validate_from, figures, report = reason, reason.result, None, None, None
            result = replace(result, problem=result.problem.of_file(movie.source(file)))
            validation = None
            if validate_from is not None:
                validation = validate(result, record, start=validate_from, progress=bar.stage("evolving"))
        files = _write(result, record, validation, out, figures, report, progress=bar.show)
    if given_up is not None:
        raise Interrupted(f"{given_up}; the best answer so far is in {out}", result)
    document = {"file": str(file), **result_document(result, validation), "files": [str(path) for path in files]}
    output.answer(_text(result, validation, files), document)


def asked(
    surface_tension: str | None, tension_sd: float | None, normalisation: Literal["E", "eE"] | None,
    temperature: str | None, dynamics: str, check: bool, movie: Movie, given: Given,
) -> dict[str, Any]:  # fmt: skip
    """Return what the flags ask, as arguments of ``dw.identify``."""
    from doublewell.calibrate import Temperature

    return {
        "surface_tension": _tension(surface_tension, tension_sd, normalisation),
        **options_of(given, movie.drift),
        "dynamics": dynamics,
        "check": check,
        "temperature": None if temperature is None else Temperature.of(temperature),
    }


def repeat(
    result: Path,
    data: Path | None = None,
    /,
    *,
    any_data: Switch = False,
    out: Path | None = None,
    output: Output = Output(),  # noqa: B008  frozen
) -> int:
    """Do an identification again as its result states it, and report whether the numbers are the same.

    Exit code 0: the same to round-off. 1: different. The values of the movie must be those of the result, by checksum.

    Parameters
    ----------
    result
        A result that identify wrote, .json.
    data
        The movie; without it the file that the result names.
    any_data
        Use the movie although its values are others, or the result knows no checksum.
    out
        Write the new result to this .json file.
    """
    from doublewell.identify import repeat as again
    from doublewell.io import load_result, open_record, save

    check_result(out)
    before = load_result(result)
    known, file = before.problem.records[0], data
    if file is None:  # as it was given, or of the same name beside the result
        if known.source is None:
            raise InputError(
                f"{result} does not name the file of its movie: give it, as in doublewell repeat RESULT MOVIE"
            )
        given = Path(known.source.path)
        beside = result.parent / given.name
        file = given if given.exists() or not beside.exists() else beside
    with output.bar() as bar, about(file):
        if known.source is None:  # a result from Python has no options of then, so its own metadata serve
            record = open_record(file, dx=known.dx, dt=known.dt, q=known.q, boundary=known.boundary)
        else:
            record = Movie.of(known.source).open(file)
        bar.stage("compiling and reading")
        done = again(before, record, any_data=any_data, progress=bar.show)
    if out is not None:
        save(done.again, out)
    document = {
        "file": str(file),
        "same": done.comparison.same,
        "data": done.data,
        "checksum": done.again.problem.records[0].checksum,
        "version_before": done.before.version,
        "version": done.again.version,
        "fields": done.comparison.fields,
        "equal_to_the_last_bit": done.comparison.equal,
        "largest_difference": done.comparison.largest,
        "differences": [asdict(item) for item in done.comparison.differences],
    }
    output.answer(f"{file}\n{done}", document)
    return 0 if done.comparison.same else _DIFFERENT


def check_result(path: Path | None) -> None:
    """Refuse a name that no result can be saved under."""
    if path is None:
        return
    if path.suffix.lower() != ".json" or path.is_dir():
        raise InputError(f"--out is {path}: expected the name of a .json file")
    check_parent(path)


def check_parent(path: Path) -> None:
    """Refuse a name in a folder that does not exist."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist: create it, or choose another name")


def check_folder(path: Path | None, flag: str) -> None:
    """Refuse a folder whose name is that of a file."""
    if path is not None and path.exists() and not path.is_dir():
        raise InputError(f"{flag} is {path}, which is a file: expected a folder; choose another name")


def _tension(text: str | None, sd: float | None, normalisation: Literal["E", "eE"] | None) -> Any:
    from doublewell.calibrate import Mixing, SurfaceTension, scaling_of

    if text is None:
        flags = [name for name, x in (("--tension-sd", sd), ("--normalisation", normalisation)) if x is not None]
        if flags:
            raise InputError(f"{flags[0]} has no meaning without a surface tension: pass --surface-tension too")
        return None
    with about("--surface-tension"):
        tension = scaling_of(text)
    if sd is not None and tension.sd is not None:
        raise InputError("--tension-sd and --surface-tension both state an error: give one of them")
    if isinstance(tension, Mixing):
        if sd is not None or normalisation is not None:
            raise InputError(
                "--tension-sd and --normalisation are of a surface tension: with a temperature leave them out"
            )
        return tension
    return SurfaceTension(tension.value, tension.sd if sd is None else sd, normalisation or "E", tension.unit)


def _write(
    result: Result, record: Record, validation: Validation | None, out: Path | None, figures: Path | None,
    report: Path | None, *, progress: Report,
) -> tuple[Path, ...]:  # fmt: skip
    """Draw everything, then write all files together; return their paths."""
    from doublewell.atomic import write_files
    from doublewell.io.result_file import result_bytes
    from doublewell.report import draw_figures, page_html
    from doublewell.report.pictures import predicted

    shown = validation
    if validation is None and (figures is not None or report is not None):
        evolved = predicted(result, record, progress=partial(progress, "evolving"))
        shown = None if isinstance(evolved, str) else evolved
    progress("writing" if figures is None and report is None else "drawing", 0, 0)
    results = [path for path in (out, report and report / _RESULT) if path is not None]
    contents = [(path, result_bytes(result)) for path in results]
    if figures is not None:
        drawn = draw_figures(result, record=record, validation=shown)
        contents += [(figures / name, data) for name, data in drawn.items()]
    if report is not None:
        page = page_html(result, record, validation=shown, progress=progress)
        contents.append((report / _PAGE, page.encode("utf-8")))
    return write_files(contents)


def _text(result: Result, validation: Validation | None, files: tuple[Path, ...]) -> str:
    """Return the report, what an evolution of the law gives, and the files written."""
    reported = [] if validation is None else ["\n  ".join(["\n\nEvolution", *wrap(str(validation), _WIDTH)])]
    written = ["\n  ".join(["\n\nWritten", *map(str, files)])] if files else []
    return "".join([str(result), *reported, *written])


def result_document(result: Result, validation: Validation | None) -> dict[str, Any]:
    """Return facts and findings, the most used numbers also by themselves, and the result as `save` writes it."""
    from doublewell.export.tables import result_dict
    from doublewell.io.result_file import encode, result_body

    fields = None
    if validation is not None:  # all but the predicted fields; numbers that are not finite as result files write them
        hints = get_type_hints(type(validation))
        names = [name for name in hints if name != "predicted"]
        fields = {name: encode(getattr(validation, name), hints[name], name) for name in names}
    return {
        **result_dict(result),
        "validation": fields,
        "result": result_body(result),
    }

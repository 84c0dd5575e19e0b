"""The command identify. All computing comes before all writing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from doublewell.cli.output import Output
from doublewell.cli.reading import Reading
from doublewell.cli.streaming import Streaming
from doublewell.cli.values import Constraint, Whole, parse_degree, parse_phases, parse_ridge, parse_supports
from doublewell.cli.wording import about
from doublewell.errors import InputError

if TYPE_CHECKING:
    from doublewell.record import Phase, Record
    from doublewell.result import Result

__all__ = ["identify"]

Method = Literal["trajectory", "weak", "weak-corrected"]


def identify(
    file: Path,
    /,
    *,
    surface_tension: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    tension_sd: float | None = None,
    normalisation: Literal["E", "eE"] | None = None,
    method: Method | None = None,
    degree: str | None = None,
    constraint: Constraint = "admissible",
    wells: Literal["symmetric", "equal", "unequal"] = "symmetric",
    phases: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-1,1",
    ridge: str | None = None,
    supports: str | None = None,
    derivative: Literal["discrete", "analytic"] = "discrete",
    check: bool = True,
    noise: Literal["white", "correlated", "shot", "robust"] = "white",
    blur: str | None = None,
    pixel: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    exposure: float = 0.0,
    refine: Whole = 1,
    out: Path | None = None,
    figures: Path | None = None,
    report: Path | None = None,
    validate_from: Whole | None = None,
    levels_sd: str | None = None,
    reading: Reading = Reading(),  # noqa: B008  frozen
    resources: Streaming = Streaming(),  # noqa: B008  frozen
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Recover the law that drives a movie, and with a surface tension also its scale.

    Parameters
    ----------
    file
        The movie: NumPy, zarr, HDF5, netCDF, MATLAB, TIFF, VTK or Exodus; a folder or a pattern for a file a frame.
    surface_tension
        A surface tension measured by other means, a number or "0.3 J/m^2 +- 5 %" (a unit needs those of the movie);
        without it epsilon and F are not determined.
    tension_sd
        Standard deviation of the surface tension.
    normalisation
        E (the default): tension of the energy with (epsilon/2) |grad u|^2 + F/epsilon. eE: of epsilon times it.
    method
        trajectory (the default): the likelihood of the whole movie, with error bands. weak: space-time moments, faster
        and without bands. weak-corrected: the same without the bias of white noise.
    degree
        Degree of the law in u^2, 0 to 8, or auto: the average over all degrees (the default of trajectory; weak: 2).
    constraint
        admissible: every double well of the degree; bernstein: the paper's part of them, positive coefficients; none:
        plain least squares.
    wells
        symmetric: both wells alike. equal: equally deep, not alike. unequal: their depths may differ, too.
    phases
        The phase values of the two wells as low,high such as 0,1; or estimated.
    ridge
        A number, or validated: chosen on the last frames (weak only).
    supports
        Half-widths of the weak test functions as frames:length pairs such as 5:0.06,8:0.12, or paper.
    derivative
        Derivative weights of the weak test functions.
    check
        Ask the residual of the trajectory reading for what the model lacks; --no-check saves about half the time.
    noise
        Of the trajectory reading: white; correlated: its spectrum is measured on a first fit; shot: its variance is a
        line in the phase value; robust: outliers are left out.
    blur
        Standard deviation of the point-spread function in the unit of dx, or estimated (trajectory only).
    pixel
        A pixel is the mean over its area, not the value at its centre (trajectory only).
    exposure
        Time over which a frame is averaged, in the unit of the times (trajectory only).
    refine
        How many times finer the model's mesh is than the movie's (trajectory only).
    out
        Write the result to this .json file.
    figures
        Write figures (PNG, PDF and SVG) to this folder.
    report
        Write report.html, one page that opens offline, and the result to this folder.
    validate_from
        Evolve the recovered law from this frame to the last and report the field error.
    levels_sd
        Standard deviations of --levels, as low,high, or auto with --levels auto: the movie is fitted again with each
        level moved by one, and bands and intervals include what that changes.
    """
    from doublewell.cli.documents import identify_document, identify_text
    from doublewell.cli.targets import Targets, check_folder, check_result, write_answers
    from doublewell.identify import add_level_errors
    from doublewell.identify import identify as run
    from doublewell.options import DoubleWell, Observation, Trajectory, Weak
    from doublewell.validate import validate

    tension = _tension(surface_tension, tension_sd, normalisation)
    weak = method in ("weak", "weak-corrected")
    own: dict[str, Any] = {"ridge": parse_ridge(ridge), "memory": resources.memory}
    if weak:
        own |= {"supports": parse_supports(supports), "derivative": derivative, "corrected": method == "weak-corrected"}
        own |= {"precision": resources.precision or "double"}
    elif supports is not None or resources.precision is not None or derivative != "discrete":
        raise InputError("--supports, --derivative and --precision belong to --method weak")
    options: dict[str, Any] = {"method": Weak(**own) if weak else Trajectory(**own), "check": check}
    options |= {"law": DoubleWell(parse_degree(degree), constraint, wells)}
    options |= {"observation": Observation(parse_phases(phases), noise, _blur(blur), pixel, exposure, refine)}
    options |= {"compute": resources.compute()}
    check_result(out)
    check_folder(figures, "--figures")
    check_folder(report, "--report")
    with about(file):
        record, grey = reading.open_grey(file, levels_sd)
    _check_validation(record, file, validate_from)
    with output.bar() as bar:
        with about(file):
            bar.stage("reading and compiling, which takes a minute the first time")
            show = bar.show if weak else output.fitting(bar)
            result = run(record, tension, progress=show, **options)
            result = replace(result, problem=result.problem.of_file(reading.source(file)))
            if grey is not None:
                result = add_level_errors(result, grey, progress=show) if levels_sd else _noted(result, grey)
            validation = None
            if validate_from is not None:
                validation = validate(result, record, start=validate_from, progress=bar.stage("evolving"))
        targets = Targets(out, figures, report)
        files = write_answers(result, record, validation, targets, progress=bar.show)
    output.answer(identify_text(result, validation, files), identify_document(file, result, validation, files))


def _blur(text: str | None) -> Any:
    try:
        return text if text == "estimated" else float(text or 0.0)
    except ValueError as error:
        raise InputError(f"--blur is {text!r}: expected a length of at least 0, or estimated") from error


def _noted(result: Result, grey: Phase) -> Result:
    """Return a result with the numbers of the conversion from grey values."""
    return replace(result, grey=grey.quality)


def _tension(text: str | None, sd: float | None, normalisation: Literal["E", "eE"] | None) -> Any:
    from doublewell.calibrate import SurfaceTension

    if text is None:
        given = [name for name, x in (("--tension-sd", sd), ("--normalisation", normalisation)) if x is not None]
        if given:
            raise InputError(f"{given[0]} says nothing without a surface tension: pass --surface-tension too")
        return None
    try:
        tension = SurfaceTension.of(text)
    except InputError as error:
        raise InputError(f"--surface-tension: {error}") from error
    if sd is not None and tension.sd is not None:
        raise InputError("--tension-sd and --surface-tension both say an error: give one of them")
    return SurfaceTension(tension.value, tension.sd if sd is None else sd, normalisation or "E", tension.unit)


def _check_validation(record: Record, file: Path, validate_from: int | None) -> None:
    """Ask for what is missing by the name of its option."""
    if record.boundary in (None, "open") and validate_from is not None:
        raise InputError(f"{file} has no boundary, which --validate-from needs: pass --boundary periodic or neumann")
    if validate_from is not None and not 0 <= validate_from < record.frames - 1:
        raise InputError(
            f"--validate-from is {validate_from}: expected a frame from 0 to {record.frames - 2} of {file}"
        )

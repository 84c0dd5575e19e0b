"""The command identify. All computing comes before all writing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from doublewell.cli.output import Output
from doublewell.cli.reading import Reading
from doublewell.cli.values import Whole, parse_ridge, parse_supports
from doublewell.errors import InputError

if TYPE_CHECKING:
    from doublewell.record import Record

__all__ = ["identify"]


def identify(
    file: Path,
    /,
    *,
    surface_tension: float | None = None,
    tension_sd: float | None = None,
    normalisation: Literal["E", "eE"] | None = None,
    degree: Whole = 2,
    constraint: Literal["bernstein", "none"] = "bernstein",
    ridge: str | None = None,
    supports: str | None = None,
    out: Path | None = None,
    figures: Path | None = None,
    validate_from: Whole | None = None,
    reading: Reading = Reading(),  # noqa: B008  frozen
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Recover the law that drives a movie, and with a surface tension also its scale.

    Parameters
    ----------
    file
        The movie: .npz, .npy or a zarr store.
    surface_tension
        A surface tension measured by other means; without it epsilon and F are not determined.
    tension_sd
        Standard deviation of the surface tension.
    normalisation
        E (the default): tension of the energy with (epsilon/2) |grad u|^2 + F/epsilon. eE: of epsilon times it.
    degree
        Degree of the law in u^2, 0 to 8.
    constraint
        bernstein keeps the law a double well; none is plain least squares.
    ridge
        A number, or validated: chosen on the last frames.
    supports
        Half-widths of the test functions as frames:length pairs such as 5:0.06,8:0.12, or paper.
    out
        Write the result to this .json file.
    figures
        Write figures (PNG and PDF) to this folder.
    validate_from
        Evolve the recovered law from this frame to the last and report the field error.
    """
    from doublewell.cli.documents import identify_document, identify_text
    from doublewell.cli.targets import check_folder, check_result, write_answers
    from doublewell.identify import identify as run
    from doublewell.validate import validate

    tension = _tension(surface_tension, tension_sd, normalisation)
    options: dict[str, Any] = {"ridge": parse_ridge(ridge), "supports": parse_supports(supports)}
    check_result(out)
    check_folder(figures)
    record = reading.open(file)
    _check_known(record, file, validate_from)
    with output.bar() as bar:
        progress = bar.stage("identifying")
        result = run(record, tension, method="weak", degree=degree, constraint=constraint, progress=progress, **options)
        start, progress = validate_from, bar.stage("evolving")
        validation = None if start is None else validate(result, record, start=start, progress=progress)
    files = write_answers(result, record, validation, out=out, figures=figures)
    output.answer(identify_text(result, validation, files), identify_document(file, result, validation, files))


def _tension(value: float | None, sd: float | None, normalisation: Literal["E", "eE"] | None) -> Any:
    from doublewell.calibrate import SurfaceTension

    if value is None:
        given = [name for name, x in (("--tension-sd", sd), ("--normalisation", normalisation)) if x is not None]
        if given:
            raise InputError(f"{given[0]} says nothing without a surface tension: pass --surface-tension too")
        return None
    return SurfaceTension(value, sd, normalisation or "E")


def _check_known(record: Record, file: Path, validate_from: int | None) -> None:
    """Ask for what is missing by the name of its option."""
    if record.q is None:
        raise InputError(f"{file} has no diffusion coefficient: pass --q (it sets the time scale of the law)")
    if validate_from is not None and record.boundary is None:
        raise InputError(f"{file} has no boundary, which --validate-from needs: pass --boundary periodic or neumann")

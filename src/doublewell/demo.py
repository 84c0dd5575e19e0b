"""Demo: the whole pipeline on a record whose law is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from textwrap import wrap

from doublewell.atomic import Content, write_files
from doublewell.errors import InputError
from doublewell.errors import seed as check_seed
from doublewell.hints import Report
from doublewell.identify import identify
from doublewell.io import save
from doublewell.io.result_file import result_bytes
from doublewell.law import named_law
from doublewell.problem import Source
from doublewell.record import Record
from doublewell.report import Truth, draw_figures, page_html
from doublewell.result import Result
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.units import percent
from doublewell.validate import Validation, validate

_EPSILON = 0.03
_INTERVAL = 5e-5
_GEOMETRY = "nonconvex"
_RECORD = "record.npz"


@dataclass(frozen=True, eq=False)
class Demo:
    """A simulated record, what was recovered from it, how far that is from the truth, and the files written.

    ``weak`` is the weak-form fit of the same record, without error bands.
    """

    truth: Truth
    noise: float
    record: Record
    result: Result
    weak: Result
    validation: Validation
    files: tuple[Path, ...]

    @property
    def summary(self) -> str:
        """What came out, in one sentence."""
        error, bias = self.truth.force_error(self.result), self.truth.epsilon_error(self.result)
        scale = "could not be calibrated" if bias is None else f"to {percent(abs(bias))}"
        return (
            f"From {self.record.frames} frames with noise {self.noise:g}, the force of the {self.truth.law.name} law "
            f"was recovered to {percent(error)} and its epsilon {scale}."
        )

    def __str__(self) -> str:
        weak = f"The weak-form fit alone: force error {percent(self.truth.force_error(self.weak))}."
        against = "\n  ".join([self.summary, weak, *wrap(str(self.validation), 98)])
        written = "\n  ".join(str(path) for path in self.files)
        return f"{self.result}\n\nAgainst the truth\n  {against}\n\nWritten\n  {written}"


def run_demo(
    folder: str | PathLike[str],
    *,
    seed: int,
    law: str = "sixth",
    noise: float = 0.03,
    cells: int = 96,
    frames: int = 61,
    progress: Report | None = None,
) -> Demo:
    """Simulate a noisy record, identify its law, evolve it again, and write page, record, result and figures.

    The star-shaped drop of the paper, epsilon = 0.03, one frame every 5e-5, made by CNAB2; both fits get the law's
    own surface tension. ``progress`` is called with (what is done, steps done, steps), steps 0 where their number is
    not known. Files are written at the end, when everything has succeeded.
    """
    target = Path(folder).expanduser()
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file: expected a folder for the files of the demo; choose another name")
    check_seed(seed, "the noise")
    show = progress or (lambda *_: None)
    truth = Truth(named_law(law), _EPSILON)
    start = initial_field(_GEOMETRY, (cells, cells), 1.0 / cells, epsilon=_EPSILON)
    movie = partial(simulate, truth.law, start, dx=1.0 / cells, dt=_INTERVAL, frames=frames, epsilon=_EPSILON)
    clean = movie(progress=partial(show, "simulating"))
    record = add_noise(clean, noise, seed=seed)
    tension = truth.law.surface_tension(epsilon=1.0)
    show("compiling and reading", 0, 0)
    weak = identify(record, tension, method="weak", progress=show)
    show("compiling and fitting", 0, 0)
    result = identify(record, tension, progress=show)
    result = replace(result, problem=result.problem.of_file(Source(_RECORD)))
    show("evolving", 0, 0)
    validation = validate(result, record, progress=partial(show, "evolving"))
    show("drawing and saving", 0, 0)
    drawn = draw_figures(result, truth=truth, record=record, validation=validation)
    contents: list[tuple[Path, Content]] = [
        (target / "report.html", page_html(result, record).encode("utf-8")),
        (target / _RECORD, partial(save, record)),
        (target / "result.json", result_bytes(result)),
        *((target / name, data) for name, data in drawn.items()),
    ]
    files = write_files(contents)
    return Demo(truth, noise, record, result, weak, validation, files)

"""Demo: the whole road on a record whose law is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from textwrap import wrap

from doublewell.checks import seed as check_seed
from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.identify import identify
from doublewell.io import save
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.report import Truth, draw_figures, write_page
from doublewell.report.style import write_bytes
from doublewell.result import Result
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import Validation, validate
from doublewell.wording import percent

__all__ = ["Demo", "run_demo"]

_EPSILON = 0.03
_INTERVAL = 5e-5
_GEOMETRY = "nonconvex"


@dataclass(frozen=True, eq=False)
class Demo:
    """A simulated record, what was recovered from it, how far that is from the truth, and the files written.

    ``weak`` is what the weak reading alone says of the same record, without error bands.
    """

    truth: Truth
    noise: float
    record: Record
    result: Result
    weak: Result
    validation: Validation
    files: tuple[Path, ...]

    @property
    def force_error(self) -> float:
        """The relative L2 error of the force, e_G."""
        return self.truth.force_error(self.result)

    @property
    def weak_error(self) -> float:
        """The relative L2 error of the weak reading's force."""
        return self.truth.force_error(self.weak)

    @property
    def epsilon_error(self) -> float | None:
        """The relative error of epsilon, with its sign; None when the law could not be calibrated."""
        return self.truth.epsilon_error(self.result)

    @property
    def summary(self) -> str:
        """What came out, in one sentence."""
        bias = self.epsilon_error
        scale = "could not be calibrated" if bias is None else f"to {percent(abs(bias))}"
        return (
            f"From {self.record.frames} frames with noise {self.noise:g}, the force of the {self.truth.law.name} law "
            f"was recovered to {percent(self.force_error)} and its epsilon {scale}."
        )

    @property
    def comparison(self) -> str:
        """What the other reading makes of the same record."""
        return f"The weak reading alone: force error {percent(self.weak_error)}."

    def __str__(self) -> str:
        against = "\n  ".join([self.summary, self.comparison, *wrap(str(self.validation), 98)])
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

    The star-shaped drop of the paper, epsilon = 0.03, one frame every 5e-5, made by CNAB2; both readings get the law's
    own surface tension. ``progress`` is called with (what is done, steps done, steps), steps 0 where their number is
    not known. Files are written at the end, when everything has succeeded.
    """
    place = _check_folder(folder)
    check_seed(seed, "the noise")
    say = progress or _silent
    truth = Truth(named_law(law), _EPSILON)
    record = _record(truth, cells=cells, frames=frames, noise=noise, seed=seed, progress=say)
    tension = truth.law.surface_tension(epsilon=1.0)
    say("compiling and reading", 0, 0)
    weak = identify(record, tension, method="weak", progress=say)
    say("compiling and fitting", 0, 0)
    result = identify(record, tension, progress=say)
    say("evolving", 0, 0)
    validation = validate(result, record, progress=partial(say, "evolving"))
    say("drawing and saving", 0, 0)
    files = _write(place, truth, record, result, validation)
    return Demo(truth, noise, record, result, weak, validation, files)


def _silent(_name: str, _done: int, _total: int) -> None:
    """Say nothing, where nobody asked."""


def _record(truth: Truth, *, cells: int, frames: int, noise: float, seed: int, progress: Report) -> Record:
    start = initial_field(_GEOMETRY, (cells, cells), 1.0 / cells, epsilon=truth.epsilon)
    clean = simulate(
        truth.law,
        start,
        dx=1.0 / cells,
        dt=_INTERVAL,
        frames=frames,
        epsilon=truth.epsilon,
        progress=partial(progress, "simulating"),
    )
    return add_noise(clean, noise, seed=seed)


def _check_folder(folder: str | PathLike[str]) -> Path:
    place = Path(folder).expanduser()
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file: expected a folder for the files of the demo; choose another name")
    return place


def _write(place: Path, truth: Truth, record: Record, result: Result, validation: Validation) -> tuple[Path, ...]:
    drawn = draw_figures(result, truth=truth, record=record, validation=validation)
    place.mkdir(parents=True, exist_ok=True)
    save(record, place / "record.npz")
    save(result, place / "result.json")
    write_page(result, record, place / "report.html")
    figures = write_bytes([(place / name, data) for name, data in drawn.items()])
    return (place / "report.html", place / "record.npz", place / "result.json", *figures)

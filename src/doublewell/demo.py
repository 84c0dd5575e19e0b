"""Demo: the whole road on a record whose law is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from doublewell.errors import InputError
from doublewell.files import save
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.report import Truth, draw_figures
from doublewell.report.style import write_bytes
from doublewell.result import Result
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import Validation, validate

__all__ = ["Demo", "run_demo"]

Progress = Callable[[str, int, int], None]
_EPSILON = 0.03
_INTERVAL = 5e-5
_GEOMETRY = "nonconvex"


@dataclass(frozen=True, eq=False)
class Demo:
    """A simulated record, what was recovered from it, how far that is from the truth, and the files written."""

    truth: Truth
    noise: float
    record: Record
    result: Result
    validation: Validation
    files: tuple[Path, ...]

    @property
    def force_error(self) -> float:
        """The relative L2 error of the force, e_G."""
        return self.truth.force_error(self.result)

    @property
    def epsilon_error(self) -> float | None:
        """The relative error of epsilon, with its sign; None when the law could not be calibrated."""
        return self.truth.epsilon_error(self.result)

    @property
    def summary(self) -> str:
        """What came out, in one sentence."""
        bias = self.epsilon_error
        scale = "could not be calibrated" if bias is None else f"to {100 * abs(bias):.2g} %"
        return (
            f"From {self.record.frames} frames with noise {self.noise:g}, the force of the {self.truth.law.name} law "
            f"was recovered to {100 * self.force_error:.2g} % and its epsilon {scale}."
        )

    def __str__(self) -> str:
        written = "\n".join(f"  {path}" for path in self.files)
        return f"{self.result}\n\nAgainst the truth\n  {self.summary}\n  {self.validation}\n\nWritten\n{written}"


def run_demo(
    folder: str | PathLike[str],
    *,
    seed: int,
    law: str = "sixth",
    noise: float = 0.03,
    cells: int = 96,
    frames: int = 61,
    progress: Progress | None = None,
) -> Demo:
    """Simulate a noisy record, identify its law, evolve it again, and write record, result and figures to a folder.

    The star-shaped drop of the paper, epsilon = 0.03, one frame every 5e-5, made by CNAB2; the weak reading of degree
    2 gets the law's own surface tension. ``progress`` is called with (what is done, steps done, steps). Files are
    written at the end, when everything has succeeded.
    """
    place = _check_folder(folder)
    truth = Truth(named_law(law), _EPSILON)
    record = _record(truth, cells=cells, frames=frames, noise=noise, seed=seed, progress=progress)
    tension = truth.law.surface_tension(epsilon=1.0)
    result = identify(record, tension, method="weak", progress=progress and partial(progress, "identifying"))
    validation = validate(result, record, progress=progress and partial(progress, "evolving"))
    files = _write(place, truth, record, result, validation)
    return Demo(truth, noise, record, result, validation, files)


def _record(
    truth: Truth, *, cells: int, frames: int, noise: float, seed: int, progress: Progress | None = None
) -> Record:
    start = initial_field(_GEOMETRY, (cells, cells), 1.0 / cells, epsilon=truth.epsilon)
    clean = simulate(
        truth.law,
        start,
        dx=1.0 / cells,
        dt=_INTERVAL,
        frames=frames,
        epsilon=truth.epsilon,
        progress=progress and partial(progress, "simulating"),
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
    figures = write_bytes([(place / name, data) for name, data in drawn.items()])
    return (place / "record.npz", place / "result.json", *figures)

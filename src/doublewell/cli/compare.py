"""The command compare. All computing comes before all writing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from doublewell.cli.output import Output
from doublewell.cli.reading import Reading
from doublewell.cli.values import Whole, parse_seed
from doublewell.cli.wording import about
from doublewell.errors import InputError

if TYPE_CHECKING:
    from doublewell.baselines import Comparison

__all__ = ["compare"]


def compare(
    file: Path,
    /,
    *,
    methods: str | None = None,
    seed: Whole = 0,
    out: Path | None = None,
    figures: Path | None = None,
    reading: Reading = Reading(),  # noqa: B008  frozen
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Run other methods on a movie and report how far they agree with ours; no truth is needed.

    Parameters
    ----------
    file
        The movie, as for identify, with its diffusion coefficient.
    methods
        Names with commas between them, such as stac,smoothed-fd4,pysindy-ls-masked; all by default, slow ones only
        where there is a GPU. A method whose library is missing is listed with its reason.
    seed
        Of the methods that draw random numbers.
    out
        Write the numbers to this .json file.
    figures
        Write compare.png, .pdf and .svg to this folder: every force over our band.
    """
    from doublewell.baselines import compare as run
    from doublewell.cli.targets import check_folder, check_result

    check_result(out)
    check_folder(figures, "--figures")
    names = _names(methods)
    parse_seed(seed)
    with about(file):
        record = reading.open(file)
        with output.bar() as bar:
            show = output.fitting(bar)
            found = run(record, methods=names, seed=seed, progress=show)
            show("writing", 0, 0)
            files = _written(found, out, figures)
    document = {"file": str(file), **found.document(), "files": [str(path) for path in files]}
    said = [f"wrote {path}" for path in files]
    output.answer("\n".join([str(found), *([""] if said else []), *said]), document)


def _names(text: str | None) -> list[str] | None:
    """Return the methods of --methods, checked before the movie is read."""
    from doublewell.baselines import baseline

    if text is None:
        return None
    names = [name for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"--methods is {text!r}: expected names with commas between, such as stac,smoothed-fd4")
    return [baseline(name).name for name in names]


def _written(found: Comparison, out: Path | None, figures: Path | None) -> tuple[Path, ...]:
    """Write what was asked for, everything drawn first, and return the paths."""
    from doublewell.report.style import FORMATS, render, write_bytes

    contents: list[tuple[Path, bytes]] = []
    if out is not None:
        contents.append((out, (json.dumps(found.document(), indent=1, allow_nan=False) + "\n").encode()))
    if figures is not None:
        figure = found.figure()
        contents += [(figures / f"compare.{kind}", render(figure, kind)) for kind in FORMATS]
    return write_bytes(contents)

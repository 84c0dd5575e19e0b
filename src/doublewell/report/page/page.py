"""Page: a result as one HTML file that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from hashlib import sha256
from importlib.resources import files
from os import PathLike
from pathlib import Path

from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.record import Record, check_record, checksum
from doublewell.report.page.film import make_film, predicted
from doublewell.report.page.markup import Html, tag
from doublewell.report.page.sections import Section, sections
from doublewell.report.page.summary import sentences, title_of, verdict_box
from doublewell.report.page.verdicts import findings
from doublewell.report.style import write_bytes
from doublewell.result import Result
from doublewell.validate import Validation

__all__ = ["page_html", "write_page"]


def write_page(
    result: Result,
    record: Record,
    path: str | PathLike[str],
    *,
    validation: Validation | None = None,
    progress: Report | None = None,
) -> Path:
    """Write a result with its record as one HTML page that opens offline, and return its path.

    The page holds its style, script and pictures, and makes no request. Where the boundary is declared the law is
    evolved to show a prediction, from the initial field of the fit where the result holds it, and else from the first
    frame; `validation` is used instead where it is given. Large records are
    thinned, and the page says so. The file is there whole or not at all. `progress` is called with (what is done, steps
    done, steps).
    """
    place = Path(path).expanduser()
    if place.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{place}: expected a name that ends in .html for a page")
    text = page_html(result, record, validation=validation, progress=progress)
    return write_bytes([(place, text.encode("utf-8"))])[0]


def page_html(
    result: Result, record: Record, *, validation: Validation | None = None, progress: Report | None = None
) -> str:
    """Return the page as text; the same result and record give the same text."""
    _check(result, record)
    say = progress or _silent
    say("checking the data", 0, 0)
    digest = checksum(record, like=result.settings.checksum)
    found = validation or predicted(result, record, progress=partial(say, "evolving"))
    say("drawing", 0, 0)
    judged = findings(result, found_checksum=digest)
    parts = sections(result, record, make_film(result, record, found), found, judged, digest)
    top = [
        tag("h1", "Free energy from ", tag("span", title_of(result), class_="file")),
        verdict_box(judged),
        sentences(result),
    ]
    return _document(title_of(result), top, parts)


def _check(result: Result, record: Record) -> None:
    if not isinstance(result, Result):
        raise InputError(
            f"expected a Result, got {type(result).__name__}: call write_page(identify(record), record, path)"
        )
    check_record(record)
    if record.shape != result.settings.shape:
        raise InputError(
            f"the record is of shape {record.shape} and the result of {result.settings.shape}: expected the record "
            "that the result came from"
        )


def _document(title: str, top: list[Html], parts: list[Section]) -> str:
    style, script = (_packed(name) for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title}: free energy"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(style)),
    )
    links = tag("nav", *(tag("a", heading, href=f"#{anchor}") for anchor, heading, _ in parts), aria_label="contents")
    body = [tag("section", tag("h2", heading), content, id=anchor) for anchor, heading, content in parts]
    main = tag("main", tag("header", *top, links), *body)
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", main, tag("script", Html(script))), lang="en") + "\n"


def _packed(name: str) -> str:
    """Return a file that is packed beside this module."""
    return files("doublewell.report.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what the policy calls a text, so that nothing else is run or applied, whatever a file name holds."""
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _silent(_: str, __: int, ___: int) -> None:
    """Say nothing, where nobody asked."""

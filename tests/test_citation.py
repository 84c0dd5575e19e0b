"""The citation file is that of this version, in the words of the Citation File Format."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from doublewell.version import __version__

ROOT = Path(__file__).parents[1]


def test_the_citation_is_of_this_version_and_of_the_paper() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["cff-version"], cited["type"], cited["version"]) == ("1.2.0", "software", __version__)
    assert cited["license"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]
    assert {"message", "title", "authors"} <= set(cited)
    paper = cited["preferred-citation"]
    assert {"type", "title", "authors"} <= set(paper)
    assert [person["family-names"] for person in paper["authors"]] == ["Jung", "Kim"]
    assert paper["title"].startswith("Constrained weak identification of Allen")

"""The recipe of the image: what it copies is there, it runs without rights, and downloads nothing when it runs."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from doublewell.cli import parse

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = [
    (words[0], words[1].strip())
    for line in re.sub(r"\\\n\s*", "", TEXT).splitlines()
    if line and not line.startswith("#") and (words := line.split(" ", 1))
]


def given(name: str) -> list[str]:
    return [rest for step, rest in STEPS if step == name]


def test_what_is_copied_is_there_and_not_left_out() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for rest in given("COPY") for name in rest.split()[:-1]}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)
    assert not given("ADD")


def test_it_installs_extras_that_there_are_and_downloads_only_to_build() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = [set(names.split(",")) for rest in given("RUN") for names in re.findall(r"\[([\w,]+)\]", rest)]
    assert len(wanted) == 2
    assert wanted[0] == wanted[1] <= set(extras)
    assert "--no-index" in given("RUN")[1]


def test_it_runs_the_studio_as_a_user_without_rights() -> None:
    (user,) = given("USER")
    assert user.partition(":")[0] not in ("root", "0")
    assert [step for step, _ in STEPS].index("USER") > max(k for k, (step, _) in enumerate(STEPS) if step == "RUN")
    (program,), words = (json.loads(given(name)[0]) for name in ("ENTRYPOINT", "CMD"))
    assert program == "doublewell"
    command, bound = parse(words)
    assert command.__name__ == "studio"
    assert {"0.0.0.0", 8765, Path("/data")} <= set(map_values(bound.arguments))
    assert given("EXPOSE") == ["8765"]
    for page in (TEXT, (ROOT / "docs/install.md").read_text(encoding="utf-8")):
        assert "-p 127.0.0.1:8765:8765" in page  # never on all addresses of the machine
        assert "-p 8765" not in page


def map_values(arguments: dict[str, object]) -> list[object]:
    return [each for value in arguments.values() for each in (value if isinstance(value, tuple) else (value,))]

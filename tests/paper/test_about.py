import platform
import subprocess
from pathlib import Path

from doublewell_paper import run


def test_no_name_of_the_host_or_its_folders(tmp_path):
    facts = run.about()
    said = " ".join(facts.values())
    assert platform.node() not in said.split()
    assert str(Path.cwd()) not in said
    assert f"Python {platform.python_version()}" in facts["libraries"]


def test_a_commit_and_what_was_changed_since(tmp_path):
    def git(*words):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    head = run.commit(tmp_path)
    assert len(head) == 12
    (tmp_path / "file").write_text("two")
    assert run.commit(tmp_path) == f"{head}, with changes"


def test_without_a_checkout_or_without_git_it_is_said(tmp_path, monkeypatch):
    assert run.commit(tmp_path) == "not from a checkout"

    def missing(*_, **__):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert run.commit(tmp_path) == "not from a checkout"

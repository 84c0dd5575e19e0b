"""Small versions of every table and figure, and runs that are killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell_paper import run
from doublewell_paper.__main__ import main
from doublewell_paper.figures import FIGURES
from doublewell_paper.results import Store
from doublewell_paper.run import names, run_study
from doublewell_paper.table import markdown
from doublewell_paper.tables import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_made_and_written(weak_study, name):
    folder, study = weak_study
    table = next(table for table in study.tables if table.name == name)
    assert table.rows
    assert all(len(row.entries) == len(table.columns) for row in table.rows)
    filled = [entry for row in table.rows for entry in row.entries if entry.ours is not None or entry.text]
    assert filled
    assert (folder / "tables" / f"{name}.md").read_text() == markdown(table)
    assert rf"\label{{tab:{name}}}" in (folder / "tables" / f"{name}.tex").read_text()


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(weak_study, name):
    folder, _ = weak_study
    assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_page_holds_everything(weak_study):
    folder, study = weak_study
    page = (folder / "paper.md").read_text()
    for table in study.tables:
        assert markdown(table) in page
    for name, kind in FIGURES.items():
        assert f"![{kind.caption}](figures/{name}.png)" in page
    facts = json.loads((folder / "about.json").read_text())
    assert "records done in" in facts.pop("run")
    assert set(facts) == {"date", "doublewell", "commit", "machine", "device", "libraries"}
    assert all(f"- {key}: {value}" in page for key, value in facts.items())
    assert "This is the tiny version" in page
    assert str(folder) not in page


def test_constrained_branches_keep_the_structure(weak_study):
    _, study = weak_study
    bound = [line for line in study.results.lines if "STAC" in line.method]
    assert len(bound) > 300
    assert all(line.score("violation") == 0.0 for line in bound)
    assert all(line.status == "fitted" for line in study.results.lines)


def test_a_second_run_does_nothing_again(weak_study):
    folder, study = weak_study
    before, seen = (folder / "results.jsonl").read_bytes(), []
    again = run_study(
        folder, ["replication", "floor"], tiny=True, trajectory=False, workers=1, report=lambda *a: seen.append(a)
    )
    assert seen == [(0, 0, None)]
    assert (folder / "results.jsonl").read_bytes() == before
    assert [table.name for table in again.tables] == ["replication"]
    assert markdown(again.tables[0]) in [markdown(table) for table in study.tables]


def _alive(process: str) -> bool:
    """Whether a process runs; one that ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_goes_on_and_ends_in_the_same_tables(weak_study, tmp_path, workers):
    _, whole = weak_study
    asked = ["replication", "replication_selected"]
    words = [*asked, "--tiny", "--weak", "--workers", str(workers), "--out", str(tmp_path)]
    file = tmp_path / "results.jsonl"
    with subprocess.Popen([sys.executable, "-m", "doublewell_paper", *words], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") < 30):
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert len(children) >= workers - 1
    kept = file.read_bytes()
    kept = kept[: kept.rindex(b"\n", 0, -1) + 1 + 40]  # and the last line is torn
    file.write_bytes(kept)
    done = len(Store(tmp_path).lines())
    study = run_study(tmp_path, asked, tiny=True, trajectory=False, workers=1)
    assert 0 < done < len(study.results.lines)
    assert file.read_bytes().startswith(kept[: kept.rindex(b"\n") + 1])
    told = {table.name: table for table in whole.tables}
    assert [markdown(table) for table in study.tables] == [markdown(told[name]) for name in asked]
    assert not [child for child in children if _alive(child)]


def test_processes_give_the_same_numbers(weak_study, tmp_path):
    _, whole = weak_study
    seen, threads = [], os.environ.get("OPENBLAS_NUM_THREADS")
    study = run_study(
        tmp_path, ["refinement", "degrees"], tiny=True, trajectory=False, workers=2, report=lambda *a: seen.append(a)
    )
    told = {table.name: table for table in whole.tables}
    assert {t.name: markdown(t) for t in study.tables} == {n: markdown(told[n]) for n in ("refinement", "degrees")}
    assert [count for count, _, _ in seen] == list(range(len(seen)))
    assert seen[-1][2] == pytest.approx(0.0, abs=1e-9)
    assert os.environ.get("OPENBLAS_NUM_THREADS") == threads


def test_a_worker_that_ends_is_said(monkeypatch, weak_study):
    class Broken:
        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def submit(self, *_):
            future = Future()
            future.set_exception(BrokenProcessPool("gone"))
            return future

    monkeypatch.setattr(run, "worker_pool", Broken)
    from doublewell_paper.cases import CASES

    tasks = run.open_tasks([CASES["degrees"], CASES["outside cone"]], [], slow=False)
    with pytest.raises(InputError, match="a worker process ended.*what is finished is kept"):
        list(run.each(tasks, 2))


def test_a_method_that_refuses_is_kept_in_the_counts(monkeypatch):
    from dataclasses import replace

    from doublewell_paper.methods import METHODS
    from doublewell_paper.records import Spec, tiny

    def refuse(_sample):
        raise InputError("no interface")

    monkeypatch.setitem(METHODS, "STAC m=2", replace(METHODS["STAC m=2"], fit=refuse))
    (line,) = run.evaluate(run.Task("case", tiny(Spec("sixth", "circle"), 32), ("STAC m=2",)))
    assert line.status == "refused: no interface"
    assert line.coefficients is None
    assert set(line.scores.values()) == {None}


def test_trajectories_stand_beside_the_weak_branches(weak_study, tmp_path):
    folder, _ = weak_study
    (tmp_path / "results.jsonl").write_bytes((folder / "results.jsonl").read_bytes())
    study = run_study(tmp_path, ["by_law"], tiny=True, workers=1)
    added = [line for line in study.results.lines if line.method.startswith("trajectory")]
    assert {line.method for line in added} == {"trajectory auto", "trajectory m=2", "trajectory m=5"}
    assert all(line.status == "fitted" for line in added)
    weak = {line.record: line.score("e_G") for line in study.results.of("principal 0.03", "STAC m=5")}
    auto = [line for line in added if line.method == "trajectory auto"]
    assert len(auto) == 2
    assert all(line.score("e_G") < weak[line.record] for line in auto)


def test_a_batch_gives_the_lines_of_its_records():
    """The way of a GPU, on whatever device there is; a record that is refused does not spoil the others."""
    from dataclasses import replace

    from doublewell_paper.records import Spec, tiny

    specs = [tiny(Spec("sixth", "circle", noise=0.03, seed=seed), 32) for seed in (1, 2)]
    tasks = [run.Task("case", spec, ("trajectory auto", "trajectory free")) for spec in specs]
    together = run.evaluate_together(tasks)
    for task, lines in zip(tasks, together, strict=True):
        alone = run.evaluate(task)
        assert [line.method for line in lines] == ["trajectory auto", "trajectory free"]
        for one, other in zip(lines, alone, strict=True):
            np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6)
    short = run.Task("case", replace(specs[0], frames=4), ("trajectory auto",))
    (line,) = run.evaluate_together([short])[0]
    assert line.status == "fitted"


def test_a_gpu_takes_the_trajectories_in_groups(monkeypatch):
    from doublewell_paper.cases import CASES

    tasks = run.open_tasks([CASES["principal 0.03"], CASES["outside cone"]], [], slow=True)
    monkeypatch.setattr(run, "on_gpu", lambda: True)
    monkeypatch.setattr(run, "evaluate", lambda _: [])
    sizes = []
    monkeypatch.setattr(run, "evaluate_together", lambda group: sizes.append(len(group)) or [[] for _ in group])
    assert {task for task, _ in run.each(tasks, 1)} == set(tasks)
    assert sum(sizes) == sum(task.slow for task in tasks)
    assert max(sizes) == 20


def test_tables_of_nothing_are_empty_and_not_wrong():
    from doublewell_paper.results import Results

    for kind in TABLES.values():
        table = kind.make(Results(()))
        assert not any(row.marked for row in table.rows if kind.name not in ("by_law", "outside_cone"))
        assert markdown(table)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_nothing_are_drawn(name):
    from doublewell.report.style import render
    from doublewell_paper.results import Results

    assert render(FIGURES[name].draw(Results(())), "png")


def test_wrong_use_is_said_before_anything_runs(tmp_path, capsys):
    for words, message in (
        (["principle"], "no table or figure is named 'principle'.*did you mean principal?"),
        (["--workers", "0"], "workers is 0: expected an integer from 1"),
        (["--out", str(tmp_path / "taken")], "is a file: expected a folder for the results"),
    ):
        (tmp_path / "taken").write_text("kept")
        assert main(["--tiny", *words]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert re.search(message.replace("?", r"\?"), said.err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


def test_the_command_prints_tables_as_words_and_as_json(weak_study, capsys):
    folder, _ = weak_study
    words = ["refinement", "--tiny", "--weak", "--workers", "1", "--out", str(folder)]
    assert main(words) == 0
    assert "### Clean e_G of the sixth law" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"tables", "lines", "files"}
    assert {row["row"] for row in found["tables"]["refinement"]} == {"42 x 42", "64 x 64"}


def test_names_are_those_of_tables_and_figures():
    assert set(names()) == set(TABLES) | set(FIGURES)

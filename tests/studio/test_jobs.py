"""Jobs: processes of their own, with limits; what they leave is found again, and none dies with another."""

import json
import os
import signal
import time

import numpy as np
import psutil
import pytest

from doublewell.errors import InputError
from doublewell.io import load_result
from doublewell.studio.jobs import Jobs
from doublewell.studio.places import movies
from doublewell.studio.processes import Limits, Looker, alive

WIDE = Limits(10**10, 600.0)
WEAK = {"method": "weak", "check": "false", "degree": "1"}


def wait(jobs, run, states, seconds=120.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        seen = {item["run"]: item for item in jobs.listing()}[run]
        if seen["state"] in states:
            return seen
        time.sleep(0.05)
    raise AssertionError(seen)


def pid(jobs, run):
    path = jobs.path(run) / "pid.json"
    while not path.exists() or not path.read_text():
        time.sleep(0.02)
    return json.loads(path.read_text())["pid"]


@pytest.fixture
def jobs(folder, drop_file):
    made = Jobs(folder, WIDE)
    yield made
    made.close()


def test_a_run_leaves_all_that_there_is_to_see(jobs, folder):
    run = jobs.begin("drop.npz", WEAK | {"surface_tension": "0.9"}, "first")
    assert wait(jobs, run, ["done", "failed", "crashed"])["state"] == "done"
    names = {path.name for path in jobs.path(run).iterdir()}
    assert {"result.json", "report.html", "answer.json", "facts.csv", "script.py", "law.i", "end.json"} <= names
    result = load_result(jobs.path(run) / "result.json")
    answer = json.loads((jobs.path(run) / "answer.json").read_text())
    assert answer["coefficients"] == result.coefficients.tolist()
    assert [curve["symbol"] for curve in answer["curves"]] == ["G", "H", "F"]
    assert result.problem.records[0].source.path == str(folder / "drop.npz")
    jobs.remove(run)
    assert jobs.listing() == []


def test_a_wrong_question_fails_in_words(jobs):
    run = jobs.begin("drop.npz", {"boundary": "periodic", "q": "-1"}, "")
    assert "q is -1" in wait(jobs, run, ["failed", "done"])["message"]


def test_too_much_memory_or_time_ends_a_run(folder, drop_file):
    for limits, words in ((Limits(10**7, 600.0), "GB of memory"), (Limits(10**10, 0.5), "took more than 0.5 s")):
        jobs = Jobs(folder, limits)
        run = jobs.begin("drop.npz", {}, "")
        seen = wait(jobs, run, ["killed", "done"])
        assert seen["state"] == "killed"
        assert words in seen["message"]
        jobs.close()


def test_a_run_that_dies_is_told_and_the_next_one_begins(jobs):
    first, second = jobs.begin("drop.npz", {}, ""), jobs.begin("drop.npz", WEAK, "")
    assert wait(jobs, second, ["queued"])
    with pytest.raises(InputError, match="has not ended"):
        jobs.remove(first)
    os.kill(pid(jobs, first), signal.SIGKILL)
    assert "code -9" in wait(jobs, first, ["crashed"])["message"]
    assert wait(jobs, second, ["done"])


def test_a_server_that_is_gone_leaves_its_run_to_the_next(folder, drop_file):
    before = Jobs(folder, WIDE)
    run, queued = before.begin("drop.npz", WEAK, "kept"), before.begin("drop.npz", WEAK, "queued")
    number = pid(before, run)
    before._over.set()  # dies: nothing is tidied up
    before._thread.join()
    after = Jobs(folder, WIDE)
    assert wait(after, run, ["done"])["name"] == "kept"
    assert pid(after, run) == number
    assert wait(after, queued, ["done"])
    after.close()
    for process in before._started.values():
        process.wait()


def test_a_run_that_died_with_its_server_is_told(folder, drop_file):
    before = Jobs(folder, WIDE)
    run = before.begin("drop.npz", {}, "")
    os.kill(pid(before, run), signal.SIGKILL)
    before._over.set()
    before._thread.join()
    before._started[run].wait()
    (folder / "doublewell-studio/runs" / run / "end.json").unlink(missing_ok=True)
    after = Jobs(folder, WIDE)
    assert wait(after, run, ["crashed"])
    after.close()


def test_stopping_a_run(jobs):
    first, second = jobs.begin("drop.npz", {}, ""), jobs.begin("drop.npz", {}, "")
    pid(jobs, first)
    jobs.stop(second)
    assert "before it began" in wait(jobs, second, ["stopped"])["message"]
    jobs.stop(first)
    assert wait(jobs, first, ["stopped"])


def test_stopping_twice_ends_at_once(jobs):
    run = jobs.begin("drop.npz", {}, "")
    os.kill(pid(jobs, run), signal.SIGSTOP)  # does not listen
    jobs.stop(run)
    assert wait(jobs, run, ["stopping"])
    jobs.stop(run)
    assert "without an answer" in wait(jobs, run, ["stopped"])["message"]


def test_only_the_process_that_began_then_is_ours():
    process = psutil.Process()
    assert alive(process.pid, process.create_time()).pid == process.pid
    assert alive(process.pid, process.create_time() - 100.0) is None


@pytest.mark.parametrize("name", ["../x", "20260101-000000-000000-aaaaaa", "", ".."])
def test_a_name_of_no_run_is_refused(jobs, name):
    with pytest.raises(InputError, match="there is no run"):
        jobs.path(name)


@pytest.fixture
def looker(folder, drop_file):
    made = Looker(folder, folder / "look.log", WIDE)
    yield made
    made.close()


def test_a_movie_is_shown_and_inspected(looker, folder, drop):
    frame = looker.ask({"do": "frame", "file": "drop.npz", "words": {}, "frame": 3})
    assert (frame["shape"], frame["frames"], frame["mesh"]) == ([32, 32], 25, [32, 32])
    from base64 import b64decode

    coded = np.frombuffer(b64decode(frame["values"]), "<u2").reshape(32, 32) / 65534
    values = frame["low"] + coded * (frame["high"] - frame["low"])
    assert np.allclose(values, drop.slab(3, 4)[0], atol=1e-4)
    found = looker.ask({"do": "inspect", "file": "drop.npz", "words": {}})
    assert found["stated"] == {"dx": "0.03125", "dt": "0.0004", "q": "1.0", "boundary": "periodic"}
    assert "error" not in found
    assert [item["name"] for item in looker.ask({"do": "files"})["files"]] == ["drop.npz"]


def test_what_a_file_does_not_state_is_asked_for_while_it_is_shown(looker, folder):
    np.save(folder / "plain.npy", np.random.default_rng(0).normal(size=(6, 16, 40)))
    found = looker.ask({"do": "inspect", "file": "plain.npy", "words": {}})
    assert "--dx" in found["error"]
    assert found["stated"] == {}
    assert looker.ask({"do": "frame", "file": "plain.npy", "words": {}, "frame": 99})["frame"] == 5


def test_a_crash_while_a_movie_is_opened_leaves_the_studio_alive(looker):
    assert "files" in looker.ask({"do": "files"})
    os.kill(looker._process.pid, signal.SIGKILL)
    time.sleep(0.1)
    assert "files" in looker.ask({"do": "files"})


def test_too_much_memory_or_time_ends_a_look(folder, drop_file):
    small = Looker(folder, folder / "look.log", Limits(10**6, 600.0))
    assert "GB of memory" in small.ask({"do": "inspect", "file": "drop.npz", "words": {}})["error"]
    small.close()
    slow = Looker(folder, folder / "look.log", Limits(10**10, 0.2))
    assert "files" in slow.ask({"do": "files"})
    os.kill(slow._process.pid, signal.SIGSTOP)
    assert "took more than" in slow.ask({"do": "files"})["error"]
    assert "files" in slow.ask({"do": "files"})
    slow.close()


def test_links_are_not_listed(folder):
    (folder / "link.npy").symlink_to(folder.parent / "secret.npy")
    (folder / "a").mkdir()
    np.save(folder / "a/u.npy", np.zeros(3))
    (folder / ".hidden.npy").touch()
    assert [item["name"] for item in movies(folder)] == ["a/u.npy"]

import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from threading import Event
from time import sleep

import pytest

from doublewell.cli import main
from doublewell.cli import options as output
from doublewell.errors import InputError
from doublewell.hints import STATED
from doublewell.likelihood import Step
from doublewell.version import __version__


def python(*words, **options):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)


def test_help_and_version(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert all(name in out for name in ("demo", "identify", "inspect", "simulate"))
    assert run()[1] == out
    assert run("--version") == (0, f"{__version__}\n", "")
    for name in ("demo", "identify", "inspect", "simulate"):
        assert "--json" in run(name, "--help")[1]


def test_unknown_command_is_one_line(refused):
    assert 'Unknown command "identfy"' in refused("identfy")
    assert "--loud" in refused("--loud")


def test_python_m_doublewell(movie_file):
    done = python("-m", "doublewell", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")
    done = python("-m", "doublewell", "inspect", str(movie_file))
    assert done.returncode == 0
    assert "31 frames of 64 x 64 pixels" in done.stdout
    done = python("-m", "doublewell", "identify", "nowhere.npz")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("doublewell: nowhere.npz does not exist")
    assert done.stderr.count("\n") == 1


def test_starting_up_loads_no_heavy_library():
    heavy = ("jax", "numba", "matplotlib", "xarray", "scipy", "zarr")
    code = f"import sys, doublewell.cli as c; c.main(sys.argv[1:]); print([n for n in {heavy} if n in sys.modules])"
    for words in (["--help"], ["identify", "--help"]):
        assert python("-c", code, *words).stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_ends_quietly(movie_file):
    words = [sys.executable, "-m", "doublewell", "inspect", str(movie_file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


def test_a_closed_pipe_in_this_process_ends_quietly(monkeypatch, movie_file, tmp_path):
    class Gone(StringIO):
        def __init__(self, file):
            super().__init__()
            self.file = file

        def flush(self):
            raise BrokenPipeError

        def fileno(self):
            return self.file.fileno()

    with (tmp_path / "stdout").open("w") as file:
        monkeypatch.setattr(sys, "stdout", Gone(file))
        assert main(["inspect", str(movie_file), "--quiet"]) == 141
        file.write("the descriptor leads nowhere now")
    assert (tmp_path / "stdout").read_text() == ""


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted; nothing was left half written"),
        (PermissionError(13, "Permission denied", "m.npz"), 2, "m.npz: Permission denied"),
        (OSError("disk gone"), 2, "disk gone"),
        (MemoryError("9 TiB"), 2, "not enough memory (9 TiB): use a smaller mesh or fewer frames"),
    ],
)
def test_exit_codes(run, monkeypatch, error, code, said):
    monkeypatch.setattr("doublewell.io.open_record", raising(error))
    assert run("inspect", "m.npz") == (code, "", f"doublewell: {said}\n")


def test_an_error_of_the_program_is_not_hidden(monkeypatch):
    monkeypatch.setattr("doublewell.io.open_record", raising(ZeroDivisionError("bug")))
    with pytest.raises(ZeroDivisionError):
        main(["inspect", "m.npz"])


class Terminal(StringIO):
    def isatty(self):
        return True


def watch(monkeypatch):
    """Put a terminal in the place of stderr; in the test itself, because pytest sets stderr anew after the fixtures."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    return found


def slow(seconds):
    """A reading that says nothing while it works, such as a first compilation."""

    def work(*_, **__):
        sleep(seconds)
        raise InputError("no movie")

    return work


@pytest.mark.parametrize(
    ("patience", "options", "shown"),
    [(0.05, [], True), (60.0, [], False), (0.05, ["--quiet"], False), (0.05, ["--json"], False)],
)
def test_a_silent_stage_is_named_on_a_terminal(run, monkeypatch, patience, options, shown):
    screen = watch(monkeypatch)
    monkeypatch.setattr(output, "_PATIENCE", patience)
    monkeypatch.setattr("doublewell.report.inspect_record", slow(0.5))
    monkeypatch.setattr("doublewell.io.open_record", lambda *_, **__: None)
    assert run("inspect", "m.npz", *options)[0] == 2
    assert ("inspecting" in screen.getvalue()) is shown


def test_no_progress_without_a_terminal(run, monkeypatch):
    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    monkeypatch.setattr("doublewell.report.inspect_record", slow(0.2))
    monkeypatch.setattr("doublewell.io.open_record", lambda *_, **__: None)
    assert run("inspect", "m.npz") == (2, "", "doublewell: m.npz: no movie\n")


class Shown:
    """A screen that remembers."""

    def __init__(self):
        self.said, self.stopped, self.ready = [], False, Event()

    def say(self, *words):
        self.said.append(words)

    def stop(self):
        self.stopped = True


@pytest.fixture
def remembered(monkeypatch):
    found = Shown()

    def appear():
        found.ready.set()
        return found

    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    monkeypatch.setattr(output, "_Screen", appear)
    return found


def test_stages_and_steps_reach_the_screen_and_it_goes_at_the_end(remembered):
    with output.Bar(wanted=True) as bar:
        assert remembered.ready.wait(5)
        bar.stage("work")(1, 3)
        bar.show("fitting: step 2", 2, 0)
        assert not remembered.stopped
    assert remembered.said == [("work", 0, 0), ("work", 1, 3), ("fitting: step 2", 2, 0)]
    assert remembered.stopped


def test_what_is_stated_stays_above_the_line(remembered, capsys):
    with output.Bar(wanted=True) as bar:
        assert remembered.ready.wait(5)
        remembered.state = remembered.said.append
        bar.show("the law", 0, STATED)
        bar.show("work", 0, 0)
        assert remembered.said == ["the law", ("work", 0, 0)]
    silent = output.Bar(wanted=False)
    silent.show("the law", 0, STATED)
    waiting = output.Bar(wanted=True)  # nothing is on the screen yet
    waiting.show("the law", 0, STATED)
    assert capsys.readouterr().err == "the law\n"


def test_the_clock_runs_on_after_a_stage_that_ended(monkeypatch):
    screen = watch(monkeypatch)
    shown = output._Screen()
    shown.say("weak moments", 61, 61)
    shown.say("fitting", 1, 0)
    shown.state("what is known")
    assert shown._bar.tasks[0].finished_time is None
    assert not shown._bar.tasks[0].finished
    sleep(1.1)
    shown.stop()
    assert "0:00:01" in screen.getvalue()
    assert "what is known" in screen.getvalue()


STEP = Step(12, 1.3e6, 1234567.8, 0.0012, 1.0, 112, 0.0123, "segments, links 0.3")


@pytest.mark.parametrize("stage", ["whole record", "segments, links 0.3"])
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_step_stays_on_one_line_with_spinner_and_time(monkeypatch, stage, width):
    screen = watch(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(width))
    shown = output._Screen()
    shown.say(f"fitting: {replace(STEP, stage=stage)}", 12, 0)
    shown.stop()
    lines = [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())) if line]
    assert max(map(len, lines)) <= width
    (last,) = {line for line in lines if "step" in line}
    assert re.search(r"\d:\d\d:\d\d$", last)
    assert not last.startswith(("fitting", "step", " "))  # a spinner
    if width >= 80:
        for words in ("step 12: ", "cost 1.23457e+06, ", "112 CG", " to 1.2e-02 "):
            assert words in last


def test_words_are_shortened_only_as_far_as_needed():
    words = f"fitting: {STEP}"
    assert output.one_line(words, len(words)) == words
    assert output.one_line(words, len(words) - 1) == str(STEP)
    assert output.one_line(words, 60) == "links 0.3, step 12: cost 1.23457e+06, 112 CG to 1.2e-02"
    assert output.one_line(words, 20) == "links 0.3, step 1..."
    assert output.one_line("anything else that is long", 10) == "anythin..."


def test_a_stage_that_began_before_the_screen_is_shown_when_it_comes(remembered, monkeypatch):
    monkeypatch.setattr(output, "_PATIENCE", 0.1)
    with output.Bar(wanted=True) as bar:
        bar.stage("work")
        assert remembered.said == []
        assert remembered.ready.wait(5)
    assert remembered.said == [("work", 0, 0)]


def test_the_screen_shows_a_share_only_where_the_total_is_known(monkeypatch):
    screen = watch(monkeypatch)
    shown = output._Screen()
    shown.say("work", 2, 4)
    shown.stop()
    assert "work" in screen.getvalue()
    assert "50%" in screen.getvalue()
    shown = output._Screen()
    shown.say("other", 0, 0)
    shown.stop()
    assert "0%" not in screen.getvalue().split("other")[-1]


def test_an_old_terminal_gets_escapes_instead_of_an_error(movie_file, tmp_path, monkeypatch):
    import io

    other = tmp_path / "fällt.npz"
    other.write_bytes(movie_file.read_bytes())
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["inspect", str(other)]) == 0
    assert b"f\\xe4llt.npz: 31 frames" in raw.getvalue()

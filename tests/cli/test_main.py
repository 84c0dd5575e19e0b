import subprocess
import sys
from importlib.metadata import version
from io import StringIO

import pytest

from doublewell.cli import main, output
from doublewell.errors import MissingLibraryError


def python(*words, **options):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)


def test_help_and_version(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert all(name in out for name in ("demo", "identify", "inspect", "simulate"))
    assert run()[1] == out
    assert run("--version") == (0, f"{version('doublewell')}\n", "")
    for name in ("demo", "identify", "inspect", "simulate"):
        assert "--json" in run(name, "--help")[1]


def test_unknown_command_is_one_line(refused):
    assert 'Unknown command "identfy"' in refused("identfy")
    assert "--loud" in refused("--loud")


def test_python_m_doublewell(movie_file):
    done = python("-m", "doublewell", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{version('doublewell')}\n", "")
    done = python("-m", "doublewell", "inspect", str(movie_file))
    assert done.returncode == 0
    assert "31 frames of 64 x 64 pixels" in done.stdout
    done = python("-m", "doublewell", "identify", "nowhere.npz")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("doublewell: nowhere.npz does not exist")
    assert done.stderr.count("\n") == 1


def test_starting_up_loads_no_heavy_library():
    heavy = ("jax", "numba", "matplotlib", "xarray", "scipy.optimize", "zarr")
    code = f"import sys, doublewell.cli; print([name for name in {heavy} if name in sys.modules])"
    assert python("-c", code).stdout == "[]\n"


def test_a_closed_pipe_ends_quietly(movie_file):
    words = [sys.executable, "-m", "doublewell", "inspect", str(movie_file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


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
        (
            MissingLibraryError("needs x;\n run: pip install 'doublewell[x]'"),
            2,
            "needs x; run: pip install 'doublewell[x]'",
        ),
    ],
)
def test_exit_codes(run, monkeypatch, error, code, said):
    monkeypatch.setattr("doublewell.files.open_record", raising(error))
    assert run("inspect", "m.npz") == (code, "", f"doublewell: {said}\n")


def test_an_error_of_the_program_is_not_hidden(monkeypatch):
    monkeypatch.setattr("doublewell.files.open_record", raising(ZeroDivisionError("bug")))
    with pytest.raises(ZeroDivisionError):
        main(["inspect", "m.npz"])


class Terminal(StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("patience", "options", "shown"),
    [(0.0, [], True), (60.0, [], False), (0.0, ["--quiet"], False), (0.0, ["--json"], False)],
)
def test_a_bar_appears_on_a_terminal_after_a_second(run, monkeypatch, tmp_path, patience, options, shown):
    screen = Terminal()
    monkeypatch.setattr(output, "_PATIENCE", patience)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    words = ["simulate", tmp_path / "m.npz", "--mesh", "16x16", "--frames", "5", "--epsilon", "0.1"]
    assert run(*words, *options)[0] == 0
    assert ("simulating" in screen.getvalue()) is shown
    assert ("100%" in screen.getvalue()) is shown


def test_no_bar_without_a_terminal(run, monkeypatch, tmp_path):
    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    assert run("simulate", tmp_path / "m.npz", "--mesh", "16x16", "--frames", "5", "--epsilon", "0.1")[2] == ""


def test_the_bar_is_taken_away_at_the_end(monkeypatch):
    stopped = []

    class Shown:
        def add_task(self, name, total):
            return name

        def update(self, task, completed, total):
            assert (task, completed, total) == ("work", 1, 3)

        def stop(self):
            stopped.append(True)

    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    monkeypatch.setattr(output, "_start_bar", Shown)
    with output.Bar(wanted=True) as bar:
        bar.stage("work")(1, 3)
        assert stopped == []
    assert stopped == [True]


def test_an_old_terminal_gets_escapes_instead_of_an_error(movie_file, tmp_path, monkeypatch):
    import io

    other = tmp_path / "fällt.npz"
    other.write_bytes(movie_file.read_bytes())
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["inspect", str(other)]) == 0
    assert b"f\\xe4llt.npz: 31 frames" in raw.getvalue()

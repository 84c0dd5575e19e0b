import subprocess
import sys
from io import StringIO
from time import sleep

import pytest
from terminal import watch

from doublewell import progress
from doublewell.cli import main
from doublewell.errors import InputError
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
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    monkeypatch.setattr("doublewell.report.inspect_record", slow(0.5))
    monkeypatch.setattr("doublewell.io.open_record", lambda *_, **__: None)
    assert run("inspect", "m.npz", *options)[0] == 2
    assert ("inspecting" in screen.getvalue()) is shown


def test_no_progress_without_a_terminal(run, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr("doublewell.report.inspect_record", slow(0.2))
    monkeypatch.setattr("doublewell.io.open_record", lambda *_, **__: None)
    assert run("inspect", "m.npz") == (2, "", "doublewell: m.npz: no movie\n")


def test_an_old_terminal_gets_escapes_instead_of_an_error(movie_file, tmp_path, monkeypatch):
    import io

    other = tmp_path / "fällt.npz"
    other.write_bytes(movie_file.read_bytes())
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["inspect", str(other)]) == 0
    assert b"f\\xe4llt.npz: 31 frames" in raw.getvalue()

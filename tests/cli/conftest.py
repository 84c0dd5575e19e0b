import json

import pytest

from doublewell.cli import main
from doublewell.io import save
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate


@pytest.fixture(scope="session")
def movie_file(tmp_path_factory, noisy):
    path = tmp_path_factory.mktemp("movie") / "movie.npz"
    save(noisy, path)
    return path


@pytest.fixture(scope="session")
def small_file(tmp_path_factory):
    """A record on which the trajectory fit is fast: 15 frames of 32 x 32, periodic."""
    start = initial_field("nonconvex", (32, 32), 1 / 32, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 32, dt=5e-4, frames=15, epsilon=0.1)
    path = tmp_path_factory.mktemp("small") / "small.npz"
    save(add_noise(clean, 0.03, seed=5), path)
    return path


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, stdout, stderr."""

    def call(*words):
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def run_json(run):
    """Run a command with --json and return the object; stdout holds nothing else."""

    def call(*words):
        code, out, err = run(*words, "--json")
        assert (code, err) == (0, "")
        assert out.endswith("}\n")
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return call


@pytest.fixture
def refused(run):
    """Run a wrong command: exit code 2, silence on stdout, one line on stderr, which is returned."""

    def call(*words):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert err.startswith("doublewell: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        return err.removeprefix("doublewell: ").rstrip()

    return call

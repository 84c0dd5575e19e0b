import numpy as np
import pytest

from doublewell.io import open_record
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

SMALL = ["--mesh", "24x32", "--frames", "4", "--epsilon", "0.1", "--dt", "1e-3"]


def small(law="sixth", geometry="circle", boundary="periodic", **options):
    start = initial_field(
        geometry, (24, 32), 1 / 24, epsilon=0.1, boundary=boundary, seed=options.pop("start_seed", None)
    )
    return simulate(
        named_law(law), start, dx=1 / 24, dt=1e-3, frames=4, epsilon=0.1, boundary=boundary, **options
    )  # fmt: skip


@pytest.mark.parametrize("name", ["movie.npz", "movie.zarr"])
def test_the_movie_is_that_of_the_library(run, tmp_path, name):
    code, out, err = run("simulate", tmp_path / name, *SMALL)
    assert (code, err) == (0, "")
    record = open_record(tmp_path / name)
    np.testing.assert_array_equal(record.slab(), small().slab())
    assert (record.q, record.boundary, record.dx) == (1.0, "periodic", (1 / 24, 1 / 24))
    assert out.startswith(f"{tmp_path / name}: Record(4 frames of 24 x 32")
    assert f"doublewell identify {tmp_path / name} --surface-tension 0.98771" in out


def test_options_reach_the_library(run_json, tmp_path):
    words = ["--law", "quartic", "--geometry", "inclusion", "--boundary", "neumann", "--q", 0.5, "--substeps", 3]
    found = run_json("simulate", tmp_path / "m.npz", *SMALL, *words, "--dx", 1 / 24)
    expected = small("quartic", "inclusion", "neumann", q=0.5, substeps=3)
    np.testing.assert_array_equal(open_record(tmp_path / "m.npz").slab(), expected.slab())
    assert found["record"]["boundary"] == "neumann"
    assert found["record"]["shape"] == [4, 24, 32]
    assert found["law"] == "quartic"
    assert found["epsilon"] == 0.1
    assert found["surface_tension"] == pytest.approx(2 * np.sqrt(2) / 3, rel=1e-12)


def test_noise_comes_from_the_seed(run, tmp_path):
    noise = ["--noise", "0.1", "--correlation", "1.5", "--seed", "9"]
    assert run("simulate", tmp_path / "m.npz", *SMALL, *noise, "--quiet") == (0, "", "")
    expected = add_noise(small(), 0.1, seed=9, correlation=1.5)
    np.testing.assert_array_equal(open_record(tmp_path / "m.npz").slab(), expected.slab())


def test_a_random_start_and_noise_share_one_stream(run, tmp_path):
    words = ["--geometry", "spinodal", "--noise", "0.1", "--seed", "4"]
    run("simulate", tmp_path / "m.npz", *SMALL, *words)
    rng = np.random.default_rng(4)
    expected = add_noise(small(geometry="spinodal", start_seed=rng), 0.1, seed=rng)
    np.testing.assert_array_equal(open_record(tmp_path / "m.npz").slab(), expected.slab())


@pytest.mark.parametrize("mesh", ["32", "12x12x12"])
def test_one_and_three_axes(run_json, tmp_path, mesh):
    found = run_json("simulate", tmp_path / "m.npz", *SMALL[2:], "--mesh", mesh, "--solver", "etdrk4")
    assert found["record"]["shape"][1:] == [int(n) for n in mesh.split("x")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["m.txt"], "m.txt: expected a name that ends in .npz, .zarr or .nc for a movie"),
        (["nowhere/m.npz"], "the folder nowhere does not exist"),
        ([], "OUT"),
        (["m.npz", "--law", "cubic"], "no law is named 'cubic': expected one of quartic"),
        (["m.npz", "--geometry", "cube"], "no geometry is named 'cube': expected one of circle"),
        (["m.npz", "--mesh", "9by9"], "--mesh is '9by9': expected cells"),
        (["m.npz", "--mesh", "4x4x4x4"], "--mesh is '4x4x4x4'"),
        (["m.npz", "--mesh", "1x9"], "--mesh is '1x9'"),
        (["m.npz", "--dx", "-1"], "dx is -1"),
        (["m.npz", "--dt", "0"], "dt is 0"),
        (["m.npz", "--frames", "1"], "frames is 1: expected an integer from 2"),
        (["m.npz", "--frames", "many"], "--frames: 'many' is not an integer"),
        (["m.npz", "--epsilon", "-1"], "epsilon is -1"),
        (["m.npz", "--q", "0"], "q is 0"),
        (["m.npz", "--substeps", "0"], "substeps is 0"),
        (["m.npz", "--solver", "euler"], "--solver"),
        (["m.npz", "--boundary", "wall"], "--boundary"),
        (["m.npz", "--noise", "0.1"], "random numbers need --seed"),
        (["m.npz", "--geometry", "spinodal"], "random numbers need --seed"),
        (["m.npz", "--noise", "-0.1", "--seed", "1"], "--noise is -0.1: expected a number of at least 0"),
        (["m.npz", "--correlation", "-1"], "--correlation is -1"),
        (["m.npz", "--correlation", "2"], "--correlation has no meaning without noise"),
        (["m.npz", "--epsilon", "1e-200"], "epsilon is 1e-200"),
        (["m.npz", "--noise", "0.1", "--seed", "-1"], "--seed is -1: expected an integer from 0"),
        (["m.npz", "--noise", "0.1", "--seed", "1.5"], "--seed: '1.5' is not an integer"),
        (["m.npz", "--dt", "1000", "--substeps", "1"], "blows up"),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(refused, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused("simulate", *words, *(SMALL[:2] if "--mesh" not in words else []))
    assert list(tmp_path.iterdir()) == []


def test_a_movie_that_is_there_is_kept_unless_forced(refused, run, tmp_path):
    taken = tmp_path / "m.npz"
    taken.write_bytes(b"mine")
    assert (
        refused("simulate", taken, *SMALL)
        == f"{taken} exists already: choose another name, or pass --force to replace it"
    )
    assert taken.read_bytes() == b"mine"
    assert run("simulate", taken, *SMALL, "--force", "--quiet") == (0, "", "")
    assert open_record(taken).frames == 4

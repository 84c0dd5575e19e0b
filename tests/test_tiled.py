"""Records larger than memory by their likelihood: tiles, one law, whoever reads them."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from found import warned
from grouping import grouped
from readings import read_trajectory

from doublewell.adequacy import Adequacy, ScoreTest, Spot, Verdict
from doublewell.cli import main
from doublewell.compute.checkpoint import Ledger
from doublewell.compute.partition import Region
from doublewell.difference import compare
from doublewell.dynamics import ALLEN_CAHN
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, joint_given_law, system
from doublewell.identify import identify as identify_any
from doublewell.identify.again import repeat
from doublewell.identify.tiles import Pieces, TileModel, read_tiles, unpacked
from doublewell.inference.joint import PartFit, Plan, joined
from doublewell.io import load_result, open_record, save
from doublewell.law import Bernstein, named_law
from doublewell.likelihood import Convergence, Resolution, Status
from doublewell.observation import PLAIN
from doublewell.options import Compute, Trajectory
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

FOLLOWED, STOPPED = Status(Convergence.FOLLOWED, 1e-6, 3), Status(Convergence.NOT_FOLLOWED, 0.1, 8)
BUDGET = 953_000_000  # tiles of 15 x 24 x 24 of the records here
LAW, EPSILON = named_law("sixth"), 0.1
PHASES = np.linspace(-1.0, 1.0, 401)
identify = partial(identify_any, law=1, method=Trajectory(memory=BUDGET), check=False)
CELLS = [((y, y + 24), (x, x + 24)) for y in (0, 24) for x in (0, 24)]


@pytest.fixture(scope="module")
def movie():
    start = initial_field("nonconvex", (48, 48), 1 / 48, epsilon=EPSILON)
    clean = simulate(LAW, start, dx=1 / 48, dt=5e-4, frames=15, epsilon=EPSILON)
    return add_noise(clean, 0.01, seed=3)


@pytest.fixture(scope="module")
def path(movie, tmp_path_factory):
    place = tmp_path_factory.mktemp("tiles") / "movie.zarr"
    save(movie, place)
    return place


@pytest.fixture(scope="module")
def result(path):
    return identify(open_record(path))


def windows(movie):
    return [
        Record(
            movie.slab(0, 15, cells), dx=movie.dx, times=movie.times, q=movie.q, boundary="open", origin="simulation"
        )
        for cells in CELLS
    ]


def same_to_the_bit(one, other) -> bool:
    found = compare(one, other, tolerance=0.0)
    return found.same and found.equal == found.fields


def spread(result):
    """Return the standard errors of the force, in units of the force, root mean square."""
    features = result.posterior.family.features(PHASES)
    exact = LAW.effective(EPSILON).force(PHASES)
    return float(np.sqrt(np.sum(features * (result.covariance @ features))) / np.linalg.norm(exact))


def error(result):
    exact = LAW.effective(EPSILON).force(PHASES)
    return float(np.linalg.norm(result.force(PHASES) - exact) / np.linalg.norm(exact))


def test_tiles_are_several_windows_of_one_law(movie, result) -> None:
    several = identify_any(windows(movie), law=1, check=False)
    errors = np.sqrt(np.diag(several.covariance))
    assert np.max(np.abs(result.coefficients - several.coefficients) / errors) < 1e-3
    assert np.allclose(result.covariance, several.covariance, rtol=1e-3)
    apart = [
        (one.chi2, other.chi2)
        for other, cells in zip(several.agreements, CELLS, strict=True)
        for one in result.agreements
        if f"y {cells[0][0]} to {cells[0][1] - 1}, x {cells[1][0]} to" in one.record
    ]
    assert len(apart) == 4
    assert all(a == pytest.approx(b, rel=0.01) for a, b in apart)
    assert result.diagnostics.rows == 4 * (14 * 20 * 20)  # values of the interior, less its first field


def test_the_law_is_found_and_the_bands_say_how_well(movie, result) -> None:
    whole = identify_any(movie, law=1, check=False)
    assert error(result) < 3.0 * spread(result)
    # four borders of 31 % each and no periodic neighbours: the bands are wider, and not by more than a factor of two
    assert 1.2 < spread(result) / spread(whole) < 2.0
    tiles = result.diagnostics.likelihood.tiles
    assert (tiles.shape, tiles.read, tiles.empty, tiles.lost, tiles.checked) == ((15, 24, 24), 4, 0, (), 0)
    assert result.diagnostics.likelihood.noise == pytest.approx(0.01, rel=0.03)
    assert result.diagnostics.likelihood.residual_map.shape == (2, 2)
    assert np.all(np.abs(result.diagnostics.likelihood.residual_map) < 4.0)
    assert result.diagnostics.likelihood.residual_frames[1:] == pytest.approx(0.01, rel=0.15)
    assert all(one.agrees for one in result.agreements)
    assert result.resolved.boundary == "periodic"
    assert "read as 4 windows of at most 15 x 24 x 24 values" in str(result)
    assert set(warned(result)) == {"model-untested"}


def test_who_reads_makes_no_difference(movie, result) -> None:
    """Processes read a part in the test of a run that is killed."""
    assert same_to_the_bit(result, identify(movie))
    assert same_to_the_bit(result, identify(movie, compute=Compute(workers=2)))  # threads


def test_it_is_saved_and_repeated(path, result, tmp_path) -> None:
    save(result, tmp_path / "result.json")
    loaded = load_result(tmp_path / "result.json")
    assert same_to_the_bit(result, loaded)
    again = repeat(loaded, open_record(path))
    assert again.data == "the same"
    assert again.comparison.same


def test_a_tile_says_what_a_fit_of_its_window_says(movie) -> None:
    family, law = Bernstein(1), LAW.effective(EPSILON).coefficients
    theta = np.array([law[0], law[-1]])
    (window, *_), region = windows(movie), Region((0, 15), CELLS[0])
    model = TileModel(movie.replace(boundary="open"), family, ALLEN_CAHN, 6, PLAIN, check=False)
    (tile,) = read_tiles(model, [region], theta, False, False).fits
    fit = read_trajectory(window, theta, family=family, substeps=6)
    (there,) = fit.batch.relinearise([fit], theta[None])
    (own, aim), (rows, target) = system(there.evidence), system(tile.evidence)
    assert np.allclose(rows.T @ rows, own.T @ own, rtol=1e-3)
    best = np.linalg.lstsq(own, aim, rcond=None)[0]
    gap = best - np.linalg.lstsq(rows, target, rcond=None)[0]
    assert np.linalg.norm(rows @ gap) < 0.01  # standard errors
    assert tile.status.converged
    assert tile.noise == pytest.approx(there.noise, rel=1e-5)


def test_tiles_without_an_interface_are_left_out() -> None:
    y, x = np.meshgrid((np.arange(24) + 0.5) / 24, (np.arange(96) + 0.5) / 24, indexing="ij")
    start = np.tanh((x - 0.9 - 0.2 * np.cos(np.pi * y)) / (np.sqrt(2) * EPSILON))
    clean = simulate(LAW, start, dx=1 / 24, dt=2e-3, frames=15, epsilon=EPSILON, boundary="neumann")
    found = identify(add_noise(clean, 0.01, seed=5))
    tiles = found.diagnostics.likelihood.tiles
    assert (tiles.read, tiles.empty) == (2, 2)
    assert {one.record.split("x ")[1] for one in found.agreements} == {"0 to 23)", "24 to 47)"}
    assert "2 without an interface were left out" in " ".join(str(found).split())
    assert error(found) < 4.0 * spread(found)
    with pytest.raises(InputError, match="none of the 4 tiles of the record holds an interface|no interface|constant"):
        identify(add_noise(clean.replace(np.ones(clean.shape)), 0.01, seed=5))


def test_q_and_gaps(movie) -> None:
    mask = np.ones(movie.shape, dtype=bool)
    for (y, _), (x, _) in CELLS:
        mask[:, y + 10 : y + 13, x + 5 : x + 9] = False
    found = identify(Record(movie.slab(), dx=movie.dx, times=movie.times, mask=mask, origin="simulation"))
    low, high = found.interval("q", level=0.999)
    assert low < 1.0 < high
    assert high - low < 0.1
    assert found.resolved.boundary == "open"
    assert found.diagnostics.survey.missing == pytest.approx(48 / 48**2)
    assert error(found) < 4.0 * spread(found)


def test_a_strange_tile_is_named(movie, result) -> None:
    odd = np.array(movie.slab())
    odd[:, 24:, :24] = odd[0, 24:, :24] + 0.01 * np.random.default_rng(1).standard_normal((15, 24, 24))  # stands still
    found = identify(movie.replace(odd))
    assert [one.record.split(" (")[0] for one in found.agreements if not one.agrees] == ["tile 3"]
    words = warned(found)["tile-disagrees"].sentence
    assert words.startswith("tile 3 (frames 0 to 14, y 24 to 47, x 0 to 23) disagrees with the others")


SCRIPT = """
import sys, time
from doublewell.io import open_record
from doublewell.identify import identify
from doublewell.options import Compute, Trajectory

def watch(words, done, total):
    if words.startswith("reading tiles"):
        print(done, flush=True)
        if done == 2:
            time.sleep(60)

if __name__ == "__main__":
    identify(
        open_record(sys.argv[1]), law=1, method=Trajectory(memory=953_000_000), check=False, progress=watch,
        compute=Compute(workers=2, checkpoint=sys.argv[2]),
    )
"""


def test_a_run_that_is_killed_goes_on(path, result, tmp_path) -> None:
    """Two processes read three tiles, this one the others; the answer is that of one process for all, to the bit."""
    script, part = tmp_path / "run.py", tmp_path / "part.npz"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script, path, part], stdout=subprocess.PIPE, text=True) as first:
        assert [int(first.stdout.readline()) for _ in range(3)] == [1, 1, 2]  # one goes ahead, two of four
        first.kill()
    assert first.returncode == -signal.SIGKILL
    said = []
    found = identify(open_record(path), compute=Compute(checkpoint=part), progress=lambda *words: said.append(words))
    assert same_to_the_bit(result, found)
    assert [done for words, done, _ in said if words.startswith("reading tiles")] == [2, 3, 4]  # two were there
    said.clear()
    assert same_to_the_bit(
        result, identify(open_record(path), compute=Compute(checkpoint=part), progress=lambda *w: said.append(w))
    )
    assert not [words for words, *_ in said if words.startswith("reading tiles")]
    with pytest.raises(InputError, match=r"part.npz is the checkpoint of another run: the options of the fit"):
        identify(open_record(path), compute=Compute(checkpoint=part), check=True)
    with pytest.raises(InputError, match=r"the memory or the plan of slabs changed"):
        identify(open_record(path), method=Trajectory(memory=BUDGET - 1_200_000), compute=Compute(checkpoint=part))


def reading(rows, status, resolution=None, adequacy=None, name="tile") -> PartFit:
    """What a tile with q and two coefficients says; rows [q | law | target] of any number."""
    block = Block(Key(name, "trajectory", "all"), compact(rows), 100)
    evidence = Evidence(Bernstein(1), (block,), True, ("q", "force", "target"))
    numbers = {"noise": 0.1, "cost": 2.0, "power": 3.0, "solve": np.nan, "substeps": 2}
    return PartFit(
        evidence, np.arange(3.0), status=status, sums=(1.0, np.pi), counts=(5, 6), resolution=resolution,
        adequacy=adequacy, **numbers,
    )  # fmt: skip


def test_what_a_checkpoint_holds_comes_back(tmp_path) -> None:
    test = ScoreTest("cells", 1.5, 1, 0.1, 0.3, (0.1,), (0.2,), None, (Spot((3, 4), 0.1, 0.2),), 1, 9, "", "tile 1")
    answer = Adequacy((test,), Verdict.ADEQUATE, 0.1, 0.5, 0.2)
    rows = np.random.default_rng(0).standard_normal((3, 4))
    tile = reading(rows, FOLLOWED, Resolution(rows[0, :3], rows[1, :3], 0.1, 0.2), answer)
    plain = reading(2 * rows, STOPPED)
    given = tmp_path / "p.npz", {"plan": "a"}, partial(unpacked, Bernstein(1), ("q",))
    ledger = Ledger(*given)
    for number, piece in ((4, plain), (0, tile), (1, plain)):
        ledger.add(number, Pieces((piece,)))
    back = Ledger(*given)
    assert (back.done, back.count, back.left(range(6))) == (2, 3, [2, 3, 5])
    first, second = back.merged.fits
    assert np.array_equal(first.evidence.blocks[0].triangle, tile.evidence.blocks[0].triangle)
    assert (first.evidence.columns, first.evidence.rows) == (tile.evidence.columns, 100)
    assert np.array_equal(first.resolution.mesh_shift, rows[1, :3])
    assert (first.sums, first.counts, first.adequacy) == (tile.sums, tile.counts, answer)
    assert (second.resolution, second.adequacy, second.status) == (None, None, STOPPED)
    assert np.array_equal(back.waiting[4].fits[0].theta, plain.theta)


def test_sums_know_what_is_beside_the_law() -> None:
    """Two tiles with a common q: the sum is the least-squares fit of all rows."""
    rng = np.random.default_rng(2)
    stack = rng.standard_normal((5, 4, 4))
    tiles = {k: reading(rows, FOLLOWED, name=f"tile {k}") for k, rows in enumerate(stack)}
    total, _, _ = joined(Plan(((0,),), False, (), False), tiles, common=True)
    rows = np.vstack(stack)
    best = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]
    known, (matrix, target) = joint_given_law(total), system(total)
    law = np.linalg.lstsq(matrix, target, rcond=None)[0]
    assert np.allclose(np.append(known.mean(law), law), best)
    covariance = np.linalg.inv(rows[:, :-1].T @ rows[:, :-1])
    assert np.allclose(np.linalg.inv(matrix.T @ matrix), covariance[1:, 1:])
    assert total.rows == 500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "shot"}, r"noise='shot' is measured on a first fit of the whole record"),
        ({"phases": "estimated"}, r"phases='estimated' reads a record many times, which one read part by part"),
        ({"ridge": 0.1}, "a ridge is for a record that is fitted as a whole: leave it out, or give more memory"),
        ({"refine": 3}, "refine= takes more memory than the record itself"),
        ({"memory": "100MB"}, "memory is 100 MB: expected more than 950 MB, which Python, its libraries"),
        ({"workers": 2, "scheduler": "tcp://127.0.0.1:1"}, "workers and scheduler are both given"),
    ],
)
def test_refusals(movie, options, message) -> None:
    with pytest.raises(InputError, match=message):
        identify(movie, **grouped(**{"degree": 1, "memory": BUDGET} | options))


def test_several_records_are_not_read_in_tiles(movie) -> None:
    with pytest.raises(InputError, match="workers= is for the parts of one record, and several are given"):
        identify_any([movie, movie], compute=Compute(workers=2))
    with pytest.raises(InputError, match="checkpoint= is for a record in parts, and a trajectory fit without a budget"):
        identify_any(movie, compute=Compute(checkpoint="part.npz"))
    with pytest.raises(InputError, match="several records are fitted together as a whole, and one takes more than"):
        identify_any([movie, movie], method=Trajectory(memory="1MB"))


def test_slabs_in_time_are_tiles_too(monkeypatch) -> None:
    monkeypatch.setattr(import_module("doublewell.compute.partition"), "_START", 0.0)  # first fields take nothing
    start = initial_field("nonconvex", (48, 48), 1 / 48, epsilon=EPSILON)
    clean = simulate(LAW, start, dx=1 / 48, dt=5e-4, frames=30, epsilon=EPSILON)
    part = add_noise(clean, 0.01, seed=8).slab()[:, 20:44, 10:34]
    found = identify(Record(part, dx=1 / 48, dt=5e-4, q=1.0))
    assert found.diagnostics.likelihood.tiles.shape == (15, 24, 24)
    assert [one.record for one in found.agreements] == [
        f"tile {k} (frames {frames}, y 0 to 23, x 0 to 23)" for k, frames in ((1, "0 to 14"), (2, "15 to 29"))
    ]
    assert error(found) < 4.0 * spread(found)
    assert found.diagnostics.likelihood.residual_frames.shape == (30,)


def test_a_batch_is_filled_up_and_only_its_own_tiles_come_back(movie, monkeypatch) -> None:
    seen = []

    def follow(batch, *_, **__):
        seen.append(len(batch.records))
        return [record.slab()[0, 0, 0] for record in batch.records]

    readers = import_module("doublewell.identify.tiles")
    monkeypatch.setattr(readers.Batch, "follow", follow)
    plain = reading(np.eye(4), FOLLOWED)
    monkeypatch.setattr(readers, "part_fit", lambda value, *_: replace(plain, noise=value))
    model = TileModel(movie.replace(boundary="open"), Bernstein(1), ALLEN_CAHN, 6, PLAIN, check=False, width=4)
    regions = [Region((0, 15), cells) for cells in CELLS[:3]]
    tiles = read_tiles(model, regions, np.ones(2), False, False).fits
    assert seen == [4]
    assert [tile.noise for tile in tiles] == [movie.slab()[0, y[0], x[0]] for y, x in CELLS[:3]]


def test_the_command_line(path, result, tmp_path, capsys) -> None:
    options = ["--memory", str(BUDGET), "--degree", "1", "--no-check", "--checkpoint", str(tmp_path / "part.npz")]
    assert main(["identify", str(path), *options, "--quiet", "--out", str(tmp_path / "r.json")]) == 0
    assert np.array_equal(load_result(tmp_path / "r.json").coefficients, result.coefficients)
    assert (tmp_path / "part.npz").exists()
    assert capsys.readouterr().err == ""

"""Whole folders: a run that is killed three times ends with the summary of an undisturbed one; two cores against one.

Run: python benchmarks/folder.py [--movies 50] [--repeats 3]
A folder of noisy movies, 41 frames of 48 x 48, is identified with `doublewell identify data/*.npz --out results`. First
a run is killed (SIGKILL) when a sixth, a third and half of the movies are done, then resumed; every file is compared
with that of an undisturbed run. Then a run with one worker, pinned to one core, takes turns with one with two workers
on two cores, on the same movies, and the medians of their times are compared. Programs were cached before.
Of each run the processor seconds that it got are stored: where a run got much less than its cores have, others used
the machine, the ratio means nothing, and the page does not show it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

from common import RESULTS, ROOT, TINY, machine, markdown, print_table, renewed, sized, words, write_json

from doublewell.io import save
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, STEP = sized((48, 41, 0.06, 2e-4), tiny=(24, 9, 0.1, 5e-4))
KILLS, QUIET = 3, 80  # percent of its cores that a run gets on a machine that nobody else uses


def make_movies(folder: Path, count: int) -> list[Path]:
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    clean = simulate(named_law("sixth"), start, dx=1 / CELLS, dt=STEP, frames=FRAMES, epsilon=EPSILON)
    files = [folder / f"movie{k:02d}.npz" for k in range(count)]
    for k, file in enumerate(files):
        save(add_noise(clean, 0.03, seed=900 + k), file)
    lines = [f'"{file.name}" = {300 + 10 * (k // 5)}' for k, file in enumerate(files)]
    settings = ["surface_tension = 0.9877", '[conditions."T (K)"]', *lines]
    (folder / "doublewell.toml").write_text("\n".join(settings) + "\n")
    return files


def command(files: list[Path], out: Path, workers: int) -> list[str]:
    given = [*map(str, files), "--out", str(out), "--workers", str(workers), "--quiet"]
    return [sys.executable, "-m", "doublewell", "identify", *given]


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def timed(files: list[Path], out: Path, count: int) -> dict:
    """Run on so many cores with as many workers, from nothing."""
    rmtree(out, ignore_errors=True)
    load, began, before = os.getloadavg()[0], perf_counter(), getrusage(RUSAGE_CHILDREN)
    pin = lambda: os.sched_setaffinity(0, cores()[:count])  # noqa: E731
    subprocess.run(command(files, out, count), check=True, preexec_fn=pin)
    seconds, after = perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    got = round(100 * used / (count * seconds))
    return {
        "cores": count, "movies": len(files), "seconds": round(seconds, 2), "processor seconds": round(used, 2),
        "of its cores, %": got, "load before": round(load, 1),
    }  # fmt: skip


def done(out: Path) -> int:
    return len(list(out.glob("*/result.json")))


def killed(files: list[Path], out: Path) -> list[int]:
    """Kill a run three times and resume it; return how many movies were done at each kill."""
    counts = []
    for kill in range(KILLS):
        target = max(done(out) + 1, (kill + 1) * len(files) // 6)
        with subprocess.Popen(command(files, out, len(cores())), start_new_session=True) as process:
            while done(out) < target and process.poll() is None:
                sleep(0.02)
            process.kill() if kill % 2 else os.killpg(process.pid, signal.SIGKILL)
        sleep(1.0)  # workers that were left alone end
        counts.append(done(out))
    subprocess.run(command(files, out, len(cores())), check=True)
    return counts


def same_files(first: Path, second: Path) -> int:
    """Return how many files are equal to the last byte; an error names the first that is not."""
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    other = sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file() and path.suffix != ".part")
    assert names == other, set(names) ^ set(other)
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    return len(names)


def table(content: dict) -> str:
    """Return the table of the page."""
    counts = ", ".join(map(str, content["done at the kills"]))
    ratio = f"{content['ratio']:.2f}" if content["quiet"] else "the machine was busy"
    return markdown([
        ["movies", "done at the three kills", "files equal to the last byte", "two cores over one pinned core"],
        [str(content["movies"]), counts, str(content["files equal to the last byte"]), ratio],
    ])  # fmt: skip


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--movies", type=int, default=sized(50, tiny=4))
    parser.add_argument("--repeats", type=int, default=sized(3, tiny=1))
    asked = parser.parse_args(words())
    with TemporaryDirectory() as name:
        data = Path(name) / "data"
        data.mkdir()
        files = make_movies(data, asked.movies)
        subprocess.run(command(files[:1], Path(name) / "warm", 1), check=True)  # compiles
        whole = timed(files, Path(name) / "whole", len(cores()))
        counts = killed(files, Path(name) / "killed")
        equal = same_files(Path(name) / "whole", Path(name) / "killed")
        print(f"killed with {counts} of {len(files)} movies done; {equal} files equal to the last byte\n")
        runs = [timed(files, Path(name) / "timed", count) for _ in range(asked.repeats) for count in (1, 2)]
    print_table("Two cores against one", [whole, *runs])
    one, two = (median(run["seconds"] for run in runs if run["cores"] == count) for count in (1, 2))
    quiet = all(run["of its cores, %"] >= QUIET for run in runs)
    print(f"two cores are {one / two:.2f} times as fast as one pinned core{'' if quiet else ': the machine was busy'}")
    content = {
        "machine": machine(), "movies": len(files), "movie": f"{FRAMES} frames of {CELLS} x {CELLS}",
        "done at the kills": counts, "files equal to the last byte": equal, "summary is the same": True,
        "whole": whole, "runs": runs, "ratio": round(one / two, 2), "quiet": quiet,
    }  # fmt: skip
    write_json(RESULTS / "folder.json", content)
    if not TINY:
        page = ROOT / "docs/folders.md"
        page.write_text(renewed(page.read_text(), "benchmarks/results/folder.json", table(content)), encoding="utf-8")


if __name__ == "__main__":
    main()

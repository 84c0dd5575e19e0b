"""Damage files of every format at random and open them: each must end in a movie or in an InputError.

    python benchmarks/fuzz_files.py --rounds 2000 --seed 1 [--only exodus3 ...] [--out folder]

Each file is opened in another process, with a limit on time and memory, so that a crash or a hang is seen and counted.
What went wrong is kept in the folder: the damaged files, and the seed that makes them again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from common import target, words

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "io"))
from damage import damaged
from movie_writers import INEXACT, MORE, WRITERS, files_of

from doublewell.errors import InputError
from doublewell.io import open_record

FORMATS = WRITERS | MORE | INEXACT
SECONDS, MEMORY = 20.0, 16 * 2**30
SHAPE = (5, 6, 7)


def written(name: str, folder: Path):
    """A small movie in one format: its path, what is said when it is opened, and the bytes of its files."""
    u = np.random.default_rng(0).uniform(-1, 1, SHAPE).astype("f4").astype("f8")
    path, said = FORMATS[name](folder, u)
    return path, said, {file: file.read_bytes() for file in files_of(path)}


def attempt(path: Path, said: dict, files: dict, seed: int) -> str:
    """Damage one file by a seed and open the movie."""
    rng = np.random.default_rng(seed)
    place = sorted(files)[int(rng.integers(len(files)))]
    place.write_bytes(damaged(files[place], rng))
    try:
        open_record(path, **said).slab()
        return "movie"
    except InputError:
        return "refused"
    except Exception:
        return traceback.format_exc()
    finally:
        place.write_bytes(files[place])


def work(name: str, folder: str, seeds: range, pipe) -> None:
    """Try all seeds and report each before and after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    path, said, files = written(name, Path(folder))
    for seed in seeds:
        pipe.send((seed, None))
        pipe.send((seed, attempt(path, said, files, seed)))
    pipe.send((None, None))


def run(name: str, seeds: range, out: Path, seconds: float) -> dict:
    """Fuzz one format; a process that dies or stands still costs its seed and is replaced."""
    counts: dict = {"movie": 0, "refused": 0, "other": 0, "crash": 0, "hang": 0, "slowest": 0.0}
    context, start, todo = multiprocessing.get_context("fork"), time.time(), seeds
    while len(todo):
        with tempfile.TemporaryDirectory() as folder:
            todo = batch(name, folder, todo, counts, context, out, seconds)
    return counts | {"seconds": round(time.time() - start, 1)}


def batch(name, folder, seeds, counts, context, out, seconds) -> range:
    """Let one process work; return the seeds that are left."""
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(name, folder, seeds, its))
    process.start()
    its.close()
    at, clock = seeds[0], time.time()
    try:
        while mine.poll(seconds):
            at, outcome = mine.recv()
            counts["slowest"], clock = max(counts["slowest"], round(time.time() - clock, 2)), time.time()
            if at is None:
                return range(0)
            if outcome is not None:
                counts[outcome if outcome in counts else "other"] += 1
                if outcome not in counts:
                    keep(name, at, outcome, out)
        counts["hang"] += 1
        keep(name, at, "no answer", out)
    except EOFError:
        process.join()
        counts["crash"] += 1
        keep(name, at, f"process ended, exit code {process.exitcode}", out)
    finally:
        process.kill()
        process.join()
    return range(at + 1, seeds.stop)


def keep(name: str, seed: int, said: str, out: Path) -> None:
    """Write the damaged movie beside what was said of it."""
    folder = out / f"{name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _, options, files = written(name, folder)
    rng = np.random.default_rng(seed)
    place = sorted(files)[int(rng.integers(len(files)))]
    place.write_bytes(damaged(files[place], rng))
    (folder / "said.txt").write_text(f"{place}\n{options}\n{said}\n")
    print(f"{name} seed {seed}: {said.strip().splitlines()[-1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=500, help="damaged files of each format")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="until a file counts as a hang")
    parser.add_argument("--only", nargs="*", default=list(FORMATS))
    parser.add_argument("--out", type=Path, default=target(Path("out/fuzz")))
    asked = parser.parse_args(words("--rounds 2"))
    found = {}
    for name in asked.only:
        found[name] = run(name, range(asked.seed, asked.seed + asked.rounds), asked.out, asked.seconds)
        print(name, found[name], flush=True)
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / "fuzz.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

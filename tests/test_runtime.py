"""Compiled programs kept between processes and dropped where too many are held; threads: order, errors, forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from doublewell import runtime
from doublewell.runtime import map_threads

CODE = """
import sys
from doublewell.runtime import double_precision
with double_precision():
    import jax
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.jit(lambda x: x * 2.5 + 1.0)(1.0).block_until_ready()
print(jax.config.jax_compilation_cache_dir)
"""


def run(**variables: str) -> str:
    names = ("DOUBLEWELL_CACHE", "JAX_COMPILATION_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment | variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and not path.name.endswith("atime")}


def sound() -> bool:
    import jax

    return bool(jax.__version_info__ >= runtime._SOUND)


def test_an_old_jax_keeps_nothing(monkeypatch, tmp_path) -> None:
    import jax

    monkeypatch.setenv("DOUBLEWELL_CACHE", str(tmp_path / "here"))
    monkeypatch.setattr(jax, "__version_info__", (0, 6, 0))
    before = jax.config.jax_compilation_cache_dir
    runtime.keep_compiled.__wrapped__()
    assert jax.config.jax_compilation_cache_dir == before
    assert not (tmp_path / "here").exists()


@pytest.mark.skipif(not sound(), reason="programs that this JAX loads from a cache are wrong, so none is kept")
def test_programs_are_kept_in_the_folder_and_found_again(tmp_path) -> None:
    place = run(DOUBLEWELL_CACHE=str(tmp_path))
    assert Path(place).parent == tmp_path
    kept = files(tmp_path)
    assert kept
    run(DOUBLEWELL_CACHE=str(tmp_path))
    assert files(tmp_path) == kept


@pytest.mark.skipif(not sound(), reason="programs that this JAX loads from a cache are wrong, so none is kept")
def test_the_default_is_the_users_cache(tmp_path) -> None:
    if sys.platform != "linux":
        pytest.skip("the folder has another name there")
    assert Path(run(XDG_CACHE_HOME=str(tmp_path))).parent == tmp_path / "doublewell"


def test_off_means_off_and_the_users_own_choice_stays(tmp_path) -> None:
    assert run(DOUBLEWELL_CACHE="off") == "None"
    assert run(JAX_COMPILATION_CACHE_DIR=str(tmp_path)) == str(tmp_path)


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    assert run(DOUBLEWELL_CACHE=str(tmp_path / "file")) == "None"


def test_the_machine_has_a_name_that_stays() -> None:
    assert runtime._machine() == runtime._machine()
    assert len(runtime._machine()) == 12


def test_programs_are_dropped_where_room_runs_out(monkeypatch, tmp_path):
    dropped = []
    monkeypatch.setattr("jax.clear_caches", lambda: dropped.append(1))
    limit, used = tmp_path / "limit", tmp_path / "used"
    monkeypatch.setattr(runtime, "_LIMIT", limit)
    monkeypatch.setattr(runtime, "_USED", used)
    assert not runtime.leave_room()  # a system that does not say
    limit.write_text("10\n")
    used.write_text("piece\n" * 5)
    assert not runtime.leave_room()
    used.write_text("piece\n" * 6)
    assert runtime.leave_room()
    assert dropped == [1]


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 7])
def test_results_come_in_the_order_of_the_items(count, length) -> None:
    def slow_first(k: int) -> int:
        time.sleep(0.002 * (length - k))
        return k * k

    assert map_threads(count, slow_first, range(length)) == [k * k for k in range(length)]


def test_others_take_part() -> None:
    together = threading.Barrier(3, timeout=30.0)
    map_threads(3, lambda _: together.wait(), range(3))


def test_one_thread_is_the_one_that_asks() -> None:
    assert set(map_threads(1, lambda _: threading.get_ident(), range(4))) == {threading.get_ident()}


@pytest.mark.parametrize("bad", [0, 3])
def test_an_error_reaches_the_caller_and_ends_the_work(bad) -> None:
    begun = []

    def fail(k: int) -> None:
        begun.append(k)
        if k == bad:
            raise ValueError(f"item {k}")
        time.sleep(0.005)

    with pytest.raises(ValueError, match=f"item {bad}"):
        map_threads(2, fail, range(200))
    seen = len(begun)
    assert seen < 20
    time.sleep(0.05)
    assert len(begun) == seen  # nothing goes on behind the caller's back
    assert map_threads(2, abs, [-1, -2]) == [1, 2]


FORKS = """
import os
from doublewell.runtime import map_threads
map_threads(2, abs, range(4))
child = os.fork()
if child == 0:
    os._exit(0 if map_threads(2, abs, range(4)) == [0, 1, 2, 3] else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0"

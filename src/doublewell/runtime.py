"""What computing runs on: threads that stay; the device of JAX, its precision, and its compiled programs."""

from __future__ import annotations

import os
import platform
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from doublewell.errors import InputError, option

_In = TypeVar("_In")
_Out = TypeVar("_Out")
SWITCH = "DOUBLEWELL_CACHE"  # a folder, or "off"
_SOUND = (0, 6, 2)  # of JAX: programs that 0.5.3 and 0.6.0 load from their cache end a loop before its first round
_PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin")
_CPU_MEMORY = 10**9
_WORTH = 30_000_000  # values below which compiling for a GPU takes longer than reading on a CPU
_LIMIT, _USED = Path("/proc/sys/vm/max_map_count"), Path("/proc/self/maps")
_FULL = 0.6  # fraction of the memory maps in use above which old programs are dropped


def cores() -> int:
    """Return how many cores this process may use: one where its libraries are told to use one thread."""
    if os.environ.get("OMP_NUM_THREADS") == "1":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_threads(count: int, function: Callable[[_In], _Out], items: Iterable[_In]) -> list[_Out]:
    """Call a function for each item, on the thread that asks and count - 1 others; return what it gave, in order.

    The others stay until the process ends. The function must not wait for another call of this kind.

    >>> map_threads(2, abs, [-1, 2, -3])
    [1, 2, 3]
    """
    given = list(items)
    results: dict[int, _Out] = {}
    todo = deque(range(len(given)))

    def work() -> None:
        while todo:
            try:
                k = todo.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[k] = function(given[k])
            except BaseException:
                todo.clear()  # nobody begins anything new
                raise

    others = [_kept(count - 1).submit(work) for _ in range(min(count, len(given)) - 1)]
    try:
        work()
    finally:
        wait(others)
    for other in others:
        other.result()
    return [results[k] for k in range(len(given))]


@lru_cache(maxsize=8)
def _kept(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="doublewell")


if hasattr(os, "register_at_fork"):  # a forked process has none of them
    os.register_at_fork(after_in_child=_kept.cache_clear)


def device_names() -> tuple[str, ...]:
    """Return the platform and kind of every device, the default one first."""
    import jax

    return tuple(f"{device.platform}: {device.device_kind}" for device in jax.devices())


def on_gpu() -> bool:
    """Return whether JAX's default device is something other than the CPU."""
    import jax

    chosen = jax.config.jax_default_device
    return str(jax.default_backend() if chosen is None else getattr(chosen, "platform", chosen)) != "cpu"


def gpu_found() -> bool:
    """Return whether JAX has a GPU, without importing it where no plugin for one is installed."""
    return any(find_spec(name) is not None for name in _PLUGINS) and on_gpu()


@dataclass(frozen=True)
class Processor:
    """A device, and the precision of the sums on it; they are added up in double precision."""

    device: str = "cpu"  # or "gpu"
    precision: str = "double"  # or "single", on a GPU


CPU = Processor()


def choose_processor(device: str | None, precision: str, values: int) -> Processor:
    """Return what a record of so many values is read on: what was asked for, or a GPU where one is and it is worth it.

    >>> choose_processor(None, "double", 1000)
    Processor(device='cpu', precision='double')
    """
    if device == "gpu" and not on_gpu():
        raise InputError(
            f"{option('device', 'gpu')}, but JAX sees only a CPU here: install JAX for the GPU (pip install "
            "'jax[cuda12]'), see 'doublewell doctor', or leave device out"
        )
    gpu = device == "gpu" or (device is None and values >= _WORTH and gpu_found())
    if precision == "single" and not gpu:
        raise InputError(
            f"{option('precision', 'single')} is for a GPU, on a CPU it saves nothing: add "
            f"{option('device', 'gpu')} or leave it"
        )
    return Processor("gpu" if gpu else "cpu", precision)


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Let JAX compute on the CPU for the length of a block; without "cpu" on what it finds."""
    if device != "cpu":
        yield
        return
    import jax

    with jax.default_device(jax.devices("cpu")[0]):
        yield


def device_memory() -> int:
    """Return the bytes that arrays on the default device may take; a small number where the device does not tell."""
    import jax

    stats = jax.devices()[0].memory_stats() or {}
    return int(stats.get("bytes_limit", _CPU_MEMORY))


def double_precision() -> AbstractContextManager[None]:
    """Return a context in which JAX computes in float64; no global flag is touched.

    >>> with double_precision():
    ...     import jax.numpy as jnp
    ...     print(jnp.ones(1).dtype)
    float64
    """
    keep_compiled()
    return _precision(double=True)


@contextmanager
def single_precision() -> Iterator[None]:
    """Let JAX compute in float32 for the length of a block, inside ``double_precision()``; no product is rounded more.

    >>> with double_precision(), single_precision():
    ...     import jax.numpy as jnp
    ...     print(jnp.ones(1).dtype)
    float32
    """
    import jax

    with _precision(double=False), jax.default_matmul_precision("highest"):  # a GPU would take ten bits
        yield


def _precision(*, double: bool) -> AbstractContextManager[None]:
    import jax

    if hasattr(jax, "enable_x64"):  # from jax 0.8
        context: AbstractContextManager[None] = jax.enable_x64(double)
    else:
        from jax.experimental import enable_x64

        context = enable_x64(double)
    return context


@cache
def keep_compiled() -> None:
    """Give JAX a folder for compiled programs, unless the user chose one, or none; once in a process.

    JAX before 0.6.2 gets none: what it loads on a CPU gives other numbers than what it compiled.
    """
    import jax

    if jax.__version_info__ < _SOUND:
        return
    wanted = os.environ.get(SWITCH, "")
    if wanted.lower() in ("off", "0", "no") or jax.config.jax_compilation_cache_dir is not None:
        return
    usual = {"win32": os.environ.get("LOCALAPPDATA", "~"), "darwin": "~/Library/Caches"}
    home = usual.get(sys.platform, os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    folder = Path(wanted or f"{home}/doublewell").expanduser() / f"jax-{_machine()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written: compile each time, as JAX does by itself
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # ten of the dozen of a fit take less than 1 s


def _machine() -> str:
    """Name the kind of processor: programs compiled for one may not run on another that shares the home folder."""
    text = f"{platform.machine()} {platform.processor()}"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    kinds = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    return sha256(" ".join([text, *kinds]).encode()).hexdigest()[:12]


def leave_room() -> bool:
    """Drop all compiled programs where so many are held that more could crash the process; return whether it did.

    Linux gives a process a limited number of memory maps, 65530 as a rule, and a program takes some dozens. After some
    hundred records of different shapes the limit is reached, and JAX dies on the next one. Programs that are needed
    again are loaded from the cache on disk.
    """
    try:
        limit = int(_LIMIT.read_text())
        used = _USED.read_bytes().count(b"\n")
    except (OSError, ValueError):  # not Linux
        return False
    if used < _FULL * limit:
        return False
    import jax

    jax.clear_caches()
    return True

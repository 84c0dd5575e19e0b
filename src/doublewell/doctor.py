"""Doctor: what of this machine doublewell can use, and how long a small fit takes on it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from time import perf_counter

from doublewell.hints import Report
from doublewell.jax_runtime import device_names

__all__ = ["Diagnosis", "Extra", "Timing", "examine"]

_NEED = re.compile(r"""^([\w.-]+)[^;]*(?:;.*extra\s*==\s*["']([\w-]+)["'])?""")
_TOOLS = ("all", "dev")  # sets of the other extras, and what the tests need


@dataclass(frozen=True)
class Extra:
    """An optional part: its packages with their versions, None where one is missing."""

    name: str
    packages: tuple[tuple[str, str | None], ...]

    @property
    def ready(self) -> bool:
        """Whether all packages are there."""
        return all(found is not None for _, found in self.packages)

    @property
    def cure(self) -> str:
        """The command that installs it."""
        return f"pip install 'doublewell[{self.name}]'"


@dataclass(frozen=True)
class Timing:
    """Seconds of a small fit: the first, compilation included, and the next."""

    reading: str
    first: float
    next: float


@dataclass(frozen=True)
class Diagnosis:
    """What was found; ``print(diagnosis)`` gives it in words."""

    version: str
    python: str
    machine: str
    cores: int
    packages: tuple[tuple[str, str | None], ...]
    extras: tuple[Extra, ...]
    devices: tuple[str, ...]
    cache: str | None
    cache_bytes: int
    timings: tuple[Timing, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that doublewell needs and that are not there."""
        return tuple(name for name, found in self.packages if found is None)

    def __str__(self) -> str:
        lines = [f"doublewell {self.version}, Python {self.python}, {self.machine}, {self.cores} cores", "", "Packages"]
        lines += [
            f"  {name} {found or 'MISSING: run pip install --upgrade doublewell'}" for name, found in self.packages
        ]
        lines += ["", "Extras", *(f"  {_extra_words(extra)}" for extra in self.extras)]
        lines += ["", "Devices", *(f"  {device}" for device in self.devices or ("none: JAX is missing",))]
        kept = "off" if self.cache is None else f"{self.cache} ({self.cache_bytes / 1e6:.0f} MB)"
        lines += ["", f"Compiled programs are kept in: {kept}"]
        for timing in self.timings:
            lines.append(f"A small fit, {timing.reading}: {timing.first:.1f} s at first, then {timing.next:.2f} s")
        return "\n".join(lines)


def examine(*, fit: bool = True, progress: Report | None = None) -> Diagnosis:
    """Look for packages, extras, devices and the cache, and with `fit` time both readings on a small movie.

    The first fit of a machine compiles; later processes load what it compiled.
    """
    needs = _needs()
    packages = tuple((name, _version(name)) for name in needs.get("", ()))
    extras = tuple(
        Extra(name, tuple((package, _version(package)) for package in wanted))
        for name, wanted in needs.items()
        if name and name not in _TOOLS
    )
    ready = all(found is not None for _, found in packages)
    timings = _timings(progress or _silent) if fit and ready else ()
    place = _cache() if ready else None
    return Diagnosis(
        version=_version("doublewell") or "not installed",
        python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        packages=packages,
        extras=extras,
        devices=device_names() if ready else (),
        cache=None if place is None else str(place),
        cache_bytes=0 if place is None else sum(file.stat().st_size for file in place.rglob("*") if file.is_file()),
        timings=timings,
    )


def _needs() -> dict[str, list[str]]:
    """Return the packages that the installed doublewell declares: needed ones under "", the others by extra."""
    found: dict[str, list[str]] = {}
    for line in metadata("doublewell").get_all("Requires-Dist") or []:
        if (parts := _NEED.match(line)) and parts[1] != "doublewell":
            found.setdefault(parts[2] or "", []).append(parts[1])
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cache() -> Path | None:
    """Return the folder of compiled programs, None where they are not kept."""
    import jax

    from doublewell.jax_runtime import keep_compiled

    keep_compiled()
    place = jax.config.jax_compilation_cache_dir
    return None if place is None else Path(place)


def _timings(say: Report) -> tuple[Timing, ...]:
    """Time both readings twice on 13 frames of 24 x 24 pixels."""
    from doublewell.identify import identify
    from doublewell.law import named_law
    from doublewell.simulate import add_noise, initial_field, simulate

    start = initial_field("circle", (24, 24), 1 / 24, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=13, epsilon=0.1)
    movie = add_noise(clean, 0.02, seed=1)
    found = []
    for reading, work in (
        ("weak reading", lambda: identify(movie, law=1, method="weak")),
        ("trajectory reading", lambda: identify(movie, law=1, check=False)),
    ):
        say(f"timing the {reading}", 0, 0)
        found.append(Timing(reading, _seconds(work), _seconds(work)))
    return tuple(found)


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _extra_words(extra: Extra) -> str:
    if extra.ready:
        return f"{extra.name}: there ({', '.join(f'{name} {found}' for name, found in extra.packages)})"
    return f"{extra.name}: not installed; {extra.cure}"


def _silent(_: str, __: int, ___: int) -> None:
    """Say nothing, where nobody asked."""

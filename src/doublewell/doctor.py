"""Doctor: what of this machine doublewell can use, and how long a small fit takes on it."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from time import perf_counter

from doublewell.hints import Report
from doublewell.runtime import device_names, keep_compiled

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
        return all(number is not None for _, number in self.packages)

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.packages)
        advice = f"not installed; pip install 'doublewell[{self.name}]'"
        return f"{self.name}: {f'installed ({versions})' if self.ready else advice}"


@dataclass(frozen=True)
class Timing:
    """Seconds of a small fit: the first, compilation included, and the next."""

    name: str
    first: float
    next: float


@dataclass(frozen=True)
class Diagnosis:
    """What is installed and usable; ``print(diagnosis)`` gives it as text."""

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
        return tuple(name for name, number in self.packages if number is None)

    def __str__(self) -> str:
        lines = [f"doublewell {self.version}, Python {self.python}, {self.machine}, {self.cores} cores", "", "Packages"]
        missing = "MISSING: run pip install --upgrade doublewell"
        lines += [f"  {name} {number or missing}" for name, number in self.packages]
        lines += ["", "Extras", *(f"  {extra}" for extra in self.extras)]
        lines += ["", "Devices", *(f"  {device}" for device in self.devices or ("none: JAX is missing",))]
        kept = "off" if self.cache is None else f"{self.cache} ({self.cache_bytes / 1e6:.0f} MB)"
        lines += ["", f"Compiled programs are kept in: {kept}"]
        for timing in self.timings:
            lines.append(f"A small {timing.name}: {timing.first:.1f} s at first, then {timing.next:.2f} s")
        return "\n".join(lines)


def examine(*, fit: bool = True, progress: Report | None = None) -> Diagnosis:
    """Look for packages, extras, devices and the cache, and with `fit` time both methods on a small movie.

    The first fit of a machine compiles; later processes load what it compiled.
    """
    needs: dict[str, list[tuple[str, str | None]]] = {"": []}  # of doublewell itself under "", the others by extra
    for line in metadata("doublewell").get_all("Requires-Dist") or []:
        if (parts := _NEED.match(line)) and parts[1] != "doublewell":
            needs.setdefault(parts[2] or "", []).append((parts[1], _version(parts[1])))
    packages = tuple(needs.pop(""))
    ready = all(number is not None for _, number in packages)
    timings = _timings(progress or (lambda *_: None)) if fit and ready else ()
    cache = None
    if ready:
        import jax

        keep_compiled()
        cache = jax.config.jax_compilation_cache_dir
    files = [] if cache is None else Path(cache).rglob("*")
    return Diagnosis(
        version=_version("doublewell") or "not installed",
        python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        packages=packages,
        extras=tuple(Extra(name, tuple(wanted)) for name, wanted in needs.items() if name not in _TOOLS),
        devices=device_names() if ready else (),
        cache=cache,
        cache_bytes=sum(file.stat().st_size for file in files if file.is_file()),
        timings=timings,
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _timings(show: Report) -> tuple[Timing, ...]:
    """Time both methods twice on 13 frames of 24 x 24 pixels."""
    from doublewell.identify import identify
    from doublewell.law import named_law
    from doublewell.simulate import add_noise, initial_field, simulate

    start = initial_field("circle", (24, 24), 1 / 24, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=13, epsilon=0.1)
    movie = add_noise(clean, 0.02, seed=1)
    timings = []
    for name, options in (("weak-form fit", {"method": "weak"}), ("trajectory fit", {"check": False})):
        show(f"timing the {name}", 0, 0)
        seconds = []
        for _ in range(2):
            began = perf_counter()
            identify(movie, law=1, **options)
            seconds.append(perf_counter() - began)
        timings.append(Timing(name, *seconds))
    return tuple(timings)

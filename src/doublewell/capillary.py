"""Capillary waves: the tension of flat interfaces over kT, from how their heights fluctuate in a movie.

In equilibrium L^(d-1) <|h_k|^2> = kT / (sigma k^2), h_k the mean of h exp(-ikx) over the interface. The height is that
of the Gibbs dividing surface, an integral of the field across the interface, to which the phases and the camera add
noise: about as much as to such an integral over the phases alone, which is measured too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from doublewell.errors import InputError, real
from doublewell.hints import Array, Bools
from doublewell.law import check_phases
from doublewell.record import Record, check_record

_CLEAR = 0.5  # mean over a plane parallel to the interface beyond which it lies in a phase, phases at -1 and +1
_FLAT = 0.25  # most variance of the means over planes normal to the interface, in that of parallel ones
_BROKEN, _CHECKED = 0.1, 50  # fraction of lines that may cross the interface more than once; frames looked at
_ROOM = 0.8  # part of the way to the middle of a phase that heights may be integrated over
_FAR, _NEAR = 4.0, 2.5  # half of the integral over z in widths of the interface, and the least
_WIDTH = 0.45  # standard deviation of the slope over the integral of 1 - u^2: 0.454 of tanh, 0.443 of erf
_SHORT, _LEAST = 1.3, 3  # largest k times width, up to which spectra of phi^4 fit; wave numbers
_FORGOTTEN = (0.05, 0.1)  # correlation in time that is left out, of powers and of amplitudes
_RESOLVED = 1.2  # frames that count as one, from which on a rate is known
_POWERS = (2.0, 3.0)  # z of rates k^z: Allen-Cahn, Cahn-Hilliard
_STILL = 1e-6  # cells, of a wave that is due to rounding
_TURN = 1.5  # loss of power of a periodic line times sigma L / kT: -sigma g'''' / (2 g''^2), g = sqrt(sigma^2 + q^2)


@dataclass(frozen=True, eq=False)
class Capillary:
    """Hold the tension of flat interfaces over kT, its standard error, and the spectrum that it rests on.

    ``tension`` and ``sd`` are in 1 / length^(d-1), the length that of dx. On a lattice it is the stiffness, the tension
    plus its second derivative with the angle. ``power`` is L^(d-1) <|h_k|^2> at the wave numbers ``waves``, ``model``
    the fit to it and ``floor`` the noise in that; ``samples`` are independent real amplitudes. ``width`` is the
    standard deviation of the slope of the profile without these waves, ``plateaus`` are the mean values of the phases,
    ``axis`` is normal to the interfaces. Waves of a periodic line are as small as those of a tension that is larger by
    ``stiffening`` = 3 / (2 L), because the energy of a line, its length, is not quadratic in the slope.
    """

    tension: float
    sd: float
    interfaces: int
    axis: int
    width: float
    plateaus: tuple[float, float]
    waves: Array
    power: Array
    model: Array
    floor: Array
    samples: Array
    stiffening: float = 0.0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the tension: that of a variance of as many normal numbers as it is known to."""
        from scipy.special import chdtri

        if not 0.0 < real(level, "level", "a probability between 0 and 1") < 1.0:
            raise InputError(f"level is {level:g}: expected a probability between 0 and 1, such as 0.95")
        measured = self.tension + self.stiffening
        freedom = 2.0 * (measured / self.sd) ** 2
        low, high = (measured * float(chdtri(freedom, 0.5 + half)) / freedom for half in (level / 2, -level / 2))
        return low - self.stiffening, high - self.stiffening

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"tension / kT = {self.tension:.4g} +- {self.sd:.2g} (95 %: {low:.4g} to {high:.4g}), flat interfaces: "
            f"{self.interfaces}, wave numbers: {len(self.waves)}, independent amplitudes: {np.sum(self.samples):.0f}"
        )


def capillary(record: Record, *, phases: tuple[float, float] = (-1.0, 1.0)) -> Capillary:
    """Return the tension over kT of a movie of flat interfaces in equilibrium, from their capillary waves.

    One or two interfaces span the field along all axes but one: a layer between walls or in a window, or a periodic
    strip. ``phases`` are about the values of the phases, to see where the interfaces are; heights are measured with the
    mean values in the record. The waves that are longer than the interface is wide are fitted by 1 / (sigma k^2) and
    a multiple of the noise of the phases (Whittle's likelihood), each wave number with as many samples as its
    correlation in time leaves. Leave out frames before equilibrium (``record.clip``): waves need a time of 1 / k^2, in
    a conserved field 1 / k^3.

    >>> from doublewell import named_law, simulate
    >>> flat = np.tanh((np.arange(24) - 11.5) / (np.sqrt(2) * 1.5)) * np.ones((48, 1))
    >>> law, more = named_law("quartic"), {"dt": 40.0, "frames": 60, "substeps": 80, "boundary": "neumann", "seed": 1}
    >>> movie = simulate(law, flat, dx=1.0, epsilon=1.5, theta=0.02, **more).clip(10, 60)
    >>> low, high = capillary(movie).interval()
    >>> low < law.effective(1.5).tension_integral / 0.02 < high
    True
    """
    pure, periodic = check_phases(phases), check_record(record).boundary == "periodic"
    line = len(record.mesh) == 2
    if record.mask is not None or not (line or (len(record.mesh) == 3 and record.boundary in ("periodic", "neumann"))):
        raise InputError(  # of a line in a window cosines are the modes too: its slopes are independent
            f"{record!r} cannot be used: expected a complete movie of two axes, or of three with boundary "
            "'periodic' or 'neumann'"
        )
    u = (2.0 * record.slab() - sum(pure)) / (pure[1] - pure[0])
    axis, sides, places = _flat(u, periodic)
    u, dz = np.moveaxis(u, axis + 1, 1), record.dx[axis]
    dx, mesh = np.delete(record.dx, axis), np.delete(record.mesh, axis)
    profile, flat = np.mean(u, axis=tuple(range(2, u.ndim))), [1] * len(mesh)
    bulk, half, width, (low, high) = _phases(profile, places, periodic)
    u = (2.0 * u - high - low) / (high - low)
    _check_columns(u, width * dz / (2.0 * np.array([dz, *dx])), len(sides), periodic)
    forward, backward, waves, shell, size = _modes(mesh, dx, periodic)

    def power_of(modes: Any) -> Array:
        each = np.mean(np.abs(modes) ** 2, axis=(0, 1)).ravel()
        return np.asarray(prod(dx) * np.bincount(shell.ravel(), each)[1:] / size)

    weight = 0.5 * dz * bulk / np.sqrt(np.sum(bulk, axis=1, keepdims=True))
    noise = np.einsum("tz,tz...->t...", weight, u - np.sign(profile).reshape(*profile.shape, *flat))
    floor = power_of(forward(noise[:, None]))
    middle = np.rint(places).astype(int).reshape(*places.shape, *flat)
    for _ in range(2):  # around a plane, then around the long waves
        heights = [_heights(u, middle[:, n], half, side, periodic) for n, side in enumerate(sides)]
        modes = forward(dz * np.stack(heights, axis=1))
        power, noisy = power_of(modes), (2 * half + 1) * floor
        left = (dz * width) ** 2 - np.cumsum(size * np.maximum(power - noisy, 0.0)) / prod(mesh * dx)
        clear = (waves**2 * left < _SHORT**2) & (waves * np.max(dx) < 1.0)
        count = int(np.sum(np.minimum.accumulate(clear)))
        if count < _LEAST:
            raise InputError(
                f"{count} wave numbers are clear of the width of the interface, {dz * width:.3g} with all waves, and "
                f"of a cell: expected at least {_LEAST}; use a longer field"
            )
        own = float(np.sqrt(max(left[count - 1], 0.0)))
        middle = np.rint(backward(modes * (shell <= count)).real / dz).astype(int)
        half = min(half, int(np.ceil(_FAR * max(own / dz, 1.0))))
    k, power = waves[:count], power[:count]
    if not np.all(power > prod(mesh * dx) * (_STILL * dz) ** 2):
        raise InputError("the interface stands still: expected a movie with thermal fluctuations in equilibrium")
    parts = [modes[:, :, shell == n] for n in range(1, count + 1)]
    samples = _samples(k, parts)
    seen = np.sinc(k * np.mean(dx) / (2.0 * np.pi)) ** 2 if record.origin == "camera" else 1.0  # through pixels
    columns = np.stack([seen / k**2, noisy[:count]], axis=1)
    inverse, model, weight = _fit(columns, power, samples)
    if not inverse > 0.0:
        raise InputError(
            "the interface has no waves above the noise of the phases: expected a movie with thermal fluctuations; use "
            "more frames, or less camera noise"
        )
    single = prod(dx) * np.stack([np.mean(np.abs(a) ** 2, axis=-1) for a in parts], axis=-1)
    score = (single / model - 1.0) @ weight  # of frames: waves that are not small are not independent of each other
    score = score - np.mean(score)
    relative = np.sqrt(max(np.sum(2.0 * weight**2 / samples), np.mean(score**2) * _time(score, 1) / score.size))
    more = _TURN / float(mesh[0] * dx[0]) if periodic and line else 0.0
    plateaus = (pure[0] + (pure[1] - pure[0]) * (1.0 + low) / 2, pure[0] + (pure[1] - pure[0]) * (1.0 + high) / 2)
    return Capillary(
        1.0 / inverse - more, float(relative) / inverse, len(sides), axis, own, plateaus, k, power, model,
        model - inverse * columns[:, 0], samples, more,
    )  # fmt: skip


def _flat(u: Array, periodic: bool) -> tuple[int, list[float], Array]:
    """Return the axis across the interfaces, the sign of the phase before each, their places [t, interface]."""
    across = [np.mean(u, axis=tuple(a for a in range(1, u.ndim) if a != axis)) for axis in range(1, u.ndim)]
    contrast = [float(np.mean(np.var(profiles, axis=1))) for profiles in across]
    axis = int(np.argmax(contrast))
    changes = [_changes(profile, periodic) for profile in across[axis]]
    if not any(changes) or np.sort(contrast)[-2] > _FLAT * contrast[axis]:
        raise InputError(
            "no flat interface spans the field: expected one or two, normal to an axis, not a drop or a labyrinth; "
            "check phases="
        )
    sides = [side for side, _ in changes[0]]
    for frame, own in enumerate(changes):
        if len(sides) > 2 or [side for side, _ in own] != sides:
            raise InputError(
                f"frame {frame} has {len(own)} flat interfaces and frame 0 has {len(sides)}: expected one or two, the "
                "same in all frames; cut the record where they meet (record.clip)"
            )
    return axis, sides, np.array([[place for _, place in own] for own in changes])


def _changes(profile: Array, periodic: bool) -> list[tuple[float, float]]:
    """Return the sign before each change from phase to phase along a line, and its place in cells."""
    clear, cells, changes = np.flatnonzero(np.abs(profile) > _CLEAR), len(profile), []
    for a, b in zip(clear, [*clear[1:], *(clear[:1] + cells if periodic else [])], strict=False):
        side = float(np.sign(profile[a]))
        if side * profile[b % cells] < 0.0:
            between = profile[np.arange(a + 1, b) % cells]
            changes.append((side, a + 0.5 + float(np.sum(1.0 + side * between)) / 2))
    return sorted(changes)


def _phases(profile: Array, places: Array, periodic: bool) -> tuple[Bools, int, float, tuple[float, float]]:
    """Return which cells [t, z] are in a phase, half the extent of the others, the width, the mean phases."""
    cells, gaps, around = profile.shape[1], np.abs(np.diff(places)), np.rint(places).astype(int)
    rooms = (gaps, cells - gaps) if periodic else (gaps, 2.0 * places, 2.0 * (cells - 1.0 - places))
    half = int(_ROOM / 2 * min(float(np.min(room)) for room in rooms if room.size))
    apart = np.abs(np.arange(cells)[:, None] - around[:, None])
    apart = np.min(np.minimum(apart, cells - apart) if periodic else apart, axis=-1)
    for _ in range(2):
        bulk = apart > half
        low, high = (float(np.mean(profile[bulk & (side * profile > 0.0)])) for side in (-1.0, 1.0))
        index = (around[:, :, None] + np.arange(-half, half + 1)) % cells
        mean = np.mean([line[i] for line, i in zip(profile, index, strict=True)], axis=0)
        width = _WIDTH * float(np.mean(np.sum(1.0 - ((2.0 * mean - high - low) / (high - low)) ** 2, axis=-1)))
        half = min(half, int(np.ceil(_FAR * width)))
    if half < _NEAR * width:
        raise InputError(
            f"interfaces are {width:.3g} cells wide, waves included, and have {half} to a side: expected {_NEAR:g} "
            "widths; use a larger field across them"
        )
    return bulk, half, width, (low, high)


def _check_columns(u: Array, width: Array, interfaces: int, periodic: bool) -> None:
    """Raise where lines across u[t, z, x], smoothed by half the width of the interface, meet it more than once."""
    from scipy.ndimage import gaussian_filter

    some = u[:: max(1, len(u) // _CHECKED)]
    up = gaussian_filter(some, (0.0, *width), mode="wrap" if periodic else "nearest") > 0.0
    crossed = np.sum(up[:, 1:] != up[:, :-1], axis=1) + periodic * (up[:, 0] != up[:, -1])
    if (broken := float(np.mean(crossed != interfaces))) > _BROKEN:
        raise InputError(
            f"{100 * broken:.0f} % of the lines across the interface meet it more than once: expected one height at "
            "each point, no overhangs and no drops in the phases; use another part of the movie"
        )


def _heights(u: Array, middle: Any, half: int, side: float, periodic: bool) -> Array:
    """Return heights [t, x], in cells, from the cells up to `half` from middle[t, x]."""
    index = middle[:, None] + np.arange(-half, half + 1).reshape(-1, *[1] * (u.ndim - 2))
    index = index % u.shape[1] if periodic else np.clip(index, 0, u.shape[1] - 1)
    frame, _, *along = np.ogrid[tuple(slice(n) for n in u.shape)]
    return np.asarray(middle + side / 2 * np.sum(u[(frame, index, *along)], axis=1))


def _modes(mesh: Any, dx: Array, periodic: bool) -> tuple[Any, ...]:
    """Return transforms of the last axes, the wave numbers |k| > 0, the place of each mode in these, their modes."""
    from scipy import fft

    over: dict[str, Any] = {"axes": tuple(range(-len(mesh), 0)), "norm": "ortho"}
    forward, backward = (fft.fftn, fft.ifftn) if periodic else (fft.dctn, fft.idctn)
    base = (2.0 if periodic else 1.0) * np.pi / (mesh * dx)
    lines = [k * (np.fft.fftfreq(n, 1.0 / n) if periodic else np.arange(n)) for k, n in zip(base, mesh, strict=True)]
    size = np.sqrt(sum(k**2 for k in np.meshgrid(*lines, indexing="ij"))) / np.min(base)
    waves, shell, number = np.unique(np.round(size, 6), return_inverse=True, return_counts=True)
    shell = shell.reshape(mesh)
    return partial(forward, **over), partial(backward, **over), np.min(base) * waves[1:], shell, number[1:]


def _samples(k: Array, parts: list[Array]) -> Array:
    """Return how many independent amplitudes modes [t, interface, mode] have, for each of the wave numbers.

    The power of a mode with the rate r counts tanh(r dt) of a frame. Rates are c k^z, c and z from the faster waves:
    that of a slow one is not known well, and one that happens to be large would count less.
    """
    each, times = np.array([float(a.size) for a in parts]), np.array([_time(a, 2) for a in parts])
    known = times > _RESOLVED
    if not np.any(known):
        return np.asarray(each / times)
    rates, weight = np.log(np.arctanh(1.0 / times[known])), (each / times)[known]
    power = np.polyfit(np.log(k[known]), rates, 1, w=weight)[0] if np.count_nonzero(known) > 1 else 0.0
    power = np.clip(power, *_POWERS)
    rate = np.average(rates - power * np.log(k[known]), weights=weight**2)
    return np.asarray(each * np.tanh(np.exp(rate + power * np.log(k))))


def _time(a: Array, power: int) -> float:
    """Return how many frames of a[t, ...] count as one, from a power of the correlation in time."""
    total, square = 1.0, float(np.mean(np.abs(a) ** 2))
    for lag in range(1, len(a) // 2):
        correlation = float(np.mean((a[lag:] * np.conj(a[:-lag])).real)) / square
        if correlation < _FORGOTTEN[power - 1]:
            break
        total += 2.0 * correlation**power
    return total


def _fit(columns: Array, power: Array, samples: Array) -> tuple[float, Array, Array]:
    """Return the first of two coefficients of the mean power by maximum likelihood, that mean, and weights.

    The weights are the changes of the logarithm of the coefficient with those of the power at each wave number.
    """
    from scipy.optimize import nnls

    model = power
    for _ in range(100):
        root = np.sqrt(0.5 * samples) / model
        found = nnls(root[:, None] * columns, root * power)[0]
        model, before = columns @ found, model
        if np.allclose(model, before, rtol=1e-9):
            break
    scaled = columns * [found[0], 1.0] / model[:, None]
    information = scaled.T @ (0.5 * samples[:, None] * scaled)
    return float(found[0]), model, np.asarray(np.linalg.pinv(information)[0] @ (scaled.T * 0.5 * samples))

"""Tests of fluctuating records: whether fluctuation and dissipation belong together.

The power of the whitened residual in bands of wave numbers and of phase values is compared with that of movies which
are made with the fitted law, theta and camera noise, and whose fields are fitted too. Slow modes show theta by their
increments over q, fast ones by their stationary spectrum; so a wrong q, optics that were not declared and noise that is
not thermal tilt the spectrum. Consecutive links must not correlate otherwise than in these movies, and where q is known
the decay of the modes must be that of q. Of a long exposure that is left to the spectrum: what it leaves of a mode
depends on q too, and the score of q is then not zero on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from doublewell.adequacy import statistics
from doublewell.adequacy.statistics import REACH, Adequacy, ScoreTest
from doublewell.dynamics import numpy_transforms
from doublewell.evidence import system
from doublewell.hints import Array
from doublewell.likelihood import FluctuatingBatch, Trajectory, points
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import mode_grid

UNBALANCED = ("q", "spectrum", "noise(u)", "memory")  # tests that thermal noise of the fitted equation passes
_PROBES = 3  # movies of the fitted law
_BANDS, _BINS = 8, 5  # of wave numbers, and of phase values
_PHASES = np.linspace(-1.0, 1.0, 101)


def check_fluctuations(fits: Sequence[Trajectory]) -> list[Adequacy]:
    """Test the residuals of fits of fluctuating records of one batch."""
    batch, code = fits[0].batch, compiled()
    assert isinstance(batch, FluctuatingBatch)
    model, constants = batch.model(fits[0].family, fits[0].substeps)
    constants, point = batch.constants_at(fits, constants), points(fits)
    at = code.tangents(model, *point, batch.data[[fit.index for fit in fits]], constants)
    directions, of_q = [np.asarray(at.residual)], "q" not in batch.view.free and not constants.links.exposed
    if of_q:
        view = replace(batch.view, q_free=True)
        wider, plain = batch.model(fits[0].family, fits[0].substeps, view=view)
        plain, theta = plain._replace(links=constants.links), np.hstack([np.ones((len(fits), 1)), point[1]])
        along = np.broadcast_to(np.eye(theta.shape[1])[0], theta.shape)
        directions.append(np.asarray(code.column(wider, point[0], theta, along, plain)))
        rooms = batch.room(wider, plain, (point[0], theta))
    each = code.project(model, *point, at.basis, np.stack(directions, axis=1), constants, crossed=True)
    rests, moves, motions = map(np.asarray, each)
    probes, answers = [batch.imitated(fits, seed) for seed in range(_PROBES)], []
    for k, fit in enumerate(fits):
        rest = rests[k, 0] / fit.noise
        own = _balance(fit, rest, [image[k] / fit.noise for image in probes])
        if of_q:
            image, moved, motion = rests[k, 1], moves[k, 1], motions[k, 1]
            known = fit.levels is not None and fit.levels.exact and not constants.links.coloured
            room = 0.0 if known else float(np.vdot(rooms[0][k], motion) + rooms[1][k] @ [1.0, *moved])
            own.append(_of_q(fit, rest, image / fit.noise, moved, room))
        tests = statistics.holm(own)
        features, law = fit.family.features(_PHASES), fit.family.force(fit.coefficients, _PHASES)
        spread = np.linalg.pinv(system(fit.evidence)[0]).T @ features
        band = float(REACH * np.linalg.norm(spread) / np.linalg.norm(law))
        answers.append(Adequacy(tests, statistics.verdict_of(tests, band), band=band))
    return answers


def _balance(fit: Trajectory, rest: Array, probes: Sequence[Array]) -> list[ScoreTest]:
    """Compare the power of a residual with that of noise, in bands of wave numbers and of phase values, and in time."""
    frames, grid = fit.record.frames, mode_grid(fit.record)
    forward, _ = numpy_transforms(grid.cells, grid.boundary)
    norm, square = float(np.prod(grid.cells)) if grid.boundary == "periodic" else 1.0, -grid.laplacian
    edges = np.quantile(np.repeat(square.ravel(), grid.multiplicity.ravel().astype(int)), np.linspace(0, 1, _BANDS + 1))
    band = np.clip(np.searchsorted(edges, square, side="right") - 1, 0, _BANDS - 1).ravel()
    u = fit.nuisance[:-1].ravel()
    shade = np.clip(np.searchsorted(np.quantile(u, np.linspace(0, 1, _BINS + 1)), u, side="right") - 1, 0, _BINS - 1)

    def modes(a: Array) -> Array:
        power = np.sum(np.abs(forward(a)) ** 2, axis=0) * grid.multiplicity / norm
        return np.bincount(band, power.ravel(), _BANDS).astype(np.float64)

    def values(a: Array) -> Array:
        return np.bincount(shade, (a**2).ravel(), _BINS).astype(np.float64)

    tests = []
    for name, power, part in (
        ("spectrum", modes, slice(frames, None)),
        ("camera spectrum", modes, slice(0, frames)),
        ("noise(u)", values, slice(frames, None)),
    ):
        if name.startswith("camera") and fit.levels is not None and fit.levels.exact:
            continue
        wanted = np.mean([power(image[part]) for image in probes], axis=0)
        tests.append(_chi_square(name, power(rest[part]), np.maximum(wanted, 1.0), wanted))
    gaps = rest[frames:]
    lag = np.vdot(gaps[1:], gaps[:-1]) - np.mean([np.vdot(i[frames + 1 :], i[frames:-1]) for i in probes])
    size = float(np.sqrt(np.sum(np.mean(gaps**2, axis=tuple(range(1, gaps.ndim))) ** 2) * gaps[0].size * _extra()))
    z = float(lag) / size
    value, error = float(lag / np.vdot(gaps, gaps)), size / float(np.vdot(gaps, gaps))
    tests.append(_normal("memory", z, value, error))
    return tests


def _extra() -> float:
    """Return the variance of a sum less its mean over probes, in that of the sum."""
    return 1.0 + 1.0 / _PROBES


def _chi_square(name: str, found: Array, size: Array, wanted: Array) -> ScoreTest:
    """Test powers that have the variance 2 size; their common level is theta, which was fitted."""
    from scipy.special import chdtrc

    level = float(np.sum(found * wanted / size) / np.sum(wanted**2 / size))
    ratio = found / np.maximum(wanted, 1.0) / max(level, 1e-300)
    chi2 = float(np.sum((found - level * wanted) ** 2 / (2.0 * size * _extra())))
    errors = np.sqrt(2.0 * size * _extra()) / np.maximum(wanted, 1.0)
    p = float(chdtrc(len(found) - 1, chi2))
    worst = float(np.max(np.abs(ratio - 1.0)))
    return ScoreTest(
        name, chi2, len(found) - 1, p, 1.0, tuple(ratio.tolist()), tuple(errors.tolist()), None, drop=chi2,
        deviation=worst,
    )  # fmt: skip


def _normal(
    name: str, z: float, value: float, error: float, shift: float | None = None, effect: float | None = None
) -> ScoreTest:  # fmt: skip
    from scipy.special import ndtr

    p = float(2.0 * ndtr(-abs(z)))
    return ScoreTest(name, z, 1, p, 1.0, (value,), (error,), shift, drop=z * z, effect=effect, deviation=abs(value))


def _of_q(fit: Trajectory, rest: Array, direction: Array, shift: Array, room: float) -> ScoreTest:
    """Test whether the modes decay with the q that was given; `room` is the slope of that of the fields by q."""
    size = float(np.vdot(direction, direction))
    value = (float(np.vdot(direction, rest)) - room) / size
    moved = value * shift[len(fit.batch.view.free) :]
    force = fit.family.force(fit.coefficients, _PHASES)
    effect = float(np.linalg.norm(moved @ fit.family.features(_PHASES)) / np.linalg.norm(force))
    return _normal("q", value * np.sqrt(size), value, 1.0 / np.sqrt(size), fit.size(moved), effect)

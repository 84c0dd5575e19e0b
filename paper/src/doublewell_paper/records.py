"""Records: everything that makes one record of the study, its truth, and the moments and fits that methods share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from doublewell_paper.core import (
    ALLEN_CAHN,
    Array,
    Bernstein,
    Block,
    Compute,
    Constraint,
    Derivative,
    DoubleWell,
    Evidence,
    Fold,
    Key,
    Law,
    Record,
    Result,
    Smoother,
    Survey,
    add_noise,
    compact,
    identify_many,
    initial_field,
    named_law,
    simulate,
    split_folds,
    survey,
    weak_evidence,
)

PAPER_SUPPORTS = ((5, 1 / 16), (8, 1 / 8))
TOP_DEGREE = 5  # of the shared weak moments; lower degrees follow by elevation
ODD_POWERS = tuple(range(1, 2 * TOP_DEGREE + 4, 2))  # what the features of that degree are made of
_EVOLVED = Bernstein(8)  # every law is evolved in one family, so that the stepper is compiled once
_STEPS = 2  # ETDRK4 steps per frame
_TINY_FACTOR = 3  # a mesh of 96 becomes 32
_TINY_FRAMES = 23
_TINY_SUPPORTS = ((2, 1 / 8), (3, 3 / 16))


@dataclass(frozen=True)
class Spec:
    """One record: law, geometry, noise and how it is observed.

    The movie is made on ``cells`` x ``cells`` by CNAB2 with ``substeps`` steps per frame. Every ``stride``-th frame and
    every ``coarsen``-th pixel is observed, ``frames`` frames in all. ``seed`` is None for a clean record. ``horizon``
    are the movie's frames between which a recovered force is evolved for e_u. ``phases`` is the number of phase values
    of the norms. ``training`` is the fraction of frames that validated choices are fitted on.
    """

    law: str
    geometry: str
    noise: float = 0.0
    seed: int | None = None
    cells: int = 96
    frames: int = 61
    stride: int = 1
    coarsen: int = 1
    correlation: float = 0.0
    epsilon: float = 0.03
    dt: float = 5e-5
    substeps: int = 12
    supports: tuple[tuple[int, float], ...] = PAPER_SUPPORTS
    training: float = 0.6
    horizon: tuple[int, int] | None = None
    phases: int = 2001

    @property
    def movie_frames(self) -> int:
        """Frames that the movie needs: those observed, and the horizon where there is one."""
        observed = (self.frames - 1) * self.stride + 1
        return observed if self.horizon is None else max(observed, self.horizon[1] + 1)

    @property
    def record(self) -> str:
        """The name of the record: what differs from the principal set is spelled out."""
        name = f"{self.law} {self.geometry} noise {self.noise:g}"
        if self.seed is not None:
            name += f" seed {self.seed}"
        for item in fields(self)[4:]:
            value = getattr(self, item.name)
            if value != item.default and item.name not in ("supports", "training", "horizon", "phases"):
                name += f" {item.name} {value:g}"
        return name

    def document(self) -> dict[str, Any]:
        """Return the spec as JSON takes it."""
        return asdict(self)


def spec_of(document: dict[str, Any]) -> Spec:
    """Return the spec of a document read from a file."""
    horizon = document["horizon"]
    tuples = {
        "supports": tuple((int(n), float(x)) for n, x in document["supports"]),
        "horizon": None if horizon is None else (int(horizon[0]), int(horizon[1])),
    }
    return Spec(**(document | tuples))


def tiny(spec: Spec, most: int) -> Spec:
    """Return a small record of the same kind: 96 cells become 32, 23 frames, the interface as many cells wide.

    No side is longer than `most` cells. Time is stretched with the square of the width, so that the interface moves as
    far in its own widths.
    """
    return replace(
        spec,
        cells=min(most, spec.cells // _TINY_FACTOR) * spec.coarsen,
        frames=_TINY_FRAMES,
        epsilon=spec.epsilon * _TINY_FACTOR,
        dt=spec.dt * _TINY_FACTOR**2,
        substeps=min(spec.substeps, 12),
        supports=_TINY_SUPPORTS,
        training=0.5,
        horizon=None if spec.horizon is None else (_TINY_FRAMES, _TINY_FRAMES + 4),
    )


@dataclass(frozen=True, eq=False)
class Sample:
    """A record and what is known of it. Moments and fits are made when first needed, and kept.

    ``fits`` keeps the trajectory fits and their seconds by constraint; several samples may be fitted together.
    """

    spec: Spec
    fits: dict[Constraint, tuple[Result, float]] = field(default_factory=dict)

    @cached_property
    def truth(self) -> Law:
        """The force G that made the movie."""
        return named_law(self.spec.law).effective(self.spec.epsilon)

    @cached_property
    def tension(self) -> float:
        """The exact surface tension of the law, in the normalisation E."""
        return named_law(self.spec.law).surface_tension(epsilon=1.0)

    @cached_property
    def movie(self) -> Record:
        """The clean movie, as it was simulated."""
        s = self.spec
        return _clean_movie(s.law, s.geometry, s.cells, s.movie_frames, s.epsilon, s.dt, s.substeps)

    @cached_property
    def clean(self) -> Record:
        """What would be observed without noise."""
        s = self.spec
        last = (s.frames - 1) * s.stride + 1
        if s.stride == s.coarsen == 1:
            return self.movie.clip(0, last)
        values = self.movie.slab(0, last)[:: s.stride, :: s.coarsen, :: s.coarsen]
        return Record(values, dx=s.coarsen / s.cells, dt=s.stride * s.dt, q=1.0, boundary="periodic")

    @cached_property
    def record(self) -> Record:
        """What is observed."""
        s = self.spec
        if s.seed is None:
            return self.clean
        return add_noise(self.clean, s.noise, seed=s.seed, correlation=s.correlation)

    @cached_property
    def survey(self) -> Survey:
        """Noise, phase coverage and width, measured from the record."""
        return survey(self.record)

    @cached_property
    def weak(self) -> tuple[Evidence, float]:
        """The weak moments at the top degree in two folds, and the seconds they took."""
        return self._moments("discrete")

    @cached_property
    def analytic(self) -> tuple[Evidence, float]:
        """The same with samples of analytic derivatives, the paper's control."""
        return self._moments("analytic")

    def _moments(self, derivative: Derivative) -> tuple[Evidence, float]:
        supports, record = self.spec.supports, self.record
        began = perf_counter()
        evidence = weak_evidence(record, Bernstein(TOP_DEGREE), supports, derivative=derivative, folds=self._folds)
        return evidence, perf_counter() - began

    @cached_property
    def unmasked(self) -> tuple[tuple[Block, ...], float]:
        """Blocks of [odd powers of u | rate | Laplacian] at every centre, and the seconds they took.

        There is one for each support and fold; rows that lie in no fold form the block "straddle".
        """
        record = self.record
        began = perf_counter()
        u = record.slab()
        powers = [u**k for k in ODD_POWERS]
        blocks = []
        for support in self.spec.supports:
            smoother = Smoother.of(record, support)
            columns = [smoother.value(power) for power in powers]
            columns += [smoother.column(column, u) for column in ALLEN_CAHN.weak_form[1:]]
            stack = np.stack(columns, axis=-1)
            straddle = np.ones(len(stack), dtype=bool)
            for fold in self._folds:  # centre frames whose whole support lies inside, counted from the first centre
                part = slice(fold.start, max(fold.start, fold.stop - 2 * smoother.axes[0].half))
                straddle[part] = False
                blocks.append(_block(stack[part], support, fold.name))
            blocks.append(_block(stack[straddle], support, "straddle"))
        return tuple(blocks), perf_counter() - began

    @property
    def _folds(self) -> tuple[Fold, Fold]:
        s = self.spec
        return split_folds(s.frames, max(frames for frames, _ in s.supports), s.training)

    def trajectory(self, constraint: Constraint) -> tuple[Result, float]:
        """Return the trajectory fit, averaged over degrees, and its seconds."""
        if constraint not in self.fits:
            fit_together([self], constraint)
        return self.fits[constraint]

    @cached_property
    def final_field(self) -> Array:
        """The last field of the horizon under the true law, by ETDRK4."""
        return evolve(self.truth, self)


def _block(rows: Array, support: tuple[int, float], fold: str) -> Block:
    flat = rows.reshape(-1, rows.shape[-1])
    return Block(Key("record", str(support), fold), compact(flat), len(flat))


def fit_together(samples: Sequence[Sample], constraint: Constraint) -> None:
    """Make the trajectory fits of several samples and keep them there; one batch where JAX sees a GPU."""
    records, tensions = [sample.record for sample in samples], [sample.tension for sample in samples]
    began = perf_counter()
    results = identify_many(
        records,
        tensions,
        law=DoubleWell(degree="auto", constraint=constraint),
        method="trajectory",
        compute=Compute(workers=1),
        check=False,
    )
    seconds = (perf_counter() - began) / len(samples)
    for sample, result in zip(samples, results, strict=True):
        sample.fits[constraint] = (result, seconds)


def evolve(law: Law, sample: Sample) -> Array:
    """Return the field at the end of the horizon from the clean frame at its start, by ETDRK4.

    Both laws of a comparison are evolved this way, so that the solver's own error cancels.
    """
    spec, movie = sample.spec, sample.movie
    if spec.horizon is None:
        raise ValueError("the record has no horizon")
    start, stop = spec.horizon
    if law.family.cone:
        law = Law(_EVOLVED, law.family.elevation(_EVOLVED) @ law.coefficients)
    later = simulate(
        law,
        movie.slab(start, start + 1)[0],
        dx=movie.dx,
        dt=(stop - start) * spec.dt,
        frames=2,
        solver="etdrk4",
        substeps=_STEPS * (stop - start),
    )
    return np.asarray(later.slab(1, 2)[0])


@lru_cache(maxsize=3)
def _clean_movie(law: str, geometry: str, cells: int, frames: int, epsilon: float, dt: float, substeps: int) -> Record:
    """Simulate a clean movie by CNAB2; the last few are kept, because ten seeds share one."""
    start = initial_field(geometry, (cells, cells), 1 / cells, epsilon=epsilon)
    return simulate(named_law(law), start, dx=1 / cells, dt=dt, frames=frames, epsilon=epsilon, substeps=substeps)

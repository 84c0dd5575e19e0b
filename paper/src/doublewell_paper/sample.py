"""Sample: a record of the study with its truth, and the readings that several methods share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from time import perf_counter

import numpy as np

from doublewell.evidence import Block, Evidence
from doublewell.hints import Array
from doublewell.identify import identify_many
from doublewell.inference import Constraint
from doublewell.law import Bernstein, Law, named_law
from doublewell.observation import Survey, survey
from doublewell.options import Compute, DoubleWell
from doublewell.record import Record
from doublewell.result import Result
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.weak import Derivative, Fold, split_folds, weak_evidence
from doublewell_paper.rows import unmasked_blocks
from doublewell_paper.spec import Spec

__all__ = ["ODD_POWERS", "TOP_DEGREE", "Reading", "Sample", "clean_movie", "evolve", "read_together"]

Reading = tuple[Result, float]  # and its seconds

TOP_DEGREE = 5  # of the shared weak moments; lower degrees follow by elevation
ODD_POWERS = tuple(range(1, 2 * TOP_DEGREE + 4, 2))  # what the features of that degree are made of
_EVOLVED = Bernstein(8)  # every law is evolved in one family, so that the stepper is compiled once
_STEPS = 2  # ETDRK4 steps a frame


@dataclass(frozen=True, eq=False)
class Sample:
    """A record and what is known of it. Readings are made when first asked for, and kept.

    ``readings`` keeps the trajectory readings by their constraint; several samples may be read together.
    """

    spec: Spec
    readings: dict[Constraint, Reading] = field(default_factory=dict)

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
        return clean_movie(s.law, s.geometry, s.cells, s.movie_frames, s.epsilon, s.dt, s.substeps)

    @cached_property
    def clean(self) -> Record:
        """What would be seen without noise."""
        s = self.spec
        last = (s.frames - 1) * s.stride + 1
        if s.stride == s.coarsen == 1:
            return self.movie.clip(0, last)
        values = self.movie.slab(0, last)[:: s.stride, :: s.coarsen, :: s.coarsen]
        return Record(values, dx=s.coarsen / s.cells, dt=s.stride * s.dt, q=1.0, boundary="periodic")

    @cached_property
    def record(self) -> Record:
        """What is seen."""
        s = self.spec
        if s.seed is None:
            return self.clean
        return add_noise(self.clean, s.noise, seed=s.seed, correlation=s.correlation)

    @cached_property
    def survey(self) -> Survey:
        """Noise, phase coverage and width, measured from what is seen."""
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
        found = weak_evidence(record, Bernstein(TOP_DEGREE), supports, derivative=derivative, folds=self._folds)
        return found, perf_counter() - began

    @cached_property
    def unmasked(self) -> tuple[tuple[Block, ...], float]:
        """Moments of the odd powers of u at every centre, and the seconds they took."""
        record = self.record
        began = perf_counter()
        found = unmasked_blocks(record, ODD_POWERS, self.spec.supports, self._folds)
        return found, perf_counter() - began

    @property
    def _folds(self) -> tuple[Fold, Fold]:
        s = self.spec
        return split_folds(s.frames, max(frames for frames, _ in s.supports), s.training)

    def trajectory(self, constraint: Constraint) -> Reading:
        """Return the trajectory reading, averaged over degrees, and its seconds."""
        if constraint not in self.readings:
            read_together([self], constraint)
        return self.readings[constraint]

    @cached_property
    def final_field(self) -> Array:
        """The last field of the horizon under the true law, by ETDRK4."""
        return evolve(self.truth, self)


def read_together(samples: Sequence[Sample], constraint: Constraint) -> None:
    """Make the trajectory readings of several samples and keep them there; one batch where JAX sees a GPU."""
    records, tensions = [one.record for one in samples], [one.tension for one in samples]
    began = perf_counter()
    found = identify_many(
        records,
        tensions,
        law=DoubleWell(degree="auto", constraint=constraint),
        method="trajectory",
        compute=Compute(workers=1),
        check=False,
    )
    seconds = (perf_counter() - began) / len(samples)
    for one, result in zip(samples, found, strict=True):
        one.readings[constraint] = (result, seconds)


def evolve(law: Law, sample: Sample) -> Array:
    """Return the field at the end of the horizon from the clean frame at its start, by ETDRK4.

    Both laws of a comparison take this road, so that the solver's own error cancels.
    """
    spec = sample.spec
    if spec.horizon is None:
        raise ValueError("the record has no horizon")
    start, stop = spec.horizon
    if isinstance(law.family, Bernstein):
        law = Law(_EVOLVED, law.family.elevation(_EVOLVED) @ law.coefficients)
    movie = sample.movie
    frames = stop - start
    later = simulate(
        law,
        movie.slab(start, start + 1)[0],
        dx=movie.dx,
        dt=frames * spec.dt,
        frames=2,
        solver="etdrk4",
        substeps=_STEPS * frames,
    )
    return np.asarray(later.slab(1, 2)[0])


@lru_cache(maxsize=3)
def clean_movie(law: str, geometry: str, cells: int, frames: int, epsilon: float, dt: float, substeps: int) -> Record:
    """Simulate a clean movie by CNAB2; the last few are kept, because ten seeds share one."""
    start = initial_field(geometry, (cells, cells), 1 / cells, epsilon=epsilon)
    return simulate(named_law(law), start, dx=1 / cells, dt=dt, frames=frames, epsilon=epsilon, substeps=substeps)

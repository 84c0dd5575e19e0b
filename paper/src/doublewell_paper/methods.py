"""Methods: from a record of the study to a force. A new one is a function and a line in METHODS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import factorial
from time import perf_counter
from typing import Literal

import numpy as np

from doublewell_paper.core import (
    DEGREE_PRIOR,
    PHASE_CUT,
    WIDTHS,
    Array,
    Bernstein,
    Block,
    Constraint,
    Estimate,
    Evidence,
    Law,
    Result,
    Smoother,
    compact,
    estimate,
    lower,
    pointwise_fit,
    smoothing_width,
    system,
)
from doublewell_paper.records import ODD_POWERS, TOP_DEGREE, Sample

NORMAL_DEGREES = (0, 1, 2, 3, 4, 5)
_SELECTED_DEGREES = (1, 2, 3, 4, 5)
_TOP = Bernstein(TOP_DEGREE)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The force of a method, or None with the reason in ``status``.

    ``active`` counts coefficients at their bound, None where they have none; ``condition`` is that of the design
    with unit columns; ``extra`` holds what only this method knows: a chosen degree, alpha, width, noise.
    """

    law: Law | None
    status: str = "fitted"
    active: int | None = None
    seconds: float = 0.0
    condition: float | None = None
    rows: int | None = None
    extra: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A named way from a sample to an outcome.

    ``settings`` is what is not in the name, and is part of a result's fingerprint; ``trajectory`` is the constraint of
    the trajectory fit that it takes, None for the weak methods.
    """

    name: str
    fit: Callable[[Sample], Outcome]
    settings: str = ""
    trajectory: Constraint | None = None

    @property
    def slow(self) -> bool:
        """Whether it needs a trajectory fit; those run after all others."""
        return self.trajectory is not None


def _outcome(fit: Estimate, seconds: float, **extra: float) -> Outcome:
    if fit.ridge is not None:
        extra["alpha"] = fit.ridge.alpha
    active = int(np.count_nonzero(fit.solution.active)) if fit.constraint == "bernstein" else None
    return Outcome(fit.law, "fitted", active, seconds, fit.scaled_condition, fit.rows, extra)


# The weak branches on shared moments: least squares, positivity, ridge, both, exact class; degrees two and five.

_BRANCHES: dict[str, tuple[Constraint, Literal["validated"] | None]] = {
    "weak LS": ("none", None),
    "STAC": ("bernstein", None),
    "ridge LS": ("none", "validated"),
    "ridge STAC": ("bernstein", "validated"),
    "STAC admissible": ("admissible", None),
}


def _weak(sample: Sample, *, degree: int, constraint: Constraint, ridge: Literal["validated"] | None) -> Outcome:
    evidence, assembly = sample.weak
    began = perf_counter()
    fit = estimate(lower(evidence, degree), 1.0, constraint=constraint, ridge=ridge)
    return _outcome(fit, assembly + perf_counter() - began)


def _normal(sample: Sample, *, degree: int) -> Outcome:
    """Solve through the Gram matrix A'A, as the paper's earlier implementation did it."""
    evidence, assembly = sample.weak
    began = perf_counter()
    matrix, target = system(lower(evidence, degree), 1.0)
    gram = matrix.T @ matrix
    coefficients = np.asarray(np.linalg.solve(gram, matrix.T @ target), dtype=np.float64)
    seconds = assembly + perf_counter() - began
    extra = {"gram_condition": float(np.linalg.cond(gram))}
    return Outcome(Law(Bernstein(degree), coefficients), "fitted", None, seconds, None, evidence.rows, extra)


# Exploratory choice of degree and support by the residual of held-out moments. Candidates are degrees one to five and
# the first support, the second, or both. Each is fitted with positive coefficients on the training frames; all are
# judged on the same held-out moments, those of both supports. The chosen moments of the whole record then give the
# constrained and the unconstrained estimate.


@dataclass(frozen=True)
class Choice:
    """A degree and the names of the supports."""

    degree: int
    supports: tuple[str, ...]


def choose(fitted: Evidence, judged: Evidence) -> Choice:
    """Return the candidate with the smallest residual on the judged held-out moments; ties go to the first."""
    names = fitted.supports
    groups = [(name,) for name in names] + ([names] if len(names) > 1 else [])
    candidates = [Choice(degree, group) for degree, group in product(_SELECTED_DEGREES, groups)]
    return min(candidates, key=lambda item: held_out_residual(item, fitted, judged))


def held_out_residual(choice: Choice, fitted: Evidence, judged: Evidence) -> float:
    """Fit on the training moments of a choice and return the residual on all held-out moments."""
    part = lower(fitted.select(choice.supports, "training"), choice.degree)
    coefficients = estimate(part, 1.0, constraint="bernstein").coefficients
    matrix, target = system(lower(judged.select(fold="validation"), choice.degree), 1.0)
    return float(np.linalg.norm(matrix @ coefficients - target))


def _selected(sample: Sample, *, constraint: Constraint, analytic: bool = False) -> Outcome:
    evidence, assembly = sample.analytic if analytic else sample.weak
    judged, _ = sample.weak
    began = perf_counter()
    choice = choose(evidence, judged)
    part = lower(evidence.select(choice.supports), choice.degree)
    fit = estimate(part, 1.0, constraint=constraint)
    seconds = assembly + perf_counter() - began
    support = 0 if len(choice.supports) > 1 else 1 + evidence.supports.index(choice.supports[0])  # 0 for both
    return _outcome(fit, seconds, degree=choice.degree, support=support)


def _analytic(sample: Sample) -> Outcome:
    """Fit moments with samples of the test function's derivatives instead of differences of its samples.

    The paper says both "degree two" and "selects degree and support", so both are run.
    """
    evidence, assembly = sample.analytic
    began = perf_counter()
    fit = estimate(lower(evidence, 2), 1.0, constraint="bernstein")
    return _outcome(fit, assembly + perf_counter() - began)


def _fd4(sample: Sample, *, smoothed: bool) -> Outcome:
    """Regress pointwise with fourth-order differences, direct or after Gaussian smoothing in space and time."""
    spec = sample.spec
    evidence = sample.weak[0] if smoothed else None
    record = sample.record
    began = perf_counter()
    width = 0.0
    if evidence is not None:
        width = smoothing_width(record, 1.0, evidence, round(spec.training * spec.frames))
    fit = pointwise_fit(record, 1.0, width)
    active, seconds = int(np.count_nonzero(fit.solution.active)), perf_counter() - began
    return Outcome(fit.law, "fitted", active, seconds, fit.condition, fit.rows, {"width": width} if smoothed else {})


def monomial_matrix(family: Bernstein) -> Array:
    """Return the features as polynomials, in the odd powers u, u^3, ...: one column a feature."""
    out = np.zeros((family.size + 1, family.size))
    for j in range(family.size):
        bracket = [float(c) for c in family.exact_bracket(np.eye(family.size)[j])]
        for i, c in enumerate(bracket):  # -u (1 - u^2) z^i = -u^(2i + 1) + u^(2i + 3)
            out[i, j] -= c
            out[i + 1, j] += c
    return out


def hermite_matrix(size: int, variance: float) -> Array:
    """Return the corrected powers in powers: column k is s^n He_n(u/s) for the k-th odd power n = 2 k + 1."""
    out = np.zeros((size, size))
    for column in range(size):
        k = 2 * column + 1
        for i in range(column + 1):
            out[column - i, column] = (-variance / 2) ** i * factorial(k) / (factorial(i) * factorial(k - 2 * i))
    return out


def _hermite(sample: Sample, *, corrected: bool, selected: bool) -> Outcome:
    """Fit feature means corrected for Gaussian noise by Hermite polynomials, on moments without a mask.

    For noise of variance s^2 the mean of s^k He_k(v/s) over v = u + noise is u^k. The features here are polynomials on
    the whole line and every centre counts, which the identity needs; s is measured, not known.
    """
    blocks, assembly = sample.unmasked
    began = perf_counter()
    turn = monomial_matrix(_TOP)
    noise = sample.survey.noise
    if corrected:
        turn = hermite_matrix(len(ODD_POWERS), noise**2) @ turn
    change = np.zeros((len(ODD_POWERS) + 2, _TOP.size + 2))  # from powers to feature columns; rate and Laplacian stay
    change[: len(ODD_POWERS), : _TOP.size] = turn
    change[len(ODD_POWERS) :, _TOP.size :] = np.eye(2)
    evidence = Evidence(_TOP, tuple(Block(b.key, compact(b.triangle @ change), b.rows) for b in blocks))
    degree, extra = 2, {"noise": noise}
    if selected:
        choices = [Choice(m, evidence.supports) for m in _SELECTED_DEGREES]
        degree = min(choices, key=lambda choice: held_out_residual(choice, evidence, evidence)).degree
        extra["degree"] = degree
    fit = estimate(lower(evidence, degree), 1.0, constraint="bernstein")
    return _outcome(fit, assembly + perf_counter() - began, **extra)


def _design(sample: Sample) -> Outcome:
    """Report the conditioning of the degree-five design and how far noise moves it.

    The noise-perturbation ratio is |A_noisy - A_clean| / s_min(A_noisy) on the mask of the noisy record, both designs
    with the paper's block weights. The paper does not print its formula; this one was kept of five tried because it
    gives the paper's range. With s_min(A_clean) below, as in the paper's coefficient bound (its Eq. 14), the ratio is
    larger.
    """
    began = perf_counter()
    evidence, _ = sample.weak
    fit = estimate(evidence, 1.0, constraint="none")
    noisy, clean, supports = sample.record.slab(), sample.clean.slab(), sample.spec.supports
    blocks = []
    for support in supports:
        smoother = Smoother.of(sample.record, support)
        keep = np.abs(smoother.temporal_mean(noisy)) < PHASE_CUT
        scale = np.sqrt(len(supports) * np.count_nonzero(keep))
        before, after = (
            np.stack([smoother.value(field)[keep] / scale for field in _TOP.features(u)], axis=1)
            for u in (clean, noisy)
        )
        blocks.append([compact(matrix) for matrix in (after - before, before, after)])
    change, clean_design, noisy_design = (np.vstack(parts) for parts in zip(*blocks, strict=True))
    seconds = perf_counter() - began

    def ratio(design: Array) -> float:
        return float(np.linalg.norm(change, 2) / np.linalg.svd(design, compute_uv=False)[-1])

    extra = {"noise_ratio": ratio(noisy_design), "clean_noise_ratio": ratio(clean_design)}
    return Outcome(fit.law, "fitted", None, seconds, fit.scaled_condition, fit.rows, extra)


# The trajectory fit: averaged over degrees, and at fixed degrees from the same fit's table of degrees.


def _averaged(sample: Sample, *, constraint: Constraint) -> Outcome:
    result, seconds = sample.trajectory(constraint)
    return _trajectory(result, result.law, 0 if constraint == "bernstein" else None, seconds)


def _fixed(sample: Sample, *, degree: int) -> Outcome:
    result, seconds = sample.trajectory("bernstein")
    if result.posterior is None:
        return Outcome(None, "the fit has no table of degrees", seconds=seconds)
    fit = result.posterior.path[degree]
    return _trajectory(result, Law(Bernstein(degree), fit.coefficients), len(fit.active), seconds)


def _trajectory(result: Result, law: Law, active: int | None, seconds: float) -> Outcome:
    diagnostics = result.diagnostics
    extra: dict[str, float] = {"degree": law.family.degree}
    status = "fitted"
    if diagnostics.likelihood is not None:
        extra |= {"noise": diagnostics.likelihood.noise, "rounds": diagnostics.likelihood.rounds}
        ended = diagnostics.likelihood.status
        status = "fitted" if ended.converged else f"not converged: {ended.text}"
    condition = diagnostics.scaled_condition if np.isfinite(diagnostics.scaled_condition) else None
    return Outcome(law, status, active, seconds, condition, diagnostics.rows, extra)


_AVERAGED: dict[str, Constraint] = {
    "trajectory auto": "bernstein",
    "trajectory admissible": "admissible",
    "trajectory free": "none",
}
_SELECTION = "degrees 1-5; first, second or both supports; judged on held-out moments of both"
_SMOOTHING = f"widths {WIDTHS}, judged on held-out weak moments"
_DISCRETE = "judged on the discrete held-out moments"
_TABLE = "constraint bernstein, from the table of degrees"
_METHODS = (
    *(
        Method(f"{name} m={degree}", partial(_weak, degree=degree, constraint=constraint, ridge=ridge))
        for degree in (2, 5)
        for name, (constraint, ridge) in _BRANCHES.items()
    ),
    *(Method(f"normal m={degree}", partial(_normal, degree=degree)) for degree in NORMAL_DEGREES),
    Method("selected weak LS", partial(_selected, constraint="none"), _SELECTION),
    Method("selected STAC", partial(_selected, constraint="bernstein"), _SELECTION),
    Method("analytic weak m=2", _analytic),
    Method("analytic weak selected", partial(_selected, constraint="bernstein", analytic=True), _DISCRETE),
    Method("direct FD4 m=2", partial(_fd4, smoothed=False)),
    Method("smoothed FD4 m=2", partial(_fd4, smoothed=True), _SMOOTHING),
    Method("unmasked m=2", partial(_hermite, corrected=False, selected=False)),
    Method("Hermite m=2", partial(_hermite, corrected=True, selected=False)),
    Method("unmasked selected", partial(_hermite, corrected=False, selected=True)),
    Method("Hermite selected", partial(_hermite, corrected=True, selected=True)),
    Method("design m=5", _design, "ratio to the smallest singular value of the noisy design"),
    *(
        Method(name, partial(_averaged, constraint=constraint), f"constraint {constraint}, {DEGREE_PRIOR}", constraint)
        for name, constraint in _AVERAGED.items()
    ),
    *(Method(f"trajectory m={m}", partial(_fixed, degree=m), _TABLE, "bernstein") for m in (2, 5)),
)
METHODS: dict[str, Method] = {method.name: method for method in _METHODS}

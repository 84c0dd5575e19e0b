"""What a referee would ask about, in plain words."""

from __future__ import annotations

import numpy as np

from doublewell.identify.weak_road import WeakFit
from doublewell.inference import Estimate
from doublewell.law import Law
from doublewell.observation import Survey, coarse_note, pace_notes, survey_notes
from doublewell.record import Record
from doublewell.result.wording import phase_list

__all__ = ["law_warnings", "record_warnings", "scale_refusal", "weak_warnings"]

_LARGE_RESIDUAL = 0.5
_SEEN = 0.005  # share of the interface's values that shows a phase bin; with its mirror image it needs twice that
_LITTLE_MOTION = 0.5
_BEYOND = 5.0  # standard deviations of the noise that hardly a pixel in a thousand exceeds
_FLAT = 10.0  # bounds; coefficients below are none


def law_warnings(law: Law, refusal: str | None) -> list[str]:
    """Say what is unusual about the law itself."""
    said = [refusal] if refusal else []
    if not law.structure.ok:
        said.append(f"not a plain double well: {law.structure}; use constraint='admissible' or more data")
    return said


def scale_refusal(fit: Estimate) -> str | None:
    """Say why an estimate cannot carry a scale: no coefficient is left that the data determine."""
    if not np.all(fit.coefficients <= _FLAT * fit.bound):
        return None
    return (
        "calibration refused: the law is flat at its lower bound, so the data show no double well and the force "
        "is no measurement; check the scale of the field, q, dx and dt, or see what constraint='none' gives"
    )


def record_warnings(record: Record, seen: Survey, *, alike: bool = True) -> list[str]:
    """Say what the record lacks; `alike` says that the wells are symmetric, so that u tells as much about -u."""
    return [*survey_notes(seen), *pace_notes(seen, record), *([] if alike else _one_sided(seen))]


def _one_sided(seen: Survey) -> list[str]:
    """Say which phase values are seen only by their mirror image, which tells nothing about unlike wells."""
    shares = np.array(seen.histogram)
    missing = np.array(seen.visited) & (shares < _SEEN * seen.interface_share)
    if not missing.any():
        return []
    edges = np.linspace(-1.0, 1.0, shares.size + 1)
    first, last = np.flatnonzero(missing)[[0, -1]]
    return [
        f"some phase values between {edges[first]:.2g} and {edges[last + 1]:.2g} are hardly seen, only their mirror "
        "images: that tells nothing where the wells are not alike; record frames that show them"
    ]


def weak_warnings(weak: WeakFit, seen: Survey) -> list[str]:
    """Say what weakens an estimate from weak moments."""
    fit = weak.estimate
    said = [*_misfit_warnings(fit), *coarse_note(seen), *_diffusion_warnings(weak), *_correction_warnings(weak, seen)]
    bias = noise_bias(fit.law, seen.noise)
    if bias > 0.01 and not weak.corrected:
        said.append(
            f"noise {seen.noise:.2g} biases the force by about {100 * bias:.0f} % (noise^2/2 times its curvature), "
            "which averaging does not remove; method='weak-corrected' takes it off where the noise is white"
        )
    if fit.support_spread > 0.1:
        said.append(
            f"the supports disagree: one alone changes the force by {100 * fit.support_spread:.0f} %; lower the degree "
            "or choose supports"
        )
    if fit.scaled_condition > 1e4:
        said.append(f"the design is badly conditioned ({fit.scaled_condition:.1e}): lower the degree or use ridge")
    if fit.solution.active.any():
        names = ", ".join(f"g_{j}" for j in np.flatnonzero(fit.solution.active))
        said.append(
            f"{names} at the lower bound: the data ask for a law outside the positive family, or are too noisy "
            "for this degree"
        )
    if fit.solution.contacts:
        said.append(
            f"the bracket touches zero at |u| = {phase_list(fit.solution.contacts)}: the data ask for a law that is no "
            "plain double well, or are too noisy for this degree"
        )
    return said


def _diffusion_warnings(weak: WeakFit) -> list[str]:
    """Say that an estimated q rests on little motion."""
    if weak.diffusion is None or weak.diffusion.share >= _LITTLE_MOTION:
        return []
    return [
        f"only {100 * weak.diffusion.share:.0f} % of the squared rate of change is motion, the rest noise: q rests on "
        "the measured noise, and an error of one percent in its square moves q by about "
        f"{1.0 / weak.diffusion.share - 1.0:.1f} percent; record longer, or a shape that moves faster"
    ]


def _correction_warnings(weak: WeakFit, seen: Survey) -> list[str]:
    """Say where the correction for noise has its limits."""
    if not weak.corrected:
        return []
    said, fit = [], weak.estimate
    beyond = max(-seen.low, seen.high) - 1.0
    if beyond > _BEYOND * seen.noise + 0.01:
        said.append(
            f"values reach {beyond:.2g} beyond the pure phases, more than white noise of {seen.noise:.2g} explains: "
            "the corrected features are polynomials on the whole line and grow fast there; see what method='weak' gives"
        )
    if weak.moments.held:
        said.append(
            f"in {weak.moments.held} of {len(weak.supports) * fit.family.size} directions of the coefficients nearly "
            "all that is seen is noise: there the law is that of degree 2"
        )
    return said


def _misfit_warnings(fit: Estimate) -> list[str]:
    """Say where the moments contradict the law, or one support says nothing."""
    said = []
    if fit.relative_residual > _LARGE_RESIDUAL:
        said.append(
            f"the law leaves {100 * fit.relative_residual:.0f} % of the moments unexplained: the field does not follow "
            "u_t = q (Laplacian u - G(u)), or noise dominates; check the scale of the field, q, dx and dt"
        )
    for part in fit.supports:
        if part.coefficients is None:
            said.append(f"the support {_short(part.support)} cannot stand alone ({part.rows} moments): {part.status}")
    return said


def _short(support: str) -> str:
    """Return the name of a support with the digits that a reader needs."""
    frames, length = support.strip("()").split(" frames, ")
    return f"({frames} frames, {float(length):.4g})"


def noise_bias(law: Law, noise: float) -> float:
    """The relative L2 size of noise^2/2 G'', the leading bias of the features' means (paper, Section 3.4)."""
    u = np.linspace(-1.0, 1.0, 401)
    force = law.force(u)
    bend = np.diff(force, 2) / (u[1] - u[0]) ** 2
    size = np.linalg.norm(force)
    return float(0.5 * noise**2 * np.linalg.norm(bend) / size) if size else 0.0

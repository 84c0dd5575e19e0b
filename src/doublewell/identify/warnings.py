"""What a referee would ask about, in plain words."""

from __future__ import annotations

import numpy as np

from doublewell.errors import InputError
from doublewell.estimate import Estimate
from doublewell.law import Law
from doublewell.survey import FEW_CELLS, LARGE, TOO_FEW_CELLS, Survey

__all__ = ["check_survey", "law_warnings", "record_warnings", "weak_warnings"]


def check_survey(seen: Survey) -> None:
    """Refuse a record whose values are no resolved order parameter."""
    if max(abs(seen.low), abs(seen.high)) > LARGE:
        raise InputError(
            f"phase values run from {seen.low:.3g} to {seen.high:.3g}: expected the pure phases at -1 and +1; "
            "rescale the field, for example u = 2*(i - low)/(high - low) - 1"
        )
    if seen.cells is not None and seen.cells < TOO_FEW_CELLS:
        raise InputError(
            f"the mesh is too coarse: an interface spans {seen.cells:.1f} cells, expected at least "
            f"{TOO_FEW_CELLS:g} (better {FEW_CELLS:g}); record with finer pixels"
        )


def law_warnings(law: Law, refusal: str | None) -> list[str]:
    """Say what is unusual about the law itself."""
    said = [refusal] if refusal else []
    if not law.structure.ok:
        said.append(f"not a plain double well: {law.structure}; use constraint='bernstein' or more data")
    return said


def record_warnings(seen: Survey) -> list[str]:
    """Say what the record lacks."""
    said = []
    if seen.cells is None:
        said.append("no interface was seen: the values look like one phase or like noise")
    elif seen.cells < FEW_CELLS:
        said.append(
            f"an interface spans only {seen.cells:.1f} cells (better {FEW_CELLS:g} or more): expect a force error "
            "of ten percent or more in the presence of noise"
        )
    if seen.coverage < 0.9:
        said.append(
            f"only {100 * seen.coverage:.0f} % of the phase range is visited: the force is extrapolated elsewhere"
        )
    return said


def weak_warnings(fit: Estimate, seen: Survey) -> list[str]:
    """Say what weakens an estimate from weak moments."""
    said = []
    bias = noise_bias(fit.law, seen.noise)
    if bias > 0.01:
        said.append(
            f"noise {seen.noise:.2g} biases the force by about {100 * bias:.0f} % (noise^2/2 times its curvature), "
            "which averaging does not remove"
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
    return said


def noise_bias(law: Law, noise: float) -> float:
    """The relative L2 size of noise^2/2 G'', the leading bias of the features' means (paper, Section 3.4)."""
    u = np.linspace(-1.0, 1.0, 401)
    force = law.force(u)
    bend = np.diff(force, 2) / (u[1] - u[0]) ** 2
    size = np.linalg.norm(force)
    return float(0.5 * noise**2 * np.linalg.norm(bend) / size) if size else 0.0

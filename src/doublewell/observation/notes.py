"""Refusals: records whose values are not a resolved order parameter."""

from __future__ import annotations

from doublewell.errors import InputError
from doublewell.observation.survey import Survey

FEW_CELLS = 9.0  # the paper's error at noise 0.03 grows fourfold when an interface has 6 to 8 cells instead of 12
COVERED = 0.9  # fraction of the phase range from which on a law counts as measured
TOO_FEW_CELLS = 2.5  # fewer are refused
TOO_LARGE = 3.0  # phase values beyond this are not an order parameter with noise
MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; use the "
    "grey values that the mask was made from"
)


def check_survey(seen: Survey) -> None:
    """Refuse a record whose values are not a resolved order parameter."""
    if seen.two_valued:
        raise InputError(f"the record holds no more than {seen.distinct} different values: {MASK}")
    if max(abs(seen.low), abs(seen.high)) > TOO_LARGE:
        raise InputError(
            f"phase values run from {seen.low:.3g} to {seen.high:.3g}: expected the pure phases at -1 and +1; "
            "rescale the field, for example u = 2*(i - low)/(high - low) - 1, or use phase_from_intensity"
        )
    if seen.cells is None:
        raise InputError(
            f"no interface is detected: values from {seen.low:.3g} to {seen.high:.3g} with noise {seen.noise:.2g} look "
            "like one phase, like noise, or like steps sharper than a pixel; expected two phases and a resolved "
            "interface between them; record frames that contain one"
        )
    if seen.cells < TOO_FEW_CELLS:
        raise InputError(
            f"the mesh is too coarse: an interface spans {seen.cells:.1f} cells, expected at least "
            f"{TOO_FEW_CELLS:g} (better {FEW_CELLS:g}); record with finer pixels"
        )

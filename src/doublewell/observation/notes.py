"""Notes: what a survey says about the fit to come, in plain words, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import atanh, sqrt

from doublewell.errors import InputError
from doublewell.observation.looks import GROUP
from doublewell.observation.survey import Survey
from doublewell.record import Record

FEW_CELLS = 9.0  # the paper's error at noise 0.03 grows fourfold when an interface has 6 to 8 cells instead of 12
COVERED = 0.9  # share of the phase range from which on a law counts as seen
MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; use the "
    "grey values that the mask was made from"
)
_TOO_FEW_CELLS = 2.5  # fewer are refused
_LARGE = 3.0  # phase values beyond this are no order parameter with noise
_REACHED = 0.8  # of a pure phase
_GROWS = 1.1  # growth of the contrast over half the record that has not ended
_CENTRED = 0.3  # distance of the middle of the values from zero, in units of half their range
_SCALES = (1.0, 100.0, 255.0, 65535.0)  # white of the usual pictures
_NEAR = 0.1  # share of the range by which a picture may miss its scale
_FAST = 30.0  # pace in units of q: a drop has about 0.2, a spinodal start about 1 to 10
_GAPS = 0.05  # share of missing values that is worth a word
_APART = 64.0  # q |G'| dt of frames too far apart, about twice what the trajectory reading refuses


def survey_notes(seen: Survey) -> tuple[str, ...]:
    """Say what in a survey stands in the way of a fit, or makes it worse; nothing when all is well."""
    return (*_value_notes(seen), *_interface_notes(seen), *_quality_notes(seen))


def check_survey(seen: Survey) -> None:
    """Refuse a record whose values are no resolved order parameter."""
    if seen.two_valued:
        raise InputError(f"the record holds no more than {seen.distinct} different values: {MASK}")
    if max(abs(seen.low), abs(seen.high)) > _LARGE:
        raise InputError(
            f"phase values run from {seen.low:.3g} to {seen.high:.3g}: expected the pure phases at -1 and +1; "
            "rescale the field, for example u = 2*(i - low)/(high - low) - 1, or use phase_from_intensity"
        )
    if seen.cells is None:
        raise InputError(
            f"no interface is seen: values from {seen.low:.3g} to {seen.high:.3g} with noise {seen.noise:.2g} look "
            "like one phase, like noise, or like steps sharper than a pixel; expected two phases and a resolved "
            "interface between them; record frames that contain one"
        )
    if seen.cells < _TOO_FEW_CELLS:
        raise InputError(
            f"the mesh is too coarse: an interface spans {seen.cells:.1f} cells, expected at least "
            f"{_TOO_FEW_CELLS:g} (better {FEW_CELLS:g}); record with finer pixels"
        )


def resolved(seen: Survey) -> str:
    """Say whether the values look like a resolved order parameter at all."""
    if seen.two_valued:
        return f"no order parameter: the picture holds {seen.distinct} different values, like a mask; {MASK}"
    if max(-seen.low, seen.high) > _LARGE:
        return "no order parameter yet: these look like intensities; convert them with phase_from_intensity"
    if seen.cells is None:
        return f"no order parameter: no interface is seen, one phase alone or steps sharper than a pixel; {MASK}"
    if seen.cells < _TOO_FEW_CELLS:
        return (
            f"hardly an order parameter: the step from phase to phase takes {seen.cells:.1f} pixels, as it does in a "
            f"mask that was smoothed; {MASK}"
        )
    share = f"{100 * seen.interface_share:.1f} % of the pixels lie between -0.9 and 0.9"
    return f"these look like a resolved order parameter: {share}, inside interfaces"


def coarse_note(seen: Survey) -> tuple[str, ...]:
    """Say what few cells across an interface cost the weak reading; the trajectory reading is far less touched."""
    if seen.cells is None or not _TOO_FEW_CELLS <= seen.cells < FEW_CELLS:
        return ()
    return (
        f"with an interface of {seen.cells:.1f} pixels and noise the weak reading has a force error of ten percent or "
        "more; declare the boundary and use the trajectory reading, or a higher magnification",
    )


def pace_notes(seen: Survey, record: Record) -> tuple[str, ...]:
    """Say that dt, dx and q do not belong together: a picture too fast for q, or frames too far apart.

    A tanh profile of this width belongs to the quartic law with |G'| up to 4 s^2, s = 2 atanh(0.9) / width.
    """
    if record.q is None:
        return ()
    said = []
    if seen.pace is not None and seen.pace > _FAST * record.q:
        said.append(
            f"the picture changes {seen.pace / record.q:.2g} times as fast as its own diffusion, q Laplacian u, with "
            f"q = {record.q:.3g}; expected a few times at most: check the units of dt, dx and q"
        )
    if seen.interface_width is not None and record.uniform:
        action = 4.0 * record.q * record.dt * (2.0 * atanh(0.9) / seen.interface_width) ** 2
        if action > _APART:
            said.append(
                f"the frames are too far apart for dt = {record.dt:.3g} and q = {record.q:.3g}: an interface of this "
                f"width settles about {action:.2g} times from one frame to the next, expected at most {_APART:g}; "
                "check the units of dt, dx and q, or record more often"
            )
    return tuple(said)


def _value_notes(seen: Survey) -> Iterator[str]:
    if seen.two_valued:
        yield f"the picture holds no more than {seen.distinct} different values: {MASK}"
        return
    beyond = max(-seen.low, seen.high)
    scale = f"check the scale of the picture{_rescaling(seen)}"
    if beyond > _LARGE:
        yield (
            f"values run from {seen.low:.3g} to {seen.high:.3g}: these are no phase values; rescale the picture so "
            f"that the pure phases lie at -1 and +1{_rescaling(seen)}; phase_from_intensity does it"
        )
    elif beyond > 1.2 + 4.0 * seen.noise:
        yield f"values reach {beyond:.3g}, beyond the pure phases at -1 and +1: {scale}"
    elif min(-seen.low, seen.high) < _REACHED:
        phase, value = ("-1", seen.low) if -seen.low < seen.high else ("+1", seen.high)
        yield _unfinished(seen) or f"the phase {phase} is not reached (the values end at {value:.2g}): {scale}"


def _unfinished(seen: Survey) -> str:
    """Say that phases are still forming: values around zero, without two heaps or with a growing contrast."""
    middle, half = (seen.high + seen.low) / 2, (seen.high - seen.low) / 2
    if abs(middle) > _CENTRED * half or not (seen.growth > _GROWS or _one_heap(seen)):
        return ""
    return (
        f"the pure phases are not reached yet (the values run from {seen.low:.2g} to {seen.high:.2g}): record longer, "
        "until -1 and +1 are reached, for nothing is seen of the law beyond these values; where the phases are there "
        "already, the scale of the picture is wrong"
    )


def _one_heap(seen: Survey) -> bool:
    """Whether most values lie in the middle third of their range; two phases have theirs at the ends."""
    edges = [-1.0 + 2.0 * k / len(seen.histogram) for k in range(len(seen.histogram) + 1)]
    centres = [(a + b) / 2 for a, b in pairwise(edges)]
    third = (seen.high - seen.low) / 6
    near = sum(share for u, share in zip(centres, seen.histogram, strict=True) if abs(u) < third)
    return near > 0.5 * sum(seen.histogram)


def _rescaling(seen: Survey) -> str:
    """Say what takes the ends of the values to -1 and +1; the percentiles reach three standard deviations too far."""
    low, high = seen.low + 3.0 * seen.noise, seen.high - 3.0 * seen.noise
    for white in _SCALES:
        if abs(low) < _NEAR * white and abs(high - white) < _NEAR * white:
            return f"; for a picture from 0 to {white:g}, {'2 u' if white == 1.0 else f'2 u / {white:g}'} - 1 is right"
    middle, half = (float(f"{x:.2g}") for x in ((low + high) / 2, (high - low) / 2))
    if half <= 0.0:
        return ""
    shift = "u" if abs(middle) < 0.05 * half else f"(u {'-' if middle > 0 else '+'} {abs(middle):g})"
    return f"; {shift} / {half:g} takes its values to -1 and +1"


def _interface_notes(seen: Survey) -> Iterator[str]:
    if seen.cells is None:
        yield "no interface is seen: the picture looks like one phase, or like noise"
    elif seen.cells < _TOO_FEW_CELLS:
        yield f"an interface spans {seen.cells:.1f} pixels: too few for any fit; use a higher magnification"
    elif seen.cells < FEW_CELLS:
        yield f"an interface spans {seen.cells:.1f} pixels; {FEW_CELLS:g} or more are better"


def _quality_notes(seen: Survey) -> Iterator[str]:
    if seen.missing > _GAPS:
        yield (
            f"{100 * seen.missing:.3g} % of the values are missing: the weak reading uses only test functions that "
            "need none of them, the trajectory reading every value that was seen"
        )
    if seen.coverage < COVERED:
        where = " and ".join(f"{a:.2g} to {b:.2g}" for a, b in seen.unseen)
        yield (
            f"only {100 * seen.coverage:.0f} % of the phase range is visited: for |u| from {where} the law is not seen "
            "but extrapolated"
        )
    if seen.noise > 0.1:
        yield f"the noise is strong ({seen.noise:.2g}; the phases are 2 apart): average pixels or frames before a fit"
    if seen.change <= 3.0 * seen.noise * sqrt(2.0 / min(GROUP, seen.frames)):
        yield "the picture hardly changes from first to last: record longer, or a shape that moves"

"""Wide supports: the direct kernel against the transforms of an FFT route, alone and for nothing else.

Run: python benchmarks/fft_route.py
A route by FFT smooths along time by direct sums and in space by transforms: one forward for each feature and for u of
each frame, one backward for each column of each centre frame. Its cost hardly depends on the width of a support. That
of the direct kernel grows with it and then falls, because a wide support has few centres inside a frame. What is timed
is all that the direct kernel does, the transforms alone (scipy.fft, one core), which no FFT route can do without, and
the whole route of reference.py.
"""

from __future__ import annotations

import one_thread  # noqa: F401

from common import print_table, sized, synthetic_record
from floor import best_of
from reference import reference_triangles
from scipy import fft

from doublewell.weak.assembly import weak_evidence
from doublewell.weak.weights import axis_weights
from doublewell.law import Bernstein

FRAMES, DEGREE, TIME = 25, 2, 5
CASES = sized(
    [(256, (1, 2, 4, 6, 7)), (1024, (1, 2, 4, 6, 7))], tiny=[(32, (2,))]
)  # cells, lengths in sixteenths of the side
_STACK = 4  # frames transformed together


def measure(cells: int, length: int, repeats: int) -> dict:
    record, family = synthetic_record((FRAMES, cells, cells)), Bernstein(DEGREE)
    support = (TIME, length / 16)
    weak_evidence(record, family, [support])
    stack = record.slab(0, _STACK)
    spectrum = fft.rfft2(stack)
    best = best_of(
        {
            "direct": lambda: weak_evidence(record, family, [support]),
            "forward": lambda: fft.rfft2(stack, workers=1),
            "route": lambda: reference_triangles(record, family, [support]),
            "backward": lambda: fft.irfft2(spectrum, s=stack.shape[1:], workers=1),
        },
        repeats,
    )
    centres = FRAMES - 2 * axis_weights(TIME, 1.0).half
    forward = best["forward"] / _STACK * FRAMES * (family.size + 1)
    transforms = forward + best["backward"] / _STACK * centres * (family.size + 2)
    return {
        "mesh": f"{cells} x {cells}",
        "half-width in cells": cells * length // 16,
        "direct, s": round(best["direct"], 3),
        "transforms alone, s": round(transforms, 3),
        "FFT route, s": round(best["route"], 3),
        "transforms over direct": round(transforms / best["direct"], 2),
        "route over direct": round(best["route"] / best["direct"], 2),
    }


def table(quick: bool = False) -> list[dict]:
    """All cases, or the smaller mesh."""
    cases = CASES[:1] if quick else CASES
    return [measure(cells, length, 5 if cells < 512 else 2) for cells, lengths in cases for length in lengths]


if __name__ == "__main__":
    rows = table()
    print_table(f"{FRAMES} frames, degree {DEGREE}, one support, one core", rows)

"""Default supports: half-widths that follow the interface and the number of frames."""

from __future__ import annotations

from doublewell.errors import InputError
from doublewell.evidence.weights import MARGIN, Support
from doublewell.record import Record

__all__ = ["default_supports", "paper_supports"]

_FRAMES = (5, 8)  # the paper's temporal half-widths
_CENTRES = 5  # centre frames that the longest support should leave
_CELLS = (4, 8)  # least spatial half-widths, so that the weights are resolved


def paper_supports(record: Record) -> tuple[Support, ...]:
    """Return (5, 1/16) and (8, 1/8) of the shortest extent: the paper's supports on a unit domain."""
    side = min(record.extent)
    return Support(5, side / 16), Support(8, side / 8)


def default_supports(record: Record, interface_width: float | None) -> tuple[Support, ...]:
    """Return two supports for a record whose interface is `interface_width` wide (between u = -0.9 and 0.9).

    The rule: in space half a width and one width, but at least 4 and 8 cells and at most a quarter of the shortest
    side; in time 5 and 8 intervals, shortened so that at least 5 centre frames remain. On the paper's benchmark the
    rule gives the paper's supports to within 15 %.
    """
    longest = (record.frames - _CENTRES - 2 * MARGIN) // 2
    if longest < 2:
        least = 2 * (2 + MARGIN) + _CENTRES
        raise InputError(f"record is too short: expected at least {least} frames, has {record.frames}; record longer")
    frames = sorted({min(n, longest) for n in _FRAMES})
    coarse = max(record.dx)
    width = interface_width if interface_width is not None else 2 * _CELLS[0] * coarse
    side = min(record.extent)
    lengths = [
        min(max(share * width, cells * coarse), side / 4) for share, cells in zip((0.5, 1.0), _CELLS, strict=True)
    ]
    if lengths[0] < 2 * coarse or side / coarse < 2 * (2 + MARGIN) + 1:
        raise InputError(
            f"the mesh {record.mesh} is too small for a weak moment: expected at least 16 cells along each axis"
        )
    return tuple(dict.fromkeys(Support(n, x) for n, x in zip([frames[0], frames[-1]], lengths, strict=True)))

"""Default supports: half-widths that follow the interface and the number of frames."""

from __future__ import annotations

from dataclasses import dataclass

from doublewell.errors import InputError
from doublewell.record import Record
from doublewell.weak.weights import MARGIN, Support, half_cells

__all__ = ["LEAST_FRAMES", "default_rule", "default_supports", "paper_supports"]

_FRAMES = (5, 8)  # the paper's temporal half-widths
_CENTRES = 5  # centre frames that the longest support should leave
LEAST_FRAMES = 2 * (2 + MARGIN) + _CENTRES  # of a record that the default supports fit, for the start of a fit too
_LEAST = 2  # cells of the shortest half-width that a weak moment can have


def paper_supports(record: Record) -> tuple[Support, ...]:
    """Return (5, 1/16) and (8, 1/8) of the shortest extent: the paper's supports on a unit domain."""
    side = min(record.extent)
    return Support(5, side / 16), Support(8, side / 8)


def default_supports(record: Record, interface_width: float | None, *, long: bool = False) -> tuple[Support, ...]:
    """Return two supports for a record whose interface is `interface_width` wide (between u = -0.9 and 0.9).

    The rule: in space a quarter and half of a width, but at least 4 and 6 cells, at most a quarter of the shortest side
    and never more than fits; in time 5 and 8 intervals, shortened so that at least 5 centre frames remain. Where
    both come out the same there is one support. The paper's supports are about twice as long in space. So are `long`
    ones, for "analytic" derivatives, which need at least 6 and 8 cells to be accurate, and for a search of the phases.
    """
    return _choose(record, interface_width, long).supports


def default_rule(record: Record, interface_width: float | None, *, long: bool = False) -> str:
    """Say how the default supports came about, and where the record forced other half-widths than the rule's."""
    return _choose(record, interface_width, long).rule


@dataclass(frozen=True)
class _Rule:
    """Spatial half-widths in interface widths, the least of them in cells, and the rule in words."""

    shares: tuple[float, float]
    cells: tuple[int, int]
    words: str


_SHORT = _Rule((0.25, 0.5), (4, 6), "a quarter and half of the interface width")  # benchmarks/support_rules.py
_LONG = _Rule((0.5, 1.0), (6, 8), "half and one interface width")


@dataclass(frozen=True)
class _Choice:
    supports: tuple[Support, ...]
    rule: str


def _choose(record: Record, interface_width: float | None, long: bool) -> _Choice:
    rule = _LONG if long else _SHORT
    frames, told = _frames(record.frames)
    coarse, most = max(record.dx), _longest(record)
    unseen = rule.cells[0] / rule.shares[0]  # cells that stand for the width of an interface
    width = unseen * coarse if interface_width is None else interface_width
    lengths = []
    for share, cells in zip(rule.shares, rule.cells, strict=True):
        length, note = _length(share * width, cells * coarse, min(record.extent) / 4, most)
        lengths.append(length)
        told += [note] if note else []
    supports = tuple(dict.fromkeys(Support(n, x) for n, x in zip(frames, lengths, strict=True)))
    one, other = (share * unseen for share in rule.shares)
    base = f"{one:g} and {other:g} cells, no interface seen" if interface_width is None else rule.words
    return _Choice(supports, f"{base}, chosen from the record" + (f" ({'; '.join(told)})" if told else ""))


def _frames(frames: int) -> tuple[tuple[int, int], list[str]]:
    """Return the two temporal half-widths, and what was shortened."""
    longest = (frames - _CENTRES - 2 * MARGIN) // 2
    if longest < 2:
        raise InputError(f"record is too short: expected at least {LEAST_FRAMES} frames, has {frames}; record longer")
    short, long = (min(n, longest) for n in _FRAMES)
    cut = [f"{n} frames cut to {longest}" for n in _FRAMES if n > longest]
    return (short, long), cut


def _length(wanted: float, least: float, quarter: float, most: float) -> tuple[float, str]:
    """Return a spatial half-width within its limits, and what limited it."""
    limits = [(max(wanted, least), f"raised to {least:.4g}, the least that is resolved" if least > wanted else "")]
    limits.append((quarter, f"cut to {quarter:.4g}, a quarter of the shortest side"))
    limits.append((most, f"cut to {most:.4g}, the most that fits"))
    length, note = min(limits, key=lambda item: item[0])
    return length, f"{wanted:.4g} {note}" if note else ""


def _longest(record: Record) -> float:
    """Return the longest spatial half-width that fits with its margins, at least two cells of the coarsest axis."""
    fits = [((n - 1) // 2 - MARGIN) * h for n, h in zip(record.mesh, record.dx, strict=True)]
    shortest = _LEAST * max(record.dx)
    if min(fits) < shortest * (1 - 1e-9):
        needs = tuple(2 * (half_cells(shortest / h) + MARGIN) + 1 for h in record.dx)
        raise InputError(
            f"the mesh {record.mesh} is too small for a weak moment: expected at least {needs} cells, with which a "
            "test function and its margins fit; record a larger field of view"
        )
    return min(fits)

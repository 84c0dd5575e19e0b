"""Case: a named set of records and the methods that are run on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from doublewell_paper.methods import METHODS
from doublewell_paper.spec import Spec, tiny

__all__ = ["FIVE_BRANCHES", "LAWS", "TRAJECTORY", "Case", "grid", "shrink"]

LAWS = ("sixth", "bernstein3", "exponential", "rational")
FIVE_BRANCHES = ("STAC m=2", "weak LS m=5", "STAC m=5", "ridge LS m=5", "ridge STAC m=5")
TRAJECTORY = ("trajectory auto", "trajectory m=2", "trajectory m=5")
_TINY_SEEDS = 2


@dataclass(frozen=True)
class Case:
    """Records and methods; slow methods need noise, and pass over clean records.

    ``tiny_cells`` is the longest side of its small records and ``tiny_shapes`` the number of geometries they keep.
    ``most_slow`` is the number of records that slow methods are run on, None for all.
    """

    name: str
    title: str
    specs: tuple[Spec, ...]
    methods: tuple[str, ...]
    tiny_cells: int = 32
    tiny_shapes: int = 1
    most_slow: int | None = None

    def methods_of(self, spec: Spec) -> tuple[str, ...]:
        """Return the methods that are run on one record."""
        noisy = [other for other in self.specs if other.seed is not None]
        slow = spec in noisy[: self.most_slow]
        return tuple(name for name in self.methods if slow or not METHODS[name].slow)


def grid(
    base: Spec, *, laws: Iterable[str], geometries: Iterable[str], seeds: Iterable[int | None]
) -> tuple[Spec, ...]:
    """Return the records of all combinations, seeds within geometries within laws."""
    combinations = product(laws, geometries, seeds)
    return tuple(replace(base, law=law, geometry=shape, seed=seed) for law, shape, seed in combinations)


def shrink(case: Case) -> Case:
    """Return the case on small records: all laws and conditions, a geometry or a few, two seeds."""
    seeds = sorted({spec.seed for spec in case.specs if spec.seed is not None})[:_TINY_SEEDS]
    shapes = list(dict.fromkeys(spec.geometry for spec in case.specs))[: case.tiny_shapes]
    kept = [spec for spec in case.specs if spec.seed in (None, *seeds) and spec.geometry in shapes]
    small = tuple(dict.fromkeys(tiny(spec, case.tiny_cells) for spec in kept))
    return replace(case, specs=small, most_slow=_TINY_SEEDS)

"""Cases: named sets of records and the methods that are run on them. A new one is a line in CASES."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from doublewell_paper.methods import METHODS, NORMAL_DEGREES
from doublewell_paper.records import Spec, tiny

LAWS = ("sixth", "bernstein3", "exponential", "rational")
STRESS_LAWS = ("sixth", "exponential")
GEOMETRIES = ("circle", "nonconvex")
GEOMETRIES_256 = ("circle", "nonconvex", "inclusion")
FIVE_BRANCHES = ("STAC m=2", "weak LS m=5", "STAC m=5", "ridge LS m=5", "ridge STAC m=5")
TRAJECTORY = ("trajectory auto", "trajectory m=2", "trajectory m=5")
_TINY_SEEDS = 2


@dataclass(frozen=True)
class Case:
    """Records and methods; slow methods need noise, and skip clean records.

    ``tiny_cells`` is the longest side of its small records and ``tiny_shapes`` the number of geometries they keep.
    ``most_slow`` is the number of records that slow methods are run on, None for all.
    """

    name: str
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


def shrink(case: Case) -> Case:
    """Return the case on small records: all laws and conditions, a geometry or a few, two seeds."""
    seeds = sorted({spec.seed for spec in case.specs if spec.seed is not None})[:_TINY_SEEDS]
    shapes = list(dict.fromkeys(spec.geometry for spec in case.specs))[: case.tiny_shapes]
    kept = [spec for spec in case.specs if spec.seed in (None, *seeds) and spec.geometry in shapes]
    small = tuple(dict.fromkeys(tiny(spec, case.tiny_cells) for spec in kept))
    return replace(case, specs=small, most_slow=_TINY_SEEDS)


def _grid(
    base: Spec,
    noise: float = 0.0,
    *,
    laws: Iterable[str] = LAWS,
    geometries: Iterable[str] = GEOMETRIES,
    seeds: Iterable[int | None] = (None,),
) -> tuple[Spec, ...]:
    """Return the records of all combinations at one noise, seeds within geometries within laws."""
    combinations = product(laws, geometries, seeds)
    return tuple(replace(base, noise=noise, law=law, geometry=shape, seed=seed) for law, shape, seed in combinations)


_BASE = Spec("", "")

# The principal set: four laws, two geometries, ten seeds shared by all, clean and at two noises; and fresh seeds.
_SEEDS = range(20_000, 20_010)
_FRESH_SEEDS = range(21_000, 21_010)
_LONG = replace(_BASE, horizon=(61, 100))
_SELECTED = ("selected weak LS", "selected STAC")
_WEAK = (
    *("weak LS m=2", "ridge LS m=2", "ridge STAC m=2"),
    *FIVE_BRANCHES,
    *_SELECTED,
    *("analytic weak m=2", "analytic weak selected", "smoothed FD4 m=2"),
)
_AT_HIGH_NOISE = ("unmasked m=2", "Hermite m=2", "unmasked selected", "Hermite selected", "design m=5")
_PRINCIPAL = (
    Case("clean", _grid(_LONG), _WEAK),
    Case("principal 0.01", _grid(_LONG, 0.01, seeds=_SEEDS), (*_WEAK, *TRAJECTORY)),
    Case("principal 0.03", _grid(_LONG, 0.03, seeds=_SEEDS), (*_WEAK, *_AT_HIGH_NOISE, *TRAJECTORY)),
    Case("fresh", _grid(_BASE, 0.03, seeds=_FRESH_SEEDS), (*FIVE_BRANCHES, *TRAJECTORY)),
)

# The replication: four laws on the circle, fresh seeds, full and short records. A short record has half the intervals,
# 31 frames. Its supports are the longest pair near the paper's ratio 5 : 8 that leaves a centre frame in each half,
# (3, 5) intervals; choices are fitted on one half and judged on the other.
_HALVES = replace(_BASE, frames=31, supports=((3, 1 / 16), (5, 1 / 8)), training=0.5)
_REPLICATION = tuple(
    Case(
        f"replication {name} {noise:g}",
        _grid(base, noise, geometries=["circle"], seeds=range(22_000, 22_010)),
        (*FIVE_BRANCHES, *_SELECTED, *TRAJECTORY),
    )
    for name, base in (("full", _BASE), ("short", _HALVES))
    for noise in (0.01, 0.03)
)

# An admissible law outside the positive cone at degrees two and five: clean, and ten seeds at two noises. The paper
# matches the law's amplitude to an interface width that it does not define. The strong case has twice our amplitude,
# which is about what the paper's errors suggest; weak moments only.
_CONE_SEEDS = range(23_000, 23_010)
_CONE_WEAK = ("weak LS m=2", "STAC m=2", "weak LS m=5", "STAC m=5")
_CONE_EXACT = (
    "STAC admissible m=2",
    "STAC admissible m=5",
    "trajectory auto",
    "trajectory admissible",
    "trajectory free",
)


def _outside_cone(base: Spec) -> tuple[Spec, ...]:
    noisy = [_grid(base, noise, laws=["outside_cone"], seeds=_CONE_SEEDS) for noise in (0.01, 0.03)]
    return (*_grid(base, laws=["outside_cone"]), *noisy[0], *noisy[1])


_OUTSIDE_CONE = (
    Case("outside cone", _outside_cone(_BASE), (*_CONE_WEAK, *_CONE_EXACT)),
    Case("outside cone strong", _outside_cone(replace(_BASE, epsilon=_BASE.epsilon / 2**0.5)), _CONE_WEAK),
)

# Six observation conditions at noise 0.03, two laws, ten seeds on the circle. short: 31 frames. sparse: every second
# of 61 frames, so that (3, 5) frames last about as long as the paper's (5, 8). coarse: every second pixel, 48 x 48.
# correlated: noise through a Gaussian filter of 1.5 cells. Thin and wide interfaces: epsilon 0.02 and 0.05. Two laws
# with the paper's reference error 2.7 % are the sixth and the exponential.
CONDITIONS: dict[str, Spec] = {
    "short record": _HALVES,
    "sparse in time": replace(_HALVES, stride=2),
    "48 x 48 grid": replace(_BASE, coarsen=2),
    "spatially correlated noise": replace(_BASE, correlation=1.5),
    "epsilon 0.02": replace(_BASE, epsilon=0.02),
    "epsilon 0.05": replace(_BASE, epsilon=0.05),
}
_STRESS = tuple(
    Case(
        f"stress {name}",
        _grid(base, 0.03, laws=STRESS_LAWS, geometries=["circle"], seeds=_SEEDS),
        (*_CONE_WEAK, *_SELECTED, *TRAJECTORY),
    )
    for name, base in CONDITIONS.items()
)

# Larger noise on the principal laws and geometries with five of the seeds.
_LARGE = tuple(
    Case(f"noise {noise:.2f}", _grid(_BASE, noise, seeds=_SEEDS[:5]), ("STAC m=2", "STAC m=5", *TRAJECTORY))
    for noise in (0.05, 0.10)
)

# The separate 256 x 256 set of the sixth law: three geometries at noise 0.01, five without noise; finer norms.
_FINE = Spec("sixth", "", cells=256, phases=20_001)
_MORE = ("wobbled", "dumbbell")
_FD4 = ("STAC m=2", "smoothed FD4 m=2")


def _published(geometries: tuple[str, ...]) -> tuple[Spec, ...]:
    return _grid(_FINE, 0.01, laws=["sixth"], geometries=geometries, seeds=[24_000])


_PUBLISHED = (
    Case("published", _published(GEOMETRIES_256), (*_FD4, *TRAJECTORY), tiny_shapes=3),
    Case("published more", _published(_MORE), _FD4),
    Case(
        "published clean",
        _grid(_FINE, laws=["sixth"], geometries=(*GEOMETRIES_256, *_MORE)),
        ("STAC m=2", "analytic weak m=2", "direct FD4 m=2"),
        tiny_shapes=3,
    ),
)

# Clean circular tests: degrees zero to five of the exponential law, and spatial refinement of the sixth.
_DEGREES = (*(f"normal m={m}" for m in NORMAL_DEGREES), "STAC m=2", "STAC m=5")
_REFINED = tuple(
    Spec("sixth", "circle", cells=cells, substeps=steps) for cells in (128, 192, 256, 384, 512) for steps in (24, 48)
)
_CLEAN = (
    Case("degrees", (Spec("exponential", "circle"),), _DEGREES),
    Case("refinement", _REFINED, ("STAC m=2",), tiny_cells=64),
)

CASES: dict[str, Case] = {
    case.name: case for case in (*_PRINCIPAL, *_REPLICATION, *_OUTSIDE_CONE, *_STRESS, *_LARGE, *_PUBLISHED, *_CLEAN)
}

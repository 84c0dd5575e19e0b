"""Evidence: what records say about the coefficients, a few kilobytes whatever the size of the records."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from doublewell.errors import InputError, positive
from doublewell.hints import Array
from doublewell.law import Family

MOMENTS = ("force", "rate", "target")  # the columns of weak moments
_rows, _triangle = attrgetter("rows"), attrgetter("triangle")


class Key(NamedTuple):
    """Where rows come from. Blocks with equal keys may be merged; others stay apart."""

    record: str
    support: str
    fold: str


@dataclass(frozen=True)
class Block:
    """The compacted rows of one key: R of the columns with positive diagonal, and the row count."""

    key: Key
    triangle: Array
    rows: int

    def turned(self, change: Array) -> Block:
        """Return the rows in other columns, which these give times `change`."""
        return replace(self, triangle=compact(self.triangle @ change))


@dataclass(frozen=True)
class Evidence:
    """Blocks of compacted rows with named columns.

    ``columns`` are the names in order: "force" stands for one column for each coefficient of the family, the last is
    the "target". Each row states that the columns times their coefficients add up to the target. Weak moments have
    "rate" after the force, with the coefficient 1/q; a likelihood has what is estimated jointly with the law ("q",
    "blur") before the force, so that the last rows speak of the law alone. Known quantities contract their column by
    name. Weights between blocks are applied only when solving, so that merging stays exact. ``whitened`` rows are
    independent and in units of their noise, those of a likelihood; weak moments are not.
    """

    family: Family
    blocks: tuple[Block, ...]
    whitened: bool = False
    columns: tuple[str, ...] = MOMENTS

    @property
    def joint(self) -> tuple[str, ...]:
        """The names of what is estimated jointly with the law."""
        return self.columns[: self.columns.index("force")]

    @property
    def rows(self) -> int:
        """Number of rows in all blocks."""
        return sum(map(_rows, self.blocks))

    @property
    def folds(self) -> tuple[str, ...]:
        """The names of the folds, in the order of their first block."""
        return tuple(dict.fromkeys(map(attrgetter("key.fold"), self.blocks)))

    @property
    def supports(self) -> tuple[str, ...]:
        """The names of the supports, in the order of their first block."""
        return tuple(dict.fromkeys(map(attrgetter("key.support"), self.blocks)))

    def select(self, supports: Container[str] | None = None, fold: str | None = None) -> Evidence:
        """Return the evidence of some supports, or of one fold."""
        keys = [(block, block.key) for block in self.blocks if fold in (None, block.key.fold)]
        return replace(self, blocks=tuple([b for b, key in keys if supports is None or key.support in supports]))


def compact(rows: Array) -> Array:
    """Return the R factor of a stack of rows, square, with positive diagonal."""
    columns = rows.shape[1]
    padded = np.vstack([rows, np.zeros((max(0, columns - rows.shape[0]), columns))])
    triangle = np.linalg.qr(padded, mode="r")
    return np.asarray(np.where(np.diag(triangle) < 0, -1.0, 1.0)[:, None] * triangle)


def merge(parts: Iterable[Evidence]) -> Evidence:
    """Stack evidence of the same family: equal keys are compacted together, in the order given.

    Chunks of a record, several records and several machines are all this one operation, exact to round-off.
    """
    parts = tuple(parts) if isinstance(parts, Iterable) else (parts,)
    if not parts:
        raise InputError("nothing to merge: expected at least one piece of evidence")
    groups: dict[Key, list[Block]] = {}
    for part in parts:
        first = parts[0]
        if not isinstance(part, Evidence):
            raise InputError(
                f"evidence is a {type(part).__name__}: expected Evidence; make it with "
                "weak_evidence(record, family, supports)"
            )
        if part.family != first.family:
            names = " and ".join(
                sorted([f"{other.family.name} degree {other.family.degree}" for other in (first, part)])
            )
            raise InputError(f"cannot merge evidence of different families ({names}): assemble both at one degree")
        if (part.whitened, part.columns) != (first.whitened, first.columns):
            raise InputError("cannot merge evidence with different columns: read all records by one method")
        for block in part.blocks:
            groups.setdefault(block.key, []).append(block)
    blocks = []
    for key, group in groups.items():
        full = list(filter(_rows, group)) or group[:1]
        triangle = compact(np.vstack(list(map(_triangle, full)))) if len(full) > 1 else full[0].triangle
        blocks.append(Block(key, triangle, sum(map(_rows, full))))
    return replace(parts[0], blocks=tuple(blocks))


def lower(evidence: Evidence, degree: int) -> Evidence:
    """Return the same evidence at a lower degree: A_m = A_M E with E the elevation matrix, no new assembly."""
    evidence = merge([evidence])
    family = evidence.family.at(degree)
    if degree > evidence.family.degree:
        raise InputError(
            f"evidence was assembled at degree {evidence.family.degree} and cannot serve degree {degree}: "
            "assemble it at the higher degree"
        )
    return restrict(evidence, family)


def restrict(evidence: Evidence, family: Family) -> Evidence:
    """Return the same evidence for a family inside its own: a lower degree, equally deep wells, symmetric wells."""
    if family == evidence.family:
        return evidence
    n, lift = len(evidence.joint), family.elevation(evidence.family)
    change = np.eye(len(evidence.columns) - 1 + evidence.family.size)
    change = np.hstack([change[:, :n], change[:, n : n + len(lift)] @ lift, change[:, n + len(lift) :]])
    blocks = tuple([block.turned(change) for block in evidence.blocks])
    return replace(evidence, family=family, blocks=blocks)


def stacked(evidence: Evidence) -> Array:
    """Return the rows of all blocks with all columns, weighted for solving.

    The folds of one support are one block. A block of n_b weak moments is scaled by (k n_b)^(-1/2), k the number of
    blocks; whitened blocks are in units of their noise already. A block without rows is left out.
    """
    evidence = merge([evidence])
    whole = [replace(block, key=block.key._replace(fold="")) for block in evidence.blocks if block.rows]
    if not whole:
        raise InputError(
            "no centre is left: every temporal mean lies in a pure phase (|mean| >= 0.98) or the record is too "
            "small; record frames that contain an interface"
        )
    blocks = merge([replace(evidence, blocks=tuple(whole))]).blocks
    scales = 1.0 if evidence.whitened else np.sqrt(len(blocks) * np.array(list(map(_rows, blocks))))[:, None, None]
    return np.concatenate(np.array(list(map(_triangle, blocks))) / scales)


def system(evidence: Evidence, q: float = 1.0) -> tuple[Array, Array]:
    """Return the small problem (A, d) of the coefficients: joint parameters are eliminated, q is known."""
    rows, n = stacked(evidence), len(evidence.joint)
    force, target = slice(n, n + evidence.family.size), rows[:, -1]
    if "rate" in evidence.columns:
        rate = rows[:, force.stop - n - 1 + evidence.columns.index("rate")]
        target = target - rate / positive(q, "q", "the diffusion coefficient of the record")
    if n:
        rest = compact(np.hstack([rows[:, : force.stop], target[:, None]]))[n:]
        rows, target = rest[:, :-1], rest[:, -1]
    return rows[:, force], target


def contract(evidence: Evidence, values: Mapping[str, float]) -> Evidence:
    """Return the evidence with some joint parameters known: their columns go into the target."""
    known = [k for k, name in enumerate(evidence.joint) if name in values]
    numbers, blocks = np.array([values[evidence.joint[k]] for k in known]), []
    for block in evidence.blocks:
        rows = np.delete(block.triangle, known, axis=1)
        rows[:, -1] -= block.triangle[:, known] @ numbers
        blocks.append(replace(block, triangle=compact(rows)))
    columns = tuple([name for name in evidence.columns if name not in values])
    return replace(evidence, blocks=tuple(blocks), columns=columns)


def joint_given_law(evidence: Evidence) -> JointParameters:
    """Return the joint parameters given the law, and the most likely law."""
    rows, n = compact(stacked(evidence)), len(evidence.joint)
    root, cross, target = rows[:n, :n], rows[:n, n:-1], rows[:, -1]
    law = np.asarray(np.linalg.lstsq(rows[n:, n:-1], target[n:], rcond=None)[0], dtype=np.float64)
    slope = -np.asarray(np.linalg.solve(root, cross), dtype=np.float64)
    best = np.asarray(np.linalg.solve(root, target[:n] - cross @ law), dtype=np.float64)
    return JointParameters(evidence.joint, best, slope, root, law)


def weakened(evidence: Evidence, factor: float) -> Evidence:
    """Return evidence whose squares count `factor` times less."""
    if factor == 1.0:
        return evidence
    blocks = [replace(block, triangle=block.triangle / np.sqrt(factor)) for block in evidence.blocks]
    return replace(evidence, blocks=tuple(blocks))


def eliminate_joint(evidence: Evidence) -> Evidence:
    """Return the evidence of the law alone: what each block estimates jointly with it is its own, and eliminated."""
    n = len(evidence.joint)
    if not n:
        return evidence
    blocks = tuple([replace(block, triangle=block.triangle[n:, n:]) for block in evidence.blocks])
    return replace(evidence, blocks=blocks, columns=evidence.columns[n:])


def pooled(parts: Sequence[Evidence], name: str) -> Evidence:
    """Return the first evidence with what the others state of a joint parameter that is common to all of them."""
    first, *others = parts
    at, n, rows = first.joint.index(name), len(first.joint), [stacked(first)]
    for part in others:
        own = [k for k, other in enumerate(part.joint) if other != name]
        order = [*own, part.joint.index(name), *range(len(part.joint), rows[0].shape[1] - n + len(part.joint))]
        left = compact(stacked(part)[:, order])[len(own) :, len(own) :]
        rows.append(np.zeros((len(left), rows[0].shape[1])))
        rows[-1][:, at], rows[-1][:, n:] = left[:, 0], left[:, 1:]
    block = replace(first.blocks[0], triangle=compact(np.vstack(rows)), rows=sum(part.rows for part in parts))
    return replace(first, blocks=(block,))


@dataclass(frozen=True, eq=False)
class JointParameters:
    """The distribution of q or a blur, given the law: normal with mean best + slope (g - g_best) and a covariance.

    ``root`` is the triangle of that covariance's inverse. Empty where nothing is estimated jointly with the law.
    """

    names: tuple[str, ...]
    best: Array
    slope: Array
    root: Array
    g_best: Array

    def mean(self, coefficients: Array) -> Array:
        """Return the most likely values for laws coefficients[..., k]."""
        return np.asarray(self.best + (coefficients - self.g_best) @ self.slope.T)

    def scaled(self, factors: Array, shifts: Array | float = 0.0) -> JointParameters:
        """Return the same in other units: values times factors, plus shifts."""
        best, slope = self.best * factors + shifts, self.slope * factors[:, None]
        return JointParameters(self.names, best, slope, self.root / factors[None, :], self.g_best)

    def draw(self, coefficients: Array, rng: np.random.Generator) -> Array:
        """Return one draw for each law."""
        z = rng.standard_normal((*coefficients.shape[:-1], len(self.names)))
        return np.asarray(self.mean(coefficients) - np.linalg.solve(self.root, z[..., None])[..., 0])

"""Tables of columns: their terms, their moments against direct convolutions, and their order of accuracy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.compute.partition import Region
from doublewell.dynamics import ALLEN_CAHN, Column
from doublewell.errors import InputError
from doublewell.evidence import compact, merge
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.runtime import Processor
from doublewell.weak.assembly import PHASE_CUT, weak_evidence
from doublewell.weak.noise import Smoother, noisy_moments
from doublewell.weak.weights import Support, axis_weights, split_folds, steps, terms, uneven_weights

TIME, SPACE = ("value", "first"), ("value", "second", "fourth")  # weights by kind
CAHN_HILLIARD = (
    Column("force", "features", space=1),
    Column("rate", "field", time=1, factor=-1.0),
    Column("target", "field", space=2),
)
CONSERVED = (Column("force", "features", centred=True), *ALLEN_CAHN.weak_form[1:])
ODD = (
    Column("target", "field", time=1, space=2, factor=0.5),
    Column("force", "features", time=1, space=1, factor=-2.0),
)
FORMS = {"allen-cahn": ALLEN_CAHN.weak_form, "cahn-hilliard": CAHN_HILLIARD, "conserved": CONSERVED, "odd": ODD}
CASES = [((20, 70), 0.02, (3, 0.1)), ((17, 34, 40), (0.02, 0.025), (4, 0.1)), ((12, 20, 19, 22), 0.04, (2, 0.1))]


def rough(shape, dx=0.02, **options):
    u = np.random.default_rng(2).uniform(-1.3, 1.3, shape)
    return Record(u, dx=dx, **{"dt": 0.1, "q": 1.0, "boundary": "periodic", **options})


def difference(field, stencil, axis):
    """Apply a stencil to a whole field along an axis; two cells at each end are garbage."""
    return sum(c * np.roll(field, 2 - k, axis) for k, c in enumerate(stencil))


def direct_rows(record, family, support, form, *, keep=None):
    """Every row from sums over whole boxes, written down without any taps of derivatives: differences of S itself."""
    axes = [axis_weights(support[0], record.dt), *(axis_weights(support[1] / h, h) for h in record.dx)]
    first, second = np.array([1, -8, 0, 8, -1]) / 12, np.array([-1, 16, -30, 16, -1]) / 12

    def smooth(field, axes_used):
        for axis in axes_used:
            half = len(axes[axis].value) // 2
            field = sum(w * np.roll(field, half - k, axis) for k, w in enumerate(axes[axis].value))
        return field

    u, every = record.slab(), range(len(record.shape))
    columns = []
    for column in form:
        for source in family.features(u) if column.source == "features" else [u]:
            centred = source - source.mean(axis=tuple(every)[1:], keepdims=True) if column.centred else source
            field = column.factor * smooth(centred, every)
            for _ in range(column.time):
                field = difference(field, first, 0) / record.dt
            for _ in range(column.space):
                field = sum(difference(field, second, 1 + k) / h**2 for k, h in enumerate(record.dx))
            columns.append(field)
    power = max(1, *(column.space for column in form))
    margins = [axes[0].half, *(w.half + 2 * (power - 1) for w in axes[1:])]
    inside = tuple(slice(m, n - m) for m, n in zip(margins, u.shape, strict=True))
    kept = np.abs(smooth(u, [0])[inside]) < PHASE_CUT
    kept = kept if keep is None else kept & keep[inside]
    return np.stack([column[inside][kept] for column in columns], axis=1)


def same(triangle, rows, tolerance=1e-11):
    expected = compact(rows)
    scale = np.linalg.norm(expected, axis=0)
    assert np.abs((triangle - expected) / scale).max() < tolerance


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("shape", "dx", "support"), CASES)
@pytest.mark.parametrize("processor", [Processor(), Processor("gpu")], ids=["cpu", "jax"])
def test_moments_are_differences_of_the_smoothed_field(name, shape, dx, support, processor) -> None:
    record, family, form = rough(shape, dx), Bernstein(2), FORMS[name]
    rows = direct_rows(record, family, support, form)
    evidence = weak_evidence(record, family, [support], form=form, processor=processor)
    assert evidence.columns == tuple(column.name for column in form)
    assert evidence.rows == len(rows) > 100
    same(evidence.blocks[0].triangle, rows)


@pytest.mark.parametrize("name", FORMS)
def test_the_smoother_gives_the_same_columns(name) -> None:
    record, family, form = rough((17, 34, 40)), Bernstein(1), FORMS[name]
    smoother = Smoother.of(record, (3, 0.08), form=form)
    u = record.slab()
    keep = np.abs(smoother.temporal_mean(u)) < PHASE_CUT
    sources = [(c, source) for c in form for source in (family.features(u) if c.source == "features" else [u])]
    rows = np.stack([smoother.column(column, source)[keep] for column, source in sources], axis=1)
    same(compact(rows), direct_rows(record, family, (3, 0.08), form))
    same(weak_evidence(record, family, [(3, 0.08)], form=form).blocks[0].triangle, rows)


UNEVEN = np.cumsum(np.random.default_rng(1).uniform(0.07, 0.13, 33))


@settings(derandomize=True, deadline=None, max_examples=12)
@given(
    name=st.sampled_from(["cahn-hilliard", "odd"]), cuts=st.lists(st.integers(1, 32), max_size=3, unique=True),
    row=st.integers(1, 29), threads=st.integers(1, 3), uneven=st.booleans(), masked=st.booleans(),
)  # fmt: skip
def test_parts_make_the_whole(name, cuts, row, threads, uneven, masked) -> None:
    mask = np.random.default_rng(7).uniform(size=(33, 30, 36)) > 1e-4 if masked else None
    options = {"times": UNEVEN, "dt": None} if uneven else {}
    record, family = rough((33, 30, 36), mask=mask, **options), Bernstein(1)
    supports, folds, form = [(3, 0.08), (4, 0.1)], split_folds(33, 4), FORMS[name]
    whole = weak_evidence(record, family, supports, form=form, folds=folds)
    edges = [0, *sorted(cuts), 33]
    regions = [Region((a, b), (rows, (0, 36))) for a, b in pairwise(edges) for rows in ((0, row), (row, 30))]
    parts = merge(
        weak_evidence(record, family, supports, form=form, folds=folds, region=region, threads=threads)
        for region in regions
    )
    assert {block.key: block.rows for block in parts.blocks} == {block.key: block.rows for block in whole.blocks}
    assert whole.rows > 100
    for block in whole.blocks:
        [other] = parts.select([block.key.support], block.key.fold).blocks
        assert np.allclose(other.triangle, block.triangle, rtol=0, atol=1e-11 * np.abs(block.triangle).max())


@pytest.mark.parametrize("name", ["cahn-hilliard", "odd"])
def test_masks_leave_out_what_a_column_reaches(name) -> None:
    family, support, form = Bernstein(1), (2, 0.06), FORMS[name]
    full = rough((19, 34, 36))
    mask = np.ones(full.shape, bool)
    mask[9, 17, 20] = False
    axes = [axis_weights(support[0], 0.1), *(axis_weights(support[1] / 0.02, 0.02) for _ in range(2))]
    reached = np.zeros(full.shape, bool)
    for column in form:
        for kinds in terms(column, 2):
            halves = [
                len(getattr(axes[0], TIME[kinds[0]])) // 2,
                *(len(getattr(axes[1], SPACE[k])) // 2 for k in kinds[2:]),
            ]
            reached[tuple(slice(p - h, p + h + 1) for p, h in zip((9, 17, 20), halves, strict=True))] = True
    rows = direct_rows(full, family, support, form, keep=~reached)
    evidence = weak_evidence(full.replace(full.values, mask=mask), family, [support], form=form)
    assert evidence.rows == len(rows) < len(direct_rows(full, family, support, form))
    same(evidence.blocks[0].triangle, rows)


def test_uneven_times_in_a_cahn_hilliard_table() -> None:
    record, family, support = rough((33, 30, 36), times=UNEVEN, dt=None), Bernstein(1), (4, 0.08)
    smoother = Smoother.of(rough((33, 30, 36)), support, form=CAHN_HILLIARD)
    u, half = record.slab(), smoother.axes[0].half
    windows = np.lib.stride_tricks.sliding_window_view(record.times, 2 * half + 1)
    value, first = uneven_weights(4, windows)

    def in_time(taps, field):
        reach = (len(taps[0]) - 1) // 2
        return np.stack([np.tensordot(row, field[c - reach : c + reach + 1], 1) for c, row in enumerate(taps, half)])

    def at(taps, field, factors):
        total = 0.0
        for kinds, factor in factors.items():
            part = in_time(taps, field)
            for axis, kind in enumerate(kinds[2:], 1):
                w = getattr(smoother.axes[axis], SPACE[kind])
                part = sum(t * np.roll(part, len(w) // 2 - k, axis) for k, t in enumerate(w))
            total = total + factor * part
        return total[(slice(None), *smoother.inside(u.shape)[1:])]

    keep = np.abs(in_time(value, u)[(slice(None), *smoother.inside(u.shape)[1:])]) < PHASE_CUT
    columns = [at(value, field, terms(CAHN_HILLIARD[0], 2)) for field in family.features(u)]
    columns += [at(first, u, terms(CAHN_HILLIARD[1], 2)), at(value, u, terms(CAHN_HILLIARD[2], 2))]
    rows = np.stack([column[keep] for column in columns], axis=1)
    evidence = weak_evidence(record, family, [support], form=CAHN_HILLIARD)
    assert evidence.rows == len(rows)
    same(evidence.blocks[0].triangle, rows)


@pytest.mark.parametrize("space", [1, 2])
def test_laplacians_of_smoothed_waves_are_of_fourth_order(space) -> None:
    """S is the same weighted mean on both sides: what is left is the error of the differences."""
    errors, cells = [], np.array([24, 34, 48, 68])
    for n in cells:
        h = 1.0 / n
        x, y = np.meshgrid(h * np.arange(2 * n), h * np.arange(2 * n), indexing="ij")
        u = np.stack([np.sin(4.0 * x + 0.1 * k) * np.cos(3.0 * y) for k in range(9)])
        record = Record(u, dx=h, dt=0.1, q=1.0)
        smoother = Smoother.of(record, (2, 0.25), form=CAHN_HILLIARD)
        exact = (-25.0) ** space * smoother.value(u)
        errors.append(np.abs(smoother.column(Column("u", "field", space=space), u) - exact).max())
    slope = np.polyfit(np.log(cells), np.log(errors), 1)[0]
    assert slope == pytest.approx(-4.0, abs=0.15)


def test_cahn_hilliard_rows_hold_for_a_decaying_wave() -> None:
    """For u_t = -q Lap^2 u the rate column times 1/q is the target, to fourth order in spacing and interval."""
    residuals, cells = [], np.array([40, 56, 80])
    for n in cells:
        h, q, k2 = 1.0 / n, 0.02, 25.0
        x, y = np.meshgrid(h * np.arange(n), h * np.arange(n), indexing="ij")
        times = np.linspace(0.0, 0.02, n // 2)
        u = np.exp(-q * k2**2 * times)[:, None, None] * (0.5 * np.sin(4.0 * x) * np.cos(3.0 * y))
        record, support = Record(u, dx=h, times=times, q=q), (n // 8, 0.2)
        triangle = weak_evidence(record, Bernstein(0), [support], form=CAHN_HILLIARD).blocks[0].triangle
        residuals.append(np.linalg.norm(triangle[:, 1] / q - triangle[:, 2]) / np.linalg.norm(triangle[:, 2]))
    assert residuals[-1] < 2e-3
    assert np.polyfit(np.log(cells), np.log(residuals), 1)[0] < -3.5


def test_fourth_derivatives_sum_by_parts_exactly() -> None:
    weights = axis_weights(6.3, 0.1, bends=2)
    x = 0.1 * (np.arange(len(weights.fourth)) - len(weights.fourth) // 2)
    moments = [weights.fourth @ x**k for k in range(8)]
    inner = slice(4, -4)
    expected = [0, 0, 0, 0, 24, 0, 360 * (weights.value @ x[inner] ** 2), 0]
    assert np.allclose(moments, expected, rtol=0, atol=1e-6)
    assert weights.half == 7 + 4
    assert len(weights.fourth) == len(weights.value) + 8


def test_what_is_alike_is_made_once() -> None:
    target = terms(Column("target", "field", space=2), 3)
    assert sorted(target.values()) == [1, 1, 1, 2, 2, 2]
    levels = steps([terms(Column("rate", "field", time=1), 3), target], (0, 1, 2, 3), mean=True)
    assert [len({step.result for step in level}) for level in levels] == [2, 4, 4, 2]
    laplacian = steps([terms(ALLEN_CAHN.weak_form[2], 2)], (0, 3, 2))
    assert [len(level) for level in laplacian] == [1, 2, 2]


def test_a_new_table_compiles_nothing() -> None:
    from doublewell.weak.kernel import assemble

    record = rough((17, 34, 40))
    weak_evidence(record, Bernstein(1), [(3, 0.08)])
    before = len(assemble.signatures)
    for form in FORMS.values():
        weak_evidence(record, Bernstein(2), [(3, 0.08)], form=form)
    assert len(assemble.signatures) == before


@pytest.mark.parametrize(
    ("options", "region", "message"),
    [
        (
            {"boundary": "open"},
            None,
            "needs the mean over the domain in each frame, and the record's boundary is 'op",
        ),
        ({"boundary": None}, None, "the record's boundary is None: expected the whole domain"),
        ({"mask": np.arange(17) != 3}, None, "the record has missing values: expected complete frames"),
        ({}, Region((0, 17), ((0, 20), (0, 40))), "only a part of each frame is read: expected whole frames"),
    ],
)
def test_means_that_are_not_known(options, region, message) -> None:
    with pytest.raises(InputError, match=message):
        weak_evidence(rough((17, 34, 40), **options), Bernstein(1), [(3, 0.08)], form=CONSERVED, region=region)


def test_other_tables_that_are_refused() -> None:
    record = rough((17, 34, 40))
    with pytest.raises(InputError, match="a column of the field is centred"):
        weak_evidence(record, Bernstein(1), [(3, 0.08)], form=(Column("target", "field", centred=True),))
    with pytest.raises(InputError, match="some columns of the features are centred"):
        weak_evidence(record, Bernstein(1), [(3, 0.08)], form=(*CONSERVED, Column("more", "features")))
    with pytest.raises(InputError, match="the correction for noise is for equations with the columns force, rate"):
        noisy_moments(record, Bernstein(1), Support(3, 0.08), 0.1, form=(*CONSERVED, Column("more", "field", space=1)))
    with pytest.raises(InputError, match="the record's boundary is None: expected the whole domain"):
        noisy_moments(record.replace(boundary=None), Bernstein(1), Support(3, 0.08), 0.1, form=CONSERVED)
    with pytest.raises(InputError, match="fourth derivatives in space, .*: expected 'discrete'"):
        weak_evidence(record, Bernstein(1), [(3, 0.08)], form=CAHN_HILLIARD, derivative="analytic")
    with pytest.raises(InputError, match="needs 33 cells, has 30; pass a shorter support length"):
        weak_evidence(rough((17, 30, 40)), Bernstein(1), [(3, 0.24)], form=CAHN_HILLIARD)

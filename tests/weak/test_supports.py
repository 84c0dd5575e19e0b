"""The default supports: the rule, its limits, and what it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.record import Record
from doublewell.weak.weights import Support, check_supports, default_supports, half_cells, paper_supports

PLAIN = "a quarter and half of the interface width, chosen from the record"


def blank(shape: tuple[int, ...], dx: float | tuple[float, ...]) -> Record:
    return Record(np.zeros(shape), dx=dx, dt=1.0, q=1.0)


def test_rule_follows_the_width() -> None:
    record = blank((61, 96, 96), 1 / 96)
    assert default_supports(record, 0.24)[0] == (Support(5, 0.06), Support(8, 0.12))
    assert default_supports(record, 0.24)[1] == PLAIN
    assert paper_supports(record) == (Support(5, 1 / 16), Support(8, 1 / 8))


@pytest.mark.parametrize(
    ("shape", "dx", "width", "supports", "said"),
    [
        (
            (61, 64, 64),
            1 / 64,
            0.1,
            [(5, 0.0625), (8, 0.09375)],
            "(0.025 raised to 0.0625, the least that is resolved; 0.05 raised to 0.09375, the least that is resolved)",
        ),
        ((61, 64, 64), 1 / 64, 0.8, [(5, 0.2), (8, 0.25)], "(0.4 cut to 0.25, a quarter of the shortest side)"),
        ((61, 96, 96), 1 / 96, 4.0, [(5, 0.25), (8, 0.25)], "(1 cut to 0.25, a quarter of the shortest side; 2 cut to"),
        ((21, 64, 64), 1 / 64, 0.4, [(5, 0.1), (6, 0.2)], "(8 frames cut to 6)"),
        ((13, 64, 64), 1 / 64, 0.4, [(2, 0.1), (2, 0.2)], "(5 frames cut to 2; 8 frames cut to 2)"),
        ((61, 10, 10), 1.0, 18.0, [(5, 2.0), (8, 2.0)], "(4.5 cut to 2, the most that fits; 9 cut to 2, the most that"),
        ((13, 9, 9), 1.0, 9.0, [(2, 2.0)], "the most that fits"),
    ],
)
def test_limits_are_kept_and_said(shape, dx, width, supports, said) -> None:
    record = blank(shape, dx)
    chosen, rule = default_supports(record, width)
    assert [(support.frames, pytest.approx(support.length)) for support in chosen] == supports
    assert rule.startswith(PLAIN)
    assert said in rule


def test_analytic_derivatives_need_longer_ones() -> None:
    record = blank((61, 96, 96), 1 / 96)
    assert default_supports(record, 0.12, long=True)[0] == (Support(5, 6 / 96), Support(8, 0.12))
    assert default_supports(record, 0.24, long=True)[1] == "half and one interface width, chosen from the record"
    assert default_supports(record, None, long=True)[1].startswith("6 and 12 cells, no interface seen")


def test_no_interface_is_said() -> None:
    record = blank((61, 64, 64), 1 / 64)
    assert default_supports(record, None)[0] == (Support(5, 4 / 64), Support(8, 8 / 64))
    assert default_supports(record, None)[1].startswith("4 and 8 cells, no interface seen, chosen from the record")


@given(
    st.integers(2, 40),
    st.lists(st.tuples(st.integers(5, 40), st.floats(0.1, 0.7)), min_size=1, max_size=3),
    st.one_of(st.none(), st.floats(1e-3, 1e3)),
)
def test_the_default_fits_or_says_what_is_needed(frames, axes, width) -> None:
    mesh, dx = tuple(n for n, _ in axes), tuple(h for _, h in axes)
    record = blank((frames, *mesh), dx)
    coarse = max(dx)
    fits = all(2 * (half_cells(2 * coarse / h) + 2) + 1 <= n for n, h in axes)
    if frames >= 3 and fits:
        check_supports(default_supports(record, width)[0], frames, mesh, dx)
    else:
        with pytest.raises(InputError, match="need three at least" if frames < 3 else "the mesh .* is too small"):
            default_supports(record, width)


@pytest.mark.parametrize(
    ("mesh", "dx", "needs"), [((8, 30), 1.0, (9, 9)), ((8,), 0.1, (9,)), ((12, 40), (0.5, 1.0), (13, 9))]
)
def test_a_small_mesh_is_told_what_would_fit(mesh, dx, needs) -> None:
    with pytest.raises(InputError) as error:
        default_supports(blank((20, *mesh), dx), 1.0)
    assert str(error.value) == (
        f"the mesh {mesh} is too small for a weak moment: expected at least {needs} cells, with which a test function "
        "and its margins fit; record a larger field of view"
    )
    enough = blank((20, *np.maximum(mesh, needs)), dx)
    check_supports(default_supports(enough, 1.0)[0], 20, enough.mesh, enough.dx)


def test_a_short_record_is_told_how_many_frames_fit() -> None:
    with pytest.raises(InputError, match="has 2 frames: weak moments need three at least; use method='trajectory'"):
        default_supports(blank((2, 64), 1.0), 10.0)
    chosen = {frames: default_supports(blank((frames, 64), 1.0), 10.0)[0][0].frames for frames in (3, 12, 13)}
    assert chosen == {3: 1, 12: 1, 13: 2}

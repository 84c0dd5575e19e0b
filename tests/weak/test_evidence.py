from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, lower, merge, system
from doublewell.law import Bernstein


def piece(seed: int, rows: int = 30, degree: int = 2, support: str = "a", record: str = "r", fold: str = "all"):
    matrix = np.random.default_rng(seed).standard_normal((rows, degree + 3))
    return Evidence(Bernstein(degree), (Block(Key(record, support, fold), compact(matrix), rows),)), matrix


@given(st.integers(0, 1000), st.integers(1, 40))
def test_compact_keeps_the_gram_matrix(seed: int, rows: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((rows, 5))
    triangle = compact(matrix)
    assert triangle.shape == (5, 5)
    assert np.all(np.diag(triangle) >= 0)
    assert np.allclose(triangle, np.triu(triangle))
    assert np.allclose(triangle.T @ triangle, matrix.T @ matrix, atol=1e-12 * rows)


def test_merge_is_the_stack_and_the_order_does_not_matter() -> None:
    (a, first), (b, second), (c, third) = piece(1), piece(2), piece(3)
    merged = merge([a, b, c])
    assert merged.rows == 90
    assert np.allclose(merged.blocks[0].triangle, compact(np.vstack([first, second, third])), atol=1e-13)
    assert np.allclose(merged.blocks[0].triangle, merge([c, merge([b, a])]).blocks[0].triangle, atol=1e-13)


def test_different_keys_stay_apart() -> None:
    merged = merge([piece(1)[0], piece(2, support="b")[0], piece(3, record="s")[0]])
    assert len(merged.blocks) == 3
    assert merged.supports == ("a", "b")


def test_merge_refuses_other_families_and_nothing() -> None:
    with pytest.raises(InputError, match="different families .bernstein degree 2 and bernstein degree 3."):
        merge([piece(1)[0], piece(2, degree=3)[0]])
    with pytest.raises(InputError, match="nothing to merge"):
        merge([])


def test_lower_refuses_a_higher_degree() -> None:
    with pytest.raises(InputError, match="assembled at degree 2 and cannot serve degree 3"):
        lower(piece(1)[0], 3)


def test_system_scales_each_support_and_contracts_q() -> None:
    (a, first), (b, second) = piece(1, rows=30), piece(2, rows=90, support="b")
    matrix, target = system(merge([a, b]), q=0.5)
    rows = np.vstack([first / np.sqrt(2 * 30), second / np.sqrt(2 * 90)])
    wanted = np.column_stack([rows[:, :3], rows[:, 4] - rows[:, 3] / 0.5])
    assert np.allclose(compact(np.column_stack([matrix, target])), compact(wanted), atol=1e-13)


def test_folds_of_a_support_are_one_block_when_solving() -> None:
    whole = merge([piece(1)[0], piece(2)[0]])
    parts = merge([piece(1, fold="training")[0], piece(2, fold="validation")[0]])
    for a, b in zip(system(whole, 1.0), system(parts, 1.0), strict=True):
        assert np.allclose(a, b, atol=1e-14)


def test_unknown_q_uses_the_same_evidence() -> None:
    """1/q is a column: rows built with one q give it back by plain least squares."""
    rng = np.random.default_rng(0)
    features, change, g = rng.standard_normal((50, 3)), rng.standard_normal(50), np.array([1.0, 2.0, 3.0])
    rows = np.column_stack([features, change, features @ g + change / 0.25])
    triangle = compact(rows)
    solution = np.linalg.lstsq(triangle[:, :4], triangle[:, 4], rcond=None)[0]
    assert np.allclose(solution, [1.0, 2.0, 3.0, 4.0])


def test_no_rows_says_what_to_do() -> None:
    empty = Evidence(Bernstein(0), (Block(Key("r", "a", "all"), np.zeros((3, 3)), 0),))
    with pytest.raises(InputError, match="no centre is left.*record frames that contain an interface"):
        system(empty, 1.0)

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, system
from doublewell.inference import ALPHAS, approximation_floor, estimate
from doublewell.inference.estimate import choose_ridge, penalty, solve
from doublewell.law import Bernstein, Law, named_law
from doublewell.weak.assembly import weak_evidence
from doublewell.weak.weights import split_folds


def made(truth, *, folds=("training", "validation"), supports=("a", "b"), noise=0.0, rows=200, seed=0, q=0.5):
    """Evidence of rows that obey the model exactly, plus noise in the target."""
    rng = np.random.default_rng(seed)
    p = len(truth)
    blocks = []
    for support in supports:
        for fold in folds:
            matrix = rng.standard_normal((rows, p + 2))
            matrix[:, -1] = matrix[:, :p] @ truth + matrix[:, p] / q + noise * rng.standard_normal(rows)
            blocks.append(Block(Key("r", support, fold), compact(matrix), rows))
    return Evidence(Bernstein(p - 1), tuple(blocks))


def test_exact_rows_give_the_truth() -> None:
    truth = np.array([3.0, 1.0, 2.0])
    fit = estimate(made(truth), 0.5)
    assert np.allclose(fit.coefficients, truth, rtol=1e-12)
    assert fit.relative_residual < 1e-13
    assert fit.rows == 800
    assert fit.support_spread < 1e-12
    assert fit.bound == pytest.approx(1e-6 * np.linalg.norm(truth) / np.sqrt(3), rel=0.2)
    assert estimate(made(truth), 0.5, constraint="bernstein").bound == pytest.approx(1e-10 * 3.0)


def test_constraint_moves_only_what_it_must() -> None:
    truth = np.array([3.0, -1.0, 2.0])
    free, bounded = (estimate(made(truth), 0.5, constraint=c) for c in ("none", "bernstein"))
    assert np.allclose(free.coefficients, truth)
    assert free.bound == -np.inf
    assert np.array_equal(bounded.unbounded, free.coefficients)
    assert bounded.solution.active.tolist() == [False, True, False]
    assert bounded.coefficients[1] == bounded.bound > 0
    assert bounded.law.structure.ok
    assert bounded.solution.kkt < 1e-12


def test_ridge_number_is_a_multiple_of_the_mean_squared_column() -> None:
    evidence = made(np.array([3.0, 1.0, 2.0]), noise=0.1)
    matrix, target = system(evidence, 0.5)
    fit = estimate(evidence, 0.5, ridge=0.3, constraint="none")
    shift = 0.3 * np.sum(matrix**2) / 3
    direct = np.linalg.solve(matrix.T @ matrix + shift * np.eye(3), matrix.T @ target)
    assert fit.ridge is not None
    assert fit.ridge.penalty == pytest.approx(shift)
    assert np.allclose(fit.coefficients, direct, rtol=1e-10)


def test_validated_ridge_is_the_best_of_the_grid_and_keeps_its_penalty() -> None:
    evidence = made(np.array([3.0, 1.0, 2.0]), noise=2.0, rows=12, seed=3)
    fit = estimate(evidence, 0.5, ridge="validated", constraint="bernstein")
    choice = fit.ridge
    assert choice is not None
    assert tuple(alpha for alpha, _ in choice.path) == ALPHAS
    residuals = [residual for _, residual in choice.path]
    assert choice.alpha == ALPHAS[int(np.argmin(residuals))]
    training, _ = system(evidence.select(fold="training"), 0.5)
    assert choice.penalty == penalty(training, choice.alpha)
    again, _ = solve(*system(evidence, 0.5), Bernstein(2), constraint="bernstein", ridge=choice.penalty)
    assert np.array_equal(again.coefficients, fit.coefficients)


def test_ties_go_to_the_smaller_alpha() -> None:
    """With an all-zero target every alpha gives zero coefficients and the same residual."""
    evidence = made(np.zeros(3), q=1e300)
    blocks = [Block(b.key, compact(b.triangle * [1, 1, 1, 0, 0]), b.rows) for b in evidence.blocks]
    flat = Evidence(evidence.family, tuple(blocks))
    choice = choose_ridge(flat, flat, 1.0, constraint="none")
    assert len({residual for _, residual in choice.path}) == 1
    assert choice.alpha == 0.0


def test_validation_rows_do_not_train(noisy) -> None:
    folds = split_folds(noisy.frames, 3)
    supports = [(3, 0.08)]
    evidence = weak_evidence(noisy, Bernstein(2), supports, folds=folds)
    fit = estimate(evidence, 1.0, ridge="validated")
    training = weak_evidence(noisy.clip(folds[0].start, folds[0].stop), Bernstein(2), supports)
    validation = weak_evidence(noisy.clip(folds[1].start, folds[1].stop), Bernstein(2), supports)
    assert fit.ridge is not None
    apart = choose_ridge(training, validation, 1.0, constraint="bernstein")
    assert [r for _, r in apart.path] == pytest.approx([r for _, r in fit.ridge.path], rel=1e-9)


def test_support_that_cannot_stand_alone_is_said() -> None:
    evidence = made(np.array([1.0, 2.0]), folds=("all",), supports=("a", "b"))
    poor = Block(evidence.blocks[1].key, compact(np.array([[1.0, 1.0, 0.0, 3.0]])), 1)
    fit = estimate(Evidence(evidence.family, (evidence.blocks[0], poor)), 0.5)
    assert fit.supports[0].status == "fitted"
    assert fit.supports[1].coefficients is None
    assert "does not determine 2 coefficients" in fit.supports[1].status


def test_wrong_settings() -> None:
    evidence = made(np.array([1.0, 2.0]), folds=("all",))
    with pytest.raises(InputError, match="constraint is 'positive': expected 'admissible' .*'bernstein'"):
        estimate(evidence, 1.0, constraint="positive")
    with pytest.raises(InputError, match="ridge is 'auto': expected None"):
        estimate(evidence, 1.0, ridge="auto")
    for bad in (-1.0, float("nan"), True, [1], 1j):
        with pytest.raises(InputError, match="expected None, 'validated', or alpha, a number of at least 0"):
            estimate(evidence, 1.0, ridge=bad)
    for q in (-1.0, 0.0, None, "a", float("nan")):
        with pytest.raises(InputError, match="q is .*: expected the diffusion coefficient of the record, a positive"):
            estimate(evidence, q)
    with pytest.raises(InputError, match=r"evidence is a list: expected Evidence; make it with weak_evidence"):
        estimate([1.0], 1.0)
    with pytest.raises(InputError, match="needs evidence with the folds 'training' and 'validation'"):
        estimate(evidence, 1.0, ridge="validated")


PAPER = [("outside_cone", 2, 37.68), ("outside_cone", 5, 5.55), ("bernstein3", 2, 6.45), ("exponential", 2, 0.60)]


@pytest.mark.parametrize(("name", "degree", "percent"), [*PAPER, ("rational", 2, 0.44), ("sixth", 2, 0.0)])
def test_the_papers_floors(name: str, degree: int, percent: float) -> None:
    for nodes in (80, 160):
        floor = approximation_floor(named_law(name), degree, constraint="bernstein", nodes=nodes)
        assert 100 * floor.error == pytest.approx(percent, abs=0.006)


@pytest.mark.parametrize(("degree", "percent"), [(2, 37.68), (3, None), (5, 5.55), (8, None)])
def test_a_double_well_outside_the_cone_has_no_floor_in_the_exact_class(degree: int, percent: float | None) -> None:
    law = named_law("outside_cone")
    cone = 100 * approximation_floor(law, degree, constraint="bernstein").error
    assert percent is None or cone == pytest.approx(percent, abs=0.006)
    assert approximation_floor(law, degree).error < 1e-12 < cone
    assert Law.bernstein(approximation_floor(law, degree).coefficients).structure.ok


def test_floors_fall_with_the_size_of_the_class() -> None:
    for degree in range(1, 9):
        law = Law.from_force(lambda u: -u * (1 - u**2) * (1.2 + np.cos(7 * u**2)), name="waves")
        free, exact, cone = (
            approximation_floor(law, degree, constraint=c).error for c in ("none", "admissible", "bernstein")
        )
        assert free <= exact + 1e-12
        assert exact <= cone + 1e-6


def test_amplitude_does_not_matter() -> None:
    law = named_law("outside_cone")
    a, b = (approximation_floor(one, 3, constraint="bernstein") for one in (law, law.scaled(7.0)))
    assert a.error == pytest.approx(b.error, rel=1e-10)
    assert np.allclose(7.0 * a.coefficients, b.coefficients)


def test_a_law_inside_the_cone_is_found() -> None:
    floor = approximation_floor(Law.bernstein([1.0, 2.0, 0.5]), 2)
    assert np.allclose(floor.coefficients, [1.0, 2.0, 0.5])
    assert floor.error < 1e-12


def test_floors_fall_with_the_degree() -> None:
    errors = [approximation_floor(named_law("exponential"), m).error for m in range(6)]
    assert all(b < a for a, b in pairwise(errors))

"""When an iteration ends: a small step, too many steps, or a cost that no longer falls."""

from __future__ import annotations

from itertools import pairwise

import pytest

from doublewell.likelihood.iterate import RULE, Convergence, Rule, Step


def taken(costs: list[float], size: float = 10.0) -> list[Step]:
    """Return steps along a row of costs, each of a size."""
    return [Step(k + 1, before, after, size, 0.5, 5, 1e-3) for k, (before, after) in enumerate(pairwise(costs))]


def ended_after(rule: Rule, factor: float) -> int:
    """Return after how many steps an iteration ends whose cost falls by a factor in each."""
    costs = [factor**k for k in range(200)]
    count = next(k for k in range(1, 200) if rule.ends(taken(costs[: k + 1])) is not None)
    assert rule.ends(taken(costs[: count + 1])).code is Convergence.MOST_STEPS
    return count


@pytest.mark.parametrize(("factor", "count"), [(1.0, 15), (0.9**0.05, 15), (0.9**0.1, 60), (0.5, 60)])
def test_a_valley_is_followed_while_the_cost_falls_by_a_tenth(factor, count):
    assert ended_after(RULE, factor) == count


def test_a_rough_iteration_ends_at_its_most_steps():
    assert ended_after(Rule(8), 0.5) == 8


def test_a_valley_that_levels_out_is_left():
    """Twenty steps that halve the cost, then none that lowers it: fifteen of these end the iteration."""
    costs = [0.5 ** min(k, 20) for k in range(80)]
    count = next(k for k in range(1, 80) if RULE.ends(taken(costs[: k + 1])) is not None)
    assert count == 20 + RULE.most


def test_a_small_whole_step_ends_it_at_once():
    (step,) = taken([1.0, 0.99], size=0.01)
    assert RULE.ends([Step(1, step.before, step.after, 0.01, 1.0, 5, 1e-3)]).converged

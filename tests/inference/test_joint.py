"""The loop that fits parts: what it asks for, and what it leaves out; the reader is a stand-in, no field is fitted."""

from dataclasses import replace

import numpy as np
import pytest

from doublewell.evidence import Block, Evidence, Key, compact
from doublewell.inference.joint import PartFit, Plan, fit_parts, run_loops
from doublewell.law import Bernstein
from doublewell.likelihood import Convergence, Resolution, Status

RNG = np.random.default_rng(0)
ROWS = np.column_stack([RNG.standard_normal((30, 2)) * 100.0, np.zeros(30)])
ROWS[:, -1] = ROWS[:, :2] @ [3.0, 4.0] + RNG.standard_normal(30)
BEST = np.linalg.lstsq(ROWS[:, :2], ROWS[:, 2], rcond=None)[0]
PLAN = Plan(((0,),), False, (0,), True)


def part(theta, **numbers):
    block = Block(Key("record", "trajectory", "all"), compact(ROWS), 30)
    evidence = Evidence(Bernstein(1), (block,), True, ("force", "target"))
    usual = {"noise": 0.1, "cost": 2.0, "power": 3.0, "solve": 0.0, "substeps": 1, "sums": (1.0,), "counts": (5,)}
    return PartFit(evidence, theta, status=Status(Convergence.CONVERGED, 0.0, 3), **usual | numbers)


def work(plan, first=BEST, *, surplus=1.0, refused=False, time_size=0.0, until=99):
    """Run the loop; return the kinds of jobs that were done and what it ends in. After some rounds there is no time."""
    kinds, rounds = [], []

    def read(jobs):
        rounds.append(len(jobs))
        if len(rounds) > until:
            return [None] * len(jobs)
        replies = []
        for job in jobs:
            kind = "test" if job.adequacy else "fit" if job.theta is None else "again"
            kinds.append(f"{kind} {job.substeps}" if kind == "fit" and job.substeps else kind)
            size = Resolution(np.zeros(2), np.zeros(2), 0.0 if job.substeps else time_size, 0.0)
            theta = np.array(first if job.theta is None else job.theta)
            reply = part(theta, surplus=surplus, resolution=size, substeps=job.substeps or 1)
            replies.append(replace(reply, adequacy="tested", refused=refused) if job.adequacy else reply)
        return replies

    (joint,) = run_loops([fit_parts(plan)], read)
    return kinds, joint


def test_a_good_fit_is_tested_once_at_the_end():
    assert work(PLAN)[0] == ["fit", "test"]
    assert work(PLAN, BEST + 1.0)[0] == ["fit", "again", "test"]
    assert work(PLAN, time_size=0.5)[0] == ["fit", "fit 2", "test"]
    assert work(replace(PLAN, check=False), BEST + 1.0, surplus=3.0)[0] == ["fit", "again"]


def test_a_model_that_is_refused_gets_no_finer_fit_and_no_other_linearisation():
    for options in ({}, {"time_size": 0.5}):
        kinds, joint = work(PLAN, BEST + 1.0, surplus=3.0, refused=True, **options)
        assert kinds == ["fit", "test"]
        assert (joint.rounds, joint.fits[0].adequacy) == (1, "tested")
        assert joint.distance > 1.0


def test_steps_that_are_too_long_are_no_reason_to_refuse():
    kinds, _ = work(PLAN, surplus=3.0, refused=True, time_size=5.0)
    assert kinds == ["fit", "fit 4", "test"]


def test_a_model_that_is_not_refused_goes_on():
    assert work(PLAN, surplus=3.0)[0] == ["fit", "test"]  # not tested twice
    assert work(PLAN, BEST + 1.0, surplus=3.0)[0] == ["fit", "test", "again", "test"]


@pytest.mark.parametrize(("until", "kinds"), [(1, ["fit"]), (2, ["fit", "again"]), (3, ["fit", "again", "test"])])
def test_where_there_is_no_time(until, kinds):
    done, joint = work(PLAN, BEST + 1.0, until=until)
    assert done == kinds
    assert (joint.distance > 1.0) is (until == 1)
    assert joint.fits[0].adequacy == (None if until < 3 else "tested")

"""False alarms of the whole check: 200 records of the model, with the seeds fixed before they were seen."""

from __future__ import annotations

import numpy as np
from readings import read_trajectories
from scipy.stats import binom

from doublewell.adequacy import FALSE_ALARMS, check_adequacies
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

RECORDS, FIRST, RARE = 200, 910_000, 1e-3


def test_false_alarms_keep_their_level():
    start = initial_field("circle", (96,), 1 / 96, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 96, dt=5e-4, frames=21, epsilon=0.1)
    records = [add_noise(clean, 0.03, seed=FIRST + k) for k in range(RECORDS)]
    found = read_trajectories(records, np.tile([120.0, 140.0, 160.0], (RECORDS, 1)))
    answers = check_adequacies(found)
    alarms = sum(answer.verdict != "adequate" for answer in answers)
    assert alarms <= binom.isf(RARE, RECORDS, FALSE_ALARMS)
    for name in ("blur", "cells"):
        chances = [test.p for answer in answers for test in answer.tests if test.name == name]
        assert np.sum(np.array(chances) < 0.05) <= binom.isf(RARE, RECORDS, 0.05), name

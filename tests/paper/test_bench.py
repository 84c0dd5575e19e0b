"""The table of the benchmark: lines of several runs come into one file, and a fit is scored as the paper does."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from doublewell.baselines import BaselineFit
from doublewell_paper.records import Sample, Spec, tiny

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("baselines")
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in ("baselines", "common", "reference"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def sample():
    return Sample(tiny(Spec("sixth", "nonconvex", noise=0.01, seed=5, phases=401), 32))


def line(**changes):
    given = {"method": "STAC", "law": "sixth", "geometry": "circle", "noise": 0.01, "cells": 32, "record_seed": 1}
    return given | {"seed": 0, "e_G": 1.0} | changes


def test_a_new_line_takes_the_place_of_the_same_and_leaves_the_others(bench, tmp_path):
    path = tmp_path / "rows.json"
    bench.write(path, [line(), line(method="SPINN", seed=1), line(method="SPINN", seed=2)])
    bench.write(path, [line(e_G=2.0), line(method="SPINN", seed=3)])
    rows = json.loads(path.read_text())["rows"]
    assert len(rows) == 4
    assert [row["e_G"] for row in rows if row["method"] == "STAC"] == [2.0]
    assert sorted(row["seed"] for row in rows if row["method"] == "SPINN") == [1, 2, 3]


def test_the_truth_has_no_error_and_is_covered(bench, sample):
    truth = sample.truth
    band = lambda u: (truth.force(u) - 1e-9, truth.force(u) + 1e-9)  # noqa: E731
    found = bench.scores(sample, BaselineFit("truth", truth.force, 0.0, None, "cpu", band=band, law=truth))
    assert max(found[name] for name in ("e_G", "e_G_positive", "e_G_exact", "e_F")) < 1e-4
    assert found["admissible"] is True
    assert found["coverage"] == 1.0


def test_a_factor_is_the_error_and_half_a_band_is_half_covered(bench, sample):
    def force(u):
        return 1.1 * sample.truth.force(u)

    def band(u):
        return np.where(u < 0.0, -np.inf, np.inf), np.full(u.shape, np.inf)

    found = bench.scores(sample, BaselineFit("off", force, 0.0, None, "gpu", band=band))
    assert found["e_G"] == pytest.approx(10.0)
    assert found["e_G_positive"] == pytest.approx(10.0)
    assert found["coverage"] == pytest.approx(0.5)
    assert found["admissible"] is True


def test_a_refusal_is_a_line(bench, sample):
    got = bench.measure(sample, bench.methods_of(sample.spec.supports)["smoothed FD4"], 0)
    assert got["status"].startswith("refused: smoothed FD4 chooses its filter")
    assert set(bench.KEY) <= set(got)


def test_the_papers_route_gives_the_same_law(bench, sample):
    known = bench.methods_of(sample.spec.supports)
    ours, theirs = (known[name].fit(sample.record) for name in ("STAC", "STAC, the paper's route"))
    np.testing.assert_allclose(theirs.law.coefficients, ours.law.coefficients, rtol=1e-8)


def test_methods_are_chosen_by_name(bench, sample):
    known = bench.methods_of(sample.spec.supports)
    assert [one.name for one in bench.chosen("STAC;direct FD4", known)] == ["STAC", "direct FD4"]
    classical = [one.name for one in bench.chosen("classical", known)]
    assert "trajectory" not in classical
    assert "PySINDy LS masked" in classical
    with pytest.raises(SystemExit, match="unknown methods"):
        bench.chosen("nothing", known)

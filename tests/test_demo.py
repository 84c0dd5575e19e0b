import json

import numpy as np
import pytest

from doublewell.demo import run_demo
from doublewell.errors import InputError
from doublewell.io import load_result, open_record
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

TINY = {"seed": 5, "cells": 32, "frames": 15}


@pytest.fixture(scope="module")
def stages():
    return []


@pytest.fixture(scope="module")
def demo(tmp_path_factory, stages):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return run_demo(folder, progress=lambda *said: stages.append(said), **TINY)


def test_demo_writes_record_result_and_figures(demo):
    folder = demo.files[0].parent
    assert sorted(path.name for path in folder.iterdir()) == [
        "error.pdf",
        "error.png",
        "error.svg",
        "fields.pdf",
        "fields.png",
        "fields.svg",
        "law.pdf",
        "law.png",
        "law.svg",
        "record.npz",
        "report.html",
        "residual.pdf",
        "residual.png",
        "residual.svg",
        "result.json",
    ]
    assert {path.name for path in demo.files} == {path.name for path in folder.iterdir()}
    saved = load_result(folder / "result.json")
    np.testing.assert_array_equal(saved.coefficients, demo.result.coefficients)
    np.testing.assert_array_equal(open_record(folder / "record.npz").slab(), demo.record.slab())
    assert json.loads((folder / "result.json").read_text())["format"] == "doublewell result"


def test_demo_record_is_the_noisy_simulation_of_its_law(demo):
    start = initial_field("nonconvex", (32, 32), 1 / 32, epsilon=0.03)
    clean = simulate(named_law("sixth"), start, dx=1 / 32, dt=5e-5, frames=15, epsilon=0.03)
    np.testing.assert_array_equal(demo.record.slab(), add_noise(clean, 0.03, seed=5).slab())


def test_demo_errors_are_against_the_truth(demo):
    u = np.linspace(-1, 1, 2001)
    true = named_law("sixth").force(u) / 0.03**2
    assert demo.truth.force_error(demo.result) == pytest.approx(
        np.linalg.norm(demo.result.force(u) - true) / np.linalg.norm(true)
    )
    assert demo.truth.epsilon_error(demo.result) == pytest.approx(demo.result.epsilon / 0.03 - 1)
    assert demo.truth.force_error(demo.result) < 0.1  # four cells across an interface; the full demo has twelve
    assert abs(demo.truth.epsilon_error(demo.result)) < 0.02
    assert demo.truth.force_error(demo.weak) == pytest.approx(
        np.linalg.norm(demo.weak.force(u) - true) / np.linalg.norm(true)
    )
    assert demo.truth.force_error(demo.result) < demo.truth.force_error(demo.weak)


def test_demo_uses_both_methods(demo):
    assert (demo.result.problem.method.name, demo.weak.problem.method.name) == ("trajectory", "weak")
    assert demo.record.boundary == "periodic"
    low, high = demo.result.interval("epsilon")
    assert low < demo.result.epsilon < high


def test_demo_says_what_came_out(demo):
    assert (
        f"the force of the sixth law was recovered to {100 * demo.truth.force_error(demo.result):.2g} %" in demo.summary
    )
    assert f"its epsilon to {100 * abs(demo.truth.epsilon_error(demo.result)):.2g} %." in demo.summary
    assert f"\n  The weak-form fit alone: force error {100 * demo.truth.force_error(demo.weak):.0f} %.\n" in str(demo)
    text = str(demo)
    assert text.startswith(str(demo.result))
    assert demo.summary in text
    assert all(str(path) in text for path in demo.files)


def test_demo_reports_its_stages_in_order(demo, stages):
    names = list(dict.fromkeys(name for name, _, _ in stages))
    fits = [f"fitting: {step}" for step in demo.result.diagnostics.likelihood.steps]
    weak = ["compiling and reading", "compiling and fitting", "weak moments for a start"]
    checks = ["checking the resolution", "checking the model"]
    said = [name.split("; about ")[0] for name in names]  # how long it will take is not always the same
    assert [name for name in said if name.startswith("fitting: ")] == fits
    early = [name for name in said if name.startswith(("weak-form fit: G(u) = -u (1 - u^2) [", "check: "))]
    assert [key.split(":")[0] for key in early] == ["weak-form fit", "check"]
    load = "loading or compiling the fit"
    assert said[4:8] == [*early, load, fits[0]]
    rest = [name for name in dict.fromkeys(said) if not name.startswith((*early, "fitting", "linearising again"))]
    assert rest == ["simulating", *weak, load, *checks, "evolving", "drawing and saving"]
    for name in ("simulating", "compiling and reading", "evolving"):
        done = [(k, total) for stage, k, total in stages if stage == name]
        assert done[-1][0] == done[-1][1] > 0


def test_a_law_that_cannot_be_calibrated_is_said(demo):
    from dataclasses import replace

    assert "its epsilon could not be calibrated" in replace(demo, result=replace(demo.result, scale=None)).summary


def test_demo_refuses_before_it_writes(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="is a file: expected a folder for the files of the demo"):
        run_demo(tmp_path / "file", **TINY)
    with pytest.raises(InputError, match="no law is named 'cubic'"):
        run_demo(tmp_path / "out", law="cubic", **TINY)
    with pytest.raises(InputError, match="sd is -1"):
        run_demo(tmp_path / "out", noise=-1, **TINY)
    with pytest.raises(InputError, match="seed is -1"):
        run_demo(tmp_path / "out", **(TINY | {"seed": -1}))
    with pytest.raises(InputError, match="frames is 1: expected"):
        run_demo(tmp_path / "out", seed=1, cells=32, frames=1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

"""The shell's way to the corrected reading and to an estimated q."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.identify import identify
from doublewell.io import open_record


@pytest.fixture
def plain_file(tmp_path, noisy):
    """A movie that says neither q nor its boundary."""
    np.savez(tmp_path / "plain.npz", u=noisy.slab(), dx=1 / 64, dt=1e-4)
    return tmp_path / "plain.npz"


def test_the_method_reaches_the_library(run_json, movie_file):
    found = run_json("identify", movie_file, "--method", "weak-corrected")
    result = identify(open_record(movie_file), method="weak-corrected")
    assert found["method"] == "weak-corrected"
    assert found["coefficients"] == result.coefficients.tolist()
    assert (found["facts"]["q"]["value"], found["facts"]["q"]["note"]) == (1.0, "")


@pytest.mark.parametrize("method", ["weak", "weak-corrected"])
def test_without_q_it_is_estimated(run_json, plain_file, method):
    found = run_json("identify", plain_file, "--method", method)
    assert found["method"] == method
    assert found["facts"]["q"]["value"] == pytest.approx(1.0, abs=3e-3)
    assert found["facts"]["q"]["note"] == "estimated"


def test_what_does_not_fit_is_refused(refused, plain_file):
    words = ["identify", plain_file, "--method", "weak-corrected"]
    assert "--ridge validated belongs to the plain weak-form fit" in refused(*words, "--ridge", "validated")
    assert "--degree auto needs the trajectory fit" in refused(*words, "--degree", "auto")

"""The answers of version 0.1, case by case, and a comparison that notices what changed."""

from __future__ import annotations

import importlib.util
import sys
from copy import deepcopy
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
spec = importlib.util.spec_from_file_location("golden", BENCHMARKS / "golden.py")
golden = importlib.util.module_from_spec(spec)
sys.modules["golden"] = golden
spec.loader.exec_module(golden)

from golden_codes import code_of  # noqa: E402  # found beside golden.py

CASES = golden.read_stored()["cases"]


def bad(old, new, limits=""):
    return [gap.what for gap in golden.gaps_of(old, new, limits) if not gap.ok]


def changed(name, change):
    """Return what is noticed of a change of a stored answer."""
    old = CASES[name]["answer"]
    new = deepcopy(old)
    change(new)
    return bad(old, new, CASES[name]["limits"])


@pytest.mark.parametrize("name", CASES)
def test_case_is_as_it_was(name) -> None:
    gaps = [gap for gap in golden.compare_case(name, CASES[name]) if not gap.ok]
    assert not gaps, gaps[:5]


@pytest.mark.parametrize("name", CASES)
def test_stored_answer_agrees_with_itself(name) -> None:
    assert not bad(CASES[name]["answer"], CASES[name]["answer"])


def test_changed_weak_moment_is_noticed() -> None:
    def change(new):
        next(iter(new["triangles"].values()))[1][0][1] += 3e-10

    assert [what.split()[0] for what in changed("weak", change)] == ["triangle"]


def test_changed_force_is_noticed_in_standard_errors() -> None:
    def move(errors):
        def change(new):
            new["force"][5] += errors * new["force_half"][5] / 1.96

        return change

    assert changed("trajectory", move(0.005)) == []
    assert changed("trajectory", move(0.02)) == ["force"]
    assert changed("together", move(0.02)) == []
    assert changed("together", move(0.1)) == ["force"]


@pytest.mark.parametrize("name", ["epsilon", "width", "barrier", "q"])
def test_changed_number_is_noticed(name) -> None:
    def change(new):
        new["values"][name] *= 1.01

    assert changed("trajectory", change) == [name]


def test_changed_interval_test_and_warning_are_noticed() -> None:
    def change(new):
        new["intervals"]["epsilon"][1] += 0.1 * (new["intervals"]["epsilon"][1] - new["intervals"]["epsilon"][0])
        new["adequacy"]["tests"]["q"][0] += 0.1
        new["codes"] = [*new["codes"], "mesh-coarse"]

    noticed = [what.split(":")[0] for what in changed("trajectory-contrast", change)]
    assert noticed == ["codes", "interval of epsilon", "adequacy/tests/q/0"]


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("latex", "band", "bend"),
        ("python", "w = (1.0 - x)", "w = (1.0 + x)"),
        ("python", "KAPPA = 0.06472", "KAPPA = 0.06473"),
        ("json", '"dt": 0.0005', '"dt": 0.00051'),
        ("json", '"mobility": 12.35', '"mobility": 12.36'),
        ("json", '"boundary": "periodic"', '"boundary": "neumann"'),
    ],
)
def test_changed_export_is_noticed(text, before, after) -> None:
    def change(new):
        assert before in new["texts"][text]
        new["texts"][text] = new["texts"][text].replace(before, after, 1)

    assert len(changed("export-symmetric", change)) == 1


def test_changed_input_is_noticed() -> None:
    entry = deepcopy(CASES["weak-line"])
    entry["inputs"][0][2] += 1e-6
    gaps = [gap.what for gap in golden.compare_case("weak-line", entry) if not gap.ok]
    assert gaps == ["input line"]


def test_intended_change_is_left_out(monkeypatch) -> None:
    entry = deepcopy(CASES["weak-line"])
    entry["answer"]["values"]["width"] *= 1.1
    assert [gap.what for gap in golden.compare_case("weak-line", entry) if not gap.ok] == ["width"]
    monkeypatch.setitem(golden.INTENDED, "weak-line/width", "a reason")
    assert all(gap.ok for gap in golden.compare_case("weak-line", entry))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("record 2: model not adequate: q is 3 +- 0.1 % larger than declared (5.0 sigma): check q", "q-off"),
        ("grey levels: only 12 grey values lie between the plateaus", "grey-few-steps"),
        ("tile 3 (frames 0 to 14, y 0 to 9) disagrees with the others (chi2 90", "tile-disagrees"),
    ],
)
def test_warnings_are_known_by_their_codes(text, code) -> None:
    assert code_of(text) == code


def test_every_stored_warning_has_one_code() -> None:
    texts = [text for case in CASES.values() for text in case["answer"].get("warnings", [])]
    assert texts
    assert all(code_of(text) in golden.WARNINGS for text in texts)


def test_intended_changes_hide_no_error(monkeypatch) -> None:
    """A case whose changes are intended is still compared: its input counts, and it fails where it raises."""

    def broken(case):
        raise ValueError("broken")

    monkeypatch.setattr(golden, "ask", broken)
    for name in ("export-asymmetric", "export-phases", "export-symmetric"):
        gaps = golden.compare_case(name, CASES[name])
        assert [gap.what for gap in gaps if not gap.ok] == ["ValueError: broken"]
        assert any(gap.what.startswith("input") for gap in gaps)


def test_the_prior_of_0_1_is_put_back() -> None:
    from doublewell.inference import degrees

    golden.call([golden.movie("line")], {"degree": 1, "check": False})
    assert degrees.average_degrees.__kwdefaults__["prior"] is degrees.DEGREE_PRIOR

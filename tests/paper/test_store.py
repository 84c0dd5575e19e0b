import subprocess
import sys
from dataclasses import replace

import pytest

from doublewell.errors import InputError
from doublewell_paper.methods import METHODS
from doublewell_paper.records import Spec
from doublewell_paper.results import Line, Store, fingerprint, line_of

SPEC = Spec("sixth", "circle", noise=0.03, seed=7, horizon=(61, 100))
LINE = Line(
    case="a case",
    record=SPEC.record,
    method="STAC m=2",
    fingerprint="abc",
    spec=SPEC,
    status="fitted",
    coefficients=(0.1, 1 / 3, 2e300),
    active=0,
    seconds=0.25,
    condition=None,
    rows=12,
    scores={"e_G": 1.5, "e_u": None},
    extra={"alpha": 1e-8},
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "new" / "folder")


def test_lines_come_back_as_they_were(store):
    other = replace(LINE, method="weak LS m=5", coefficients=None, status="refused: é")
    with store.writing():
        store.append([LINE])
        store.append([other])
    assert store.lines() == [LINE, other]
    assert line_of(LINE.text()) == LINE


def test_nothing_was_stored_yet(store):
    assert store.lines() == []


def test_the_last_of_equal_keys_counts(store):
    with store.writing():
        store.append([LINE, replace(LINE, fingerprint="new")])
    assert [line.fingerprint for line in store.lines()] == ["new"]


def test_a_torn_line_is_ignored_and_then_cut_off(store):
    with store.writing():
        store.append([LINE])
    whole = store.path.read_bytes()
    store.path.write_bytes(whole + whole[:50])
    assert store.lines() == [LINE]
    with store.writing():
        assert store.path.read_bytes() == whole
        store.append([replace(LINE, method="other")])
    assert len(store.lines()) == 2


def test_a_file_of_something_else_is_refused(store):
    with store.writing():
        store.append([LINE])
    for text in ('{"case": "x"}', "[1, 2]", "not JSON"):
        store.path.write_text(LINE.text() + f"\n{text}\n")
        with pytest.raises(InputError, match="line 2 is not a result of this study.*move the file away"):
            store.lines()


def test_two_runs_do_not_write_into_one_file(store):
    code = (
        "import sys; from pathlib import Path; from doublewell_paper.results import Store\n"
        "with Store(Path(sys.argv[1])).writing(): print('in')"
    )
    with store.writing():
        done = subprocess.run(
            [sys.executable, "-c", code, store.path.parent], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert "is being written by another run" in done.stderr
    assert done.stdout == ""


def test_a_fingerprint_changes_with_every_setting():
    method = METHODS["STAC m=2"]
    changed = [
        replace(SPEC, supports=((4, 0.1),)),
        replace(SPEC, training=0.5),
        replace(SPEC, horizon=None),
        replace(SPEC, phases=11),
        replace(SPEC, seed=8),
    ]
    prints = {fingerprint(spec, method) for spec in (SPEC, *changed)}
    prints |= {fingerprint(SPEC, METHODS["STAC m=5"]), fingerprint(SPEC, replace(method, settings="other"))}
    assert len(prints) == 8
    assert fingerprint(SPEC, method) == fingerprint(replace(SPEC), method)

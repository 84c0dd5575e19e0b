"""Progress: one moving line on a terminal, a bar below the cell of a notebook, nothing elsewhere."""

import re
from dataclasses import replace
from threading import Event
from time import sleep

import pytest
from terminal import watch

from doublewell import progress
from doublewell.errors import InputError
from doublewell.hints import STATED
from doublewell.identify import identify, identify_many
from doublewell.likelihood import Step
from doublewell.progress import Bar, one_line, reporting
from doublewell.report import write_page
from doublewell.simulate import simulate
from doublewell.validate import validate


class Shown:
    """A screen that remembers."""

    def __init__(self):
        self.said, self.stopped, self.ready = [], False, Event()

    def say(self, *words):
        self.said.append(words)

    def stop(self):
        self.stopped = True


@pytest.fixture
def remembered(monkeypatch):
    found = Shown()

    def appear():
        found.ready.set()
        return found

    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_Screen", appear)
    return found


def test_stages_and_steps_reach_the_screen_and_it_goes_at_the_end(remembered):
    with Bar(wanted=True) as bar:
        assert remembered.ready.wait(5)
        bar.stage("work")(1, 3)
        bar.show("fitting: step 2", 2, 0)
        assert not remembered.stopped
    assert remembered.said == [("work", 0, 0), ("work", 1, 3), ("fitting: step 2", 2, 0)]
    assert remembered.stopped


def test_what_is_stated_stays_above_the_line(remembered, capsys):
    with Bar(wanted=True) as bar:
        assert remembered.ready.wait(5)
        remembered.state = remembered.said.append
        bar.show("the law", 0, STATED)
        bar.show("work", 0, 0)
        assert remembered.said == ["the law", ("work", 0, 0)]
    silent = Bar(wanted=False)
    silent.show("the law", 0, STATED)
    waiting = Bar(wanted=True)  # nothing is on the screen yet
    waiting.show("the law", 0, STATED)
    assert capsys.readouterr().err == "the law\n"


def test_the_clock_runs_on_after_a_stage_that_ended(monkeypatch):
    screen = watch(monkeypatch)
    shown = progress._Screen()
    shown.say("weak moments", 61, 61)
    shown.say("fitting", 1, 0)
    shown.state("what is known")
    assert shown._bar.tasks[0].finished_time is None
    assert not shown._bar.tasks[0].finished
    sleep(1.1)
    shown.stop()
    assert "0:00:01" in screen.getvalue()
    assert "what is known" in screen.getvalue()


STEP = Step(12, 1.3e6, 1234567.8, 0.0012, 1.0, 112, 0.0123, "segments, links 0.3")


@pytest.mark.parametrize("stage", ["whole record", "segments, links 0.3"])
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_step_stays_on_one_line_with_spinner_and_time(monkeypatch, stage, width):
    screen = watch(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(width))
    shown = progress._Screen()
    shown.say(f"fitting: {replace(STEP, stage=stage)}", 12, 0)
    shown.stop()
    lines = [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())) if line]
    assert max(map(len, lines)) <= width
    (last,) = {line for line in lines if "step" in line}
    assert re.search(r"\d:\d\d:\d\d$", last)
    assert not last.startswith(("fitting", "step", " "))  # a spinner
    if width >= 80:
        for words in ("step 12: ", "cost 1.23457e+06, ", "112 CG", " to 1.2e-02 "):
            assert words in last


def test_words_are_shortened_only_as_far_as_needed():
    words = f"fitting: {STEP}"
    assert one_line(words, len(words)) == words
    assert one_line(words, len(words) - 1) == str(STEP)
    assert one_line(words, 60) == "links 0.3, step 12: cost 1.23457e+06, 112 CG to 1.2e-02"
    assert one_line(words, 20) == "links 0.3, step 1..."
    assert one_line("anything else that is long", 10) == "anythin..."


def test_a_stage_that_began_before_the_screen_is_shown_when_it_comes(remembered, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.1)
    with Bar(wanted=True) as bar:
        bar.stage("work")
        assert remembered.said == []
        assert remembered.ready.wait(5)
    assert remembered.said == [("work", 0, 0)]


def test_the_screen_shows_a_share_only_where_the_total_is_known(monkeypatch):
    screen = watch(monkeypatch)
    shown = progress._Screen()
    shown.say("work", 2, 4)
    shown.stop()
    assert "work" in screen.getvalue()
    assert "50%" in screen.getvalue()
    shown = progress._Screen()
    shown.say("other", 0, 0)
    shown.stop()
    assert "0%" not in screen.getvalue().split("other")[-1]


class Display:
    """The display of a notebook that remembers what it showed."""

    def __init__(self):
        self.shown = []

    def update(self, html):
        self.shown.append(html.data)


@pytest.fixture
def cell(monkeypatch):
    ipython = pytest.importorskip("IPython.display")
    found = Display()
    monkeypatch.setattr(ipython, "display", lambda *_, **__: found)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    return found


def test_a_notebook_has_a_bar_and_keeps_what_was_stated(cell):
    with reporting(True) as report:
        report("skipped, too soon", 1, 4)
        report("<fit>", 0, 4)
        report("G = 1 & 2", 0, STATED)
        report("end", 4, 4)
    assert cell.shown == [
        "<div><progress></progress> preparing (0 s)</div>",
        '<div><progress value="0" max="4"></progress> &lt;fit&gt; (0 s)</div>',
        "<div>G = 1 &amp; 2</div>" + '<div><progress value="4" max="4"></progress> end (0 s)</div>',
        "<div>G = 1 &amp; 2</div>",
    ]


def test_a_bar_goes_when_the_work_fails(cell):
    with pytest.raises(InputError), reporting(True, "evolving"):
        raise InputError
    assert [html.count("evolving") for html in cell.shown] == [1, 0]


def test_a_terminal_has_a_line_and_a_file_nothing(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with reporting(True, "work") as report:
        report(1, 2)
    assert capsys.readouterr() == ("", "")
    screen = watch(monkeypatch)
    with reporting(True, "work") as report:
        sleep(0.2)
        report(1, 2)
    assert "work" in screen.getvalue()


def test_a_function_is_taken_as_it_is():
    with reporting(print) as report:
        assert report is print
    for nothing in (None, False):
        with reporting(nothing) as report:
            assert report is None
    with pytest.raises(InputError, match=r"progress is 3: expected True \(shows a bar\), a function, or None"):
        reporting(3).__enter__()


def test_every_function_that_takes_long_shows_a_bar(small, monkeypatch, tmp_path):
    stages = []
    monkeypatch.setattr(Bar, "show", lambda _, name, *__: stages.append(name))
    result = identify(small, method="weak", law=0, progress=True)
    assert stages.pop() == "compiling and reading"
    validate(result, small, progress=True)
    assert stages.pop() == "evolving"
    write_page(result, small, tmp_path / "page.html", progress=True)
    assert stages.pop() == "drawing"
    identify_many([small], method="weak", law=0, progress=True)
    assert stages.pop() == "identifying"
    simulate(result.law, small.slab(0, 1)[0], dx=small.dx, dt=small.dt, frames=2, progress=True)
    assert stages.pop() == "simulating"

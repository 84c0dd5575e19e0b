"""An answer in bounded time: what a fit has when it is stopped, and the same again without a clock."""

import re
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from doublewell import findings, identify, identify_many
from doublewell.compute.run import Pace
from doublewell.errors import InputError, Interrupted
from doublewell.hints import STATED
from doublewell.identify import repeat
from doublewell.io.result_file import load_result, result_bytes
from doublewell.likelihood import Convergence
from doublewell.options import Compute
from doublewell.stop import Stop, current, stopping
from doublewell.units import parse_limit

WORK = {"law": 1}


def stopped(record, step, **options):
    return identify(record, compute=Compute(time_limit=f"{step} steps"), **WORK | options)


def codes(result):
    return {item.code: str(item.severity) for item in findings(result) if item.severity != "ok"}


@pytest.fixture(scope="module")
def complete(small):
    return identify(small, **WORK)


@pytest.fixture(scope="module")
def each(small):
    """The result of a fit that is stopped before each of its steps, until it is not."""
    results = []
    while not results or results[-1].resolved.stopped is not None:
        results.append(stopped(small, len(results) + 1))
    return results


def test_words_of_a_limit():
    assert parse_limit("2 h") == (7200.0, None)
    assert parse_limit(" 0.5min ") == (30.0, None)
    assert parse_limit(3) == (3.0, None)
    assert parse_limit("1 step") == (None, 1)


@pytest.mark.parametrize("limit", ["soon", "-3 s", 0, "0 steps", "1.5 steps", True, float("nan"), [60]])
def test_other_limits_are_refused(limit):
    with pytest.raises(InputError, match="expected a time such as '60 s' or '5 min', a number of seconds, or a number"):
        Compute(time_limit=limit)


def test_cancel_is_a_function():
    with pytest.raises(InputError, match="cancel is 'now': expected a function that returns whether to stop"):
        Compute(cancel="now")


def test_first_the_weak_form_fit(each, small):
    first = each[0]
    assert first.resolved.stopped == 1
    assert first.posterior is None
    assert codes(first)["time-limit"] == "fail"
    words = [str(item) for item in findings(first) if item.code == "time-limit"]
    assert words == [
        "the time was over before the first trajectory fit: this is the weak-form fit, without error bands; give more "
        "time (time_limit=)"
    ]
    assert "by the weak-form fit" in str(first)
    plain = identify(small, method="weak", law=1, check=False)
    assert np.allclose(first.force(0.5), plain.force(0.5), rtol=0.2)


def test_then_the_last_step_linearised(each, complete):
    cut = [each_fit for each_fit in each[1:] if not each_fit.diagnostics.likelihood.status.converged]
    assert len(cut) >= 1
    for number, result in enumerate(cut, 1):
        status = result.diagnostics.likelihood.status
        assert status.code is Convergence.TIME_LIMIT
        assert (status.steps, len(result.diagnostics.likelihood.steps)) == (number, number)
        assert codes(result)["not-converged"] == "fail"
        assert np.isfinite(result.band("force", 0.5)).all()
    assert np.allclose(cut[-1].force(0.5), complete.force(0.5), rtol=0.02)


def test_then_what_comes_after_the_fit(each, complete):
    late = [result for result in each[1:-1] if result.diagnostics.likelihood.status.converged]
    assert len(late) >= 2
    for result in late:
        assert codes(result)["time-limit"] == "check"
        assert result.adequacy is None
        assert np.array_equal(result.coefficients, complete.coefficients)
    assert "resolution-unmeasured" in codes(late[0])
    assert "resolution-unmeasured" not in codes(late[-1])
    assert "resolution: " not in str(late[0])
    assert "the time was over before step" in str(late[0])


def test_enough_time_changes_nothing(each, complete, small):
    assert codes(each[-1]) == codes(complete)
    assert np.array_equal(each[-1].coefficients, complete.coefficients)
    for limit in ("1000 steps", "10 h"):
        result = identify(small, compute=f"time_limit={limit}", **WORK)
        assert result.resolved.stopped is None
        assert result_bytes(result) == result_bytes(complete)


def test_the_same_again_to_the_last_bit(each, small, tmp_path):
    for number, result in enumerate(each):
        (tmp_path / f"{number}.json").write_bytes(result_bytes(result))
        loaded = load_result(tmp_path / f"{number}.json")
        done = repeat(loaded, small)
        assert done.comparison.equal == done.comparison.fields
        assert done.again.resolved.stopped == result.resolved.stopped


def test_a_clock_stops_where_its_step_does(small, monkeypatch):
    """Each look at the clock takes a second: the result is that of the step that it stored."""
    for seconds in (1.5, 4.5, 8.5, 12.5):
        clock = iter(np.arange(0.0, 1e4))
        with monkeypatch.context() as patch:
            patch.setattr("doublewell.stop.monotonic", lambda clock=clock: float(next(clock)))
            result = identify(small, compute=Compute(time_limit=seconds), **WORK)
        assert result.resolved.stopped is not None
        assert repeat(result, small).comparison.equal == repeat(result, small).comparison.fields


def test_ctrl_c_carries_the_best_answer(small, complete):
    def press(words, *_):
        if words.startswith("checking the model"):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"interrupted before step \d+ of the fit") as caught:
        identify(small, progress=press, **WORK)
    result = caught.value.result
    assert isinstance(caught.value, KeyboardInterrupt)
    assert np.array_equal(result.coefficients, complete.coefficients)
    assert codes(result)["time-limit"] == "check"
    assert repeat(result, small).comparison.same


def test_ctrl_c_in_the_first_fit_gives_the_weak_form_fit(small, each):
    def press(words, *_):
        if words.startswith("fitting"):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        identify(small, progress=press, **WORK)
    assert np.array_equal(caught.value.result.coefficients, each[0].coefficients)


def test_ctrl_c_before_any_fit_has_no_result(small):
    def press(*_):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="interrupted before there was an answer") as caught:
        identify(small, progress=press, **WORK)
    assert caught.value.result is None


def test_cancel_stops_between_programs(small, complete):
    calls = []

    def cancel():
        calls.append(1)
        return len(calls) > 8

    with pytest.raises(Interrupted) as caught:
        identify(small, compute=Compute(cancel=cancel), **WORK)
    assert len(calls) == 9
    assert np.array_equal(caught.value.result.coefficients, complete.coefficients)
    assert identify(small, compute=Compute(cancel=lambda: False), **WORK).resolved.stopped is None


def test_without_a_weak_form_fit_there_may_be_no_answer(small):
    few = small.replace(small.slab(0, 4), times=small.times[:4])
    with pytest.raises(InputError, match="before every record was fitted once: expected a longer time_limit=; or fit"):
        stopped(few, 1)
    assert stopped(few, 2).diagnostics.likelihood.status.code is Convergence.TIME_LIMIT


def test_several_records(small):
    other = small.replace(small.slab() + 0.0, times=small.times)
    result = identify([small, other], compute=Compute(time_limit="3 steps"), check=False, **WORK)
    assert result.resolved.stopped == 3
    assert repeat(result, [small, other]).comparison.same
    with pytest.raises(InputError, match="before every record was fitted once"):
        identify([small, other], compute=Compute(time_limit="1 steps"), **WORK)


def test_no_equation_was_chosen(small):
    with pytest.raises(InputError, match="the time was over before an equation was chosen: expected a longer time"):
        identify(small, dynamics="auto", compute=Compute(time_limit="3 steps"))


@pytest.mark.parametrize("options", [{"method": "weak"}, {"method": "trajectory(memory=2GB)"}])
def test_where_a_limit_has_nothing_to_do(options, small):
    with pytest.raises(InputError, match="time_limit= is for the trajectory fit of whole records"):
        identify(small, compute=Compute(time_limit="60 s"), **options)


def test_many_records_have_no_limit(small):
    with pytest.raises(InputError, match="time_limit is for one call of identify"):
        identify_many([small], compute=Compute(time_limit="60 s"))


def test_a_stop_belongs_to_its_block():
    never = current()
    with stopping(Stop(step=1)) as stop:
        assert current() is stop
        assert stop.attempt(lambda: 1) is None
        with stop.finishing():
            assert stop.over()
            stop.check()
        with pytest.raises(Interrupted):
            stop.check()
    assert current() is never
    assert never.attempt(lambda: 1) == 1
    with pytest.raises(KeyboardInterrupt):
        never.attempt(lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(Interrupted), stopping(Stop()):
        raise KeyboardInterrupt


def test_a_limit_is_no_part_of_the_question(each, complete):
    assert replace(each[0].problem, records=()) == replace(complete.problem, records=())


# --- what is reported on the way --------------------------------------------------------------------------------------


def test_progress_states_the_weak_form_fit_first_and_then_the_time_left(small):
    told = []
    identify(small, progress=lambda *words: told.append(words), **WORK)
    stated = [words for words, _, steps in told if steps == STATED]
    assert stated[0].startswith("weak-form fit: G(u) = -u (1 - u^2) [")
    assert stated[0].endswith(", q = 1")
    first_step = next(k for k, (words, *_) in enumerate(told) if words.startswith("fitting"))
    assert told.index((stated[-1], 0, STATED)) < first_step
    pattern = r"fitting: whole record, step 1: cost .*, moved .* standard errors, .*; about \d+ s left"
    assert re.fullmatch(pattern, told[first_step][0])
    stages = [words.split(";")[0] for words, _, steps in told[first_step:] if not words.startswith("fitting")]
    assert stages == ["checking the resolution", "checking the model"]


def test_progress_states_what_the_movie_warns_of(small):
    told = []
    faint = small.replace(0.7 * small.slab())
    with suppress(InputError):
        stopped(faint, 1, progress=lambda *words: told.append(words))
    assert [words for words, _, steps in told if steps == STATED and words.startswith("check: the phase")]


def test_the_time_left_goes_by_the_work_that_is_done(monkeypatch):
    clock, told = iter([0.0, 30.0, 60.0, 0.0]), []
    monkeypatch.setattr("doublewell.compute.run.monotonic", lambda: next(clock))
    pace = Pace(lambda *words: told.append(words), 1.0)
    pace.say("beginning", 0.0)
    pace.say("fitting", 0.25, 3)
    pace.say("checking", 0.5)
    assert told == [
        ("beginning", 0, 0), ("fitting; about 1 min 30 s left", 3, 0), ("checking; about 1 min 0 s left", 0, 0),
    ]  # fmt: skip
    Pace(None).say("nobody listens", 0.5)

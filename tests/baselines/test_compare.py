"""Several methods on one record: distances, movies, reasons, the table, the numbers and the figure."""

import json

import numpy as np
import pytest

from doublewell.baselines import Baseline, BaselineFit, DirectFD4, compare, comparison, missing
from doublewell.baselines.comparison import cannot_run, forward_rms
from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.law import Law
from doublewell.record import Record
from doublewell.report.style import render
from doublewell.validate import replay

U = np.linspace(-1.0, 1.0, 2001)


def test_our_own_row_is_first_and_has_no_distance(found, result):
    ours = found.rows[0]
    assert ours.fit.name == "trajectory"
    assert ours.distance == ours.deviations == 0.0
    assert found.noise == result.diagnostics.likelihood.noise
    assert 0.8 < ours.residual < 1.05
    assert found.result is result


def test_rows_are_those_asked_for_and_the_others_say_why(found):
    assert [row.fit.name for row in found.rows[1:]] == ["STAC", "direct FD4", "WSINDy test functions"]
    reasons = dict(found.left_out)
    assert "chooses its filter on the last 40 %" in reasons["smoothed FD4"]
    assert list(reasons) == ["smoothed FD4"]


def test_distances_are_the_relative_norms(found, result):
    for row, line in zip(found.rows, found.distances, strict=True):
        size = np.linalg.norm(row.fit.force(U))
        for other, gap in zip(found.rows, line, strict=True):
            assert gap == pytest.approx(np.linalg.norm(row.fit.force(U) - other.fit.force(U)) / size)
    np.testing.assert_allclose(found.distances[0], [row.distance for row in found.rows])


def test_deviations_are_in_units_of_our_spread(found, result):
    spread = np.std([law @ result.posterior.family.features(U) for law in result.posterior.draws], axis=0)
    for row in found.rows:
        inside = np.abs(np.abs(U) - 0.5) < 0.499  # every law is zero at -1, 0 and 1
        rest = (row.fit.force(U) - result.force(U))[inside] / spread[inside]
        assert row.deviations == pytest.approx(np.sqrt(np.mean(rest**2)), rel=0.01)


def test_a_worse_law_makes_a_worse_movie(found):
    residuals = [row.residual for row in found.rows]
    assert residuals[0] == min(residuals)
    assert residuals[2] > 1.02 * residuals[0]


def test_the_movie_of_our_law_is_that_of_the_fit(found, result, small):
    told = replay(result, small)
    rms = np.sqrt(np.mean((told.predicted.slab() - small.slab()) ** 2))
    assert found.rows[0].residual * found.noise == pytest.approx(rms, rel=1e-3)


def test_a_force_that_blows_up_has_no_residual(small, result):
    start = result.diagnostics.likelihood.initial.astype(float)
    assert forward_rms(Law.bernstein([-9000.0]).force, small, start, 1.0) is None


def test_missing_values_are_no_part_of_the_residual(small, result):
    seen = np.random.default_rng(0).random(small.shape) > 0.2
    holes = Record(np.where(seen, small.slab(), 7.0), dx=small.dx, dt=small.dt, q=1.0, boundary="periodic", mask=seen)
    start = result.diagnostics.likelihood.initial.astype(float)
    whole, part = (forward_rms(result.force, record, start, 1.0) for record in (small, holes))
    assert part == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"boundary": "open"}, "declares no boundary"), ({"boundary": None}, "declares no boundary")],
)
def test_why_no_movie_can_be_made(small, changes, reason):
    record = Record(small.slab(), **({"dx": small.dx, "dt": small.dt, "q": 1.0} | changes))
    assert reason in cannot_run(record)
    times = small.times.copy()
    times[3:] *= 1.5
    assert "not evenly spaced" in cannot_run(Record(small.slab(), dx=small.dx, times=times, boundary="periodic"))
    assert cannot_run(small) is None


def test_a_window_has_rows_without_residuals(small, result):
    window = Record(small.slab(), dx=small.dx, dt=small.dt, q=1.0, boundary="open")
    found = compare(window, result=result, methods=["stac"])
    assert [row.residual for row in found.rows] == [None, None]
    assert "no forward run" in str(found)
    json.dumps(found.document(), allow_nan=False)


def test_the_table_and_the_numbers(found):
    text = str(found)
    for word in ("method", "STAC", "direct FD4", "Not run", "smoothed FD4: smoothed FD4 chooses", "residual"):
        assert word in text
    document = found.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [row["method"] for row in document["methods"]] == [row.fit.name for row in found.rows]
    assert document["methods"][1]["distance"] == found.rows[1].distance
    assert document["reference"] == "trajectory"
    assert [item["method"] for item in document["not_run"]] == ["smoothed FD4"]


def test_the_figure_has_a_curve_for_every_method(found):
    figure = found.figure()
    top, below = figure.axes[:2]
    labels = top.get_legend_handles_labels()[1]
    assert [label.split("\n")[0] for label in labels] == ["our 95 % band", *(row.fit.name for row in found.rows)]
    assert below.get_ylim()[0] == -below.get_ylim()[1]
    assert render(figure, "png").startswith(b"\x89PNG")


class Broken(Baseline):
    name = "broken"
    needs = ("no_such_library",)

    def fit(self, record, *, seed=0):
        raise AssertionError("it must not be called")


class Plain(Baseline):
    """A method with no law and no memory, as a network on a GPU has none."""

    name = "plain"

    def fit(self, record, *, seed=0):
        return BaselineFit(self.name, lambda u: -130.0 * u * (1 - u**2), float(seed + 1), None, "gpu")


def test_methods_of_others_take_part(small, result):
    steps = []
    found = compare(
        small, result=result, methods=[Broken(), Plain(), "trajectory"], seed=2, progress=lambda *s: steps.append(s)
    )
    assert found.left_out == (("broken", "broken needs no_such_library: pip install 'doublewell[baselines]'"),)
    assert found.rows[1].fit.seconds == 3.0
    assert found.rows[1].residual > 0.9
    assert [name for name, _, _ in steps] == ["fitting the trajectory", "broken", "plain"]
    assert " - " in str(found)
    assert missing(Plain()) is None


def test_a_result_without_a_band_is_refused(small):
    weak = identify(small, law=1, method="weak")
    with pytest.raises(InputError, match="has no band, and distances are measured in it"):
        compare(small, result=weak)


def test_a_result_of_another_record_is_refused(small, result):
    with pytest.raises(InputError, match="belongs to a record of shape"):
        compare(small.clip(0, 14), result=result)


def test_wrong_methods_are_refused_before_any_work(small):
    with pytest.raises(InputError, match="method is 'nothing': expected one of"):
        compare(small, methods=["nothing"])
    with pytest.raises(InputError, match="methods is empty"):
        compare(small, methods=[])
    with pytest.raises(InputError, match="compare needs the diffusion coefficient"):
        compare(Record(small.slab(), dx=small.dx, dt=small.dt))
    with pytest.raises(InputError, match="expected a Record"):
        compare(small.slab())


class Slow(Plain):
    name = "slow"
    slow = True


class Point:
    """An entry point of an installed package."""

    def load(self):
        return Slow


def test_slow_methods_of_other_packages_wait_for_a_gpu_or_for_their_name(small, result, monkeypatch):
    monkeypatch.setattr(comparison, "_ALL", (DirectFD4(),))
    monkeypatch.setattr(comparison, "entry_points", lambda *, group: [Point()] * (group == "doublewell.baselines"))
    monkeypatch.setattr(comparison, "on_gpu", lambda: False)
    found = compare(small, result=result)
    assert [name for name, _ in found.left_out] == ["slow"]
    assert all("name it in methods=" in reason for _, reason in found.left_out)
    tried = []
    monkeypatch.setattr(comparison, "_tried", lambda one, *_: tried.append(one.name) or "not now")
    compare(small, result=result, methods=["slow"])
    monkeypatch.setattr(comparison, "on_gpu", lambda: True)
    compare(small, result=result)
    assert tried == ["slow", "direct FD4", "slow"]

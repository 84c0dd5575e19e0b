"""The errors of two grey levels: what they do to a law, and that bands hold them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from grouping import changed

from doublewell.curves import curves
from doublewell.errors import InputError
from doublewell.facts import facts
from doublewell.findings import findings
from doublewell.identify import add_level_errors, identify, repeat
from doublewell.io import load_result, save
from doublewell.law import named_law
from doublewell.problem import Source
from doublewell.record import phase_from_intensity
from doublewell.report.page import advice as advice_of
from doublewell.simulate import initial_field, simulate

U = np.linspace(-1.0, 1.0, 401)
LOW, HIGH = 3000.0, 20000.0


def grey(*, levels, sd):
    start = initial_field("nonconvex", (24, 24), 1 / 24, epsilon=0.12)
    clean = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=13, epsilon=0.12)
    u = clean.slab() + 0.02 * np.random.default_rng(7).standard_normal(clean.shape)
    picture = LOW + 0.5 * (HIGH - LOW) * (1.0 + u)
    known = {"dx": 1 / 24, "dt": 5e-4, "q": 1.0, "boundary": "periodic"}
    return phase_from_intensity(picture, levels=levels, levels_sd=sd, **known)


@pytest.fixture(scope="module")
def phase():
    return grey(levels=(LOW, HIGH), sd=(40.0, 120.0))


@pytest.fixture(scope="module")
def fitted(phase):
    return identify(phase.record, law=1, surface_tension=0.98, check=False)


@pytest.fixture(scope="module")
def wider(fitted, phase):
    return add_level_errors(fitted, phase)


def half_width(result):
    low, high = result.band("force", U)
    return 0.5 * np.linalg.norm(high - low) / np.linalg.norm(result.force(U))


def test_bands_and_intervals_hold_both_parts_added_as_squares(fitted, phase, wider):
    moved = [identify(record, law=1, surface_tension=0.98, check=False) for record in phase.variants()]
    changes = [np.linalg.norm(one.force(U) - fitted.force(U)) / np.linalg.norm(fitted.force(U)) for one in moved]
    assert wider.levels.force == pytest.approx(np.hypot(*changes), rel=1e-9)
    assert half_width(wider) == pytest.approx(np.hypot(half_width(fitted), 1.96 * wider.levels.force), rel=0.05)
    ratio = [one.epsilon / fitted.epsilon - 1.0 for one in moved]
    assert wider.levels.epsilon == pytest.approx(np.hypot(*ratio), rel=1e-9)
    widths = [np.diff(one.interval("epsilon"))[0] for one in (fitted, wider)]
    assert widths[1] == pytest.approx(np.hypot(widths[0], 3.92 * wider.levels.epsilon * fitted.epsilon), rel=0.06)
    np.testing.assert_array_equal(wider.coefficients, fitted.coefficients)


def test_levels_that_are_off_lie_in_the_band_that_holds_their_error():
    off = grey(levels=(LOW - 150.0, HIGH + 250.0), sd=(150.0, 250.0))  # one standard deviation each
    result = identify(off.record, law=1, check=False)
    truth = named_law("sixth").effective(0.12).force(U)

    def missed(one):
        low, high = one.band("force", U)
        return np.mean((truth < low) | (truth > high))

    assert missed(result) > 0.4
    assert missed(add_level_errors(result, off)) < 0.1


def test_it_is_said_saved_and_repeated(wider, phase, tmp_path):
    assert "phase -1 at 3000 +- 40, phase +1 at 20000 +- 1.2e+02 (standard deviations)" in str(wider)
    assert "bands and intervals include it" in str(wider)
    save(wider, tmp_path / "result.json")
    back = load_result(tmp_path / "result.json")
    assert str(back) == str(wider)
    np.testing.assert_array_equal(back.levels.shifts, wider.levels.shifts)
    assert repeat(wider, phase.record).comparison.same


def test_the_weak_reading_says_it_without_bands(phase):
    weak = add_level_errors(identify(phase.record, law=1, method="weak"), phase)
    assert weak.posterior is None
    assert weak.levels.epsilon is None
    assert 0.0 < weak.levels.force < 0.5
    assert "the weak-form fit has no bands that could include it" in str(weak)


def test_the_page_asks_whether_the_levels_are_known(fitted, wider):
    def advice(result):
        return list(advice_of(facts(result), curves(result), findings(result)))

    def asked(result):
        return [item for item in findings(result) if item.topic == "grey levels"]

    assert not asked(fitted)
    assert (asked(wider)[0].code, asked(wider)[0].severity) == ("grey-levels-dominate", "check")
    assert any(text.startswith("Better grey levels") for text in advice(wider))
    less = next(text for text in advice(wider) if text.startswith("Less noise"))
    sizes = [float(part) for part in re.findall(r"±([\d.]+) %", less)]
    assert sizes[1] > 0.8 * sizes[0]  # half the noise leaves the part of the levels
    small = replace(wider, levels=replace(wider.levels, force=1e-4))
    assert (asked(small)[0].code, asked(small)[0].severity) == ("grey-level-errors", "ok")
    source = Source("movie.tif", (("levels", "auto"),))
    found = changed(fitted, source=source)
    assert (asked(found)[0].code, asked(found)[0].severity) == ("grey-levels-unmeasured", "check")
    assert any("--levels-sd auto" in text for text in advice(found))


def test_wrong_use(fitted, wider, phase):
    with pytest.raises(InputError, match="expected a Result and a Phase, got Result and Record"):
        add_level_errors(fitted, phase.record)
    with pytest.raises(InputError, match="holds the errors of its levels already"):
        add_level_errors(wider, phase)
    with pytest.raises(InputError, match="not of these phase values, their checksums differ"):
        add_level_errors(fitted, grey(levels=(LOW, HIGH + 1), sd=(1.0, 1.0)))
    bare = replace(phase, levels_sd=None)
    with pytest.raises(InputError, match=r"pass levels_sd="):
        add_level_errors(fitted, bare)


def test_given_levels_need_no_plateau_in_the_picture(phase):
    assert phase.quality.deficit == (0.0, 0.0)  # nothing is known of levels that were not found
    assert phase.noise == pytest.approx(0.02, rel=0.5)
    with pytest.raises(InputError, match="plateau"):
        grey(levels=None, sd=None)

"""Every method on a small record: near the truth, told as the protocol says, and the same again."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from doublewell.baselines import (
    Analytic,
    DirectFD4,
    PySindy,
    SmoothedFD4,
    Stac,
    Trajectory,
    Wsindy,
    admissible,
    baseline,
    missing,
)
from doublewell.baselines import method as rules
from doublewell.baselines.comparison import _ALL
from doublewell.baselines.regression import chosen_bump, corner
from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.options import DoubleWell, Weak
from doublewell.record import Record
from doublewell.simulate import simulate

U = np.linspace(-1.0, 1.0, 401)
SUPPORTS = ((3, 0.12), (4, 0.16))
needs_pysindy = pytest.mark.skipif(find_spec("pysindy") is None, reason="needs doublewell[baselines]")


def error(fit, truth):
    wanted = truth.force(U)
    return np.linalg.norm(fit.force(U) - wanted) / np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("method", "most"),
    [
        (Stac(supports=SUPPORTS), 0.02),
        (Analytic(supports=SUPPORTS), 0.06),
        (Wsindy(), 0.12),
        (SmoothedFD4(supports=SUPPORTS), 0.12),
        (DirectFD4(), 0.30),
        pytest.param(PySindy(support=SUPPORTS[0], count=150, batch=75, models=10), 0.06, marks=needs_pysindy),
        pytest.param(
            PySindy("all", "NNLS", support=SUPPORTS[0], count=150, batch=75, models=0), 0.06, marks=needs_pysindy
        ),
    ],
    ids=lambda given: given.name if hasattr(given, "name") else "",
)
def test_a_method_comes_near_the_truth(noisy, truth, method, most):
    fit = method.fit(noisy, seed=4)
    assert error(fit, truth) < most
    assert fit.name == method.name
    assert fit.seconds > 0.0
    assert fit.memory >= 0
    assert fit.device.startswith("cpu")
    assert all(isinstance(note, str) for note in fit.notes)
    assert admissible(fit)
    np.testing.assert_array_equal(fit.force(U), fit.law.force(U))
    np.testing.assert_array_equal(method.fit(noisy, seed=4).force(U), fit.force(U))


def test_stac_is_the_librarys_weak_reading(noisy):
    told = identify(noisy, law=DoubleWell(degree=2, constraint="bernstein"), method=Weak(supports=list(SUPPORTS)))
    np.testing.assert_allclose(Stac(supports=SUPPORTS).fit(noisy).law.coefficients, told.coefficients, rtol=1e-9)
    told = identify(noisy, law=DoubleWell(degree=2, constraint="bernstein"), method="weak")
    np.testing.assert_allclose(Stac().fit(noisy).law.coefficients, told.coefficients, rtol=1e-9)


def test_the_papers_supports_are_known(clean):
    assert "(5 frames, 0.0625)" in Stac(supports="paper").fit(clean).notes[0]


def test_direct_differences_are_exact_on_a_clean_record_and_lost_in_noise(clean, noisy, truth):
    assert error(DirectFD4().fit(clean), truth) < 0.01
    assert error(DirectFD4().fit(noisy), truth) > 3 * error(SmoothedFD4(supports=SUPPORTS).fit(noisy), truth)


def test_a_mirrored_border_and_a_window_give_the_same_law(truth):
    x = (np.arange(48) + 0.5) / 48
    y, x = np.meshgrid(x, x, indexing="ij")
    start = np.tanh((0.35 - np.hypot(x, y)) / 0.14)
    movie = simulate(truth, start, dx=1 / 48, dt=4e-4, frames=15, boundary="neumann")
    window = Record(movie.slab(), dx=1 / 48, dt=4e-4, q=1.0, boundary="open")
    assert error(DirectFD4().fit(movie), truth) < 0.02
    assert error(DirectFD4().fit(window), truth) < 0.02


def test_another_diffusion_coefficient_is_another_clock(clean, truth):
    slow = Record(clean.slab(), dx=clean.dx, dt=4 * clean.dt, q=0.25, boundary="periodic")
    methods = [Stac(supports=SUPPORTS), DirectFD4(), Wsindy()]
    if find_spec("pysindy") is not None:
        methods.append(PySindy(support=SUPPORTS[0], count=60, batch=60, models=0))
    for method in methods:
        before, after = (method.fit(record).law.coefficients for record in (clean, slow))
        np.testing.assert_allclose(after, before, rtol=1e-6)


@needs_pysindy
def test_the_band_of_bags_lies_around_the_force_and_the_seed_decides(noisy):
    method = PySindy(support=SUPPORTS[0], count=100, batch=50, models=20)
    fit, other = method.fit(noisy, seed=1), method.fit(noisy, seed=2)
    low, high = fit.band(U)
    inside = U[np.abs(np.abs(U) - 0.5) < 0.3]
    at = np.isin(U, inside)
    assert np.all(low <= high)
    assert np.mean((low <= fit.force(U))[at] & (fit.force(U) <= high)[at]) > 0.95
    assert not np.array_equal(fit.force(U), other.force(U))


@needs_pysindy
def test_pysindy_leaves_the_global_random_numbers_as_they_were(noisy):
    np.random.seed(11)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    PySindy(support=SUPPORTS[0], count=20, batch=20, models=0).fit(noisy, seed=5)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@needs_pysindy
def test_nonnegative_coefficients_are_nonnegative(noisy):
    rough = noisy.replace(noisy.slab() + 0.15 * np.random.default_rng(0).standard_normal(noisy.shape))
    plain, positive = (
        PySindy("all", solver, support=SUPPORTS[0], count=40, batch=40, models=0).fit(rough)
        for solver in ("least squares", "NNLS")
    )
    assert np.min(plain.law.coefficients) < 0.0
    assert np.min(positive.law.coefficients) >= 0.0
    assert plain.band is None


def test_the_corner_of_a_spectrum_is_where_the_waves_end():
    x = np.arange(128) / 128
    rng = np.random.default_rng(2)
    waves = sum(np.cos(2 * np.pi * (k * x + rng.random())) for k in range(1, 9))
    u = waves[:, None] + 1e-3 * rng.standard_normal((128, 50))
    assert 7 <= corner(u, 0) <= 11


def test_a_test_function_falls_to_its_decay_one_cell_inside():
    rng = np.random.default_rng(2)
    x = np.arange(96) / 96
    u = np.cos(2 * np.pi * 6 * x)[:, None] + 0.01 * rng.standard_normal((96, 20))
    bump = chosen_bump(u, 0, decay=1e-10, spread=1.0)
    edge = 1.0 - (1.0 - 1.0 / bump.cells) ** 2
    assert edge**bump.power >= 1e-10 * (1 - 1e-9)
    assert edge ** (bump.power + 1) < 1e-10
    assert not bump.cut
    assert chosen_bump(u[:30], 0, decay=1e-10, spread=3.0).cut
    assert "cut to what fits" in str(chosen_bump(u[:30], 0, decay=1e-10, spread=3.0))


def test_a_finer_record_has_a_narrower_test_function_in_length():
    x = np.linspace(0.0, 1.0, 256, endpoint=False)
    rng = np.random.default_rng(1)
    widths = []
    for waves in (3, 24):
        u = sum(np.cos(2 * np.pi * (k * x + rng.random())) for k in range(1, waves + 1))
        widths.append(chosen_bump(u[:, None] + 1e-4 * rng.standard_normal((256, 20)), 0, decay=1e-10, spread=1.0).cells)
    assert widths[1] < widths[0]


def test_the_trajectory_has_a_band_that_holds_its_law(small, truth):
    fit = Trajectory().fit(small)
    low, high = fit.band(U)
    assert np.all(low <= high)
    assert error(fit, truth) < 0.05
    assert np.mean((low - 1e-9 <= fit.force(U)) & (fit.force(U) <= high + 1e-9)) > 0.9


def bare(record, **changes):
    given = {"dx": record.dx, "times": record.times, "q": record.q, "boundary": "periodic"} | changes
    return Record(record.slab(), **given)


@pytest.mark.parametrize("method", [method for method in _ALL if not method.name.startswith("PySINDy")])
def test_an_unknown_q_is_refused(noisy, method):
    with pytest.raises(InputError, match="needs the diffusion coefficient"):
        method.fit(bare(noisy, q=None))


@pytest.mark.parametrize("method", [DirectFD4(), SmoothedFD4(), Wsindy(), pytest.param(PySindy(), marks=needs_pysindy)])
def test_missing_values_and_uneven_times_are_refused(noisy, method):
    with pytest.raises(InputError, match="cannot leave out missing values"):
        method.fit(bare(noisy, mask=np.ones(noisy.mesh, dtype=bool)))
    times = noisy.times.copy()
    times[5:] += 3 * noisy.dt
    with pytest.raises(InputError, match="evenly spaced in time"):
        method.fit(bare(noisy, times=times))


def test_a_record_of_one_phase_is_refused():
    pure = Record(np.full((31, 40, 40), 0.999), dx=1 / 40, dt=1e-3, q=1.0, boundary="periodic")
    with pytest.raises(InputError, match="no pixel lies between the pure phases"):
        DirectFD4().fit(pure)
    with pytest.raises(InputError, match="leave no centre between the pure phases"):
        Wsindy().fit(pure)
    if find_spec("pysindy") is not None:
        with pytest.raises(InputError, match="domains between the pure phases where 1 were wanted"):
            PySindy(support=SUPPORTS[0], count=1, batch=1, models=0).fit(pure)


def test_a_short_record_is_refused(clean):
    with pytest.raises(InputError, match="too few for a test function"):
        Wsindy().fit(clean.clip(0, 12))
    with pytest.raises(InputError, match="smoothed FD4 chooses its filter on the last 40 %"):
        SmoothedFD4(supports=SUPPORTS).fit(clean.clip(0, 20))


def test_columns_that_vanish_are_noticed():
    from doublewell.baselines.sindy import _check_columns

    with pytest.raises(InputError, match="made 5 columns: expected 3 features and 5 derivatives"):
        _check_columns(np.zeros((4, 5)), 3, 5)


def test_what_is_no_record_is_refused():
    with pytest.raises(InputError, match="expected a Record"):
        Stac().fit(np.zeros((5, 8, 8)))


def test_a_missing_library_is_named(noisy, monkeypatch):
    monkeypatch.setattr(rules, "find_spec", lambda name: None if name == "pysindy" else object())
    assert missing(PySindy()) == "PySINDy LS masked needs pysindy: pip install 'doublewell[baselines]'"
    assert missing(Stac()) is None
    with pytest.raises(InputError, match=r"needs pysindy: pip install"):
        PySindy().fit(noisy)


@pytest.mark.parametrize(("name", "wanted"), [("STAC", "STAC"), ("smoothed-fd4", "smoothed FD4"), (" stac ", "STAC")])
def test_names_are_found_in_small_letters(name, wanted):
    assert baseline(name).name == wanted


@pytest.mark.parametrize("name", ["sindy", 3])
def test_an_unknown_name_lists_the_others(name):
    with pytest.raises(InputError, match=r"method is .*: expected one of trajectory, stac"):
        baseline(name)


def test_names_are_unique_and_settings_are_values():
    names = [method.name for method in _ALL]
    assert len(names) == len(set(names)) == 10
    assert replace(Stac(), degree=3) == Stac(degree=3)


@pytest.mark.parametrize("cells", [(96,), (24, 24, 24)], ids=["line", "volume"])
def test_one_and_three_axes(truth, cells):
    points = np.meshgrid(*((np.arange(n) + 0.5) / n for n in cells), indexing="ij")
    start = np.tanh((0.3 - np.sqrt(sum((x - 0.5) ** 2 for x in points))) / 0.12)
    record = simulate(truth, start, dx=1 / cells[0], dt=4e-4, frames=15)
    methods = [Stac(supports=((3, 0.17),)), Analytic(supports=((3, 0.17),)), DirectFD4()]
    if find_spec("pysindy") is not None:
        methods.append(PySindy(support=(3, 0.17), count=60, batch=60, models=0))
    for method in methods:
        assert error(method.fit(record), truth) < 0.1, method.name

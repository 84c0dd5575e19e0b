from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from found import warned
from grouping import grouped

from doublewell.calibrate import SurfaceTension, refusal_of, why_no_scale
from doublewell.errors import InputError
from doublewell.identify import identify as identify_any
from doublewell.identify.weak_fit import fit_weak
from doublewell.law import named_law
from doublewell.observation import survey
from doublewell.options import DoubleWell, Observation, Weak
from doublewell.problem import ask
from doublewell.record import Record
from doublewell.simulate import add_noise, simulate

identify = partial(identify_any, method="weak")
PHASES = np.linspace(-1.0, 1.0, 2001)
SIGMA = named_law("sixth").surface_tension(epsilon=1.0)


def force_error(result, law, epsilon: float) -> float:
    truth = law.effective(epsilon).force(PHASES)
    return float(np.linalg.norm(result.force(PHASES) - truth) / np.linalg.norm(truth))


def test_clean_movie_gives_the_law_and_the_scale(movie) -> None:
    result = identify(movie, SIGMA)
    assert force_error(result, named_law("sixth"), 0.05) < 2e-3
    assert result.epsilon == pytest.approx(0.05, rel=1e-3)
    assert np.allclose(result.potential(PHASES), named_law("sixth").primitive(PHASES), atol=2e-3)
    assert np.allclose(result.primitive(PHASES) * result.epsilon**2, result.potential(PHASES))
    assert result.structure.ok
    assert result.degree == 2
    assert len(result.coefficients) == 3


@pytest.mark.parametrize("degree", range(9))
def test_every_degree_runs_on_noise_and_keeps_its_wells(noisy, degree) -> None:
    result = identify(noisy, SIGMA, law=degree)
    assert result.structure.ok
    assert np.all(identify(noisy, law=DoubleWell(degree=degree, constraint="bernstein")).coefficients > 0)
    assert result.epsilon == pytest.approx(0.05, rel=0.05)


def test_without_a_tension_the_scale_stays_open(movie) -> None:
    result = identify(movie)
    assert result.scale is None
    for read in (lambda: result.epsilon, lambda: result.potential(0.0)):
        with pytest.raises(InputError) as error:
            read()
        assert str(error.value) == why_no_scale()
    assert "epsilon and F are not determined" in str(result).replace("\n    ", " ")
    assert np.isfinite(result.force(0.5))
    assert np.isfinite(result.primitive(0.5))


def test_scale_class_leaves_everything_unchanged(movie) -> None:
    """Only G enters: a movie simulated with (3 epsilon, 9 F) has the same evidence, coefficients and H."""
    law = named_law("sixth")
    start = movie.slab(0, 1)[0]
    scaled = simulate(law.scaled(9.0), start, dx=1 / 64, dt=1e-4, frames=31, epsilon=3 * 0.05)
    assert scaled.values is not movie.values
    one, other = identify(movie, SIGMA), identify(scaled, law.scaled(9.0).surface_tension(epsilon=1.0))
    assert np.allclose(other.coefficients, one.coefficients, rtol=1e-11)
    assert np.allclose(other.primitive(PHASES), one.primitive(PHASES), rtol=1e-11)
    assert other.diagnostics.rows == one.diagnostics.rows
    assert other.epsilon == pytest.approx(3.0 * one.epsilon, rel=1e-11)
    assert np.allclose(other.potential(PHASES), 9.0 * one.potential(PHASES), rtol=1e-11)


def test_units_of_length_and_time(noisy) -> None:
    """In other units g scales as 1/length^2 and nothing else changes."""
    scaled = Record(noisy.values, dx=noisy.dx[0] * 10.0, dt=noisy.dt * 7.0, q=100.0 / 7.0)
    a, b = identify(noisy, law=3), identify(scaled, law=3)
    assert np.allclose(a.coefficients, 100.0 * b.coefficients, rtol=1e-9)
    assert a.diagnostics.rows == b.diagnostics.rows


def test_mirror_image(noisy) -> None:
    a, b = identify(noisy), identify(noisy.replace(-np.asarray(noisy.values)))
    assert np.allclose(a.coefficients, b.coefficients, rtol=1e-10)


def test_swapped_axes(noisy) -> None:
    a, b = identify(noisy), identify(noisy.replace(np.asarray(noisy.values).transpose(0, 2, 1)))
    assert np.allclose(a.coefficients, b.coefficients, rtol=1e-9)


def test_constraint_and_ridge_settings(noisy) -> None:
    free = identify(noisy, law=DoubleWell(degree=8, constraint="none"))
    bounded = identify(noisy, law=8)
    assert np.array_equal(free.coefficients, bounded.diagnostics.unconstrained)
    assert free.diagnostics.bound is None
    supports = [(3, 0.08)]
    validated = identify(noisy, law=5, method=Weak(supports=supports, ridge="validated"))
    assert validated.diagnostics.ridge is not None
    assert len(validated.diagnostics.ridge.path) == 6
    fixed = identify(noisy, law=5, method=Weak(supports=supports, ridge=1.0))
    assert np.linalg.norm(fixed.coefficients) < np.linalg.norm(
        identify(noisy, law=5, method=Weak(supports=supports)).coefficients
    )


def test_supports_are_chosen_said_and_checked(movie) -> None:
    default = identify(movie)
    width = default.diagnostics.survey.interface_width
    cell = movie.dx[0]
    lengths = max(width / 4, 4 * cell), max(width / 2, 6 * cell)
    assert default.resolved.supports == tuple((n, pytest.approx(x)) for n, x in zip((5, 8), lengths, strict=True))
    assert default.resolved.supports_rule.startswith(
        "a quarter and half of the interface width, chosen from the record"
    )
    assert "a quarter and half of the interface width, chosen from the record" in " ".join(str(default).split())
    paper = identify(movie, method=Weak(supports="paper"))
    assert paper.resolved.supports == ((5, 1 / 16), (8, 1 / 8))
    given = identify(movie, method=Weak(supports=[(4, 0.1)]))
    assert given.resolved.supports == ((4, 0.1),)
    assert identify(movie, method=Weak(supports=(pair for pair in [(4, 0.1)]))).resolved.supports == ((4, 0.1),)
    with pytest.raises(InputError, match="supports is 'wide': expected pairs"):
        identify(movie, method=Weak(supports="wide"))
    with pytest.raises(InputError, match="supports is 5: expected pairs"):
        identify(movie, method=Weak(supports=5))
    with pytest.raises(InputError, match="too short for a temporal half-width of 20 intervals"):
        identify(movie, method=Weak(supports=[(20, 0.1)]))


def test_short_record_gets_short_supports(movie) -> None:
    assert identify(movie.clip(0, 15)).resolved.supports[-1][0] == 3
    assert identify(movie.clip(0, 12), method="weak").resolved.supports[-1][0] == 1


def test_extra_wells_calibrate_with_a_warning_and_negative_h_is_refused(movie) -> None:
    noisy = add_noise(movie.clip(0, 21), 0.12, seed=1)
    seen = {"extra": 0, "refused": 0}
    for seed in range(12):
        result = identify(
            add_noise(movie.clip(0, 21), 0.12, seed=seed), SIGMA, law=DoubleWell(degree=8, constraint="none")
        )
        if result.structure.ok:
            continue
        assert "not-a-double-well" in warned(result)
        if result.scale is None:
            seen["refused"] += 1
            assert result.refusal is not None
            assert "calibration refused" in str(result)
            with pytest.raises(InputError, match="calibration refused"):
                _ = result.epsilon
        else:
            seen["extra"] += 1
            assert result.law.lowest >= 0
    assert seen["extra"] > 0
    assert seen["refused"] > 0
    assert identify(noisy, SIGMA, law=8).structure.ok


def test_report_says_everything(noisy) -> None:
    text = str(identify(noisy, SurfaceTension(SIGMA, sd=0.01), law=5, method=Weak(ridge=1e-8)))
    for part in (
        "G(u) = -u (1 - u^2) [",
        "epsilon = 0.0",
        "+- ",
        "barrier F(0)",
        "two stable pure phases and one central maximum",
        "condition number",
        "double wells with a single barrier",
        "phase range visited",
        "moments, residual",
        "ridge alpha = 1e-08",
        "noise 0.02",
    ):
        assert part in text, part
    assert max(len(line) for line in text.splitlines()) <= 125


def test_warnings_in_plain_words(movie) -> None:
    coarse = Record(np.asarray(movie.values)[:, ::2, ::2], dx=1 / 32, dt=movie.dt, q=1.0)
    assert "interface-few-cells" in warned(identify(coarse))
    loud = identify(add_noise(movie, 0.1, seed=2), law=5)
    assert "noise-bias" in warned(loud)
    half = identify(movie.replace(0.6 + 0.4 * np.asarray(movie.values)), law=0)
    assert warned(half)["phase-range-not-covered"].numbers == {"coverage": 0.8}
    high = identify(
        add_noise(movie.clip(0, 17), 0.1, seed=3),
        law=DoubleWell(degree=8, constraint="bernstein"),
        method=Weak(supports=[(5, 1 / 8), (6, 1 / 4)]),
    )
    assert {"coefficients-at-bound", "supports-disagree"} <= set(warned(high))
    assert "positive coefficients, at the bound: g_" in str(high)


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (lambda u: (u + 1) / 2, {"phase-not-reached"}),
        (lambda u: u + 0.3, {"values-beyond-phases", "moments-unexplained"}),
        (lambda u: 0.5 * u, {"phase-not-reached"}),
        (lambda u: np.repeat(u[10:11], 31, axis=0), {"little-change"}),
    ],
)
def test_a_wrong_scale_is_named(movie, change, codes) -> None:
    assert codes <= set(warned(identify(movie.replace(change(movie.slab())))))


def test_badly_conditioned_design_is_said(movie) -> None:
    """Phase values in a narrow range cannot tell nine coefficients apart."""
    narrow = identify(movie.replace(0.3 + 0.05 * movie.slab()), law=4, method=Weak(supports=[(5, 0.1)]))
    assert narrow.diagnostics.scaled_condition > 1e4
    assert "ill-conditioned" in warned(narrow)


def test_a_support_that_cannot_stand_alone_is_said(movie) -> None:
    """The wide support has one centre, which lies in a pure phase in every frame."""
    record = movie.replace(np.roll(movie.slab(), (32, 32), axis=(1, 2)))
    result = identify(record, method=Weak(supports=[(5, 0.07), (5, 29 / 64)]))
    lonely = result.diagnostics.supports[1]
    assert lonely.coefficients is None
    words = f"the support (5 frames, 0.4531) is not sufficient alone ({lonely.rows} moments): {lonely.status}"
    assert warned(result)["few-moments"].sentence == words


def test_no_scale_when_every_coefficient_is_at_the_bound() -> None:
    """A field with Laplacian u = +k^2 u, which no double well has: cosh profiles that stand still."""
    x = np.linspace(-1.0, 1.0, 48)
    u = np.sinh(3.0 * x)[:, None] * np.cosh(3.0 * x) / 101.0 * (1 + 0.01 * np.linspace(0, 1, 25)[:, None, None])
    record = Record(u, dx=x[1] - x[0], dt=1e-3, q=1.0)
    seen = survey(record)
    fit, exact = (
        fit_weak(record, seen, ask([record], law=DoubleWell(2, c), method=Weak(supports=[(4, 0.2)])))
        for c in ("bernstein", "admissible")
    )
    assert fit.estimate.solution.active.all()
    assert exact.estimate.solution.contacts == (0.0, 1.0)
    for one in (fit.estimate, exact.estimate):
        assert refusal_of(one.law, one.bound).kind == "flat-law"
    free = fit_weak(record, seen, ask([record], law=DoubleWell(2, "none"), method=Weak(supports=[(4, 0.2)]))).estimate
    assert getattr(refusal_of(free.law), "kind", "") != "flat-law"


def test_a_good_record_has_one_warning(movie) -> None:
    result = identify(movie, SIGMA)
    assert set(warned(result)) == {"no-error-bands"}


def test_bad_records(movie) -> None:
    values = np.asarray(movie.values)
    broken = values.copy()
    broken[3, 4, 5] = np.nan
    with pytest.raises(InputError, match=r"the first in frame 3 at cell \(4, 5\)"):
        identify(movie.replace(broken))
    with pytest.raises(InputError, match="the field is constant"):
        identify(movie.replace(np.ones_like(values)))
    with pytest.raises(InputError, match="phase values run from -100 to 98.9: expected the pure phases at -1 and"):
        identify(movie.replace(100 * values))
    with pytest.raises(InputError, match=r"no more than 2 different values: contours and thresholded masks are not"):
        identify(movie.replace(np.sign(values)))
    steps = np.broadcast_to(np.sign(np.sin(np.arange(64) / 3.0))[:, None] * np.ones(64), (31, 64, 64))
    nothing = (
        "no interface is detected: values from .* look like one phase, like noise, or like steps sharper than a pixel"
    )
    with pytest.raises(InputError, match=nothing):
        identify(movie.replace(steps + 1e-3 * np.sin(np.arange(64.0))))
    noise = np.random.default_rng(0).standard_normal((31, 64, 64))
    for one_phase in (1.0 + 1e-3 * noise, 1.0 + 0.01 * noise, 1.0 + 0.1 * noise, 0.3 * noise):
        with pytest.raises(InputError, match=nothing):
            identify(movie.replace(one_phase))
    sharp = np.sign(values) * (1 - 0.4 * (np.abs(values) < 0.5))
    with pytest.raises(InputError, match="too coarse: an interface spans .* cells, expected at least 2.5"):
        identify(Record(sharp[:, ::2, ::2], dx=1 / 32, dt=1e-4, q=1.0))


def test_an_interface_at_the_edge_leaves_no_moment() -> None:
    """Centres keep their distance from the edge, where the only interface is."""
    x = np.arange(64) / 64
    u = -np.tanh((x[None, :, None] - 0.11 - 0.02 * np.arange(31)[:, None, None] / 30) / 0.02) * np.ones((1, 1, 40))
    edge = Record(u, dx=1 / 64, dt=1e-4, q=1.0)
    with pytest.raises(InputError, match="no centre is left.*record frames that contain an interface"):
        identify(edge, method=Weak(supports=[(5, 0.25)]))


def test_a_handful_of_moments_is_refused(movie) -> None:
    """One centre frame of 10 x 10 centres."""
    few = "only .* moments are left for 9 coefficients: expected at least 180; record more frames or a larger field"
    with pytest.raises(InputError, match=few):
        identify(movie, law=8, method=Weak(supports=[(13, 25 / 64)]))


class Unread:
    """A stored field whose values must not be read."""

    shape, dtype, ndim = (31, 64, 64), np.dtype(float), 3

    def __getitem__(self, frames):
        raise AssertionError("the record was read before the options were checked")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": "convex"}, "constraint is 'convex'"),
        ({"constraint": ["none"]}, "constraint is .'none'.: expected"),
        ({"ridge": "best"}, "ridge is 'best': expected 'validated'"),
        ({"ridge": -1.0}, "ridge is -1: expected"),
        ({"ridge": [1.0]}, "ridge is .1.0.: expected"),
        ({"ridge": True}, "ridge is True: expected"),
        ({"derivative": "exact"}, "derivative is 'exact': expected 'discrete' or 'analytic'"),
        ({"supports": "wide"}, "supports is 'wide'"),
        ({"supports": [(20, 0.1)]}, "too short for a temporal half-width of 20"),
        ({"supports": [(8, 0.1)], "ridge": "validated"}, "record is too short for a validated ridge"),
    ],
)
def test_options_are_checked_without_reading(options, message) -> None:
    unread = Record(Unread(), dx=1 / 64, dt=1e-4, q=1.0)
    with pytest.raises(InputError, match=message):
        identify_any(unread, **grouped(method="weak", **options))


def test_wrong_arguments(movie) -> None:
    with pytest.raises(InputError, match="expected a Record, got ndarray"):
        identify(np.zeros((3, 4, 5)))
    with pytest.raises(
        InputError, match="method is 'strong': expected 'trajectory', 'weak', 'weak-corrected', Trajectory"
    ):
        identify(movie, method="strong")
    for degree in (-1, 9, 2.5, "2"):
        with pytest.raises(InputError, match="0 to 8|expected DoubleWell"):
            identify(movie, law=degree)
    with pytest.raises(InputError, match="surface tension is 0"):
        identify(movie, 0)
    with pytest.raises(InputError, match="noise belong to the trajectory fit"):
        identify(movie, observation=Observation(noise="correlated"))
    with pytest.raises(
        InputError, match="noise is 'pink': expected 'auto', 'white', 'correlated', 'shot', 'robust' or 'none'"
    ):
        identify(movie, observation=Observation(noise="pink"))
    with pytest.raises(InputError, match="constraint is 'convex'"):
        identify(movie, law=DoubleWell(constraint="convex"))
    with pytest.raises(InputError, match="record is too short for a validated ridge"):
        identify(movie, method=Weak(ridge="validated"))


def test_rank_deficient_record() -> None:
    """One phase value everywhere: nothing to tell the coefficients apart."""
    wave = np.sin(2 * np.pi * np.arange(40) / 40)
    u = 0.5 + 1e-9 * wave[:, None] * wave * np.linspace(1, 2, 21)[:, None, None]
    with pytest.raises(InputError, match="does not determine 3 coefficients"):
        identify(Record(u, dx=0.025, dt=1e-4, q=1.0), method=Weak(supports=[(3, 0.1)]))


def test_progress_and_determinism(noisy) -> None:
    seen = []
    a = identify(noisy, law=4, progress=lambda *said: seen.append(said))
    assert seen[-1] == ("compiling and reading", 31, 31)
    assert np.array_equal(a.coefficients, identify(noisy, law=4).coefficients)


def test_values_that_are_not_finite_are_masked_where_that_is_asked(movie) -> None:
    values = np.array(movie.values)
    values[4, 10, 11] = np.nan
    holes = movie.replace(values)
    with pytest.raises(InputError, match="frame 4"):
        identify(holes)
    masked = identify(holes, observation=Observation(missing="mask"))
    assert masked.diagnostics.survey.missing == pytest.approx(1 / values.size)
    assert np.allclose(masked.coefficients, identify(movie).coefficients, rtol=1e-2)

"""The start of a fit of few frames, and the short test functions: no trajectory is fitted here."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell import Weak, identify
from doublewell.errors import InputError
from doublewell.findings import findings
from doublewell.identify.parts import begin
from doublewell.law import named_law
from doublewell.observation import survey
from doublewell.problem import ask
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON = 0.06
LAW = named_law("quartic")
STRENGTH = LAW.effective(EPSILON).coefficients[0]


@pytest.fixture(scope="module")
def movie():
    start = initial_field("nonconvex", (48, 48), 1 / 48, epsilon=EPSILON)
    return simulate(LAW, start, dx=1 / 48, dt=2e-4, frames=61, epsilon=EPSILON)


def chosen(movie, frames, noise=0.0, **changes) -> Record:
    record = Record(movie.slab()[frames], dx=movie.dx, times=movie.times[frames], q=1.0, boundary="periodic")
    return add_noise(record.replace(**changes), noise, seed=5)


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("frames", [[0, 20], [5, 60], [10, 12, 30], [0, 10, 20, 40, 50]])
def test_law_and_q_are_near_from_two_frames_on(movie, frames, noise) -> None:
    known, unknown = chosen(movie, frames, noise), chosen(movie, frames, noise, q=None)
    part = begin(known, ask([known]), None)
    assert part.start.coefficients == pytest.approx(STRENGTH, rel=0.35)
    assert part.start.supports == ()
    assert begin(unknown, ask([unknown]), None).start.q == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("tilt", [-0.25, 0.25])
@pytest.mark.parametrize(
    ("geometry", "q", "near"), [("circle", 1.0, 0.0), ("nonconvex", None, 0.25), ("circle", None, 0.7)]
)
def test_unequal_wells_start_with_their_maximum(tilt, geometry, q, near) -> None:
    """A drop that grows has q of the wrong sign if its wells are equal; of a round one q and tilt act nearly alike."""
    law = LAW.tilted(tilt)
    start = initial_field(geometry, (48, 48), 1 / 48, epsilon=EPSILON)
    movie = simulate(law, start, dx=1 / 48, dt=1e-3, frames=6, epsilon=EPSILON)
    record, u = movie.replace(q=q), np.linspace(-1.0, 1.0, 201)
    problem = ask([record], law="wells=unequal")
    found = begin(record, problem, None).start
    force, true = found.coefficients @ problem.fitted.features(u), law.effective(EPSILON).force(u)
    assert abs(found.q - 1.0) <= near
    assert np.linalg.norm(force - true) < (0.15 if q else 1.5) * np.linalg.norm(true)


def test_start_of_a_window_in_one_and_in_three_dimensions(movie) -> None:
    window = chosen(movie, [0, 30]).replace(movie.slab()[[0, 30], 4:40, 8:44], boundary=None, q=None)
    assert begin(window, ask([window]), None).start.q == pytest.approx(1.0, rel=0.2)
    for mesh, epsilon in (((64,), 0.05), ((24, 24, 24), 0.12)):
        start = initial_field("circle", mesh, 1 / mesh[0], epsilon=epsilon)
        start = start if len(mesh) > 1 else start + 0.3 * np.sin(2 * np.pi * np.arange(64) / 64)
        record = simulate(LAW, start, dx=1 / mesh[0], dt=epsilon**2, frames=2, epsilon=epsilon)
        found = begin(record, ask([record]), None).start.coefficients
        assert found == pytest.approx(epsilon**-2, rel=0.35)


def test_frames_far_apart_start_from_a_quartic_law_however_many(movie) -> None:
    far = Record(movie.slab()[:26:2], dx=movie.dx, times=0.02 * np.arange(13), q=1.0, boundary="periodic")
    assert begin(far, ask([far]), None).start.supports == ()
    near = movie.clip(20, 35)
    assert begin(near, ask([near]), None).start.supports


def test_two_frames_that_noise_hides_do_not_give_q(movie) -> None:
    record = chosen(movie, [50, 51], 0.1, q=None)
    with pytest.raises(InputError, match="so the record does not determine q: pass q="):
        begin(record, ask([record]), None)


@pytest.mark.parametrize("frames", [[20, 21, 22], [20, 24, 30], [20, 22, 24, 26, 28, 30]])
def test_weak_moments_of_three_frames(movie, frames) -> None:
    record = chosen(movie, frames)
    result = identify(record, method="weak")
    u = np.linspace(-1, 1, 201)
    exact = LAW.effective(EPSILON).force(u)
    assert np.linalg.norm(result.law.force(u) - exact) < 0.01 * np.linalg.norm(exact)
    assert "short-test-functions" in [finding.code for finding in findings(result)]
    streamed = identify(record, method=Weak(memory="2GB"))
    assert streamed.law.coefficients == pytest.approx(result.law.coefficients, rel=1e-12)


def test_the_error_of_three_frames_is_of_second_order(movie) -> None:
    u, errors = np.linspace(-1, 1, 201), []
    for step in (2, 4, 8):
        law = identify(chosen(movie, [30 - step, 30, 30 + step]), method="weak").law
        errors.append(np.linalg.norm(law.force(u) - LAW.effective(EPSILON).force(u)))
    assert np.log2(errors[2] / errors[1]) == pytest.approx(2.0, abs=0.5)


def test_two_frames_are_for_the_trajectory_fit(movie) -> None:
    with pytest.raises(InputError, match="weak moments need three at least; use method='trajectory'"):
        identify(chosen(movie, [0, 20]), method="weak")


@pytest.mark.parametrize("frames", [[0, 20], [0, 1, 30], list(range(0, 60, 6))])
def test_noise_and_change_of_few_frames(movie, frames) -> None:
    assert survey(chosen(movie, frames)).noise < 1e-4  # the interface is not noise
    for noise in (0.01, 0.1):
        assert survey(chosen(movie, frames, noise)).noise == pytest.approx(noise, rel=0.15)
    assert survey(chosen(movie, frames)).change > 0.1
    line = chosen(movie, frames).replace(movie.slab()[frames][:, 24], dx=1 / 48)
    assert survey(line).noise < 2e-3

"""How a record is seen: derivatives, optics and times of the record's model, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.dynamics import CAHN_HILLIARD
from doublewell.errors import InputError
from doublewell.law import Bernstein
from doublewell.likelihood import gauss_newton, record_model
from doublewell.likelihood.model import check_window, first_substeps
from doublewell.observation import View, check_view
from doublewell.observation.view import Whitening, grey_of_light, light_of_grey, observed
from doublewell.options import Observation
from doublewell.record import Record
from doublewell.runtime import double_precision

LAW = np.array([30.0, 45.0])
COLOUR = 1.0 + 0.5 * np.cos(np.arange(14.0))[:, None] * np.sin(np.arange(12.0))
UNEVEN = np.array([0.0, 1.0, 1.5, 3.0, 4.0]) * 5e-4
KINDS = {
    "window, q and blur free": ("open", UNEVEN, View(Observation(blur="estimated", pixel=True), q_free=True)),
    "finer mesh": ("neumann", None, View(Observation(blur=0.05, pixel=True, refine=3))),
    "exposure, colour, memory": (
        "periodic", None, View(Observation(exposure=4e-4), whitening=Whitening(colour=COLOUR, memory=0.4)),
    ),
    "light left, drift, contrast": (
        "open", None,
        View(Observation(contrast="estimated", blur=0.02), moving="yx", light=(4, 4)),
    ),
    "response, contrast": ("open", None, View(Observation(contrast="estimated", response="estimated"), dark=0.2)),
    "q and blur free, uneven times": ("periodic", UNEVEN, View(Observation(blur="estimated"), q_free=True)),
}  # fmt: skip


@pytest.mark.parametrize("power", [0.45, 1.0, 2.2])
def test_a_response_keeps_the_phases_and_can_be_undone(power):
    u = np.linspace(-1.5, 1.3, 57)
    grey = grey_of_light(u, power, 0.05)
    assert np.allclose(light_of_grey(grey, power, 0.05), u, atol=1e-12)
    assert np.allclose(grey_of_light(np.array([-1.0, 1.0]), power, 0.05), [-1.0, 1.0], atol=1e-14)
    assert (np.diff(grey) > 0.0).all()
    inside = u > -1.0
    light = 0.05 ** (1 / power) * (1 - u[inside]) / 2 + (1 + u[inside]) / 2
    assert np.allclose(2 * (light**power - 0.05) / 0.95 - 1, grey[inside], atol=1e-12)


def blank(boundary="periodic", times=None, mesh=(14, 12)) -> Record:
    times = 5e-4 * np.arange(5) if times is None else times
    values = np.random.default_rng(3).standard_normal((len(times), *mesh))
    return Record(values, dx=0.1, times=times, q=1.3, boundary=boundary)


def seen_of(record, view, nuisance, theta):
    import jax

    model, constants = record_model(record, Bernstein(len(LAW) - 1), max(2, first_substeps(record, 0.0)), view)
    with double_precision():
        return np.asarray(jax.jit(model.predict)(nuisance, theta, constants))


def along(cells, boundary):
    return np.arange(cells) / cells if boundary == "periodic" else (np.arange(cells) + 0.5) / cells


def smooth(mesh, boundary="periodic", size=0.6):
    x, y = (along(n, boundary) for n in mesh)
    k = 2 * np.pi if boundary == "periodic" else np.pi
    return size * np.cos(k * x)[:, None] * (0.6 + 0.4 * np.cos(k * y))


@pytest.mark.parametrize("kind", KINDS)
def test_adjoint_is_the_transpose_of_the_tangent(kind) -> None:
    """Of what is seen and whitened; and the tangents are its derivatives."""
    import jax

    boundary, times, view = KINDS[kind]
    record, rng, h = blank(boundary, times), np.random.default_rng(4), 1e-6
    model, constants = record_model(record, Bernstein(1), max(2, first_substeps(record, 0.0)), view)
    theta = np.concatenate([np.full(len(view.free), 0.9), LAW])
    u = 0.5 * model.nuisance_of(record.slab()[None], constants)[0]
    x, y, t = rng.standard_normal(u.shape), rng.standard_normal(record.shape), rng.standard_normal(theta.size)

    def whitened(u, theta):
        return model.whiten(model.predict(u, theta, constants), constants)

    @jax.jit
    def linear(u, theta, x, y, t):
        push, pull = gauss_newton.maps_at(model, u, theta, constants)
        return push(x), pull(y), jax.jvp(whitened, (u, theta), (x, t))[1]

    seen = jax.jit(whitened)
    with double_precision():
        pushed, pulled, both = (np.asarray(part) for part in linear(u, theta, x, y, t))
        change = np.asarray(seen(u + h * x, theta + h * t) - seen(u - h * x, theta - h * t)) / (2 * h)
        along_u = np.asarray(seen(u + h * x, theta) - seen(u - h * x, theta)) / (2 * h)
    assert np.vdot(pushed, y) == pytest.approx(np.vdot(x, pulled), rel=1e-10)
    assert np.allclose(pushed, along_u, atol=1e-6 * np.abs(along_u).max())
    assert np.allclose(both, change, atol=1e-6 * np.abs(change).max())


@pytest.mark.parametrize(("boundary", "wave"), [("periodic", 4 * np.pi), ("neumann", 2 * np.pi)])
def test_optics_take_their_share_of_every_mode(boundary, wave) -> None:
    """exp(-s^2 k^2 / 2) for a Gaussian, sinc for a pixel; a known blur and one that is estimated are the same."""
    record, blur = blank(boundary), 0.07
    u = np.cos(wave * along(14, boundary))[:, None] * np.ones(12)
    k, sharp = wave / 1.4, seen_of(record, View(), u, LAW)[0]
    left = np.exp(-0.5 * (blur * k) ** 2)
    known = seen_of(record, View(Observation(blur=blur)), left * u, LAW)
    assert np.allclose(known[0], left * sharp, atol=1e-12)
    pixel = np.sin(k * 0.05) / (k * 0.05)
    later = [
        seen_of(record, View(Observation(pixel=flag)), size * u, LAW)[-1] for flag, size in ((1 > 0, pixel), (False, 1))
    ]
    waves = np.vdot(later[0], u) / np.vdot(later[1], u)
    assert waves == pytest.approx(pixel, abs=1e-9)
    free = seen_of(record, View(Observation(blur="estimated")), left * u, np.array([(blur / 0.1) ** 2, *LAW]))
    assert np.allclose(free, known, atol=1e-12)


OPTICS = {
    "pixel": View(Observation(pixel=True)), "blur": View(Observation(blur=0.03, pixel=True)),
    "drift": View(moving="yx"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OPTICS)
def test_pictures_of_a_window_are_a_part_of_those_of_the_whole(kind) -> None:
    """The window steps pictures and has a border of pictures; the whole steps fields and makes pictures of them."""
    view, mesh, law = OPTICS[kind], (48, 40), np.array([20.0, 30.0])
    whole = blank("periodic", 2e-3 * np.arange(7), mesh)
    theta = np.concatenate([[0.1, 0.02, -0.08, 0.01], law]) if view.moving else law
    pictures = seen_of(whole, view, smooth(mesh, size=0.9), theta)
    part = (slice(None), slice(5, 35), slice(4, 34))
    window = whole.replace(pictures[part], boundary="open")
    model, constants = record_model(window, Bernstein(1), 4, view)
    found = seen_of(window, view, model.nuisance_of(window.slab()[None], constants)[0], theta)
    sharp = seen_of(window, View(), model.nuisance_of(window.slab()[None], constants)[0], law)
    errors = [np.abs(fields - window.slab()).max() for fields in (found, sharp)]
    assert errors[0] < 0.1 * errors[1], errors
    assert errors[0] < 2e-4


def test_what_is_left_of_the_light_moves_each_phase() -> None:
    """Terms of the low phase where u = -1, of the high one where u = +1; frame 0 is the nuisance."""
    record = blank(mesh=(20, 18))
    view = View(Observation(contrast="estimated", blur=0.0), light=(2, 3))
    _, constants = record_model(record, Bernstein(1), 2, view)
    space, time = constants.light
    assert np.allclose(np.mean(space**2, axis=(1, 2)), 1.0)
    u, left = smooth(record.mesh), np.zeros((2, len(space) + len(time)))
    left[0, 1], left[0, -1], left[1, 2] = 0.02, 0.03, -0.01
    low, high = 0.02 * space[1] + 0.03 * time[-1][:, None, None], -0.01 * space[2]

    def lit(field):
        return field + 0.5 * (1.0 - field) * low + 0.5 * (1.0 + field) * high

    first = lit(u[None])[0]
    found = seen_of(record, view, np.concatenate([first.ravel(), left.ravel()]), np.array([1.0, 0.0, *LAW]))
    assert np.allclose(found, lit(seen_of(record, View(), u, LAW)), atol=1e-12)


@pytest.mark.parametrize(("boundary", "factor"), [("periodic", 2), ("neumann", 3)])
def test_a_finer_mesh_changes_nothing_where_the_field_is_resolved(boundary, factor) -> None:
    record = blank(boundary)
    u = smooth(record.mesh, boundary, size=0.3)
    usual, fine = (seen_of(record, View(Observation(refine=n)), u, LAW) for n in (1, factor))
    assert np.abs(fine - usual).max() < 1e-3 * np.abs(usual[-1] - u).max()
    assert not np.array_equal(fine, usual)


def test_an_exposure_is_the_mean_over_its_time() -> None:
    """Against the mean over a movie with a tenth of the interval, by Simpson's rule."""
    u = smooth((14, 12))
    dense = seen_of(blank("periodic", 5e-5 * np.arange(41)), View(), u, LAW)
    weights = np.array([1, 4, 2, 4, 2, 4, 2, 4, 1]) / 24
    found = seen_of(blank(), View(Observation(exposure=4e-4)), u, LAW)
    for k in (1, 2, 3):
        mean = np.tensordot(weights, dense[10 * k - 4 : 10 * k + 5], axes=1)
        assert np.abs(found[k] - mean).max() < 0.03 * np.abs(dense[10 * k] - mean).max()


def test_uneven_times_of_an_even_record_are_even() -> None:
    """A table of steps of many lengths gives at one length what the weights of that length give."""
    even = blank()
    uneven = blank("periodic", even.times + np.array([0, 0, 0, 0, 1e-5]))
    assert even.uniform
    assert not uneven.uniform
    u = smooth(even.mesh)
    one, other = (seen_of(record, View(), u, LAW) for record in (even, uneven))
    assert np.allclose(one[:-1], other[:-1], atol=1e-10)
    assert np.abs(one[-1] - other[-1]).max() > 1e-6


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_q_is_the_rate_of_time(boundary) -> None:
    """q c with times t / c is the same movie; the entry of theta for q is its ratio to the record's."""
    record = blank(boundary)
    model, constants = record_model(record, Bernstein(1), 2)
    u = 0.3 * model.nuisance_of(record.slab()[None], constants)[0]
    usual = seen_of(record, View(), u, LAW)
    slow = Record(record.values, dx=0.1, times=2 * record.times, q=0.65, boundary=boundary)
    assert np.allclose(seen_of(slow, View(), u, LAW), usual, atol=1e-12)
    quick = Record(record.values, dx=0.1, times=record.times / 1.25, q=1.3, boundary=boundary)
    assert np.allclose(seen_of(quick, View(q_free=True), u, np.array([1.25, *LAW])), usual, atol=1e-8)


def test_the_preconditioner_follows_the_noise() -> None:
    """A wave that fits m times into a periodic domain is the cosine 2 m of the mirrored one."""
    colour = np.add.outer(np.arange(14.0), np.ones(12))
    _, usual = record_model(blank(), Bernstein(1), 2)
    _, weighed = record_model(blank(), Bernstein(1), 2, View(whitening=Whitening(colour=colour)))
    assert np.allclose(np.sqrt(weighed.gain / usual.gain)[:3, 0], [1.0, 3.0, 5.0], rtol=1e-9)


def test_views_say_what_is_free_and_what_is_plain() -> None:
    assert View().plain
    assert View().free == ()
    both = View(Observation(blur="estimated"), q_free=True)
    assert both.free == ("q", "blur")
    assert not both.plain
    assert not View(whitening=Whitening(memory=0.2)).plain
    assert not View(Observation(exposure=1.0)).blurs
    assert View(Observation(pixel=True)).blurs
    assert View(Observation(exposure=1.0)).imaged
    assert not View(Observation(noise="shot")).imaged


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"response": 0.1}, "response is 0.1: expected an exponent from 0.2 to 5, or 'estimated'"),
        ({"blur": -0.1}, "blur is -0.1: expected a length of at least 0, 'estimated', 'some' or 'auto'"),
        ({"blur": "unknown"}, "blur is 'unknown': expected a length"),
        ({"blur": float("inf")}, "blur is inf: expected a length"),
        ({"exposure": -1.0}, "exposure is -1.0: expected a time of at least 0"),
        ({"exposure": True}, "exposure is True: expected a time of at least 0"),
        ({"refine": 0}, "refine is 0: expected 'auto', an integer from 1 to 9"),
        ({"refine": 1.5}, "refine is 1.5: expected 'auto', an integer from 1 to 9"),
        ({"refine": True}, "refine is True: expected 'auto', an integer from 1 to 9"),
    ],
)
def test_optics_that_cannot_be(options, words) -> None:
    with pytest.raises(InputError, match=words):
        Observation(**options)


def test_optics_that_a_record_does_not_allow() -> None:
    with pytest.raises(InputError, match="refine is 2: expected an odd one with boundary='neumann'"):
        check_view(blank("neumann"), View(Observation(refine=2)))
    check_view(blank("neumann"), View(Observation(refine=3)))
    long = "exposure is 0.0006: expected evenly spaced frames and an exposure no longer than their interval"
    with pytest.raises(InputError, match=long):
        check_view(blank(), View(Observation(exposure=6e-4)))
    with pytest.raises(InputError, match="exposure is 0.0001: expected evenly spaced frames"):
        check_view(blank("periodic", UNEVEN), View(Observation(exposure=1e-4)))


def test_records_that_a_view_does_not_allow() -> None:
    with pytest.raises(InputError, match="the window is 11 x 30: expected at least 12 cells along each axis"):
        check_window(blank("open", mesh=(11, 30)))
    check_window(blank("open", mesh=(12, 30)))
    with pytest.raises(InputError, match="the window is 19 x 30: expected at least 20 cells along each axis, for 6 on"):
        check_window(blank("open", mesh=(19, 30)), CAHN_HILLIARD)
    check_window(blank("open", mesh=(20, 30)), CAHN_HILLIARD)
    record = blank()
    holed = record.replace(record.slab(), mask=np.arange(5) != 2)
    with pytest.raises(InputError, match="correlated noise and missing values do not go together"):
        observed(holed, View(whitening=Whitening(memory=0.3)))

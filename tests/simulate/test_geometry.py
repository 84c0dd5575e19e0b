"""Initial fields: their shapes, sizes and places, and that one seed means one field."""

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.law import named_law
from doublewell.simulate import GEOMETRIES, initial_field, simulate

BOUNDARIES = ["periodic", "neumann"]


def field(name, n=96, boundary="periodic", epsilon=0.03, seed=2):
    return initial_field(name, (n, n), 1 / n, epsilon=epsilon, boundary=boundary, seed=seed)


def fraction(u):
    return float(np.mean(u > 0))


@pytest.mark.parametrize(
    ("name", "area", "rel"),
    [
        ("circle", np.pi * 0.2**2, 0.02),
        ("nonconvex", np.pi * 0.27**2 * (1 + 0.4**2 / 2), 0.02),
        ("wobbled", np.pi * 0.27**2 * (1 + 0.15**2 / 2), 0.02),
        ("inclusion", np.pi * (0.36**2 - 0.17**2), 0.02),
        ("dumbbell", 2 * np.pi * 0.15**2 + 4 * 0.07 * (0.2 - np.sqrt(0.15**2 - 0.07**2)), 0.15),
        ("spinodal", 0.5, 0.15),
    ],
)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_area_of_the_plus_phase(name, area, rel, boundary):
    assert fraction(field(name, boundary=boundary)) == pytest.approx(area, rel=rel)


def test_circle_and_nonconvex_have_the_benchmark_form():
    n, epsilon = 48, 0.03
    x = np.arange(n) / n - 0.5
    r, theta = np.hypot(x[:, None], x[None]), np.arctan2(x[:, None], x[None])
    disc = np.tanh((0.2 - r) / (np.sqrt(2) * epsilon))
    star = np.tanh((0.27 * (1 + 0.4 * np.cos(6 * theta)) - r) / (np.sqrt(2) * epsilon))
    np.testing.assert_allclose(field("circle", n), disc, atol=1e-13)
    np.testing.assert_allclose(field("nonconvex", n), star, atol=1e-13)


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize(("boundary", "first"), [("periodic", 0), ("neumann", 1)])
def test_a_three_times_finer_mesh_agrees_at_the_shared_points(name, boundary, first):
    fine = field(name, 96, boundary, epsilon=0.05)
    np.testing.assert_allclose(fine[first::3, first::3], field(name, 32, boundary, epsilon=0.05), atol=1e-12)


def crossings(line):
    return int(np.sum(np.diff(np.sign(line)) != 0))


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_the_inclusion_keeps_two_interfaces(boundary):
    u0 = field("inclusion", 48, boundary, epsilon=0.04)
    record = simulate(named_law("sixth"), u0, dx=1 / 48, dt=2.5e-4, frames=21, epsilon=0.04, boundary=boundary)
    for u in record.slab()[[0, -1]]:
        assert crossings(u[24]) == 4
        assert u[24, 24] < -0.5
        assert u.max() > 0.8


def test_the_dumbbell_has_a_neck_and_the_star_six_arms():
    u = field("dumbbell")
    widths = np.sum(u > 0, axis=0)  # extent in y at each x
    assert widths[48] < 0.7 * widths[29]
    assert widths[48] > 0
    np.testing.assert_allclose(u, u[:, (-np.arange(96)) % 96], atol=1e-12)
    angles = np.linspace(0, 2 * np.pi, 721)
    star = field("nonconvex")
    rows, columns = (np.round(48 + 0.3 * 96 * way).astype(int) for way in (np.sin(angles), np.cos(angles)))
    assert crossings(star[rows, columns]) == 12


def test_circle_is_an_interval_on_one_axis_and_a_ball_on_three():
    line = initial_field("circle", (100,), 0.01, epsilon=0.02, boundary="neumann")
    assert fraction(line) == pytest.approx(0.4, abs=0.01)
    ball = initial_field("circle", (40, 40, 40), 1 / 40, epsilon=0.04, boundary="neumann")
    assert fraction(ball) == pytest.approx(4 / 3 * np.pi * 0.2**3, rel=0.05)
    np.testing.assert_array_equal(ball, ball.transpose(1, 0, 2))
    assert initial_field("dumbbell", (16, 16, 16), 1 / 16, epsilon=0.08).shape == (16, 16, 16)
    assert initial_field("inclusion", (64,), 1 / 64, epsilon=0.03).shape == (64,)


def test_lengths_follow_the_shortest_side():
    wide = initial_field("circle", (40, 80), 0.05, epsilon=0.06, boundary="neumann")  # 2 x 4
    assert np.sum(wide > 0) * 0.05**2 == pytest.approx(np.pi * 0.4**2, rel=0.05)
    rows, columns = np.nonzero(wide > 0)
    assert (rows.mean(), columns.mean()) == (19.5, 39.5)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_spinodal_is_random_band_limited_and_repeatable(boundary):
    epsilon = 0.05
    u = field("spinodal", 64, boundary, epsilon=epsilon)
    np.testing.assert_array_equal(u, field("spinodal", 64, boundary, epsilon=epsilon))
    assert np.abs(u - field("spinodal", 64, boundary, epsilon=epsilon, seed=3)).max() > 0.1
    assert u.std() == pytest.approx(0.1, rel=1e-12)
    assert abs(u.mean()) < 1e-15
    from doublewell.dynamics import Grid
    from doublewell.dynamics.grid import numpy_transforms

    size = np.abs(numpy_transforms((64, 64), boundary)[0](u))
    inside = -Grid((64, 64), 1 / 64, boundary).laplacian <= epsilon**-2
    assert size[~inside].max() < 1e-12 * size.max()
    assert np.sum(size[inside] > 1e-3 * size.max()) > 10


def test_spinodal_with_a_wide_interface_keeps_the_longest_waves():
    u = initial_field("spinodal", (8, 8), 1 / 8, epsilon=1.0, seed=1)
    assert u.std() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "square"}, "no geometry is named 'square': expected one of circle, nonconvex, inclusion, wobbled"),
        ({"epsilon": 0.0}, "epsilon is 0: expected the interface scale, a positive number"),
        ({"epsilon": np.nan}, "epsilon is nan: expected the interface scale"),
        ({"epsilon": "a"}, "epsilon is 'a': expected the interface scale"),
        ({"name": ["circle"]}, r"no geometry is named \['circle'\]: expected one of"),
        ({"name": "spinodal"}, "seed is None: expected an integer of at least 0 or a numpy Generator, to make a r"),
        ({"name": "spinodal", "seed": -1}, "seed is -1: expected an integer of at least 0"),
        ({"name": "spinodal", "seed": "a"}, "seed is 'a': expected an integer of at least 0"),
        ({"name": "spinodal", "seed": 1, "epsilon": 1e-200}, "too coarse for epsilon = 1e-200"),
        ({"mesh": 16}, r"the mesh is 16: expected one to three axes .*; for one axis pass \(16,\)"),
        ({"name": "spinodal", "seed": 1, "epsilon": 0.01}, "too coarse for epsilon = 0.01: expected dx below 0.0314"),
        ({"name": "nonconvex", "mesh": (16,)}, "has 1 axes: nonconvex and wobbled expected 2; use circle, inclusion"),
        ({"name": "wobbled", "mesh": (8, 8, 8)}, "has 3 axes: nonconvex and wobbled expected 2"),
        ({"name": "dumbbell", "mesh": (16,)}, "has 1 axes: dumbbell expected 2 or 3"),
        ({"mesh": (16, 1)}, r"the mesh is \(16, 1\)"),
        ({"boundary": "open"}, "boundary is 'open'"),
    ],
)
def test_wrong_geometries_say_what_was_expected(arguments, message):
    settings = {"name": "circle", "mesh": (16, 16), "dx": 1 / 16, "epsilon": 0.1} | arguments
    with pytest.raises(InputError, match=message):
        initial_field(settings.pop("name"), settings.pop("mesh"), settings.pop("dx"), **settings)


@pytest.mark.parametrize("name", [name for name in GEOMETRIES if name != "spinodal"])
def test_an_interface_of_no_width_is_a_step(name):
    u = initial_field(name, (16, 16), 1 / 16, epsilon=1e-310)
    assert set(np.unique(u)) <= {-1.0, 0.0, 1.0}
    assert {-1.0, 1.0} <= set(np.unique(u))

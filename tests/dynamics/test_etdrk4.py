"""ETDRK4: its weights, its derivatives, its compilations, and the pieces that a law supplies."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from doublewell.dynamics import Cnab2, Etdrk4, Grid
from doublewell.dynamics.etdrk4 import etd_weights, predict, step_weights
from doublewell.dynamics.protocol import Symbols
from doublewell.errors import InputError
from doublewell.law import LAW_NAMES, Bernstein, Law, named_law
from doublewell.runtime import double_precision

STEPPERS = [Cnab2, Etdrk4]


def phi(order, z):
    """The phi functions by quadrature of a positive integrand: no cancellation anywhere."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    s, w = 0.5 * (nodes + 1), 0.5 * weights
    factorial = [1, 1, 2][order - 1]
    return np.einsum("s,sz->z", w * s ** (order - 1) / factorial, np.exp(np.outer(1 - s, z)))


def test_weights_equal_the_phi_functions_at_every_size_of_z():
    z = -np.concatenate([[0.0], np.logspace(-12, 2, 200), np.linspace(0.5, 2.0, 50)])
    step, q = 0.5, 3.0
    scale = -step * q
    w = etd_weights(z, scale)
    p1, p2, p3 = (phi(k, z) for k in (1, 2, 3))
    np.testing.assert_allclose(w.whole, np.exp(z), rtol=1e-12)
    np.testing.assert_allclose(w.half, np.exp(0.5 * z), rtol=1e-12)
    np.testing.assert_allclose(w.stage / scale, 0.5 * phi(1, 0.5 * z), atol=2e-14)
    np.testing.assert_allclose(w.first / scale, p1 - 3 * p2 + 4 * p3, atol=2e-14)
    np.testing.assert_allclose(w.middle / scale, 2 * p2 - 4 * p3, atol=2e-14)
    np.testing.assert_allclose(w.last / scale, 4 * p3 - p2, atol=2e-14)


@pytest.mark.parametrize("name", LAW_NAMES)
def test_force_of_traced_coefficients_is_the_law(name):
    law = named_law(name).effective(0.3)
    u = np.linspace(-1.3, 1.3, 201)
    import jax

    with double_precision():
        traced = np.asarray(jax.jit(law.family.force)(law.coefficients, u))
    np.testing.assert_allclose(traced, law.force(u), atol=1e-12 * np.abs(law.force(u)).max())


def problem(boundary, cells=(8, 6)):
    grid = Grid(cells, [0.15] * len(cells), boundary)
    rng = np.random.default_rng(7)
    u0, g = 0.8 * rng.normal(size=cells), np.array([3.0, 5.0, 2.0])  # some values lie outside [-1, 1]
    weights = step_weights(Symbols(grid.laplacian, 1.0), 0.004 * 1.3)
    return grid, u0, g, weights, partial(predict, family=Bernstein(2), boundary=boundary, frames=4, substeps=2)


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_predict_starts_at_u0_and_equals_the_stepper(boundary):
    grid, u0, g, weights, fields = problem(boundary)
    import jax

    with double_precision():
        trajectory = np.asarray(jax.jit(fields)(u0, g, weights))
    assert trajectory.shape == (4, 8, 6)
    np.testing.assert_array_equal(trajectory[0], u0)
    stepped = list(Etdrk4(grid, dt=0.008, q=1.3, substeps=2).run(Law.bernstein(g), u0, intervals=3))
    np.testing.assert_allclose(trajectory[1:], stepped, atol=1e-13)


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_adjoint_is_the_transpose_of_the_tangent_and_the_tangent_is_the_derivative(boundary):
    import jax

    _, u0, g, weights, fields = problem(boundary)
    rng = np.random.default_rng(8)
    du, dg, w = rng.normal(size=u0.shape), rng.normal(size=g.shape), rng.normal(size=(4, *u0.shape))
    with double_precision():
        push = jax.jit(lambda u, c: jax.jvp(lambda u, c: fields(u, c, weights), (u, c), (du, dg)))
        pull = jax.jit(lambda u, c: jax.vjp(lambda u, c: fields(u, c, weights), u, c)[1](jax.numpy.asarray(w)))
        _, tangent = push(u0, g)
        back_u, back_g = pull(u0, g)
        above, below = (np.asarray(push(u0 + h * du, g + h * dg)[0]) for h in (1e-6, -1e-6))
    slope = (above - below) / 2e-6
    forwards, backwards = np.vdot(w, tangent), np.vdot(du, back_u) + np.vdot(dg, back_g)
    size = np.linalg.norm(w) * np.linalg.norm(tangent)
    assert abs(forwards - backwards) < 1e-14 * size
    np.testing.assert_allclose(slope, tangent, atol=1e-7 * np.abs(tangent).max())
    assert np.asarray(tangent).dtype == np.float64


def test_q_can_be_differentiated_through_the_weights():
    import jax

    grid, u0, g, _, fields = problem("periodic")

    def weights(q):
        return step_weights(Symbols(grid.laplacian, 1.0), 0.004 * q)

    with double_precision():
        at, rate = jax.jvp(weights, (1.3,), (1.0,))
        run = jax.jit(lambda at, rate: jax.jvp(lambda w: fields(u0, g, w), (at,), (rate,)))
        tangent = run(at, rate)[1]
        above, below = (np.asarray(run(weights(1.3 + h), rate)[0]) for h in (1e-5, -1e-5))
    slope = (above - below) / 2e-5
    np.testing.assert_allclose(tangent, slope, atol=1e-7 * np.abs(slope).max())
    assert np.abs(slope).max() > 0.1


@dataclass(frozen=True)
class CountedBernstein(Bernstein):
    """Bernstein features that note each evaluation in Python, which compiled code does not make."""

    calls: list = field(default_factory=list, compare=False)

    def bracket(self, coefficients, z):
        self.calls.append(1)
        return super().bracket(coefficients, z)


def test_another_law_spacing_interval_q_or_length_does_not_compile_again():
    family, u0 = CountedBernstein(1), np.linspace(-0.9, 0.9, 10)
    first = Etdrk4(Grid((10,), 0.1, "neumann"), 0.001, 1.0, 3)
    list(first.run(Law(family, [1.0, 2.0]), u0, intervals=2))
    traced = len(family.calls)
    assert traced > 0
    other = Law(family, [3.0, 1.0])
    expected = len(family.calls) + 1  # the law's own well curvature, should it be asked for
    list(first.run(other, u0, intervals=5))
    list(Etdrk4(Grid((10,), 0.2, "neumann"), 0.002, 0.5, 3).run(other, u0, intervals=2))
    assert len(family.calls) <= expected
    list(Etdrk4(Grid((10,), 0.2, "periodic"), 0.002, 0.5, 3).run(other, u0, intervals=1))
    assert len(family.calls) > expected  # the count does see a compilation


def test_double_precision_is_local_and_results_are_numpy():
    import jax.numpy as jnp

    grid = Grid((8,), 0.1, "periodic")
    run = Etdrk4(grid, 0.001, 1.0, 1).run(named_law("quartic"), np.linspace(-1, 1, 8), intervals=2)
    u = next(run)
    assert jnp.ones(1).dtype == jnp.float32  # also between the frames of a run under way
    assert isinstance(u, np.ndarray)
    assert u.dtype == np.float64
    assert next(run) is not u


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dt": 0.0}, "dt is 0: expected the frame interval, a positive number"),
        ({"dt": "long"}, "dt is 'long': expected the frame interval"),
        ({"q": -1.0}, "q is -1: expected the diffusion coefficient, a positive number"),
        ({"q": np.nan}, "q is nan: expected the diffusion coefficient"),
        ({"substeps": 0}, "substeps is 0: expected the steps from frame to frame, an integer from 1"),
        ({"substeps": 1.5}, "substeps is 1.5: expected the steps"),
    ],
)
def test_wrong_steps_say_what_was_expected(stepper, change, message):
    settings = {"dt": 0.1, "q": 1.0, "substeps": 2} | change
    with pytest.raises(InputError, match=message):
        stepper(Grid((4,), 0.1), **settings)

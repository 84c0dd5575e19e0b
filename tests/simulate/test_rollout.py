"""simulate: what it returns, its symmetries, agreement of the solvers, and what misuse says."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.law import Law, named_law
from doublewell.record import Record
from doublewell.simulate import initial_field, simulate

SOLVERS = ["cnab2", "etdrk4"]
BOUNDARIES = ["periodic", "neumann"]
MESH = {"dx": 1 / 24, "dt": 2e-4, "frames": 4, "epsilon": 0.08, "substeps": 4}


def values(law, u0, **settings):
    return simulate(law, u0, **(MESH | settings)).slab()


def start(name="nonconvex", boundary="periodic"):
    return initial_field(name, (24, 24), 1 / 24, epsilon=0.08, boundary=boundary, seed=5)


def test_the_record_holds_the_settings_and_starts_at_u0():
    u0 = start()
    record = simulate(named_law("sixth"), u0, **MESH, q=1.5)
    assert isinstance(record, Record)
    assert record.shape == (4, 24, 24)
    assert (record.q, record.boundary, record.dx) == (1.5, "periodic", (1 / 24, 1 / 24))
    np.testing.assert_allclose(record.times, [0.0, 2e-4, 4e-4, 6e-4], rtol=1e-15)
    np.testing.assert_array_equal(record.slab()[0], u0)
    assert np.abs(record.slab()[1] - u0).max() > 1e-3


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("name", ["sixth", "exponential"])
def test_both_solvers_agree(boundary, name):
    u0 = start(boundary=boundary)
    law, common = named_law(name), {"boundary": boundary}
    fine = values(law, u0, solver="etdrk4", **common)
    coarse, better = (np.abs(values(law, u0, substeps=n, **common) - fine).max() for n in (32, 64))
    assert better < 5e-6
    assert coarse / better == pytest.approx(4.0, rel=0.1)  # what is left is the second-order solver's error
    assert np.abs(fine[-1] - fine[0]).max() > 0.05


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_runs_are_identical(solver):
    u0 = start("spinodal")
    first, second = (values(named_law("sixth"), u0, solver=solver) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_the_opposite_field_gives_the_opposite_record_exactly(solver, boundary):
    u0 = 1.2 * start(boundary=boundary)
    one, other = (values(named_law("bernstein3"), s * u0, solver=solver, boundary=boundary) for s in (1, -1))
    np.testing.assert_array_equal(one, -other)


@settings(derandomize=True, deadline=None, max_examples=10)
@given(st.integers(0, 23), st.integers(0, 23), st.sampled_from(SOLVERS))
def test_a_shifted_periodic_field_gives_the_shifted_record(rows, columns, solver):
    u0 = start("spinodal")
    still = values(named_law("sixth"), u0, solver=solver)
    moved = values(named_law("sixth"), np.roll(u0, (rows, columns), (0, 1)), solver=solver)
    np.testing.assert_allclose(moved, np.roll(still, (rows, columns), (1, 2)), atol=1e-13)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_mirrored_neumann_field_gives_the_mirrored_record(solver, axis):
    u0 = start("spinodal", "neumann")
    seen = values(named_law("sixth"), u0, solver=solver, boundary="neumann")
    mirrored = values(named_law("sixth"), np.flip(u0, axis), solver=solver, boundary="neumann")
    np.testing.assert_allclose(mirrored, np.flip(seen, axis + 1), atol=1e-13)


def test_neumann_is_the_even_half_of_periodic():
    u0 = start("spinodal", "neumann")
    both = np.block([[u0, u0[:, ::-1]], [u0[::-1], u0[::-1, ::-1]]])
    half = values(named_law("sixth"), u0, boundary="neumann")
    np.testing.assert_allclose(values(named_law("sixth"), both)[:, :24, :24], half, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_an_extruded_field_stays_extruded(solver, boundary):
    """A field that does not vary along z evolves as in the plane, whatever the spacing of z."""
    u0 = start("spinodal", boundary)[:, ::2]
    common = {"boundary": boundary, "solver": solver, "substeps": 4}
    flat = values(named_law("sixth"), u0, dx=(1 / 24, 1 / 12), **common)
    solid = values(named_law("sixth"), np.stack([u0] * 3), dx=(0.2, 1 / 24, 1 / 12), **common)
    np.testing.assert_allclose(solid, np.stack([flat] * 3, axis=1), atol=1e-13)


@pytest.mark.parametrize(("cells", "rate"), [((24, 24), 2.0), ((24, 24, 24), 4.0)])
def test_discs_and_balls_shrink_by_their_curvature(cells, rate):
    """R^2 falls at the rate 2 (d - 1) q; seen on one corner of a Neumann box."""
    epsilon, dx, time = 0.025, 0.5 / 24, 0.008
    points = np.meshgrid(*[(np.arange(n) + 0.5) * dx for n in cells], indexing="ij")
    u0 = np.tanh((0.35 - np.sqrt(sum(x * x for x in points))) / (np.sqrt(2) * epsilon))
    law, common = named_law("quartic"), {"dx": dx, "epsilon": epsilon, "boundary": "neumann"}
    u = simulate(law, u0, dt=time / 4, frames=5, substeps=16, **common).slab()
    volume = (0.5 * (1 + u)).sum(axis=tuple(range(1, u.ndim))) * dx ** len(cells) * 2 ** len(cells)
    radius = (volume / {2: np.pi, 3: 4 * np.pi / 3}[len(cells)]) ** (1 / len(cells))
    assert (radius[1] ** 2 - radius[4] ** 2) / (0.75 * time) == pytest.approx(rate, rel=0.05)


def test_epsilon_and_law_act_only_together():
    u0, law = start(), named_law("sixth")
    np.testing.assert_array_equal(values(law, u0), values(law.effective(0.08), u0, epsilon=1.0))


def test_whole_number_fields_are_taken_as_phase_values():
    u0 = np.array([-1, -1, 1, 1])
    np.testing.assert_array_equal(values(named_law("quartic"), u0), values(named_law("quartic"), 1.0 * u0))


def test_progress_counts_the_frames():
    seen = []
    values(named_law("sixth"), start(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_blow_up_names_the_frame_and_the_way_out(solver):
    """Ten thousand times too stiff a reaction for the step."""
    u0 = 1.01 * start()
    with pytest.raises(InputError, match=r"blows up at frame 1 .*: 4 steps per frame are too few .* use more substeps"):
        simulate(named_law("sixth"), u0, **(MESH | {"epsilon": 8e-4}), solver=solver)


def test_an_overflow_is_a_blow_up_too():
    with pytest.raises(InputError, match=r"blows up at frame 1 \(largest \|u\| (nan|inf)\)"):
        simulate(named_law("sixth"), 1.01 * start(), **(MESH | {"epsilon": 1e-5, "substeps": 60}))


def test_a_law_with_unstable_wells_is_named_as_the_cause():
    law = Law.bernstein([1.0, -1.0])
    with pytest.raises(InputError, match=r"leaves the pure phases and blows up at frame \d+ .*G'\(1\) > 0"):
        simulate(law, np.full(8, 1.1), dx=0.1, dt=0.2, frames=40)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"u0": np.zeros((3, 4, 4, 4))}, r"u0 has shape \(3, 4, 4, 4\): .* for a record pass its first frame"),
        ({"u0": np.float64(0.5)}, r"u0 has shape \(\): expected one field"),
        ({"u0": np.zeros((4, 1))}, r"u0 has shape \(4, 1\): expected one field .* at least 2 cells"),
        ({"u0": np.zeros(4, dtype=complex)}, "u0 has type complex128: expected real phase values"),
        ({"u0": np.array(["a", "b"])}, "u0 has type <U1: expected real phase values"),
        ({"u0": np.array([0.0, np.nan, 1.0])}, r"u0 is not finite at cell \(1,\): .* fill the missing part"),
        ({"frames": 1}, "frames is 1: expected an integer from 2"),
        ({"frames": 2.5}, "frames is 2.5: expected an integer from 2"),
        ({"frames": True}, "frames is True: expected an integer from 2"),
        ({"substeps": True}, "substeps is True: expected the steps from frame to frame, an integer from 1"),
        ({"u0": [[0.0], [0.0, 1.0]]}, "u0 is a ragged list: expected one field"),
        ({"solver": ["euler"]}, r"solver is \['euler'\]: expected one of"),
        ({"epsilon": "a"}, "epsilon is 'a': expected the interface scale, a positive number"),
        ({"epsilon": 1e-200}, "epsilon is 1e-200, and F'/epsilon.2 is beyond the range of numbers: expected the inter"),
        ({"law": "sixth"}, r"law is 'sixth': expected a Law; pass named_law\('sixth'\)"),
        ({"law": np.sin}, r"law is <ufunc 'sin'>: expected a Law; pass Law.from_force\(function\)"),
        ({"law": 3}, r"law is 3: expected a Law; pass Law.bernstein\(coefficients\), Law.from_force"),
        ({"solver": "euler"}, "solver is 'euler': expected one of 'cnab2', 'etdrk4'"),
        ({"boundary": "open"}, "boundary is 'open': expected 'periodic' or 'neumann'"),
        ({"dx": (0.1, 0.1, 0.1)}, "dx has 3 entries: expected 1, or 2"),
        ({"dx": 0.0}, "dx is 0: expected the mesh spacing"),
        ({"substeps": 0}, "substeps is 0: expected the steps from frame to frame"),
        ({"dt": -1.0}, "dt is -1: expected the frame interval"),
        ({"q": 0.0}, "q is 0: expected the diffusion coefficient"),
        ({"epsilon": 0.0}, "epsilon is 0: expected the interface scale, a positive number"),
    ],
)
def test_misuse_says_what_was_expected(change, message):
    arguments = {"law": named_law("sixth"), "u0": start(), **MESH} | change
    with pytest.raises(InputError, match=message):
        simulate(**arguments)


def test_simulating_with_cnab2_does_not_load_jax():
    code = (
        "import sys, numpy as np; from doublewell.law import named_law; from doublewell.simulate import simulate;"
        "simulate(named_law('quartic'), np.linspace(-1, 1, 8), dx=0.1, dt=0.01, frames=2);"
        "sys.exit(any(name in sys.modules for name in ('jax', 'numba', 'matplotlib', 'scipy.optimize')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unstable_steps_of_a_fourth_order_equation_are_refused():
    """Errors of CNAB2 grow for many frames before anything blows up."""
    x = 2.0 * np.pi * np.arange(32) / 32
    start, law, times = np.tanh(2.0 * np.cos(x)), named_law("quartic"), {"dx": 1.0, "dt": 8.0, "frames": 3}
    physics = {"epsilon": 2.0, "dynamics": "cahn-hilliard"}
    with pytest.raises(InputError, match=r"12 steps per frame are too few for cahn-hilliard .*: expected at least 79"):
        simulate(law, start, **times, **physics)
    assert np.abs(simulate(law, start, **times, **physics, substeps=79).slab()).max() < 1.1
    assert simulate(law, start, **times, **physics, solver="etdrk4").frames == 3

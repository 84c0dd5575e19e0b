"""Parts of an equation: anisotropy, mobility and driving force as values, and what they do to a field."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from doublewell.dynamics import (
    AllenCahn,
    Anisotropy,
    CahnHilliard,
    Cnab2,
    Driving,
    Etdrk4,
    Grid,
    MassConserving,
    Mobility,
    dynamics_of,
    symbols,
)
from doublewell.dynamics.anisotropy import entries_of, entry_names, tensor_of
from doublewell.errors import InputError
from doublewell.law import named_law

TENSOR = ((1.3, 0.2, -0.1), (0.2, 0.9, 0.05), (-0.1, 0.05, 1.1))


class NoForce:
    """The force of no law."""

    def force(self, u):
        return 0.0 * u


@pytest.mark.parametrize(("ratio", "angle"), [(1.0, 0.0), (1.2, 30.0), (2.5, 170.0), (3.0, 90.0)])
def test_ratio_and_angle_are_those_of_the_tensor(ratio, angle) -> None:
    part = Anisotropy(ratio, angle)
    assert part.ratio == pytest.approx(ratio)
    assert ratio == 1.0 or part.angle == pytest.approx(angle)
    assert np.linalg.det(part.tensor) == pytest.approx(1.0)
    assert Anisotropy(tensor=part.tensor) == part
    assert Anisotropy(1.0 / ratio, angle + 90.0).ratio == pytest.approx(ratio)


@pytest.mark.parametrize("part", [Anisotropy(1.7, 20.0), Anisotropy(tensor=TENSOR)])
def test_entries_and_tensor_are_inverse(part) -> None:
    entries = entries_of(part.tensor)
    assert tuple(entries) == entry_names(len(part.tensor), crossed=True)
    assert np.allclose(tensor_of(entries, len(part.tensor)), part.tensor)


def test_a_known_size_is_divided_out() -> None:
    assert np.allclose(Anisotropy(tensor=7.0 * np.array(TENSOR)).tensor, Anisotropy(tensor=TENSOR).tensor)


@pytest.mark.parametrize("tensor", [((1.0, 2.0), (0.0, 1.0)), ((1.0, 2.0), (2.0, 1.0)), (1.0, 2.0), ((1.0,),)])
def test_a_tensor_that_is_not_symmetric_and_positive_is_refused(tensor) -> None:
    with pytest.raises(InputError, match="expected a symmetric positive matrix"):
        Anisotropy(tensor=tensor)


@pytest.mark.parametrize("cells", [(12, 10), (9, 11), (8, 6, 10)])
def test_a_wave_decays_by_the_tensor(cells) -> None:
    """An oblique wave under L alone is an exact solution; a field stays real whatever the parity of the mesh."""
    axes = len(cells)
    part = Anisotropy(1.8, 35.0) if axes == 2 else Anisotropy(tensor=TENSOR)
    grid, numbers = Grid(cells, 0.3), np.array([1, 2, -1][:axes])
    wave = 2 * np.pi * numbers / np.array(grid.extent)
    points = np.meshgrid(*grid.points, indexing="ij")
    start = np.cos(sum(k * x for k, x in zip(wave, points, strict=True)))
    (after,) = Cnab2(grid, 0.01, 1.0, 400, AllenCahn(anisotropy=part)).run(NoForce(), start, intervals=1)
    assert np.allclose(after, np.exp(-0.01 * wave @ np.array(part.tensor) @ wave) * start, atol=1e-7)
    rough = np.random.default_rng(1).standard_normal(cells)
    of = symbols(AllenCahn(anisotropy=part), grid.waves, grid.crossed)
    modes = of.linear * np.fft.rfftn(rough)
    assert np.allclose(
        np.fft.rfftn(np.fft.irfftn(modes, s=cells, axes=range(axes))), modes, atol=1e-8 * np.abs(modes).max()
    )


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_along_the_axes_it_is_another_pixel(boundary) -> None:
    ratio, law = 1.44, named_law("quartic").effective(0.2)
    start = 0.5 * np.random.default_rng(2).standard_normal((10, 12))
    one = Cnab2(Grid((10, 12), 0.1, boundary), 1e-3, 1.0, 20, AllenCahn(anisotropy=Anisotropy(ratio, 0.0)))
    other = Cnab2(Grid((10, 12), (0.1 * ratio**0.25, 0.1 / ratio**0.25), boundary), 1e-3, 1.0, 20)
    assert np.allclose(*[[*each.run(law, start, intervals=3)] for each in (one, other)], atol=1e-12)


def test_flux_and_gradient_energy_of_a_conserved_field() -> None:
    grid, part, flux = Grid((8, 10), 0.2), Anisotropy(1.5, 20.0), Anisotropy(2.0, 110.0)
    plain, both = symbols(CahnHilliard(), grid.waves), symbols(CahnHilliard(part, flux), grid.waves, grid.crossed)
    ky, kx = (k[:-1, :-1] if k.shape[0] > 1 and k.shape[1] > 1 else k for k in grid.crossed)
    form = [t[0][0] * ky**2 + 2 * t[0][1] * ky * kx + t[1][1] * kx**2 for t in (part.tensor, flux.tensor)]
    inner = np.ix_(np.arange(8) != 4, np.arange(6) != 5)  # without the highest modes
    assert np.allclose(both.linear[inner], -(form[0] * form[1])[inner])
    assert np.allclose(both.coupling[inner], form[1][inner])
    assert plain.linear[0, 0] == both.linear[0, 0] == both.coupling[0, 0] == 0.0


@pytest.mark.parametrize(
    ("axes", "boundary", "words"),
    [((10,), "periodic", "axes"), ((10, 10), "neumann", "oblique"), ((6, 6, 6), "periodic", "axes")],
)
def test_an_anisotropy_that_a_mesh_does_not_have_is_refused(axes, boundary, words) -> None:
    grid = Grid(axes, 0.1, boundary)
    with pytest.raises(InputError, match=words):
        symbols(AllenCahn(anisotropy=Anisotropy(1.5, 30.0)), grid.waves, grid.crossed)


def test_a_mobility_has_mean_one_and_the_shape_of_its_function() -> None:
    part = Mobility.of(lambda u: 3.0 + u + 0.5 * u**2, (0.0, 1.0))
    u = np.linspace(0.0, 1.0, 20001)
    assert np.trapezoid(part(u), u) == pytest.approx(1.0, abs=1e-9)
    assert np.allclose(part(u) / part(0.0), (3.0 + u + 0.5 * u**2) / 3.0, rtol=1e-5)
    assert part(5.0) == part(1.05)  # constant beyond the phases


@pytest.mark.parametrize("function", [lambda u: u, lambda u: np.abs(u) + 0.01])
def test_a_mobility_that_is_not_positive_or_not_smooth_is_refused(function) -> None:
    with pytest.raises(InputError, match="the mobility is not"):
        Mobility.of(function)


@pytest.mark.parametrize("value", ["much", 0, 7, 1.5, (1, 2)])
def test_another_mobility_is_refused(value) -> None:
    with pytest.raises(InputError, match="mobility is"):
        AllenCahn(mobility=value)


def test_a_uniform_field_obeys_the_driven_equation() -> None:
    law, rate, q = named_law("quartic").effective(0.5), Mobility((0.6, -0.2)), 1.3

    def drive(t):
        return 0.8 * np.sin(3.0 * np.asarray(t))

    exact = solve_ivp(
        lambda t, u: q * rate(u) * (drive(t) - law.force(u)), (0.0, 1.0), [0.3], t_eval=[0.5, 1.0], rtol=1e-10
    ).y[0]
    dynamics = AllenCahn(mobility=rate, driving=drive)
    found = [u[0] for u in Etdrk4(Grid((4,), 0.1), 0.5, q, 50, dynamics).run(law, np.full(4, 0.3), intervals=2)]
    assert np.allclose(found, exact, atol=1e-7)
    sampled = AllenCahn(driving=Driving.of(drive, [0.0, 0.5, 1.0]))
    both = [
        [u[0] for u in Cnab2(Grid((4,), 0.1), 0.5, q, 400, each).run(law, np.full(4, 0.3), intervals=2)]
        for each in (sampled, AllenCahn(driving=drive))
    ]
    assert np.allclose(*both, atol=1e-5)


def test_steps_with_a_mobility_converge_to_explicit_ones() -> None:
    n, law, rate = 24, named_law("quartic").effective(2.0), Mobility((0.9, 0.2))
    wave = 2 * np.pi * np.fft.rfftfreq(n)
    start = np.tanh(np.cos(2 * np.pi * np.arange(n) / n) * 2.0)

    def change(_, u):
        return rate(u) * (np.fft.irfft(-(wave**2) * np.fft.rfft(u), n=n) - law.force(u))

    exact = solve_ivp(change, (0.0, 2.0), start, rtol=1e-11, atol=1e-12).y[:, -1]
    errors = []
    for steps in (4, 8, 16):
        *_, last = Etdrk4(Grid((n,), 1.0), 2.0, 1.0, steps, AllenCahn(mobility=rate)).run(law, start, intervals=1)
        errors.append(np.abs(last - exact).max())
    assert errors[-1] < 1e-6
    assert np.polyfit(np.log([4, 8, 16]), np.log(errors), 1)[0] < -2.5


def test_a_driving_force_is_read_from_a_file(tmp_path) -> None:
    (tmp_path / "h.txt").write_text("# t h\n0 0.5\n1 0.25\n2 0.0\n3 -0.25\n")
    part = AllenCahn(driving=str(tmp_path / "h.txt")).driving
    assert part == Driving((0.0, 1.0, 2.0, 3.0), (0.5, 0.25, 0.0, -0.25))
    assert np.allclose(part.at([0.5, 2.5]), [0.375, -0.125])
    (tmp_path / "h.csv").write_text("t,h\n0,0.5\n1,0.25\n2,0\n3,-0.25\n")
    assert Driving.read(tmp_path / "h.csv") == part
    with pytest.raises(InputError, match="known from 0 to 3"):
        part.at([0.0, 4.0])
    (tmp_path / "bad.txt").write_text("0 1 2\n")
    for name in ("bad.txt", "none.txt"):
        with pytest.raises(InputError, match="expected"):
            Driving.read(tmp_path / name)


@pytest.mark.parametrize(
    "pair", [((0.0, 0.0), (1.0, 1.0)), ((0.0,), (1.0,)), ((0.0, 1.0), (1.0, np.nan)), (("a",), (1,))]
)
def test_a_driving_force_without_increasing_times_is_refused(pair) -> None:
    with pytest.raises(InputError, match="expected two or more times"):
        Driving(*pair)


def test_parts_in_words() -> None:
    assert dynamics_of("allen-cahn(anisotropy=estimated, mobility=3)") == AllenCahn("estimated", 3)
    assert dynamics_of("cahn-hilliard(flux=1.5:20)") == CahnHilliard(flux=Anisotropy(1.5, 20.0))
    assert dynamics_of("mass-conserving()") == MassConserving()
    for words in (
        "allen-cahn(flux=2)",
        "cahn-hilliard(mobility=2)",
        "allen-cahn(anisotropy)",
        "allen-cahn(anisotropy=x)",
    ):
        with pytest.raises(InputError, match="expected|takes"):
            dynamics_of(words)


@pytest.mark.parametrize(
    ("dynamics", "text"),
    [
        (AllenCahn("estimated", 2, np.sin), "u_t = q(u) (div(A grad u) - G(u) + h(t))"),
        (CahnHilliard("estimated", "estimated"), "u_t = q div(B grad (G(u) - div(A grad u)))"),
        (MassConserving(), "u_t = q (Laplacian u - G(u) + mean G(u))"),
    ],
)
def test_the_equation_names_its_parts(dynamics, text) -> None:
    assert dynamics.equation == text


@pytest.mark.parametrize("dynamics", [AllenCahn("estimated"), AllenCahn(mobility=2), CahnHilliard(flux="estimated")])
def test_what_is_to_be_estimated_cannot_be_solved(dynamics) -> None:
    for stepper in (Cnab2, Etdrk4):
        with pytest.raises(InputError, match="to be estimated"):
            stepper(Grid((8, 8), 0.1), 0.1, 1.0, 2, dynamics)


def test_cnab2_refuses_a_mobility() -> None:
    with pytest.raises(InputError, match="etdrk4"):
        Cnab2(Grid((8, 8), 0.1), 0.1, 1.0, 2, AllenCahn(mobility=Mobility((0.3,))))

"""The MOOSE input is read by a small parser of its format, and its numbers are those of the law."""

import re

import numpy as np
import pytest

from doublewell.calibrate import SurfaceTension
from doublewell.dynamics import AllenCahn, Anisotropy, CahnHilliard, Driving, Mobility
from doublewell.errors import InputError
from doublewell.export import export
from doublewell.law import Law

U = np.linspace(-1.4, 1.4, 141)


def parse(text):
    """Read MOOSE's format: [name] opens a block, [] closes it, name = value inside; a # begins a comment."""
    root = {}
    stack = [root]
    for raw in text.splitlines():
        line = re.sub(r"#.*", "", raw).strip()
        if not line:
            continue
        if line == "[]":
            assert len(stack) > 1, "a block is closed that was not opened"
            stack.pop()
        elif block := re.fullmatch(r"\[([A-Za-z]\w*)\]", line):
            assert block[1] not in stack[-1], f"two blocks are named {block[1]}"
            stack[-1][block[1]] = {}
            stack.append(stack[-1][block[1]])
        else:
            item = re.fullmatch(r"([A-Za-z]\w*)\s*=\s*(?:'([^']*)'|([^'\s]+))", line)
            assert item, f"no parameter: {raw!r}"
            assert len(stack) > 1, f"a parameter outside all blocks: {raw!r}"
            assert item[1] not in stack[-1]
            stack[-1][item[1]] = item[2] if item[2] is not None else item[3]
    assert len(stack) == 1, "a block is not closed"
    return root


def derivatives(block, places=U):
    """f, f' and f'' of a DerivativeParsedMaterial, differentiated symbolically as MOOSE does, branch by branch."""
    sympy = pytest.importorskip("sympy")
    u = sympy.Symbol("u", real=True)
    text = block["expression"].replace("^", "**").replace("if(", "choose(")
    assert set(re.findall(r"[A-Za-z]\w*", text)) - {"e"} <= {"u", "k", "choose"}
    constants = dict(
        zip(block["constant_names"].split(), map(float, block["constant_expressions"].split()), strict=True)
    )
    names = {"u": u, "choose": lambda test, yes, no: sympy.Piecewise((yes, test), (no, True)), **constants}
    f = sympy.sympify(text, locals=names)
    return [sympy.lambdify(u, g)(places) for g in (f, sympy.diff(f, u), sympy.diff(f, u, 2))]


def check_physics(result, blocks):
    kernels = blocks["Kernels"]
    assert sorted(block["type"] for block in kernels.values()) == ["ACInterface", "AllenCahn", "TimeDerivative"]
    assert all(block["variable"] == "u" for block in kernels.values())
    numbers = blocks["Materials"]["numbers"]
    constants = dict(zip(numbers["prop_names"].split(), map(float, numbers["prop_values"].split()), strict=True))
    bulk, interface = kernels["bulk"], kernels["interface"]
    assert bulk["mob_name"] == interface["mob_name"]
    mobility, kappa = constants[bulk["mob_name"]], constants[interface["kappa_name"]]
    free = blocks["Materials"]["free_energy"]
    assert (free["type"], free["property_name"], free["coupled_variables"]) == (
        "DerivativeParsedMaterial", bulk["f_name"], "u",
    )  # fmt: skip
    assert int(free["derivative_order"]) >= 2
    f, slope, bend = derivatives(free)
    q = result.resolved.q
    assert mobility * kappa == pytest.approx(q, rel=1e-15)
    size = np.max(np.abs(result.force(U)))
    # u_t = -L (f' - kappa Laplacian u) is q (Laplacian u - G)
    assert np.allclose(mobility * slope, q * result.force(U), rtol=0, atol=1e-12 * q * size)
    assert np.allclose(f, kappa * result.primitive(U), rtol=0, atol=1e-12 * kappa * size)
    smooth = np.abs(np.abs(U) - 1) > 0.02
    step = 1e-6
    numeric = (result.force(U + step) - result.force(U - step)) / (2 * step)
    assert np.allclose(mobility * bend[smooth], q * numeric[smooth], rtol=1e-6, atol=1e-6 * q * size)
    return kappa


@pytest.mark.parametrize("tension", [None, SurfaceTension(0.3), SurfaceTension(0.3, normalisation="eE")])
def test_the_input_is_whole_and_its_numbers_are_the_law(make, tension):
    result = make(tension=tension, q=0.7, boundary="periodic")
    blocks = parse(export(result, "moose"))
    wanted = {"Mesh", "Variables", "ICs", "Functions", "Kernels", "Materials", "BCs", "Executioner", "Outputs"}
    assert set(blocks) == wanted
    kappa = check_physics(result, blocks)
    assert kappa == (1.0 if tension is None else pytest.approx(0.3 / result.law.tension_integral))


def test_cahn_hilliard_is_split_in_two(conserved, mixture):
    """u_t = M Laplacian w, w = f' - kappa Laplacian u; f holds beyond the phases and its branches meet beyond them."""
    blocks = parse(export(conserved(tension=SurfaceTension(0.3), q=0.7, boundary="periodic"), "moose"))
    assert set(blocks["Variables"]) == {"u", "w"}
    kernels = {block.pop("type"): block for block in blocks["Kernels"].values()}
    assert kernels == {
        "CoupledTimeDerivative": {"variable": "w", "v": "u"},
        "SplitCHWRes": {"variable": "w", "mob_name": "M"},
        "SplitCHParsed": {"variable": "u", "w": "w", "f_name": "f", "kappa_name": "kappa"},
    }
    numbers = blocks["Materials"]["numbers"]
    assert numbers["prop_names"] == "M kappa"
    mobility, kappa = map(float, numbers["prop_values"].split())
    assert mobility * kappa == pytest.approx(0.7, rel=1e-15)
    assert kappa == pytest.approx(0.3 / mixture.tension_integral)
    assert blocks["BCs"]["Periodic"]["all"] == {"variable": "u w", "auto_direction": "x y"}
    inside = np.array([-1.149, -1.0, -0.845, -0.5, 0.0, 0.3, 0.75, 0.9, 0.949])
    f, slope, _ = derivatives(blocks["Materials"]["free_energy"], inside)
    assert np.allclose(f, kappa * mixture.primitive(inside), rtol=0, atol=1e-12 * kappa)
    assert np.allclose(slope, kappa * mixture.force(inside), rtol=0, atol=1e-12 * kappa)
    for end, side in ((-1.15, -1.0), (0.95, 1.0)):  # beyond: G continues linearly from the last value of the record
        away = np.array([1e-9, 0.2, 0.7])
        f, slope, bend = derivatives(blocks["Materials"]["free_energy"], end + side * away)
        start, force, rise = (
            mixture.primitive(end),
            mixture.force(end),
            (mixture.force(end + 1e-5) - mixture.force(end - 1e-5)) / 2e-5,
        )
        assert np.allclose(f, kappa * (start + force * side * away + 0.5 * rise * away**2), rtol=0, atol=1e-7 * kappa)
        assert np.allclose(slope, kappa * (force + rise * side * away), rtol=0, atol=1e-7 * kappa)
        assert np.allclose(bend, kappa * rise, rtol=1e-7)


def test_steps_of_cahn_hilliard_follow_its_growth(conserved):
    """The fastest growth is q G'^2 / 4."""
    wide = {"shape": (5, 64, 64), "dx": (0.5, 0.5), "dt": 4.0}
    texts = [export(conserved(law=law, **wide), "moose") for law in (conserved().law, conserved().law.scaled(2.0))]
    once, twice = (int(parse(text)["Outputs"]["time_step_interval"]) for text in texts)
    assert twice == pytest.approx(4 * once, rel=0.02)


def test_parts_of_an_equation_are_kernels(make, conserved):
    """Divided by m: u_t/m = q (Laplacian u + div((A - 1) grad u) - G + h), and M, kappa times B - 1, A - 1."""
    along, rate = Anisotropy(1.8, 30.0), Mobility.of(lambda u: 2.0 + u, (0.0, 1.0))
    dynamics = AllenCahn(anisotropy=along, mobility=rate, driving=Driving((0.0, 1.0, 2.0, 4.0), (0.0, 3.0, -1.0, 2.0)))
    law, times = Law.bernstein([90.0, 60.0, 160.0, 120.0]).placed((0.0, 1.0)), (1.0, 1.5, 2.0, 2.5)
    mesh = {"shape": (4, 24, 36), "dx": (0.5, 0.5), "dt": 0.5, "times": times, "boundary": "periodic"}
    result = make(law, SurfaceTension(0.3), dynamics=dynamics, q=0.7, **mesh)
    blocks = parse(export(result, "moose"))
    kernels = {block["type"]: block for block in blocks["Kernels"].values()}
    assert set(kernels) == {
        "SusceptibilityTimeDerivative", "AllenCahn", "ACInterface", "AnisotropicDiffusion", "BodyForce",
    }  # fmt: skip
    tensor = np.reshape([float(word) for word in kernels["AnisotropicDiffusion"]["tensor_coeff"].split()], (3, 3))
    assert np.allclose(tensor[:2, :2], 0.7 * (np.array(along.tensor)[::-1, ::-1] - np.eye(2)))
    assert not np.any(tensor[2])
    slow, u = blocks["Materials"]["slowness"], np.linspace(-0.3, 1.3, 33)
    assert (slow["property_name"], slow["derivative_order"]) == (kernels["SusceptibilityTimeDerivative"]["f_name"], "1")
    choose = np.vectorize(lambda test, yes, no: yes if test else no)
    found = eval(slow["expression"].replace("if(", "choose("), {"choose": choose, "u": u, "exp": np.exp})
    assert np.allclose(found * rate(u), 1.0)
    times, values = (np.array([float(word) for word in blocks["Functions"]["h"][axis].split()]) for axis in "xy")
    assert (times[0], times[-1], float(kernels["BodyForce"]["value"])) == (0.0, 1.5, 0.7)
    assert np.allclose(values, dynamics.driving.at(1.0 + times))  # MOOSE's clock begins with the record
    assert int(blocks["Outputs"]["time_step_interval"]) >= 16
    result = conserved(CahnHilliard(anisotropy=along, flux=Anisotropy(1.3, 70.0)), tension=SurfaceTension(0.3), q=0.7)
    blocks = parse(export(result, "moose"))
    mobility, kappa = map(float, blocks["Materials"]["numbers"]["prop_values"].split())
    for name, variable, factor in (("A", "u", kappa), ("B", "w", mobility)):
        kernel = blocks["Kernels"][f"anisotropy_{name}"]
        assert kernel["variable"] == variable
        wanted = factor * (np.array(result.dynamics.parts.tensors[name])[::-1, ::-1] - np.eye(2))
        tensor = np.reshape([float(word) for word in kernel["tensor_coeff"].split()], (3, 3))
        assert np.allclose(tensor[:2, :2], wanted)


def test_moose_has_no_kernel_for_a_mean(conserved):
    with pytest.raises(InputError, match=r"no moose text .* 'mass-conserving': expected one of allen-cahn, cahn-hill"):
        export(conserved("mass-conserving"), "moose")


def test_the_mesh_is_the_record_and_x_is_its_last_axis(make):
    result = make(shape=(11, 24, 36), dx=(0.5, 0.25), dt=0.2, boundary="neumann", q=1e-4)
    blocks = parse(export(result, "moose"))
    mesh = blocks["Mesh"]
    assert (mesh["dim"], mesh["nx"], mesh["ny"], mesh["xmax"], mesh["ymax"]) == ("2", "36", "24", "9.0", "12.0")
    assert "nz" not in mesh
    assert "BCs" not in blocks  # no flux is what finite elements do by themselves
    steps = int(blocks["Outputs"]["time_step_interval"])
    assert steps * float(blocks["Executioner"]["dt"]) == pytest.approx(0.2)
    assert float(blocks["Executioner"]["end_time"]) == pytest.approx(2.0)


def test_steps_follow_the_reaction(make):
    slow, fast = (parse(export(make(q=q), "moose"))["Outputs"]["time_step_interval"] for q in (1.0, 10.0))
    assert int(fast) == pytest.approx(10 * int(slow), abs=10)


@pytest.mark.parametrize(("shape", "directions"), [((5, 40), "x"), ((5, 8, 9, 10), "x y z")])
def test_one_and_three_axes(make, shape, directions):
    dx = (0.1,) * (len(shape) - 1)
    blocks = parse(export(make(shape=shape, dx=dx, boundary="periodic"), "moose"))
    assert blocks["BCs"]["Periodic"]["all"]["auto_direction"] == directions
    assert blocks["Mesh"]["nx"] == str(shape[-1])
    drop = blocks["Functions"]["drop"]["expression"].replace("^", "**")
    middle = dict.fromkeys("xyz", 0.05) | {x: 0.05 * n for x, n in zip("xyz", shape[:0:-1], strict=False)}
    assert eval(drop, {"tanh": np.tanh, "sqrt": np.sqrt, **middle}) > 0.5


@pytest.mark.parametrize("broken", ["[Mesh]\n", "[]\n", "x = 1\n", "[Mesh]\n dim 2\n[]\n", "[A]\n[]\n[A]\n[]\n"])
def test_the_parser_of_these_tests_refuses_what_is_broken(broken):
    with pytest.raises(AssertionError):
        parse(broken)

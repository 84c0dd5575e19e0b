"""The MOOSE input is read by a small parser of its format, and its numbers are those of the law."""

import re

import numpy as np
import pytest

from doublewell.calibrate import SurfaceTension
from doublewell.export import export

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


def derivatives(block):
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
    return [sympy.lambdify(u, g)(U) for g in (f, sympy.diff(f, u), sympy.diff(f, u, 2))]


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

"""MOOSE: the law as an input file of the phase_field module.

MOOSE differentiates a parsed free energy itself. Its kernels solve u_t = -L (f'(u) - kappa Laplacian u) or, split in
two, u_t = M Laplacian w with w = f'(u) - kappa Laplacian u: L or M is q / kappa, and f = kappa H. A tensor A of an
equation adds what A - 1 does; with a mobility q m(u) both sides are divided by m(u).
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from doublewell.export.content import MOOSE, Content, End, horner, moved, template

_WORD = re.compile(r"[\w.+-]+")  # what needs no quotes


def _block(name: str, *inside: str, comment: str = "", **values: str | float) -> str:
    """Return a block of an input file: its parameters, then the blocks inside it. No value has an apostrophe."""
    texts = {key: value if isinstance(value, str) else repr(value) for key, value in values.items()}
    lines = [f"{key} = {text if _WORD.fullmatch(text) else repr(text)}" for key, text in texts.items()]
    body = indent("\n".join([*lines, *inside]), "  ")
    return f"[{name}]{comment and f'  # {comment}'}\n{body}\n[]"


class _Equation(NamedTuple):
    """The variables with their meaning, the kernels, variable and factor of each tensor, options of the solver."""

    variables: dict[str, str]
    kernels: tuple[str, ...]
    tensors: dict[str, tuple[str, str]]
    solver: dict[str, str]


_EQUATIONS = {
    "allen-cahn": _Equation(
        {"u": ""},
        (
            _block("u_dot", type="TimeDerivative", variable="u"),
            _block("bulk", type="AllenCahn", variable="u", f_name="f", mob_name="L", comment="L f'(u)"),
            _block(
                "interface", type="ACInterface", variable="u", kappa_name="kappa", mob_name="L",
                comment="-L kappa Laplacian u",
            ),
        ),
        {"A": ("u", "q")},
        {},
    ),
    "cahn-hilliard": _Equation(
        {"u": "", "w": "chemical potential f'(u) - kappa Laplacian u"},
        (
            _block("u_dot", type="CoupledTimeDerivative", variable="w", v="u"),
            _block("flux", type="SplitCHWRes", variable="w", mob_name="M", comment="-M Laplacian w"),
            _block(
                "potential", type="SplitCHParsed", variable="u", w="w", f_name="f", kappa_name="kappa",
                comment="f'(u) - kappa Laplacian u - w",
            ),
        ),
        {"A": ("u", "kappa"), "B": ("w", "M")},
        {"petsc_options_iname": "-pc_type -sub_pc_type", "petsc_options_value": "asm lu"},
    ),
}  # fmt: skip


def moose_text(content: Content) -> str:
    """Return an input file for the phase_field module; it runs as it is, from a drop."""
    data, equation = content.facts.data, template(content, _EQUATIONS, "moose")
    cells = data.shape[:0:-1]  # a record has x last, MOOSE first
    letters = ("x", "y", "z")[: len(cells)]
    lengths = [n * h for n, h in zip(cells, data.dx[::-1], strict=True)]
    sides: dict[str, Any] = {}
    for x, n, side in zip(letters, cells, lengths, strict=True):
        sides |= {f"n{x}": n, f"{x}max": side}
    squares = " + ".join(f"({x} - {0.5 * side!r})^2" for x, side in zip(letters, lengths, strict=True))
    drop = f"tanh(({0.3 * min(lengths)!r} - sqrt({squares}))/{content.profile!r})"
    kernels, materials, functions = _parts(content, equation)
    symbol, variables, steps = content.dynamics.symbol, equation.variables.items(), content.steps
    periodic = _block("all", variable=" ".join(equation.variables), auto_direction=" ".join(letters))
    blocks = [
        _block("Mesh", type="GeneratedMesh", dim=len(letters), **sides),
        _block("Variables", *(_block(u, order="FIRST", family="LAGRANGE", comment=text) for u, text in variables)),
        _block(
            "ICs",
            _block("drop", type="FunctionIC", variable="u", function="drop", comment="put your own first field here"),
        ),
        _block(
            "Functions",
            _block(
                "drop", type="ParsedFunction", expression=content.on_phases("*") + drop,
                comment=f"a round drop of the phase {content.phases[1]} with the interface of this law",
            ),
            *functions,
        ),
        _block("Kernels", *kernels),
        _block(
            "Materials",
            _block(
                "numbers", type="GenericConstantMaterial", prop_names=f"{symbol} kappa",
                prop_values=f"{content.mobility!r} {content.kappa!r}", comment=f"{symbol} kappa = q",
            ),
            _block(
                "free_energy", type="DerivativeParsedMaterial", property_name="f", coupled_variables="u",
                constant_names="k", constant_expressions=content.kappa, expression=_energy(content),
                derivative_order=2, comment="f(u) = kappa H(u), zero at the low phase",
            ),
            *materials,
        ),
        *([_block("BCs", _block("Periodic", periodic))] if data.boundary == "periodic" else []),
        _block(
            "Executioner", type="Transient", scheme="bdf2", solve_type="NEWTON", **equation.solver, nl_rel_tol=1e-8,
            nl_abs_tol=1e-12, dt=data.dt / steps, end_time=data.dt * (data.shape[0] - 1),
            comment=f"{steps} steps from frame to frame, over the length of the record",
        ),
        _block("Outputs", exodus="true", time_step_interval=steps),
    ]  # fmt: skip
    return "\n\n".join([f"# An identified law for MOOSE (phase_field module).\n{content.comment('#')}", *blocks]) + "\n"


def _parts(content: Content, equation: _Equation) -> tuple[list[str], list[str], list[str]]:
    """Return the kernels of an equation with its parts, and the materials and functions that these need."""
    kernels, materials, functions = list(equation.kernels), [], []
    if (rate := content.dynamics.parts.rate) is not None:
        kernels[0] = _block(
            "u_dot", type="SusceptibilityTimeDerivative", variable="u", f_name="slowness", comment="u_t/m(u)"
        )
        (first, below), (last, above) = ((u, float(1.0 / rate(u))) for u in rate.reach)
        inside = horner(tuple(-a for a in rate.powers), f"({moved('u', *rate.centre, MOOSE)})")
        materials = [
            _block(
                "slowness", type="DerivativeParsedMaterial", property_name="slowness", coupled_variables="u",
                expression=f"if(u > {last!r}, {above!r}, if(u < {first!r}, {below!r}, exp({inside})))",
                derivative_order=1, comment="1/m(u) of q(u) = q m(u)",
            )
        ]  # fmt: skip
    numbers = {"q": content.q, "kappa": content.kappa, "M": content.mobility}
    for name, tensor in content.dynamics.parts.tensors.items():
        (variable, factor), rest, axes = equation.tensors[name], np.zeros((3, 3)), len(tensor)
        rest[:axes, :axes] = numbers[factor] * (np.array(tensor) - np.eye(axes))[::-1, ::-1]
        kernels += [
            _block(
                f"anisotropy_{name}", type="AnisotropicDiffusion", variable=variable,
                tensor_coeff=" ".join(map(repr, rest.ravel().tolist())),
                comment=f"-{factor} div(({name} - 1) grad {variable}), rows along x, y, z",
            )
        ]  # fmt: skip
    if content.driving is not None:
        x, y = (" ".join(map(repr, column.tolist())) for column in content.driving)
        kernels += [_block("driving", type="BodyForce", variable="u", value=content.q, function="h", comment="-q h(t)")]
        functions = [_block("h", type="PiecewiseLinear", x=x, y=y, comment="the known force, from the first frame on")]
    return kernels, materials, functions


def _energy(content: Content) -> str:
    """Return f(u) for the function parser: if() is differentiated branch by branch, and the branches meet smoothly."""
    form, (low, high) = content.form, content.form.ends
    names = form.names("u", MOOSE)
    variable = names[form.variable].replace("s^2", f"({names.get('s')})^2")  # expressions have no names of their own
    inside = form.code("primitive", "u", MOOSE, variable=f"({variable})")
    first, last = (repr(end.u).removesuffix(".0") for end in (low, high))
    return f"if(u > {last}, {_beyond(high)}, if(u < {first}, {_beyond(low)}, k*{inside}))"


def _beyond(end: End) -> str:
    """Return f(u) beyond an end, where G is linear."""
    away = moved("u", end.u, 1.0, MOOSE)
    if end.force:
        return f"k*({horner((end.height, end.force, 0.5 * end.slope), away)})"
    return f"k*{0.5 * end.slope!r}*{away}^2" + (f" + k*{end.height!r}" if end.height else "")

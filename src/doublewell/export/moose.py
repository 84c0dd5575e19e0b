"""MOOSE: the law as an input file of the phase_field module.

MOOSE differentiates a parsed free energy itself. Its kernels solve u_t = -L (f'(u) - kappa Laplacian u) or, split in
two, u_t = M Laplacian w with w = f'(u) - kappa Laplacian u: L or M is q / kappa, and f = kappa H.
"""

from __future__ import annotations

from typing import NamedTuple

from doublewell.dynamics import Grid, fastest_rate, steps_per_frame
from doublewell.export.content import MOOSE, Content, End, horner, moved, template

_HEAD = "# An identified law for MOOSE (phase_field module).\n"
_MESH = """\
[Mesh]
  type = GeneratedMesh
  dim = {dim}
{sides}
[]
"""
_VARIABLE = """\
  [{name}]{meaning}
    order = FIRST
    family = LAGRANGE
  []
"""
_START = """\
[ICs]
  [drop]  # put your own first field here
    type = FunctionIC
    variable = u
    function = drop
  []
[]

[Functions]
  [drop]  # a round drop of the phase {law.phases[1]} with the interface of this law
    type = ParsedFunction
    expression = '{scale}tanh(({radius!r} - sqrt({squares}))/{law.profile!r})'
  []
[]
"""
_MATERIALS = """\
[Materials]
  [numbers]  # {law.dynamics.symbol} kappa = q
    type = GenericConstantMaterial
    prop_names = '{law.dynamics.symbol} kappa'
    prop_values = '{law.mobility!r} {law.kappa!r}'
  []
  [free_energy]  # f(u) = kappa H(u), zero at the low phase
    type = DerivativeParsedMaterial
    property_name = f
    coupled_variables = 'u'
    constant_names = 'k'
    constant_expressions = '{law.kappa!r}'
    expression = '{expression}'
    derivative_order = 2
  []
[]
"""
_BORDER = """\
[BCs]
  [Periodic]
    [all]
      variable = {variables}
      auto_direction = '{directions}'
    []
  []
[]
"""
_RUN = """\
[Executioner]
  type = Transient
  scheme = bdf2
  solve_type = NEWTON
{solver}  nl_rel_tol = 1e-8
  nl_abs_tol = 1e-12
  dt = {dt!r}  # {steps} steps from frame to frame
  end_time = {end!r}  # the length of the record
[]

[Outputs]
  exodus = true
  time_step_interval = {steps}
[]
"""


class _Equation(NamedTuple):
    """The variables with their meaning, the kernels, and lines for the linear solver."""

    variables: dict[str, str]
    kernels: str
    solver: str = ""


_EQUATIONS = {
    "allen-cahn": _Equation(
        {"u": ""},
        """\
[Kernels]
  [u_dot]
    type = TimeDerivative
    variable = u
  []
  [bulk]  # L f'(u)
    type = AllenCahn
    variable = u
    f_name = f
    mob_name = L
  []
  [interface]  # -L kappa Laplacian u
    type = ACInterface
    variable = u
    kappa_name = kappa
    mob_name = L
  []
[]
""",
    ),
    "cahn-hilliard": _Equation(
        {"u": "", "w": "  # chemical potential f'(u) - kappa Laplacian u"},
        """\
[Kernels]
  [u_dot]
    type = CoupledTimeDerivative
    variable = w
    v = u
  []
  [flux]  # -M Laplacian w
    type = SplitCHWRes
    variable = w
    mob_name = M
  []
  [potential]  # f'(u) - kappa Laplacian u - w
    type = SplitCHParsed
    variable = u
    w = w
    f_name = f
    kappa_name = kappa
  []
[]
""",
        "  petsc_options_iname = '-pc_type -sub_pc_type'\n  petsc_options_value = 'asm lu'\n",
    ),
}
_STEP = 0.1  # largest growth of a disturbance in one step: q |G'| dt, q G'^2 dt / 4 where the equation has fourth order


def moose_text(content: Content) -> str:
    """Return an input file for the phase_field module; it runs as it is, from a drop."""
    data, equation = content.facts.data, template(content, _EQUATIONS, "moose")
    cells = data.shape[:0:-1]  # a record has x last, MOOSE first
    letters = ("x", "y", "z")[: len(cells)]
    lengths = [n * h for n, h in zip(cells, data.dx[::-1], strict=True)]
    sides = "\n".join(f"  n{x} = {n}\n  {x}max = {side!r}" for x, n, side in zip(letters, cells, lengths, strict=True))
    periodic = data.boundary == "periodic"
    waves = Grid(data.shape[1:], data.dx, "periodic" if periodic else "neumann").waves
    steps = steps_per_frame(content.q * fastest_rate(content.dynamics, waves, content.steepest), data.dt, _STEP)
    names = " ".join(equation.variables)
    squares = " + ".join(f"({x} - {0.5 * side!r})^2" for x, side in zip(letters, lengths, strict=True))
    variables = "".join(_VARIABLE.format(name=name, meaning=text) for name, text in equation.variables.items())
    parts = [
        _HEAD + content.comment("#") + "\n",
        _MESH.format(dim=len(letters), sides=sides),
        f"[Variables]\n{variables}[]\n",
        _START.format(law=content, radius=0.3 * min(lengths), squares=squares, scale=content.on_phases("*")),
        equation.kernels,
        _MATERIALS.format(law=content, expression=_energy(content)),
        *([_BORDER.format(variables=names if names == "u" else f"'{names}'", directions=" ".join(letters))] * periodic),
        _RUN.format(solver=equation.solver, dt=data.dt / steps, steps=steps, end=data.dt * (data.shape[0] - 1)),
    ]
    return "\n".join(parts)


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

"""MOOSE: an input file with the free energy as a parsed expression, which MOOSE differentiates itself.

The kernels solve u_t = -L (f'(u) - kappa Laplacian u), so L = q / kappa and f = kappa H.
"""

from __future__ import annotations

from doublewell.export.content import Content, template

_HEAD = "# An identified law for MOOSE (phase_field module).\n"
_MESH = """\
[Mesh]
  type = GeneratedMesh
  dim = {dim}
{sides}
[]
"""
_BODY = {
    "allen-cahn": """\
[Variables]
  [u]
    order = FIRST
    family = LAGRANGE
  []
[]

[ICs]
  [drop]  # put your own first field here
    type = FunctionIC
    variable = u
    function = drop
  []
[]

[Functions]
  [drop]  # a round drop of the phase {high:g} with the interface of this law
    type = ParsedFunction
    expression = '{scale}tanh(({radius!r} - sqrt({squares}))/{profile!r})'
  []
[]

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

[Materials]
  [numbers]  # L kappa = q
    type = GenericConstantMaterial
    prop_names = 'L kappa'
    prop_values = '{mobility!r} {kappa!r}'
  []
  [free_energy]  # f(u) = kappa H(u), zero at the low phase
    type = DerivativeParsedMaterial
    property_name = f
    coupled_variables = 'u'
    constant_names = 'k'
    constant_expressions = '{kappa!r}'
    expression = '{expression}'
    derivative_order = 2
  []
[]
""",
}
_BORDER = """\
[BCs]
  [Periodic]
    [all]
      variable = u
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
  nl_rel_tol = 1e-8
  nl_abs_tol = 1e-12
  dt = {dt!r}  # {steps} steps from frame to frame
  end_time = {end!r}  # the length of the record
[]

[Outputs]
  exodus = true
  time_step_interval = {steps}
[]
"""
_STEP = 0.1  # largest q |G'| dt of one step


def moose_text(content: Content) -> str:
    """Return an input file for the phase_field module; it runs as it is, from a drop."""
    data, (_, high) = content.facts.data, content.law.phases
    letters = ("x", "y", "z")[: len(content.cells)]
    lengths = [n * h for n, h in zip(content.cells, data.dx, strict=True)][::-1]  # a record has x last, MOOSE first
    cells = content.cells[::-1]
    sides = "\n".join(f"  n{x} = {n}\n  {x}max = {side!r}" for x, n, side in zip(letters, cells, lengths, strict=True))
    middle, half = content.law.family.middle, content.law.family.half
    steps = max(1, -int(-data.dt * content.q * content.steepest // _STEP))
    parts = [
        _HEAD + content.comment("#") + "\n",
        _MESH.format(dim=len(letters), sides=sides),
        template(content, _BODY, "moose").format(
            radius=0.3 * min(lengths),
            squares=" + ".join(f"({x} - {0.5 * side!r})^2" for x, side in zip(letters, lengths, strict=True)),
            profile=content.profile,
            scale="" if content.unit else f"{middle!r} + {half!r}*",
            high=high,
            mobility=content.mobility,
            kappa=content.kappa,
            expression=_expression(content),
        ),
        *([_BORDER.format(directions=" ".join(letters))] if content.periodic else []),
        _RUN.format(dt=data.dt / steps, steps=steps, end=data.dt * (data.shape[0] - 1)),
    ]
    return "\n".join(parts)


def _expression(content: Content) -> str:
    """Return f(u) for the function parser: if() is differentiated branch by branch, and the branches meet smoothly."""
    law, form = content.law, content.polynomial
    (low, high), half, square = law.phases, law.family.half, "" if content.unit else f"{law.family.half**2!r}*"
    if form.variable == "t":
        t = f"((u - {low!r})/{high - low!r})"
        inside = f"k*{square}{t}^2*({form.code('primitive', variable=t)})"
        first, second = (f"k*{0.5 * slope!r}" for slope in law.well_curvatures)
    else:
        w = "(1 - u^2)" if content.unit else f"(1 - ((u - {law.family.middle!r})/{half!r})^2)"
        inside = f"k*{square}{w}^2*({form.code('primitive', variable=w)})"
        first = second = f"k*{form.force[0]!r}"
    above = f"{second}*(u - {high:g})^2" + (f" + k*{law.tilt!r}" if law.tilt else "")
    below = f"{first}*(u + {-low:g})^2" if low < 0.0 else f"{first}*(u - {low:g})^2"
    return f"if(u > {high:g}, {above}, if(u < {low:g}, {below}, {inside}))"

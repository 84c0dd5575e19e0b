"""MOOSE: an input file with the free energy as a parsed expression, which MOOSE differentiates itself.

The kernels solve u_t = -L (f'(u) - kappa Laplacian u), so L = q / kappa and f = kappa H.
"""

from __future__ import annotations

from doublewell.export.content import Content
from doublewell.export.polynomial import horner, primitive_powers

__all__ = ["moose_text"]

_MESH = """\
[Mesh]
  type = GeneratedMesh
  dim = {dim}
{sides}
[]
"""
_BODY = """\
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
  [drop]  # a round drop of the phase +1 with the interface of this law
    type = ParsedFunction
    expression = 'tanh(({radius!r} - sqrt({squares}))/{profile!r})'
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
  [free_energy]  # f(u) = kappa H(u), zero in the pure phases
    type = DerivativeParsedMaterial
    property_name = f
    coupled_variables = 'u'
    constant_names = 'k'
    constant_expressions = '{kappa!r}'
    expression = '{expression}'
    derivative_order = 2
  []
[]
"""
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
    letters = ("x", "y", "z")[: len(content.cells)]
    lengths = [n * h for n, h in zip(content.cells, content.result.settings.dx, strict=True)][::-1]
    parts = [
        _HEAD + content.comment("#") + "\n",
        _MESH.format(dim=len(letters), sides=_sides(content, letters, lengths)),
        _BODY.format(
            radius=0.3 * min(lengths),
            squares=" + ".join(f"({x} - {0.5 * side!r})^2" for x, side in zip(letters, lengths, strict=True)),
            profile=content.profile,
            mobility=content.mobility,
            kappa=content.kappa,
            expression=_expression(content),
        ),
        *([_BORDER.format(directions=" ".join(letters))] if content.periodic else []),
        _RUN.format(**_steps(content)),
    ]
    return "\n".join(parts)


_HEAD = "# An identified Allen-Cahn law for MOOSE (phase_field module).\n"


def _sides(content: Content, letters: tuple[str, ...], lengths: list[float]) -> str:
    """One line for each number; the arrays of a record have x last, MOOSE has it first."""
    cells = content.cells[::-1]
    return "\n".join(f"  n{x} = {n}\n  {x}max = {side!r}" for x, n, side in zip(letters, cells, lengths, strict=True))


def _expression(content: Content) -> str:
    """Return f(u) for the function parser: if() is differentiated branch by branch, and the branches meet smoothly."""
    inside = f"k*(1 - u^2)^2*({_in_w(horner(primitive_powers(content.powers)))})"
    curvature = f"k*{content.powers[0]!r}"
    return f"if(u > 1, {curvature}*(u - 1)^2, if(u < -1, {curvature}*(u + 1)^2, {inside}))"


def _in_w(text: str) -> str:
    return text.replace("w", "(1 - u^2)")


def _steps(content: Content) -> dict[str, float]:
    asked = content.result.settings
    steps = max(1, -int(-asked.dt * content.q * content.steepest // _STEP))
    return {"dt": asked.dt / steps, "steps": steps, "end": asked.dt * (asked.shape[0] - 1)}

"""Programs: the law as NumPy functions, as SymPy expressions, and as programs that evolve a field.

MOOSE differentiates a parsed free energy itself; its kernels solve u_t = -L (f'(u) - kappa Laplacian u), so
L = q / kappa and f = kappa H.
"""

from __future__ import annotations

from typing import Literal

from doublewell.export.content import MOOSE, PYTHON, Content, moved, template

_FUNCTION = '''\
def {name}(u):
    """Return {what}."""
    x = np.minimum(np.maximum(u, {low!r}), {high!r})
{place}    return {inside} + {outside}
'''
_CONSTANTS = """\
Q = {q!r}  # diffusion coefficient
CELLS = {cells!r}  # of the record, along {axes}
DX = {dx!r}  # cell size along each axis
DT = {dt!r}  # time from frame to frame
PERIODIC = {periodic!r}  # otherwise no flux through the border
STEEPEST = {steepest!r}  # largest |G'|
PROFILE = {profile!r}  # an interface of this law is about tanh(x / PROFILE)
"""
_MAIN = '''\
def drop():
    """Return a round drop of the phase {high} in the middle, a first field to try."""
    lines = [(np.arange(n) + 0.5 - 0.5 * n) * h for n, h in zip(CELLS, DX)]
    distance = np.sqrt(sum(x**2 for x in np.meshgrid(*lines, indexing="ij")))
    return {scale}np.tanh((0.3 * min(n * h for n, h in zip(CELLS, DX)) - distance) / PROFILE)


if __name__ == "__main__":  # python thisfile.py [first.npy [frames [out.npy]]]
    words = sys.argv[1:]
    fields = evolve(np.load(words[0]) if words else drop(), int(words[1]) if len(words) > 1 else 11)
    out = words[2] if len(words) > 2 else "fields.npy"
    np.save(out, fields)
    print(f"{{len(fields)}} frames of {{fields.shape[1:]}}, {{DT:g}} apart, written to {{out}}")
'''
_ENERGY = '''\
KAPPA = {kappa!r}  # of kappa/2 |grad u|^2{choice}
MOBILITY = {mobility!r}  # L = q / kappa


def bulk_energy(u):
    """Return f(u) = kappa H(u), the energy per volume over that of the low phase."""
    return KAPPA * primitive(u)
'''
_PAPER = '''\
EPSILON = {epsilon!r}  # the paper's interfacial scale


def potential(u):
    """Return the paper's F(u) = epsilon^2 H(u)."""
    return EPSILON**2 * primitive(u)
'''
_TABLE = """\
if __name__ == "__main__":
    for value in np.linspace({start!r}, {end!r}, 25):
        print(f"u = {{value:5.2f}}   G = {{force(value):14.6g}}   H = {{primitive(value):14.6g}}")
"""
_SYMPY = """\
import sympy

u = sympy.Symbol("u", real=True)
{names}
q = {q!r}  # diffusion coefficient
kappa = {kappa!r}  # of kappa/2 |grad u|^2{choice}
L = {mobility!r}  # mobility q / kappa

# between the pure phases, {low:g} <= u <= {high:g}
G = {force}
H = {primitive}
f = kappa * H

# everywhere: beyond the pure phases G continues linearly
below, above = {below}, {above}
G_everywhere = sympy.Piecewise(({slopes[0]!r} * below, below < 0), ({slopes[1]!r} * above, above > 0), (G, True))
H_everywhere = sympy.Piecewise(
    ({bends[0]!r} * below**2, below < 0), ({tilt!r} + {bends[1]!r} * above**2, above > 0), (H, True)
)
"""
_SYMPY_PAPER = """
epsilon = {epsilon!r}  # the paper's interfacial scale
F = epsilon**2 * H
"""
_SYMPY_MAIN = """
if __name__ == "__main__":
    print("G(u) =", sympy.expand(G))
    print("H(u) =", sympy.expand(H))
"""
_PYPDE = {
    "allen-cahn": '''\
def make_grid():
    """Return the record's mesh. Axes have the order of the record's arrays, (z, y,) x."""
    return pde.CartesianGrid([(0.0, n * h) for n, h in zip(CELLS, DX)], CELLS, periodic=PERIODIC)


class IdentifiedLaw(pde.PDEBase):
    """u_t = q (Laplacian u - G(u)); a border that is not periodic lets nothing through."""

    def evolution_rate(self, state, t=0):
        """Return the rate of change of a field."""
        laplacian = state.laplace(bc="auto_periodic_neumann").data
        return pde.ScalarField(state.grid, Q * (laplacian - force(state.data)))


def evolve(u0, frames):
    """Return the fields of `frames` frames, u0 the first."""
    rate = Q * (4.0 * sum(1.0 / h**2 for h in DX) + STEEPEST)  # of the fastest decay that the mesh knows
    steps = int(np.ceil(DT * rate / 1.5))  # explicit Runge-Kutta steps are stable up to 2.7
    storage = pde.MemoryStorage()
    IdentifiedLaw().solve(
        pde.ScalarField(make_grid(), np.asarray(u0, dtype=float)),
        t_range=(frames - 1) * DT,
        dt=DT / steps,
        solver="runge-kutta",
        backend="numpy",
        tracker=[storage.tracker(DT)],
    )
    return np.array(storage.data)
'''
}
_FIPY = {
    "allen-cahn": '''\
def make_mesh():
    """Return the record's mesh; FiPy counts cells along x first, as the rows of u[(z, y,) x] do."""
    sizes = {}
    for letter, n, h in zip("xyz", reversed(CELLS), reversed(DX)):
        sizes["n" + letter], sizes["d" + letter] = n, h
    name = f"Grid{len(CELLS)}D"
    return getattr(fipy, "Periodic" + name if PERIODIC else name)(**sizes)


def evolve(u0, frames):
    """Return the fields of `frames` frames, u0 the first.

    Each step has two sweeps: the first predicts with G of the old field, the second uses the mean of both ends. That
    makes the scheme second order in time.
    """
    mesh = make_mesh()
    u = fipy.CellVariable(mesh=mesh, value=np.ravel(u0), hasOld=True)
    before, source = fipy.CellVariable(mesh=mesh), fipy.CellVariable(mesh=mesh)
    equation = fipy.TransientTerm() == fipy.DiffusionTerm(coeff=0.5 * Q) + source
    solver = fipy.LinearPCGSolver(tolerance=1e-10, iterations=1000)
    steps = int(np.ceil(DT * Q * STEEPEST / 0.1))
    fields = [np.array(u0, dtype=float)]
    for _ in range(frames - 1):
        for _ in range(steps):
            u.updateOld()
            before.setValue(u.value)
            known = before.faceGrad.divergence.value - force(before.value)
            for _ in range(2):
                source.setValue(0.5 * Q * (known - force(u.value)))
                equation.sweep(var=u, dt=DT / steps, solver=solver)
        fields.append(u.value.reshape(CELLS).copy())
    return np.array(fields)
'''
}
_MOOSE_HEAD = "# An identified law for MOOSE (phase_field module).\n"
_MOOSE_MESH = """\
[Mesh]
  type = GeneratedMesh
  dim = {dim}
{sides}
[]
"""
_MOOSE = {
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
  [drop]  # a round drop of the phase {high} with the interface of this law
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
"""
}
_MOOSE_BORDER = """\
[BCs]
  [Periodic]
    [all]
      variable = u
      auto_direction = '{directions}'
    []
  []
[]
"""
_MOOSE_RUN = """\
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


def python_text(content: Content) -> str:
    """Return a module with force, primitive, bulk_energy and, where a tension fixed the scale, potential."""
    low, high = content.law.phases
    reach = 0.1 * (high - low)
    parts = [
        _docstring(content, "An identified law as NumPy functions."),
        "import numpy as np\n",
        _constants(content) + "\n",
        _function(content, "force") + "\n",
        _function(content, "primitive") + "\n",
        _ENERGY.format(kappa=content.kappa, mobility=content.mobility, choice=_choice(content)),
    ]
    if content.epsilon is not None:
        parts.append("\n" + _PAPER.format(epsilon=content.epsilon))
    return "\n".join([*parts, "", _TABLE.format(start=low - reach, end=high + reach)])


def pypde_text(content: Content) -> str:
    """Return the script; it needs numpy and py-pde alone."""
    title = "An identified law for py-pde (written for version 0.59; pip install py-pde)."
    return _script(content, title, "import numpy as np\nimport pde\n", template(content, _PYPDE, "py-pde"))


def fipy_text(content: Content) -> str:
    """Return the script; it needs numpy and FiPy alone."""
    title = "An identified law for FiPy (written for version 4.0; pip install fipy)."
    return _script(content, title, "import fipy\nimport numpy as np\n", template(content, _FIPY, "fipy"))


def sympy_text(content: Content) -> str:
    """Return a module with G, H and f as polynomials, and G and H everywhere as Piecewise."""
    law, form, (low, high) = content.law, content.polynomial, content.law.phases
    body = _SYMPY.format(
        names="\n".join(f"{name} = {text}" for name, text in form.names("u", PYTHON).items()), q=content.q,
        kappa=content.kappa, choice=_choice(content), mobility=content.mobility, low=low, high=high,
        force=form.code("force", "u", PYTHON), primitive=form.code("primitive", "u", PYTHON),
        below=moved("u", low, 1.0, PYTHON).strip("()"), above=moved("u", high, 1.0, PYTHON).strip("()"),
        slopes=form.slopes, bends=(0.5 * form.slopes[0], 0.5 * form.slopes[1]), tilt=law.tilt,
    )  # fmt: skip
    paper = "" if content.epsilon is None else _SYMPY_PAPER.format(epsilon=content.epsilon)
    return _docstring(content, "An identified law for SymPy.") + "\n" + body + paper + _SYMPY_MAIN


def moose_text(content: Content) -> str:
    """Return an input file for the phase_field module; it runs as it is, from a drop."""
    data = content.facts.data
    cells = data.shape[:0:-1]  # a record has x last, MOOSE first
    letters = ("x", "y", "z")[: len(cells)]
    lengths = [n * h for n, h in zip(cells, data.dx[::-1], strict=True)]
    sides = "\n".join(f"  n{x} = {n}\n  {x}max = {side!r}" for x, n, side in zip(letters, cells, lengths, strict=True))
    steps = max(1, -int(-data.dt * content.q * content.steepest // _STEP))
    parts = [
        _MOOSE_HEAD + content.comment("#") + "\n",
        _MOOSE_MESH.format(dim=len(letters), sides=sides),
        template(content, _MOOSE, "moose").format(
            radius=0.3 * min(lengths),
            squares=" + ".join(f"({x} - {0.5 * side!r})^2" for x, side in zip(letters, lengths, strict=True)),
            profile=content.profile,
            scale=_on_phases(content, "*"),
            high=content.phases[1],
            mobility=content.mobility,
            kappa=content.kappa,
            expression=_moose_energy(content),
        ),
        *([_MOOSE_BORDER.format(directions=" ".join(letters))] if data.boundary == "periodic" else []),
        _MOOSE_RUN.format(dt=data.dt / steps, steps=steps, end=data.dt * (data.shape[0] - 1)),
    ]
    return "\n".join(parts)


def _moose_energy(content: Content) -> str:
    """Return f(u) for the function parser: if() is differentiated branch by branch, and the branches meet smoothly."""
    law, form, (low, high) = content.law, content.polynomial, content.law.phases
    names = form.names("u", MOOSE)
    variable = names[form.variable].replace("s^2", f"({names.get('s')})^2")  # expressions have no names of their own
    inside = form.code("primitive", "u", MOOSE, variable=f"({variable})")
    below, above = (
        f"k*{0.5 * slope!r}*{moved('u', phase, 1.0, MOOSE)}^2"
        for slope, phase in zip(form.slopes, (low, high), strict=True)
    )
    tilt = f" + k*{law.tilt!r}" if law.tilt else ""
    return f"if(u > {high:g}, {above}{tilt}, if(u < {low:g}, {below}, k*{inside}))"


def _script(content: Content, title: str, imports: str, evolve: str) -> str:
    main = _MAIN.format(high=content.phases[1], scale=_on_phases(content, " * "))
    head = [_docstring(content, title), f"import sys\n\n{imports}", _constants(content), ""]
    return "\n".join([*head, _function(content, "force"), "", evolve, "", main])


def _on_phases(content: Content, times: str) -> str:
    """Return what brings a number from -1 to +1 to the phases of the law."""
    return "" if content.unit else f"{content.law.family.middle!r} + {content.law.family.half!r}{times}"


def _choice(content: Content) -> str:
    return "" if content.scaled else ", a choice: no surface tension fixed the scale"


def _docstring(content: Content, title: str) -> str:
    """Return the head of a Python text; nothing in it can end the string."""
    body = content.comment("").replace("\\", "/").replace('"""', "'''")
    return f'"""{title}\n\n' + "\n".join(line.removeprefix(" ") for line in body.splitlines()) + '\n"""\n'


def _function(content: Content, name: Literal["force", "primitive"]) -> str:
    """Return the function force(u) or primitive(u): plain enough for Numba, so no loop and no list."""
    form, (low, high) = content.polynomial, content.law.phases
    names = form.names("x", PYTHON)
    if "w" in names:
        s = "s" if "s" in names else "x"
        names["w"] = f"(1.0 - {s}) * (1.0 + {s})"  # without cancellation
    what = "G(u) in 1/length^2" if name == "force" else f"H(u) in 1/length^2, the integral of G from {low:g} to u"
    first, second = form.slopes if name == "force" else (0.5 * slope for slope in form.slopes)
    slope = repr(second) if form.variable == "w" else f"np.where(u < x, {first!r}, {second!r})"
    return _FUNCTION.format(
        name=name, what=what, low=low, high=high, place="".join(f"    {key} = {names[key]}\n" for key in names),
        inside=form.code(name, "x", PYTHON), outside=f"{slope} * (u - x)" + ("" if name == "force" else " ** 2"),
    )  # fmt: skip


def _constants(content: Content) -> str:
    """Return the numbers of the equation and of the record's mesh."""
    data = content.facts.data
    return _CONSTANTS.format(
        q=content.q, cells=data.shape[1:], axes=", ".join("zyx"[1 - len(data.shape) :]), dx=data.dx, dt=data.dt,
        periodic=data.boundary == "periodic", steepest=content.steepest, profile=content.profile,
    )  # fmt: skip

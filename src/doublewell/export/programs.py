"""Programs: the law as NumPy functions, as SymPy expressions, and as scripts that evolve a field."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Literal

from doublewell.export.content import PYTHON, SYMPY, Content, horner, moved, template

_FUNCTION = '''\
def {name}(u):
    """Return {what}."""
    x = np.minimum(np.maximum(u, {low!r}), {high!r})
{place}    return {inside} + {outside}
'''
_CONSTANTS = """\
Q = {law.q!r}  # diffusion coefficient
CELLS = {cells!r}  # of the record, along {axes}
DX = {data.dx!r}  # cell size along each axis
DT = {data.dt!r}  # time from frame to frame
PERIODIC = {periodic!r}  # otherwise no flux through the border
STEEPEST = {law.steepest!r}  # largest |G'|
PROFILE = {law.profile!r}  # an interface of this law is about tanh(x / PROFILE)
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
KAPPA = {law.kappa!r}  # of kappa/2 {law.gradient}{choice}
MOBILITY = {law.mobility!r}  # {law.dynamics.symbol} = q / kappa


def bulk_energy(u):
    """Return f(u) = kappa H(u), the energy per volume over {level}."""
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
q = {law.q!r}  # diffusion coefficient
kappa = {law.kappa!r}  # of kappa/2 {law.gradient}{choice}
{law.dynamics.symbol} = {law.mobility!r}  # mobility q / kappa

# {place}, {low.u:g} <= u <= {high.u:g}
G = {force}
H = {primitive}
f = kappa * H

# everywhere: beyond {ends} G continues linearly
below, above = {below}, {above}
G_everywhere = sympy.Piecewise(({lines[0]}, below < 0), ({lines[1]}, above > 0), (G, True))
H_everywhere = sympy.Piecewise(
    ({curves[0]}, below < 0), ({curves[1]}, above > 0), (H, True)
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
_RATE = '''\
def rate(u, t):
    """Return u_t of {equation}."""
    change = bend(u{tensors[0]}) - force(u){driving}
    return {change}
'''
_CHANGES = {
    "allen-cahn": "Q * {mobility}change",
    "cahn-hilliard": "-Q * bend(change{tensors[1]})",
    "mass-conserving": "Q * (change + np.mean(force(u)))",
}
_MOBILITY = '''\
def mobility(u):
    """Return m(u) of q(u) = Q m(u), whose mean between the phases is 1."""
    x = np.minimum(np.maximum(u, {low!r}), {high!r})
    s = {place}
    return np.exp({series})
'''
_DRIVING = '''\
TIMES, DRIVING = np.linspace(0.0, {end!r}, {count}), np.array(  # since the first frame, and h(t)
    {values}
)


def driving(t):
    """Return the known force h(t), a straight line from entry to entry of its table."""
    if not -1e-6 * DT < t < TIMES[-1] + 1e-6 * DT:
        raise ValueError(f"h is known from 0 to {{TIMES[-1]}}: expected a time between these, not {{t}}")
    return np.interp(t, TIMES, DRIVING)
'''
_PYPDE = '''\
def make_grid():
    """Return the record's mesh. Axes have the order of the record's arrays, (z, y,) x."""
    return pde.CartesianGrid([(0.0, n * h) for n, h in zip(CELLS, DX)], CELLS, periodic=PERIODIC)


GRID = make_grid()


def bend(u, tensor=None):
    """Return div(tensor grad u), the Laplacian by default; a border that is not periodic lets nothing through."""
    if tensor is None:
        return pde.ScalarField(GRID, u).laplace("auto_periodic_neumann").data
    around, axes, total = np.pad(u, 1, mode="wrap" if PERIODIC else "edge"), np.eye(u.ndim, dtype=int), 0.0

    def at(step):
        return around[tuple(slice(1 + k, 1 + k + n) for k, n in zip(step, CELLS))]

    for i, one in enumerate(axes):
        total = total + tensor[i][i] * (at(one) - 2.0 * u + at(-one)) / DX[i] ** 2
        for j, other in enumerate(axes[:i]):
            corners = at(one + other) - at(one - other) - at(other - one) + at(-one - other)
            total = total + tensor[i][j] * corners / (2.0 * DX[i] * DX[j])
    return total


{rate}

class IdentifiedLaw(pde.PDEBase):
    """The equation for py-pde."""

    def evolution_rate(self, state, t=0):
        """Return the rate of change of a field."""
        return pde.ScalarField(state.grid, rate(state.data, t))


def evolve(u0, frames):
    """Return the fields of `frames` frames, u0 the first."""
    waves = 4.0 * sum(1.0 / h**2 for h in DX)
    fastest = {stiffest!r} * Q * {waves}(waves + STEEPEST)  # decay that the mesh knows
    steps = int(np.ceil(DT * fastest / 1.5))  # explicit Runge-Kutta steps are stable up to 2.7
    storage = pde.MemoryStorage()
    IdentifiedLaw().solve(
        pde.ScalarField(GRID, np.asarray(u0, dtype=float)),
        t_range=(frames - 1) * DT,
        dt=DT / steps,
        solver="runge-kutta",
        backend="numpy",
        tracker=[storage.tracker(DT)],
    )
    return np.array(storage.data)
'''
_FIPY = '''\
def make_mesh():
    """Return the record's mesh; FiPy counts cells along x first, as the rows of u[(z, y,) x] do."""
    sizes = {{}}
    for letter, n, h in zip("xyz", reversed(CELLS), reversed(DX)):
        sizes["n" + letter], sizes["d" + letter] = n, h
    name = f"Grid{{len(CELLS)}}D"
    return getattr(fipy, "Periodic" + name if PERIODIC else name)(**sizes)


MESH = make_mesh()
FIELD = fipy.CellVariable(mesh=MESH)  # what is differentiated


def bend(u, tensor=None):
    """Return div(tensor grad u), the Laplacian by default; axes of the tensor are (z, y,) x."""
    FIELD.setValue(u)
    flux = FIELD.faceGrad if tensor is None else FIELD.faceGrad.dot(np.array(tensor)[::-1, ::-1])
    return flux.divergence.value.copy()


{rate}

def evolve(u0, frames):
    """Return the fields of `frames` frames, u0 the first.

    Each step has two sweeps: the first predicts with the rate of the old field, the second uses the mean of both ends.
    That makes the scheme second order in time. Implicit is {diffusion} with the largest
    coefficient; the rest of the rate is known from the sweep before.
    """
    u = fipy.CellVariable(mesh=MESH, value=np.ravel(u0), hasOld=True)
    source, implicit = fipy.CellVariable(mesh=MESH), {stiffest!r} * Q
    equation = fipy.TransientTerm() == {term} + source
    solver = fipy.LinearPCGSolver(tolerance=1e-10, iterations=10000)
    steps = {steps}  # from frame to frame: a disturbance grows by at most a tenth in one
    fields, t = [np.array(u0, dtype=float)], 0.0
    for _ in range(frames - 1):
        for _ in range(steps):
            u.updateOld()
            known = rate(u.value, t)
            t += DT / steps
            for _ in range(2):
                source.setValue(0.5 * (known + rate(u.value, t) - implicit * {share}))
                equation.sweep(var=u, dt=DT / steps, solver=solver)
        fields.append(u.value.reshape(CELLS).copy())
    return np.array(fields)
'''
_FIPY_TERMS = {  # by the order of an equation: what is implicit, its term, and its value
    2: ("diffusion", "fipy.DiffusionTerm(coeff=0.5 * implicit)", "bend(u.value)"),
    4: ("diffusion of fourth order", "-fipy.DiffusionTerm(coeff=(0.5 * implicit, 1.0))", "-bend(bend(u.value))"),
}


def python_text(content: Content) -> str:
    """Return a module with force, primitive, bulk_energy and, where a tension fixed the scale, potential."""
    low, high = content.law.phases
    reach = 0.1 * (high - low)
    level = "the common tangent of the phases" if content.law.family.found else "that of the low phase"
    parts = [
        _docstring(content, "An identified law as NumPy functions."),
        "import numpy as np\n",
        _constants(content) + "\n",
        *_parts(content),
        _function(content, "force") + "\n",
        _function(content, "primitive") + "\n",
        _ENERGY.format(law=content, choice=_choice(content), level=level),
    ]
    if content.epsilon is not None:
        parts.append("\n" + _PAPER.format(epsilon=content.epsilon))
    return "\n".join([*parts, "", _TABLE.format(start=low - reach, end=high + reach)])


def pypde_text(content: Content) -> str:
    """Return the script; it needs numpy and py-pde alone."""
    title = "An identified law for py-pde (written for version 0.59; pip install py-pde)."
    waves = "waves * " * (content.dynamics.order // 2 - 1)
    evolve = _PYPDE.format(rate=_rate(content, "py-pde"), stiffest=content.dynamics.parts.stiffest, waves=waves)
    return _script(content, title, "import numpy as np\nimport pde\n", evolve)


def fipy_text(content: Content) -> str:
    """Return the script; it needs numpy and FiPy alone."""
    title = "An identified law for FiPy (written for version 4.0; pip install fipy)."
    rate, stiffest = _rate(content, "fipy"), content.dynamics.parts.stiffest
    words = dict(zip(("diffusion", "term", "share"), _FIPY_TERMS[content.dynamics.order], strict=True))
    evolve = _FIPY.format(rate=rate, stiffest=stiffest, steps=content.steps, **words)
    return _script(content, title, "import fipy\nimport numpy as np\n", evolve)


def sympy_text(content: Content) -> str:
    """Return a module with G, H and f as polynomials, and G and H everywhere as Piecewise."""
    form, (low, high), found = content.form, content.form.ends, content.law.family.found
    ends = ((low, "below"), (high, "above"))
    lines = [f"{end.slope!r} * {name}" for end, name in ends]
    curves = [f"{0.5 * low.slope!r} * below**2", f"{high.height!r} + {0.5 * high.slope!r} * above**2"]
    if low.force or high.force:
        lines = [horner((end.force, end.slope), name) for end, name in ends]
        curves = [horner((end.height, end.force, 0.5 * end.slope), name) for end, name in ends]
    body = _SYMPY.format(
        names="\n".join(f"{name} = {text}" for name, text in form.names("u", SYMPY).items()), law=content,
        place="over the values of the record" if found else "between the pure phases", low=low, high=high,
        choice=_choice(content), force=form.code("force", "u", SYMPY), primitive=form.code("primitive", "u", SYMPY),
        ends="these" if found else "the pure phases", lines=lines, curves=curves,
        below=moved("u", low.u, 1.0, PYTHON).strip("()"), above=moved("u", high.u, 1.0, PYTHON).strip("()"),
    )  # fmt: skip
    paper = "" if content.epsilon is None else _SYMPY_PAPER.format(epsilon=content.epsilon)
    return _docstring(content, "An identified law for SymPy.") + "\n" + body + paper + _SYMPY_MAIN


def _script(content: Content, title: str, imports: str, evolve: str) -> str:
    main = _MAIN.format(high=content.phases[1], scale=content.on_phases(" * "))
    head = [_docstring(content, title), f"import sys\n\n{imports}", _constants(content), ""]
    return "\n".join([*head, *_parts(content), _function(content, "force"), "", evolve, "", main])


def _rate(content: Content, format: str) -> str:
    """Return the function rate(u, t) of the equation, which calls bend(u, tensor); refused where there is none."""
    parts = content.dynamics.parts
    words = {
        "tensors": [f", {name}" if name in parts.tensors else "" for name in "AB"],
        "mobility": "" if parts.rate is None else "mobility(u) * ",
        "driving": "" if content.driving is None else " + driving(t)",
    }
    change = template(content, _CHANGES, format).format(**words)
    return _RATE.format(equation=content.dynamics.equation, change=change, **words)


def _parts(content: Content) -> Iterator[str]:
    """Yield what is added to the equation, as code."""
    parts = content.dynamics.parts
    if parts.tensors:
        yield "".join(f"{name} = {tensor!r}  # rows along (z, y,) x\n" for name, tensor in parts.tensors.items()) + "\n"
    if (rate := parts.rate) is not None:
        place, series = moved("x", *rate.centre, PYTHON), horner(rate.powers, "s")
        yield _MOBILITY.format(low=rate.reach[0], high=rate.reach[1], place=place, series=series) + "\n"
    if content.driving is not None:
        times, values = content.driving
        table = "\n    ".join(wrap(repr(values.tolist()), 110))
        yield _DRIVING.format(end=float(times[-1]), count=len(times), values=table) + "\n"


def _choice(content: Content) -> str:
    return "" if content.scaled else ", a choice: no surface tension fixed the scale"


def _docstring(content: Content, title: str) -> str:
    """Return the head of a Python text; nothing in it can end the string."""
    body = content.comment("").replace("\\", "/").replace('"""', "'''")
    return f'"""{title}\n\n' + "\n".join(line.removeprefix(" ") for line in body.splitlines()) + '\n"""\n'


def _function(content: Content, name: Literal["force", "primitive"]) -> str:
    """Return the function force(u) or primitive(u): plain enough for Numba, so no loop and no list."""
    form, (low, high) = content.form, content.form.ends
    names = form.names("x", PYTHON)
    if "w" in names:
        s = "s" if "s" in names else "x"
        names["w"] = f"(1.0 - {s}) * (1.0 + {s})"  # without cancellation

    def either(first: float, second: float) -> str:
        return repr(second) if form.variable == "w" else f"np.where(u < x, {first!r}, {second!r})"

    what, outside = "G(u) in 1/length^2", f"{either(low.slope, high.slope)} * (u - x)"
    if name == "primitive":
        what = f"H(u) in 1/length^2, the integral of G from {content.law.phases[0]:g} to u"
        outside = f"{either(0.5 * low.slope, 0.5 * high.slope)} * (u - x) ** 2"
        if low.force or high.force:
            outside = f"{either(low.force, high.force)} * (u - x) + {outside}"
    return _FUNCTION.format(
        name=name, what=what, low=low.u, high=high.u, place="".join(f"    {key} = {names[key]}\n" for key in names),
        inside=form.code(name, "x", PYTHON), outside=outside,
    )  # fmt: skip


def _constants(content: Content) -> str:
    """Return the numbers of the equation and of the record's mesh."""
    data = content.facts.data
    return _CONSTANTS.format(
        law=content, data=data, cells=data.shape[1:], axes=", ".join("zyx"[1 - len(data.shape) :]),
        periodic=data.boundary == "periodic",
    )  # fmt: skip

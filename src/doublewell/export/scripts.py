"""Scripts: the law as NumPy functions, as SymPy expressions, and as programs that evolve a field."""

from __future__ import annotations

from doublewell.export.content import Content, template

_FORCE = '''\
def force(u):
    """Return G(u) in 1/length^2."""
{place}    return {inside} + {outside}
'''
_PRIMITIVE = '''\
def primitive(u):
    """Return H(u) in 1/length^2, the integral of G from {low:g} to u."""
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
    """Return a round drop of the phase {high:g} in the middle, a first field to try."""
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
below, above = u - {low!r}, u - {high!r}
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
''',
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
''',
}


def python_text(content: Content) -> str:
    """Return a module with force, primitive, bulk_energy and, where a tension fixed the scale, potential."""
    low, high = content.law.phases
    reach = 0.1 * (high - low)
    parts = [
        _docstring(content, "An identified law as NumPy functions."),
        "import numpy as np\n",
        _constants(content) + "\n",
        _force(content) + "\n",
        _primitive(content) + "\n",
        _ENERGY.format(kappa=content.kappa, mobility=content.mobility, choice=_choice(content)),
    ]
    if content.epsilon is not None:
        parts.append("\n" + _PAPER.format(epsilon=content.epsilon))
    return "\n".join([*parts, "", _TABLE.format(start=low - reach, end=high + reach)])


def pypde_text(content: Content) -> str:
    """Return the script; it needs numpy and py-pde alone."""
    head = _docstring(content, "An identified law for py-pde (written for version 0.59; pip install py-pde).")
    imports = "import sys\n\nimport numpy as np\nimport pde\n"
    return _script(content, head, imports, template(content, _PYPDE, "py-pde"))


def fipy_text(content: Content) -> str:
    """Return the script; it needs numpy and FiPy alone."""
    head = _docstring(content, "An identified law for FiPy (written for version 4.0; pip install fipy).")
    imports = "import sys\n\nimport fipy\nimport numpy as np\n"
    return _script(content, head, imports, template(content, _FIPY, "fipy"))


def sympy_text(content: Content) -> str:
    """Return a module with G, H and f as polynomials, and G and H everywhere as Piecewise."""
    law, form = content.law, content.polynomial
    (low, high), half = law.phases, law.family.half
    size, square = ("", "") if content.unit else (f"{half!r} * ", f"{half!r}**2 * ")
    if form.variable == "w":
        s = "u" if content.unit else "s"
        names = f"w = 1 - {s}**2"
        names = names if content.unit else f"s = (u - {law.family.middle!r}) / {half!r}\n{names}"
        force, primitive = (
            f"-{size}{s} * w * ({form.code('force')})",
            f"{square}w**2 * ({form.code('primitive')})",
        )
    else:
        names = f"t = (u - {low!r}) / {high - low!r}"
        force = f"-{4.0 * half!r} * t * (1 - t) * ({form.code('force')})"
        primitive = f"{half!r}**2 * t**2 * ({form.code('primitive')})"
    slopes = _slopes(content)
    body = _SYMPY.format(
        names=names, q=content.q, kappa=content.kappa, choice=_choice(content), mobility=content.mobility, low=low,
        high=high, force=force, primitive=primitive, slopes=slopes, bends=(0.5 * slopes[0], 0.5 * slopes[1]),
        tilt=law.tilt,
    )  # fmt: skip
    paper = "" if content.epsilon is None else _SYMPY_PAPER.format(epsilon=content.epsilon)
    return _docstring(content, "An identified law for SymPy.") + "\n" + body + paper + _SYMPY_MAIN


def _script(content: Content, head: str, imports: str, evolve: str) -> str:
    middle, half = content.law.family.middle, content.law.family.half
    scale = "" if content.unit else f"{middle!r} + {half!r} * "
    main = _MAIN.format(high=content.law.phases[1], scale=scale)
    return "\n".join([head, imports, _constants(content), "", _force(content), "", evolve, "", main])


def _choice(content: Content) -> str:
    return "" if content.scaled else ", a choice: no surface tension fixed the scale"


def _slopes(content: Content) -> tuple[float, float]:
    """Return G' at the low and at the high phase, beyond which G continues linearly."""
    if content.polynomial.variable == "w":
        return (2.0 * content.polynomial.force[0],) * 2
    return content.law.well_curvatures


def _docstring(content: Content, title: str) -> str:
    """Return the head of a Python text; nothing in it can end the string."""
    body = content.comment("").replace("\\", "/").replace('"""', "'''")
    return f'"""{title}\n\n' + "\n".join(line.removeprefix(" ") for line in body.splitlines()) + '\n"""\n'


def _place(content: Content) -> str:
    """Return the lines that bring u between the phases, x, and to the variable of the polynomial."""
    (low, high), law = content.law.phases, content.law
    lines = [f"x = np.minimum(np.maximum(u, {low!r}), {high!r})"]
    if content.polynomial.variable == "t":
        lines.append(f"t = (x - {low!r}) / {high - low!r}")
    elif content.unit:
        lines.append("w = (1.0 - x) * (1.0 + x)")
    else:
        lines += [f"s = (x - {law.family.middle!r}) / {law.family.half!r}", "w = (1.0 - s) * (1.0 + s)"]
    return "".join(f"    {line}\n" for line in lines)


def _force(content: Content) -> str:
    """Return the function force(u): plain enough for Numba, so no loop and no list."""
    form, half = content.polynomial, content.law.family.half
    low, high = _slopes(content)
    if form.variable == "t":
        inside = f"-{4.0 * half!r} * t * (1.0 - t) * ({form.code('force')})"
        outside = f"np.where(u < x, {low!r}, {high!r}) * (u - x)"
    else:
        inside = f"{'-x' if content.unit else f'-{half!r} * s'} * w * ({form.code('force')})"
        outside = f"{high!r} * (u - x)"
    return _FORCE.format(place=_place(content), inside=inside, outside=outside)


def _primitive(content: Content) -> str:
    form, half = content.polynomial, content.law.family.half
    low, high = (0.5 * slope for slope in _slopes(content))
    size = "" if content.unit else f"{half!r} ** 2 * "
    power = "t**2" if form.variable == "t" else "w**2"
    outside = f"{high!r} * (u - x) ** 2"
    if form.variable == "t":
        outside = f"np.where(u < x, {low!r}, {high!r}) * (u - x) ** 2"
    inside = f"{size}{power} * ({form.code('primitive')})"
    return _PRIMITIVE.format(low=content.law.phases[0], place=_place(content), inside=inside, outside=outside)


def _constants(content: Content) -> str:
    """Return the numbers of the equation and of the record's mesh."""
    data = content.facts.data
    return _CONSTANTS.format(
        q=content.q, cells=content.cells, axes=", ".join(("z", "y", "x")[-len(content.cells) :]), dx=data.dx,
        dt=data.dt, periodic=content.periodic, steepest=content.steepest, profile=content.profile,
    )  # fmt: skip

"""FiPy: a script that evolves a field by finite volumes, Crank-Nicolson for both terms."""

from __future__ import annotations

from doublewell.export.content import Content
from doublewell.export.numpy_code import MAIN, constants_code, docstring, force_code

__all__ = ["fipy_text"]

_EVOLVE = '''\
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


def fipy_text(content: Content) -> str:
    """Return the script; it needs numpy and FiPy alone."""
    head = docstring(content, "An identified Allen-Cahn law for FiPy (written for version 4.0; pip install fipy).")
    imports = "import sys\n\nimport fipy\nimport numpy as np\n"
    return "\n".join([head, imports, constants_code(content), "", force_code(content), "", _EVOLVE, "", MAIN])

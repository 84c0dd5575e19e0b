"""py-pde: a script that evolves a field by finite differences and Runge-Kutta steps."""

from __future__ import annotations

from doublewell.export.content import Content
from doublewell.export.numpy_code import MAIN, constants_code, docstring, force_code

__all__ = ["pypde_text"]

_EVOLVE = '''\
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


def pypde_text(content: Content) -> str:
    """Return the script; it needs numpy and py-pde alone."""
    head = docstring(content, "An identified Allen-Cahn law for py-pde (written for version 0.59; pip install py-pde).")
    imports = "import sys\n\nimport numpy as np\nimport pde\n"
    return "\n".join([head, imports, constants_code(content), "", force_code(content), "", _EVOLVE, "", MAIN])

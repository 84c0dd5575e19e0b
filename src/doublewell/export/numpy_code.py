"""NumPy code of the law, and the frame of a script that evolves a field by it."""

from __future__ import annotations

from doublewell.export.content import Content
from doublewell.export.polynomial import horner, primitive_powers

__all__ = ["FORCE", "MAIN", "constants_code", "docstring", "force_code", "primitive_code"]

FORCE = '''\
def force(u):
    """Return G(u) in 1/length^2."""
    x = np.minimum(np.maximum(u, -1.0), 1.0)
    w = (1.0 - x) * (1.0 + x)
    return -x * w * ({bracket}) + {slope!r} * (u - x)
'''
PRIMITIVE = '''\
def primitive(u):
    """Return H(u) in 1/length^2, the integral of G from -1 to u: zero at the pure phases."""
    x = np.minimum(np.maximum(u, -1.0), 1.0)
    w = (1.0 - x) * (1.0 + x)
    return w**2 * ({reduced}) + {curvature!r} * (u - x) ** 2
'''
CONSTANTS = """\
Q = {q!r}  # diffusion coefficient
CELLS = {cells!r}  # of the record, along {axes}
DX = {dx!r}  # cell size along each axis
DT = {dt!r}  # time from frame to frame
PERIODIC = {periodic!r}  # otherwise no flux through the border
STEEPEST = {steepest!r}  # largest |G'|
PROFILE = {profile!r}  # an interface of this law is about tanh(x / PROFILE)
"""
MAIN = '''\
def drop():
    """Return a round drop of the phase +1 in the middle, a first field to try."""
    lines = [(np.arange(n) + 0.5 - 0.5 * n) * h for n, h in zip(CELLS, DX)]
    distance = np.sqrt(sum(x**2 for x in np.meshgrid(*lines, indexing="ij")))
    return np.tanh((0.3 * min(n * h for n, h in zip(CELLS, DX)) - distance) / PROFILE)


if __name__ == "__main__":  # python thisfile.py [first.npy [frames [out.npy]]]
    words = sys.argv[1:]
    fields = evolve(np.load(words[0]) if words else drop(), int(words[1]) if len(words) > 1 else 11)
    out = words[2] if len(words) > 2 else "fields.npy"
    np.save(out, fields)
    print(f"{len(fields)} frames of {fields.shape[1:]}, {DT:g} apart, written to {out}")
'''


def docstring(content: Content, title: str) -> str:
    """Return the head of a Python text; nothing in it can end the string."""
    body = content.comment("").replace("\\", "/").replace('"""', "'''")
    return f'"""{title}\n\n' + "\n".join(line.removeprefix(" ") for line in body.splitlines()) + '\n"""\n'


def force_code(content: Content) -> str:
    """Return the function force(u): plain enough for Numba, so no loop and no list."""
    return FORCE.format(bracket=horner(content.powers), slope=2.0 * content.powers[0])


def primitive_code(content: Content) -> str:
    """Return the function primitive(u)."""
    return PRIMITIVE.format(reduced=horner(primitive_powers(content.powers)), curvature=content.powers[0])


def constants_code(content: Content) -> str:
    """Return the numbers of the equation and of the record's mesh."""
    asked = content.result.settings
    return CONSTANTS.format(
        q=content.q,
        cells=content.cells,
        axes=", ".join(("z", "y", "x")[-len(content.cells) :]),
        dx=asked.dx,
        dt=asked.dt,
        periodic=content.periodic,
        steepest=content.steepest,
        profile=content.profile,
    )

"""Python: the law as NumPy functions that need nothing else."""

from __future__ import annotations

from doublewell.export.content import Content
from doublewell.export.numpy_code import constants_code, docstring, force_code, primitive_code

__all__ = ["python_text"]

_ENERGY = '''\
KAPPA = {kappa!r}  # of kappa/2 |grad u|^2{choice}
MOBILITY = {mobility!r}  # L = q / kappa


def bulk_energy(u):
    """Return f(u) = kappa H(u), the energy per volume over that of the pure phases."""
    return KAPPA * primitive(u)
'''
_PAPER = '''\
EPSILON = {epsilon!r}  # the paper's interfacial scale


def potential(u):
    """Return the paper's F(u) = epsilon^2 H(u)."""
    return EPSILON**2 * primitive(u)
'''
_MAIN = """\
if __name__ == "__main__":
    for value in np.linspace(-1.2, 1.2, 25):
        print(f"u = {value:5.2f}   G = {force(value):14.6g}   H = {primitive(value):14.6g}")
"""


def python_text(content: Content) -> str:
    """Return a module with force, primitive, bulk_energy and, where a tension fixed the scale, potential."""
    scale = content.result.scale
    choice = "" if content.scaled else ", a choice: no surface tension fixed the scale"
    parts = [
        docstring(content, "An identified Allen-Cahn law as NumPy functions."),
        "import numpy as np\n",
        constants_code(content) + "\n",
        force_code(content) + "\n",
        primitive_code(content) + "\n",
        _ENERGY.format(kappa=content.kappa, mobility=content.mobility, choice=choice),
    ]
    if scale is not None:
        parts.append("\n" + _PAPER.format(epsilon=scale.epsilon))
    return "\n".join([*parts, "", _MAIN])

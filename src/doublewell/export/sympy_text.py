"""SymPy: the law as symbolic expressions."""

from __future__ import annotations

from doublewell.export.content import Content
from doublewell.export.numpy_code import docstring
from doublewell.export.polynomial import horner, primitive_powers

__all__ = ["sympy_text"]

_BODY = """\
import sympy

u = sympy.Symbol("u", real=True)
w = 1 - u**2
q = {q!r}  # diffusion coefficient
kappa = {kappa!r}  # of kappa/2 |grad u|^2{choice}
L = {mobility!r}  # mobility q / kappa

# between the pure phases, -1 <= u <= 1
G = -u * w * ({bracket})
H = w**2 * ({reduced})
f = kappa * H

# everywhere: beyond the pure phases G goes on linearly
beyond = sympy.Abs(u) - 1
G_everywhere = sympy.Piecewise((G, sympy.Abs(u) <= 1), ({slope!r} * sympy.sign(u) * beyond, True))
H_everywhere = sympy.Piecewise((H, sympy.Abs(u) <= 1), ({curvature!r} * beyond**2, True))
"""
_PAPER = """
epsilon = {epsilon!r}  # the paper's interfacial scale
F = epsilon**2 * H
"""
_MAIN = """
if __name__ == "__main__":
    print("G(u) =", sympy.expand(G))
    print("H(u) =", sympy.expand(H))
    print("H''(1) =", sympy.diff(H, u, 2).subs(u, 1), " H''(0) =", sympy.diff(H, u, 2).subs(u, 0))
"""


def sympy_text(content: Content) -> str:
    """Return a module with G, H and f as polynomials, and G and H everywhere as Piecewise."""
    body = _BODY.format(
        q=content.q,
        kappa=content.kappa,
        choice="" if content.scaled else ", a choice: no surface tension fixed the scale",
        mobility=content.mobility,
        bracket=horner(content.powers),
        reduced=horner(primitive_powers(content.powers)),
        slope=2.0 * content.powers[0],
        curvature=content.powers[0],
    )
    scale = content.result.scale
    paper = "" if scale is None else _PAPER.format(epsilon=scale.epsilon)
    return docstring(content, "An identified Allen-Cahn law for SymPy.") + "\n" + body + paper + _MAIN

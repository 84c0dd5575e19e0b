"""The preconditioner of a trajectory fit: J_u' J_u of the first field, solved on a coarse mesh.

A disturbance dies at the rate D G' - L, fast modes within a frame. Those that last longer are solved for on a mesh that
holds them, by conjugate gradients on

    A = 1 + sum_k T_k' T_k,   T_k the product of the steps to frame k,   v -> exp(z) v - D h phi_1(z) (G'(u) - c) v,

z = h (L - c D). A step is exact for what does not change, such as the shift of an interface at rest, and takes two
transforms where that of the prediction takes eight. The preconditioner of that solve, in turn, splits the cells in pure
phases and interfaces, fractions whose squares add up to one, each with its own sum over the frames.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.dynamics.etdrk4 import differentiable_force
from doublewell.dynamics.grid import Grid, jax_transforms
from doublewell.hints import Array
from doublewell.law import Family

_LASTS = 0.5  # |L| tau of the modes that are left out, times 1 + substeps: benchmarks/trajectory_cost.py --runs
_TOLERANCE, _MOST = 0.1, 12  # of the coarse solve
_FEWEST = 8  # cells of a coarse mesh along an axis
_FLOOR = 1e-3  # of the largest: what is made of a mode that is hardly observed
_TINY = 1e-30


def coarse_mesh(grid: Grid, linear: Array, tau: float, substeps: int) -> tuple[int, ...]:
    """Return the cells along each axis of the mesh whose modes last for a frame, at most those of the grid.

    It is odd where the boundary is periodic, so that no mode is its own mirror image.
    """
    cells, lasts, periodic = [], np.abs(linear) * tau < _LASTS * (1 + substeps), grid.boundary == "periodic"
    for axis, n in enumerate(grid.cells):
        along = np.any(lasts, axis=tuple(k for k in range(lasts.ndim) if k != axis))
        kept = int(np.count_nonzero(along[: n // 2 + 1])) * 2 - 1 if periodic else int(np.count_nonzero(along))
        m = max(kept, _FEWEST)
        while (periodic and m % 2 == 0) or _rough(m):
            m += 1
        cells.append(min(m, n))
    return tuple(cells)


def _rough(n: int) -> bool:
    """Return whether a number has a prime factor above 7, for which transforms are slow."""
    for p in (2, 3, 5, 7):
        while n % p == 0:
            n //= p
    return n > 1


def low_modes(fine: tuple[int, ...], coarse: tuple[int, ...], boundary: str) -> Any:
    """Return where the modes of a coarse mesh are among those of a fine one, for each axis."""
    places: list[Any] = []
    for axis, (n, m) in enumerate(zip(fine, coarse, strict=True)):
        if boundary == "neumann":
            places.append(np.arange(m))
        elif axis == len(fine) - 1:
            places.append(np.arange(m // 2 + 1))
        else:
            places.append(np.arange(n) if m == n else np.r_[: m // 2 + 1, n - m // 2 : n])
    return np.ix_(*places)


def approximate_inverse(model: Any, field: Any, coefficients: Any, taus: Any, constants: Any) -> Any:
    """Return the map from a gradient by the first field to an approximate solution, at a field and a law."""
    import jax.numpy as jnp

    forward, backward = jax_transforms(model.cells, model._modes)
    to_modes, to_cells = jax_transforms(model.coarse, model._modes)
    places, scale = low_modes(model.cells, model.coarse, model._modes), np.prod(model.coarse) / np.prod(model.cells)
    scale = scale if model._modes == "periodic" else np.sqrt(scale)
    names = ("linear", "coupling", "gain", "smoothing")
    each = {name: jnp.broadcast_to(getattr(constants, name), constants.linear.shape)[places] for name in names}
    low, start = constants._replace(**each), scale * forward(field)[places]
    slope = jnp.maximum(_slope(model.family, coefficients, to_cells(low.smoothing * start)), 0.0)
    mean = jnp.sum(slope**2) / jnp.maximum(jnp.sum(slope), _TINY)
    calm = jnp.clip(slope / jnp.maximum(mean, _TINY), 0.0, 1.0)  # how much of each cell is a pure phase
    parts = [
        (jnp.sqrt(calm), _inverse_sum(mean, taus, low)),
        (jnp.sqrt(1.0 - calm), _inverse_sum(0.0, taus, low)),
    ]

    def split(modes: Any) -> Any:
        cells = to_cells(modes)
        return sum(to_modes(part * to_cells(damping * to_modes(part * cells))) for part, damping in parts)

    def dot(a: Any, b: Any) -> Any:
        return jnp.vdot(to_cells(a), to_cells(b))

    normal = _normal_map(model, start, coefficients, 0.5 * mean, taus, low)
    beyond = _inverse_sum(0.5 * mean, taus, constants)

    def apply(gradient: Any) -> Any:
        modes = forward(gradient)
        return backward((beyond * modes).at[places].set(_solve(normal, split, dot, modes[places])))

    return apply


def _normal_map(model: Any, start: Any, coefficients: Any, middle: Any, taus: Any, low: Any) -> Any:
    """Return A, a map of coarse modes, along the path from the modes `start`; `middle` is c."""
    import jax
    import jax.numpy as jnp

    to_modes, to_cells = jax_transforms(model.coarse, model._modes)
    steps, force = -(-model.substeps // 2), differentiable_force(model.family)
    hs = jnp.repeat(taus / steps, steps, total_repeat_length=steps * (model.frames - 1))
    frames = np.arange(1, steps * (model.frames - 1) + 1) % steps == 0

    def weights(h: Any) -> tuple[Any, Any]:
        z = h * (low.linear - middle * low.coupling)
        flat = jnp.abs(z) < _TINY
        return jnp.exp(z), h * low.coupling * jnp.where(flat, 1.0, jnp.expm1(z) / jnp.where(flat, 1.0, z))

    def path(modes: Any, h: Any) -> tuple[Any, Any]:
        (decay, drive), u = weights(h), to_cells(modes)
        after = decay * modes - drive * to_modes(force(coefficients, u) - middle * u)
        return after, 0.5 * sum(_slope(model.family, coefficients, x) for x in (u, to_cells(after))) - middle

    _, slopes = jax.lax.scan(path, start, hs)
    slopes = jnp.where(jnp.isfinite(slopes), slopes, 0.0)  # of a law that runs away from the record

    def push(modes: Any, given: Any) -> tuple[Any, Any]:
        slope, h = given
        decay, drive = weights(h)
        after = decay * modes - drive * to_modes(slope * to_cells(modes))
        return after, after

    def pull(later: Any, given: Any) -> tuple[Any, None]:
        slope, h, modes, counts = given
        decay, drive = weights(h)
        later = later + counts * low.gain * modes
        return decay * later - to_modes(slope * to_cells(drive * later)), None

    def normal(modes: Any) -> Any:
        _, after = jax.lax.scan(push, modes, (slopes, hs))
        total, _ = jax.lax.scan(pull, jnp.zeros_like(modes), (slopes, hs, after, frames), reverse=True)
        return low.gain * modes + total

    return normal


def _solve(normal: Any, split: Any, dot: Any, right: Any) -> Any:
    """Solve on the coarse mesh by conjugate gradients."""
    import jax
    import jax.numpy as jnp

    def unfinished(state: tuple[Any, ...]) -> Any:
        count, *_, product = state
        return (count < _MOST) & (product > _TOLERANCE**2 * whole)

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        count, solution, rest, direction, product = state
        image = normal(direction)
        length = product / dot(direction, image)
        solution, rest = solution + length * direction, rest - length * image
        turned = split(rest)
        fresh = dot(rest, turned)
        return count + 1, solution, rest, turned + fresh / product * direction, fresh

    turned = split(right)
    whole = dot(right, turned)
    return jax.lax.while_loop(unfinished, body, (0, jnp.zeros_like(right), right, turned, whole))[1]


def _slope(family: Family, coefficients: Any, u: Any) -> Any:
    """Return G'(u)."""
    import jax
    import jax.numpy as jnp

    force = differentiable_force(family)
    return jax.jvp(lambda x: force(coefficients, x), (u,), (jnp.ones_like(u),))[1]


def _inverse_sum(slope: Any, taus: Any, of: Any) -> Any:
    """Return 1 / sum_k exp(2 (L - D slope) tau_k) of each mode, times what optics and noise make of it."""
    import jax
    import jax.numpy as jnp

    def add(total: Any, tau: Any) -> tuple[Any, None]:
        return total + jnp.exp(2.0 * (of.linear - of.coupling * slope) * tau), None

    total, _ = jax.lax.scan(add, jnp.ones_like(of.linear), jnp.cumsum(taus))
    total = total * of.gain
    return 1.0 / jnp.maximum(total, _FLOOR * jnp.max(total))

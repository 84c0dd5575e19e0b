"""Alternatives: what the model may lack, each as derivatives of the prediction by parameters that it does not have.

A term that the equation may lack has its response computed by the solver that made the fit, one program for all of
them; what the observation may lack is a field made of the prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, Grid, numpy_transforms, terms
from doublewell.dynamics.terms import Term
from doublewell.hints import Array
from doublewell.likelihood import Trajectory, points
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import View, mode_grid
from doublewell.record import Boundary
from doublewell.runtime import double_precision

Direction = tuple[str, list[Array]]
_VARIED = ("mobility(u)", "mobility(x)", "conserved")  # rates whose mean is not known better than q
_DARK = 1e-6  # of the range of grey values: no logarithm of less


def missing_terms(dynamics: Dynamics, view: View, axes: int, boundary: str) -> dict[str, tuple[Term, ...]]:
    """Return the terms that an equation may lack, by name.

    Another mean rate goes with those of a rate that varies where q is not estimated.
    """
    found: dict[str, tuple[Term, ...]] = {} if dynamics.gauge == "constant" else {"tilt": (terms.constant,)}
    found["force(t)"] = (terms.later,)
    plain = dynamics.name == ALLEN_CAHN.name
    if plain:  # what is added to a force is multiplied by D: other rates cannot be
        numbers = (0, 1) if boundary == "periodic" else (0, 2)
        if dynamics.parts.mobility is None:
            found["mobility(u)"] = (terms.mobility(1), terms.mobility(2))
        found["mobility(x)"] = tuple(terms.uneven(axis, k) for axis in range(axes) for k in numbers)
    if boundary == "open":
        return found
    if plain:
        found["mass"] = (terms.mean_force,)
        found["conserved"] = (terms.conserved, terms.mean_force)
        found["time step"] = (terms.damped,)
    if axes > 1 and dynamics.parts.anisotropy != "estimated":  # the sum of all is another q
        pairs = [(a, b) for a in range(axes) for b in range(a + 1, axes)] if boundary == "periodic" else []
        pairs += [(a, a) for a in range(1 if view.q_free else 0, axes)]
        found["anisotropy"] = tuple(terms.curvature(*pair) for pair in pairs)
    return found


def directions(fits: Sequence[Trajectory], u: Array, root: Any) -> Iterator[Direction]:
    """Yield what the model may lack: a name, and whitened derivatives d[record, t, (z, y,) x] of the predictions `u`.

    `root` is what each value counts. What the fit estimates, or what has no effect, is left out.
    """
    batch, record = fits[0].batch, fits[0].record
    found = missing_terms(batch.dynamics, batch.view, u.ndim - 2, record.boundary or "open")
    each, rate = tuple(dict.fromkeys(term for some in found.values() for term in some)), list[Array]()
    response = _responses(fits, root, each)
    letters = "zyx"[1 - len(record.shape) :]
    for name, parts in (("q", ["q"]), ("advection", [f"drift {letter}" for letter in letters]), ("blur", ["blur"])):
        if parts[0] in response:
            yield name, [response[part] for part in parts]
    rate = [response["q"]] if "q" in response else []
    model, constants = batch.model(fits[0].family, fits[0].inner)
    for name, fields in _observed(fits, u):
        with double_precision():
            yield name, [np.asarray(model.whiten(field, constants._replace(root=root))) for field in fields]
    for name, some in found.items():
        yield name, [*[response[term] for term in some], *(rate if name in _VARIED else [])]


def _responses(fits: Sequence[Trajectory], root: Any, terms: tuple[Term, ...]) -> dict[Any, Array]:
    """Return how the whitened predictions move with what a fit could estimate and did not, and with terms.

    That is q, and on a window the drift and the blur of its pictures. One program computes all of them.
    """
    record, batch, known = fits[0].record, fits[0].batch, fits[0].batch.view.free
    view, axes = replace(batch.view, q_free=True), range(len(record.mesh))
    letters = "zyx"[1 - len(record.shape) :]
    if record.boundary == "open":
        view = replace(view, moving=letters)
        if not view.blurs:
            view = replace(view, optics=replace(view.optics, blur="some"))
    model, constants = batch.model(fits[0].family, fits[0].inner, view=view, terms=terms)
    (nuisance, fitted), wider = points(fits), view.free
    theta = np.zeros((len(fitted), len(wider) + fitted.shape[1] - len(known) + len(terms)))
    theta[:, wider.index("q")] = 1.0
    theta[:, [wider.index(name) for name in known]] = fitted[:, : len(known)]
    theta[:, len(wider) : theta.shape[1] - len(terms)] = fitted[:, len(known) :]
    span = float(record.times[-1] - record.times[0])
    units = {f"drift {letter}": span / record.dx[k] for k, letter in zip(axes, letters, strict=True)}
    units |= {"blur": 2.0 / record.dx[-1] ** 2, "q": 1.0}  # a velocity, half a variance, a relative error
    size: dict[Any, float] = {name: units[name] for name in wider if name in units and name not in known}
    places = [wider.index(name) for name in size] + [*range(theta.shape[1] - len(terms), theta.shape[1])]
    size |= dict.fromkeys(terms, 1.0)
    along = np.tile(np.eye(theta.shape[1])[places], (len(theta), 1, 1))
    fields = np.asarray(compiled().columns(model, nuisance, theta, along, constants._replace(root=root)))
    return {name: unit * fields[:, k] for k, (name, unit) in enumerate(size.items())}


def _observed(fits: Sequence[Trajectory], u: Array) -> Iterator[Direction]:
    """Yield what the observation may lack."""
    record, batch = fits[0].record, fits[0].batch
    grid, window, axes = mode_grid(record), record.boundary == "open", range(2 - u.ndim, 0)
    time = (record.times - record.times[0]).reshape(-1, *[1] * len(axes))
    # a velocity c along each axis: u(x - c t, t) solves the equation with - c . grad u; at a no-flux wall across the
    # velocity it is the pattern that drifts in the frame, not a flow through the wall
    if not (window or batch.view.moving):
        yield "advection", [-time * slope(u, axis, grid) for axis in axes]
    # the other boundary condition, from the same initial field; no wall moves with a picture or has oblique waves
    oblique = batch.dynamics.parts.oblique or any(name.endswith("xy") for name in batch.view.equation)
    if not (window or batch.view.moving or batch.view.velocity or oblique):
        other: Boundary = "neumann" if grid.boundary == "periodic" else "periodic"
        yield "boundary", [batch.predict(fits, boundary=other, refine=batch.view.refine | 1) - u]
    units = fits[0].family.found  # gain and offset are a choice of units where the phases are found
    if "gain" not in batch.view.free and not units:
        yield "gain", [u]  # a, the observation being (1 + a) u
    if "gain drift" not in batch.view.free:
        yield "gain drift", [time / time[-1] * u]  # (1 + a t / T) u
    if "offset" not in batch.view.free and not units:
        yield "offset", [np.ones_like(u)]  # u + a
    if "response" not in batch.view.free and not units:
        grey = np.maximum(0.5 + 0.5 * u, _DARK)
        yield "response", [2.0 * grey * np.log(grey)]  # grey values to the power 1 + a
    # u + a Laplacian u: a Gaussian blur of the variance 2 a; where the interface is flat and at rest, |grad u|^2 is a
    # function of u, and blur is the same as another law
    if "blur" not in batch.view.free and not window:
        forward, backward = numpy_transforms(grid.cells, grid.boundary)
        yield "blur", [backward(grid.laplacian * forward(u))]


def slope(u: Array, axis: int, grid: Grid) -> Array:
    """Differentiate along a space axis, counted from the end, by modes."""
    from scipy import fft

    n, length, along = grid.cells[axis], grid.cells[axis] * grid.dx[axis], (-1, *[1] * (-1 - axis))
    if grid.boundary == "periodic":
        waves = 2j * np.pi * np.arange(n // 2 + 1) / length
        if n % 2 == 0:
            waves[-1] = 0.0  # the highest mode has no slope at the points
        return np.asarray(fft.irfft(waves.reshape(along) * fft.rfft(u, axis=axis), n=n, axis=axis))
    cosines = fft.dct(u, axis=axis, norm="ortho") * (-np.pi * np.arange(n) / length).reshape(along)
    sines = np.roll(cosines, -1, axis=axis)  # the constant, now last, is zero
    return np.asarray(fft.idst(sines, axis=axis, norm="ortho"))

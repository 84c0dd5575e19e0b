"""Dynamics: equations as values, and what steps them: grids, CNAB2 (NumPy), ETDRK4 and open windows (JAX)."""

from doublewell.dynamics.allen_cahn import ALLEN_CAHN, AllenCahn
from doublewell.dynamics.cnab2 import Cnab2
from doublewell.dynamics.etdrk4 import (
    Etdrk4,
    StepTable,
    Weights,
    differentiable_force,
    etd_weights,
    predict,
    roll,
    step_table,
    step_weights,
)
from doublewell.dynamics.grid import Grid, jax_transforms, numpy_transforms, refine_field, refinement
from doublewell.dynamics.open_boundary import (
    border_mask,
    border_times,
    predict_window,
    second_differences,
    stable_substeps,
)
from doublewell.dynamics.protocol import (
    Column,
    Dynamics,
    JointParameter,
    Stepper,
    Symbols,
    WeakForm,
    fastest_rate,
    steps_per_frame,
    symbols,
)
from doublewell.errors import InputError, shown

DYNAMICS: dict[str, Dynamics] = {ALLEN_CAHN.name: ALLEN_CAHN}


def dynamics_of(name: str | Dynamics) -> Dynamics:
    """Return the dynamics of a name; a Dynamics as it is.

    >>> dynamics_of("allen-cahn").equation
    'u_t = q (Laplacian u - G(u))'
    """
    if isinstance(name, str) and name in DYNAMICS:
        return DYNAMICS[name]
    if isinstance(name, Dynamics) and not isinstance(name, type):
        return name
    raise InputError(
        f"dynamics is {shown(name)}: expected one of {', '.join(map(repr, DYNAMICS))}, or a value with the methods of "
        "doublewell.dynamics.Dynamics"
    )


__all__ = [
    "ALLEN_CAHN",
    "DYNAMICS",
    "AllenCahn",
    "Cnab2",
    "Column",
    "Dynamics",
    "Etdrk4",
    "Grid",
    "JointParameter",
    "StepTable",
    "Stepper",
    "Symbols",
    "WeakForm",
    "Weights",
    "border_mask",
    "border_times",
    "differentiable_force",
    "dynamics_of",
    "etd_weights",
    "fastest_rate",
    "jax_transforms",
    "numpy_transforms",
    "predict",
    "predict_window",
    "refine_field",
    "refinement",
    "roll",
    "second_differences",
    "stable_substeps",
    "step_table",
    "step_weights",
    "steps_per_frame",
    "symbols",
]

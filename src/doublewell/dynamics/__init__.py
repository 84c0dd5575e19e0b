"""Dynamics: equations as values; grids; steppers: CNAB2 and thermal noise (NumPy), ETDRK4 and open windows (JAX)."""

from doublewell.dynamics.allen_cahn import ALLEN_CAHN, AllenCahn
from doublewell.dynamics.anisotropy import Anisotropy
from doublewell.dynamics.cahn_hilliard import CAHN_HILLIARD, CahnHilliard
from doublewell.dynamics.cnab2 import Cnab2, cnab2_steps
from doublewell.dynamics.driving import Driving
from doublewell.dynamics.etdrk4 import Etdrk4
from doublewell.dynamics.grid import Grid, numpy_transforms
from doublewell.dynamics.mass_conserving import MASS_CONSERVING, MassConserving
from doublewell.dynamics.mobility import Mobility
from doublewell.dynamics.open_boundary import border_mask
from doublewell.dynamics.parts import JointParameter, joint_parameter
from doublewell.dynamics.protocol import (
    DYNAMICS,
    Column,
    Dynamics,
    Stepper,
    WeakForm,
    dynamics_of,
    fastest_rate,
    in_phases,
    roughly,
    settled,
    since,
    steps_per_frame,
    symbols,
)
from doublewell.dynamics.thermal import Etdrk2

__all__ = [
    "ALLEN_CAHN",
    "CAHN_HILLIARD",
    "DYNAMICS",
    "MASS_CONSERVING",
    "AllenCahn",
    "Anisotropy",
    "CahnHilliard",
    "Cnab2",
    "Column",
    "Driving",
    "Dynamics",
    "Etdrk2",
    "Etdrk4",
    "Grid",
    "JointParameter",
    "MassConserving",
    "Mobility",
    "Stepper",
    "WeakForm",
    "border_mask",
    "cnab2_steps",
    "dynamics_of",
    "fastest_rate",
    "in_phases",
    "joint_parameter",
    "numpy_transforms",
    "roughly",
    "settled",
    "since",
    "steps_per_frame",
    "symbols",
]

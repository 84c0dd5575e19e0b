"""Time steppers: grids, transforms, CNAB2 (NumPy) and ETDRK4 (JAX)."""

from doublewell.dynamics.cnab2 import Cnab2
from doublewell.dynamics.device import device_names, on_gpu
from doublewell.dynamics.etdrk4 import Etdrk4, Weights, etd_weights, predict
from doublewell.dynamics.grid import Grid
from doublewell.dynamics.precision import double_precision
from doublewell.dynamics.stepper import Stepper
from doublewell.dynamics.transforms import jax_transforms

__all__ = [
    "Cnab2",
    "Etdrk4",
    "Grid",
    "Stepper",
    "Weights",
    "device_names",
    "double_precision",
    "etd_weights",
    "jax_transforms",
    "on_gpu",
    "predict",
]

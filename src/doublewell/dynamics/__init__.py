"""Time steppers: grids, transforms, CNAB2 (NumPy) and ETDRK4 (JAX)."""

from doublewell.dynamics.cnab2 import Cnab2
from doublewell.dynamics.device import computing_on, device_memory, device_names, gpu_found, on_gpu
from doublewell.dynamics.etdrk4 import Etdrk4, Weights, differentiable_force, etd_weights, predict, roll
from doublewell.dynamics.grid import Grid
from doublewell.dynamics.precision import double_precision
from doublewell.dynamics.refine import refine_field, refinement
from doublewell.dynamics.room import leave_room
from doublewell.dynamics.step_table import StepTable, frame_shares, step_table
from doublewell.dynamics.stepper import Stepper
from doublewell.dynamics.transforms import jax_transforms
from doublewell.dynamics.window import border_mask, border_times, predict_window, second_differences, stable_substeps

__all__ = [
    "Cnab2",
    "Etdrk4",
    "Grid",
    "StepTable",
    "Stepper",
    "Weights",
    "border_mask",
    "border_times",
    "computing_on",
    "device_memory",
    "device_names",
    "differentiable_force",
    "double_precision",
    "etd_weights",
    "frame_shares",
    "gpu_found",
    "jax_transforms",
    "leave_room",
    "on_gpu",
    "predict",
    "predict_window",
    "refine_field",
    "refinement",
    "roll",
    "second_differences",
    "stable_substeps",
    "step_table",
]

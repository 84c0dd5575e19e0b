"""The likelihood of whole trajectories: models, one solver, and the reader."""

from doublewell.likelihood.follow import follow_law
from doublewell.likelihood.noise import NOISES, Noise, noise_view, outlier_mask
from doublewell.likelihood.read import beside_start, read_trajectories, read_trajectory, relinearise
from doublewell.likelihood.resolution import Resolution, measure_resolution
from doublewell.likelihood.setting import (
    check_record,
    check_view,
    check_window,
    complete,
    observed,
    record_model,
)
from doublewell.likelihood.steps import MOST_STEPS, Step, Watch
from doublewell.likelihood.trajectory import MOST_SUBSTEPS, Trajectory, first_substeps, growth
from doublewell.likelihood.view import PLAIN, Optics, View, Whitening

__all__ = [
    "MOST_STEPS",
    "MOST_SUBSTEPS",
    "NOISES",
    "PLAIN",
    "Noise",
    "Optics",
    "Resolution",
    "Step",
    "Trajectory",
    "View",
    "Watch",
    "Whitening",
    "beside_start",
    "check_record",
    "check_view",
    "check_window",
    "complete",
    "first_substeps",
    "follow_law",
    "growth",
    "measure_resolution",
    "noise_view",
    "observed",
    "outlier_mask",
    "read_trajectories",
    "read_trajectory",
    "record_model",
    "relinearise",
]
